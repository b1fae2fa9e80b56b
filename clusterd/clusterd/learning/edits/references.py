"""Parameters that say what another one says already: ``id=ns:page&do=index`` is ``id=ns:page&idx=ns``.

Koppula et al. 2010, algorithm 3, with a key reference (definition 2) to a deep token (section 3.1.2): of two pages of
one content one has a parameter whose value is another parameter's value, or its part before or behind a delimiter, and
the other page has fixed parameters in its place, or none. The rule writes the reference for the fixed ones.

Cost: proposing is linear in the pages compared; judging is a pass over the rows that have the fixed parameters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.edit import chosen_of, deletions, renumber, reshape, unmoved
from clusterd.learning.edits.proposing import in_pairs, is_plain
from clusterd.learning.evidence.arrays import Flags, Hashes, Rows
from clusterd.learning.evidence.columns import VALUELESS, value_hash
from clusterd.learning.evidence.shapes import ColumnKey, Shape, without
from clusterd.learning.evidence.snapshot import LiveColumn, Snapshot

#: Fewest contents that propose a reference before it is judged.
PROPOSED: Final = 4
#: Most pages of one content that are compared, and most references judged at a time.
COMPARED: Final = 20
REFERENCES: Final = 8
_DELIMITER: Final = re.compile(r"[:/.,_~-]")

#: A query key with a value.
Pair = tuple[ColumnKey, str]


@dataclass(frozen=True, slots=True)
class Reference:
    """Write ``target`` as a part of ``source`` in the place of fixed parameters."""

    target: ColumnKey
    source: ColumnKey
    #: "" for the whole value; else the part before (1) or behind (3) its first delimiter.
    delimiter: str = ""
    part: int = 0
    dropped: tuple[Pair, ...] = ()
    own: tuple[ColumnKey, ...] = ()

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The fixed parameters, the delimiter, and that the target is not there."""
        fixed = [Condition(Key(*key), "is", (text,)) for key, text in self.dropped]
        pattern = [Condition(Key(*self.source), "like", (f"*{self.delimiter}*",))] if self.delimiter else []
        return (*fixed, *pattern, Condition(Key(*self.target), "absent"))

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The deletions, then the reference."""
        gone = deletions(key for key, _ in self.dropped)
        source = Key(self.source[0], self.source[1], deep=self.part)
        return (*gone, Edit(Key(*self.target), "copy", source=source))

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows with the fixed parameters, a source that has the part, and no target."""
        source = snapshot.columns[self.source]
        parts = self._parts(source)
        found = np.zeros(len(snapshot), np.bool_)
        wanted = np.array([text is not None for text in parts], np.bool_)
        found[source.rows[source.alive & wanted[source.values]]] = True
        for key, text in self.dropped:
            found &= snapshot.rows_with(key, text)
        found[snapshot.columns[self.target].rows] = False
        return found & unmoved(snapshot, [key for key, _ in self.dropped])

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Take the fixed parameters' hashes away, add the target's, exchange the shapes'."""
        after = snapshot.key.copy()
        for key, _ in self.dropped:
            column = snapshot.columns[key]
            chosen = chosen_of(column, rows)
            after[column.rows[chosen]] -= column.hashes[chosen]
        source = snapshot.columns[self.source]
        chosen = chosen_of(source, rows)
        after[source.rows[chosen]] += self._hashes(source)[source.values[chosen]]
        reshape(after, snapshot, rows, snapshot.evidence.shapes.hashes_with(self._gone, self.target))
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Write the target into the given rows, in the place of the fixed parameters."""
        snapshot.key = self.keys(snapshot, rows)
        source, target = snapshot.columns[self.source], snapshot.columns[self.target]
        parts = self._parts(source)
        chosen = chosen_of(source, rows)
        texts = [parts[value] or "" for value in source.values[chosen].tolist()]
        target.insert(source.rows[chosen], texts, self._hashes(source)[source.values[chosen]])
        renumber(snapshot, rows, self._referring)
        for key, _ in self.dropped:
            column = snapshot.columns[key]
            column.alive &= ~rows[column.rows]
        snapshot.changed((self.target, *self._gone))

    def _referring(self, shape: Shape) -> Shape:
        return (*without(shape, self._gone), self.target)

    @property
    def _gone(self) -> tuple[ColumnKey, ...]:
        return tuple(key for key, _ in self.dropped)

    def _parts(self, source: LiveColumn) -> list[str | None]:
        """Return, for each value number of the source, the part that is meant."""
        return [None, *(self._part(text) for text in source.column.texts[1:])]

    def _part(self, text: str) -> str | None:
        if text == VALUELESS or not text:
            return None
        if not self.delimiter:
            return text
        before, found, behind = text.partition(self.delimiter)
        return (before if self.part == 1 else behind) or None if found else None

    def _hashes(self, source: LiveColumn) -> Hashes:
        parts = self._parts(source)
        return np.array([value_hash(self.target, part or "") for part in parts], np.uint64)


#: Two rows of one content and one path, and how their parameters differ.
Compared = tuple[int, int, "Plan"]


def references(snapshot: Snapshot, contents: Iterable[Sequence[Compared]]) -> list[Reference]:
    """Return the references that are worth judging, those of most contents first."""
    counts: Counter[Reference] = Counter()
    for pages in contents:
        counts.update(dict.fromkeys(chain.from_iterable(_between(snapshot, *both) for both in pages), 1))
    return [found for found, count in counts.most_common(REFERENCES) if count >= PROPOSED]


def compared(snapshot: Snapshot, rows: Rows, plans: Plans) -> Iterator[Compared]:
    """Yield pages of one content and one path of which the second has one parameter that the first has not."""
    shape = snapshot.shape[rows]
    if (shape == shape[0]).all():
        return  # None has a parameter more than another.
    # The first row of each key, with its shape, by path.
    firsts: dict[int, dict[int, tuple[int, int]]] = {}
    paths, keys = snapshot.path[rows].tolist(), snapshot.key[rows].tolist()
    for row, number, path, key in zip(rows.tolist(), shape.tolist(), paths, keys, strict=True):
        firsts.setdefault(path, {}).setdefault(key, (row, number))
    for chosen in firsts.values():
        for pair in in_pairs(list(chosen.values())[:COMPARED]):
            for fixed, referring in (pair, pair[::-1]):
                plan = plans.of(fixed[1], referring[1])
                if plan is not None and plan.agree(snapshot, fixed[0], referring[0]):
                    yield fixed[0], referring[0], plan


@dataclass(frozen=True, slots=True)
class Plan:
    """What a page of one shape has to be compared in with one of another: a parameter more, some less, the rest."""

    target: ColumnKey
    less: tuple[ColumnKey, ...]
    shared: tuple[ColumnKey, ...]

    def agree(self, snapshot: Snapshot, first: int, second: int) -> bool:
        """Whether two pages agree in the rest."""
        for key in self.shared:
            values = snapshot.values(key)
            if values[first] != values[second]:
                return False
        return True


class Plans:
    """The plans of a host's pairs of shapes: they are few, and so is what they say worked out once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._shapes = snapshot.evidence.shapes.items
        self._known: dict[tuple[int, int], Plan | None] = {}

    def of(self, fixed: int, referring: int) -> Plan | None:
        """Return the plan for two shapes, by number; None where no reference makes the one the other."""
        both = fixed, referring
        if both not in self._known:
            self._known[both] = self._made(self._shapes[fixed], self._shapes[referring])
        return self._known[both]

    def _made(self, fixed: Shape, referring: Shape) -> Plan | None:
        more = [key for key in referring if key not in fixed]
        less = tuple([key for key in fixed if key not in referring])
        if len(more) != 1 or len(less) > 2:
            return None
        shared = tuple([key for key in fixed if key in referring])
        named = all(is_plain(key) for key in (*shared, *less, more[0]))
        return Plan(more[0], less, shared) if named else None


def _between(snapshot: Snapshot, fixed: int, referring: int, plan: Plan) -> Iterator[Reference]:
    """Yield what makes the first page the second: one parameter more, which refers, and some fixed ones less."""
    value = snapshot.text(plan.target, referring)
    dropped = tuple([(key, snapshot.text(key, fixed)) for key in plan.less])
    if not value or value == VALUELESS or VALUELESS in {text for _, text in dropped}:
        return
    for source in plan.shared:
        text = snapshot.text(source, fixed)
        if value not in text:
            continue
        if text == value:
            yield Reference(plan.target, source, dropped=dropped)
        found = _DELIMITER.search(text)
        if found:
            for part, piece in ((1, text[: found.start()]), (3, text[found.end() :])):
                if piece == value:
                    yield Reference(plan.target, source, found[0], part, dropped)
