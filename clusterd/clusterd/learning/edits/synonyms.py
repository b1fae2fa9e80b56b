"""Two names of one parameter: ``?ID=5`` is ``?id=5``, ``?page_id=5`` is ``?p=5``.

Koppula et al. 2010, algorithm 3, with a key reference (definition 2) to a whole value: of two pages of one content one
has a parameter where the other has one of another name and the same value, and nothing else differs. The name that
more pages bear stands for both, or that which did so far.

Cost: proposing is linear in the pages compared; judging is a pass over the rows that have the other name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key
from clusterd_crawler.urls import UNNAMED

from clusterd.learning.edits.edit import chosen_of, renumber, reshape
from clusterd.learning.edits.proposing import ranked
from clusterd.learning.edits.references import Compared
from clusterd.learning.evidence.arrays import Flags, Hashes
from clusterd.learning.evidence.columns import value_hash
from clusterd.learning.evidence.shapes import ColumnKey, Shape
from clusterd.learning.evidence.snapshot import LiveColumn, Snapshot

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 4
EDITS: Final = 4
#: Fewest values that both names were seen with: ``?full=1`` and ``?mark=1`` may both be any page as it is.
VALUES: Final = 2


@dataclass(frozen=True, slots=True)
class Synonym:
    """Call a parameter by its other name, where nothing has that."""

    gone: ColumnKey
    kept: ColumnKey

    @property
    def own(self) -> tuple[ColumnKey, ...]:
        """The parameter that is called by another name."""
        return (self.gone,)

    @property
    def needs(self) -> tuple[Condition, ...]:
        """That the other name is not there."""
        return (Condition(Key(*self.gone), "any"), Condition(Key(*self.kept), "absent"))

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The new name."""
        return (Edit(Key(*self.gone), "rename", self.kept[0]),)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows with the one name and not the other."""
        found: Flags = snapshot.values(self.gone) > 0
        found[snapshot.columns[self.kept].rows] = False
        return found

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Exchange the hashes of the values, and the shapes'."""
        after = snapshot.key.copy()
        column = snapshot.columns[self.gone]
        chosen = chosen_of(column, rows)
        after[column.rows[chosen]] += self._hashes(column)[column.values[chosen]] - column.hashes[chosen]
        reshape(after, snapshot, rows, snapshot.evidence.shapes.hashes_renamed(self.gone, self.kept))
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Let the given rows have the value under the other name."""
        snapshot.key = self.keys(snapshot, rows)
        renumber(snapshot, rows, self._renamed)
        column = snapshot.columns[self.gone]
        chosen = chosen_of(column, rows)
        texts = [column.column.texts[value] for value in column.values[chosen].tolist()]
        snapshot.columns[self.kept].insert(column.rows[chosen], texts, self._hashes(column)[column.values[chosen]])
        column.alive &= ~chosen
        snapshot.changed((self.kept, self.gone))

    def _renamed(self, shape: Shape) -> Shape:
        return tuple([self.kept if key == self.gone else key for key in shape])

    def _hashes(self, column: LiveColumn) -> Hashes:
        """Return the hash of each value of the column under the other name."""
        return np.array([value_hash(self.kept, text) for text in column.column.texts], np.uint64)


def synonyms(snapshot: Snapshot, contents: Iterable[Sequence[Compared]]) -> list[Synonym]:
    """Return the edits that are worth judging, those of most contents first; of each two ways that by the rarer name.

    Whichever way holds leaves the other nothing to do. The one by the commoner name leads from the pages to which other
    rules lead, which may be the only ones that have their spelling.
    """
    counts: Counter[tuple[ColumnKey, ColumnKey]] = Counter()
    values: dict[tuple[ColumnKey, ColumnKey], set[str]] = defaultdict(set)
    for pages in contents:
        found = set()
        for one, other, plan in pages:
            value = snapshot.text(plan.target, other)
            if len(plan.less) == 1 and snapshot.text(plan.less[0], one) == value:
                first, second = sorted((plan.target, plan.less[0]))
                found.add((first, second))
                values[first, second].add(value)
        counts.update(found)
    often = [pair for pair in ranked(counts, PROPOSED) if len(values[pair]) >= VALUES]
    return [edit for pair in often[:EDITS] for edit in _both_ways(snapshot, *pair)]


def _both_ways(snapshot: Snapshot, first: ColumnKey, second: ColumnKey) -> list[Synonym]:
    ways = [way for way in (Synonym(second, first), Synonym(first, second)) if _is_name(way.kept[0])]
    return sorted(ways, key=lambda way: np.count_nonzero(snapshot.values(way.gone)))


def _is_name(text: str) -> bool:
    """Whether something can be called so: a rule set of which one rule cannot be read is refused as a whole.

    (``amp;y`` is what a link with ``&amp;amp;y=1`` has.)
    """
    return text != UNNAMED and ";" not in text
