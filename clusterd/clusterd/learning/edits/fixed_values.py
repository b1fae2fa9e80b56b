"""Parameters dropped where they have stated values: ``dir/?C=N;O=A`` is ``dir/index.html``, ``?C=N;O=D`` is not.

Each of the parameters alone disagrees, the values together agree, so that no narrowing by one key after the other finds
them. Such edits are proposed with their values (`candidates`), and judged like any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from clusterd.learning.edits.both import BothAtIndex
from clusterd.learning.edits.edit import Drop, PathEdit
from clusterd.learning.evidence.arrays import Flags
from clusterd.learning.evidence.columns import VALUELESS
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose an edit before it is judged.
PROPOSED: Final = 4
#: Most edits with stated values that are judged at a time.
FIXED: Final = 12
#: Most parameters of which the values are stated together.
TOGETHER: Final = 4

#: Values of one parameter, those proposed most, of which each two are judged together.
JOINED: Final = 4

#: Of each parameter the numbers of its values.
Values = tuple[tuple[int, ...], ...]
#: Parameters with the number of their value.
FixedPairs = tuple[tuple[ColumnKey, int], ...]


@dataclass(frozen=True, slots=True)
class DropFixed(Drop):
    """Drop parameters, jointly, where those that are there have stated values (of each parameter one or several)."""

    fixed: tuple[tuple[int, ...], ...] = ()

    @property
    def at_any_value(self) -> Drop:
        """The same whichever values the parameters have."""
        return Drop(self.own)

    def fits(self, snapshot: Snapshot) -> Flags:
        """Return the rows in which no parameter has another value."""
        found = np.ones(len(snapshot), np.bool_)
        for key, numbers in zip(self.own, self.fixed, strict=True):
            found &= np.isin(snapshot.values(key), (0, *numbers))
        return found

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that have one of the parameters, and none with another value."""
        return Drop.rows(self, snapshot) & self.fits(snapshot)


@dataclass(frozen=True, slots=True)
class BothFixed(BothAtIndex):
    """An edit of the path, and one of the query where it has stated values, that hold only together."""

    query: DropFixed

    @property
    def at_any_value(self) -> BothAtIndex:
        """The same whichever values the parameters have."""
        return BothAtIndex(self.path, self.query.at_any_value)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that either changes, those left out in which a parameter has another value."""
        return BothAtIndex.rows(self, snapshot) & self.query.fits(snapshot)


def fixed_edits(
    snapshot: Snapshot, counted: Counter[tuple[str, FixedPairs]], index: dict[str, PathEdit]
) -> Iterator[DropFixed | BothFixed]:
    """Yield the edits that enough contents propose, the best supported first.

    Counted is the name of an index page that the other page ended in ("" where both had one path), with the pairs.
    """
    written = Counter({what: count for what, count in counted.items() if _written(snapshot, what[1])})
    sets: Counter[tuple[str, tuple[ColumnKey, ...], Values]] = Counter()
    for (name, pairs), count in written.items():
        sets[name, tuple(key for key, _ in pairs), tuple((number,) for _, number in pairs)] = count
    for what, count in _together(written).items():
        sets[what] = count
    ranked = sorted(sets.items(), key=lambda item: (-item[1], item[0]))
    for (name, own, values), support in ranked[:FIXED]:
        if support >= PROPOSED:
            edit = DropFixed(own, fixed=values)
            yield BothFixed(index[name], edit) if name else edit


def _together(counted: Counter[tuple[str, FixedPairs]]) -> Counter[tuple[str, tuple[ColumnKey, ...], Values]]:
    """Join what differs in the value of one parameter: ``?C=N;O=A`` and ``?C=D;O=A`` are one page with the index.

    Judged together they have more trials than each alone: any two of them that were fetched are one.
    """
    joined: dict[tuple[str, int, FixedPairs], list[tuple[FixedPairs, int]]] = defaultdict(list)
    for (name, pairs), count in counted.items():
        for at in range(len(pairs)):
            joined[name, at, pairs[:at] + pairs[at + 1 :]].append((pairs, count))
    found: Counter[tuple[str, tuple[ColumnKey, ...], Values]] = Counter()
    for (name, at, _), several in joined.items():
        several.sort(key=lambda known: (-known[1], known[0]))
        for (one, times), (other, count) in combinations(several[:JOINED], 2):
            numbers = tuple(sorted((one[at][1], other[at][1])))
            values = tuple(numbers if place == at else (number,) for place, (_, number) in enumerate(one))
            found[name, tuple(key for key, _ in one), values] = times + count
    return found


def _written(snapshot: Snapshot, pairs: FixedPairs) -> bool:
    return not any(
        key[0].startswith(";") or snapshot.columns[key].column.text(number) == VALUELESS for key, number in pairs
    )
