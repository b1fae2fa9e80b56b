"""Lists whose items are parameters, in any order: ``?tag=a&tag=b``, ``?f[]=a&f[]=b``, ``?f[0]=a&f[1]=b``.

Faceted search links each value with those that are chosen already, in the order in which they were (`item_orders`),
and most frameworks write each as a parameter of its own, under one name or with numbers. The values of such a list are
put in order; which of them has which number stays. No standard says that the order does not matter (``sort=a&sort=b``):
this needs the trials that any text needs (`spellings.is_guess`), and lists are judged, not proposed by pages.

Cost: a sort of the pages that have a second value, and a pass over their distinct lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from clusterd_crawler.rule_language.edits import BETWEEN_PAIRS, list_name
from clusterd_crawler.rules import Condition, Edit, Key
from clusterd_crawler.urls import UNNAMED, in_query

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows
from clusterd.learning.evidence.columns import PAIRS, VALUELESS, value_hash
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: A list as it is and as it is put in order: of each parameter the value, None where it is not there.
Pair = tuple[list[str | None], list[str | None]]


@dataclass(frozen=True, slots=True)
class Repeated:
    """The values of a parameter that is there several times, or numbered, are put in order."""

    #: What the first of them is called, and all in their order.
    name: str
    own: tuple[ColumnKey, ...]

    @property
    def needs(self) -> tuple[Condition, ...]:
        """That there is a second one."""
        return (Condition(Key(*self.own[1]), "any"),)

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The order."""
        return (Edit(Key(self.name), "items", BETWEEN_PAIRS),)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows whose values stand in another order."""
        at = np.flatnonzero(snapshot.values(self.own[1]))
        lists, which = self._lists(snapshot, at)
        return snapshot.flags(at[np.array([before != after for before, after in lists], np.bool_)[which]])

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Exchange the hashes of the values."""
        changed, at = snapshot.key.copy(), np.flatnonzero(rows)
        lists, which = self._lists(snapshot, at)
        before, after = (np.array([self._hash(pair[side]) for pair in lists], np.uint64) for side in (0, 1))
        changed[at] += (after - before)[which]
        return changed

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Put the values of the given rows in order."""
        snapshot.key, at = self.keys(snapshot, rows), np.flatnonzero(rows)
        lists, which = self._lists(snapshot, at)
        for place, key in enumerate(self.own):
            column = snapshot.columns[key]
            texts = [after[place] for _, after in lists]
            there = np.array([text is not None for text in texts], np.bool_)[which]
            numbers = [0 if text is None else column.column.number(text) for text in texts]
            hashes = [0 if text is None else value_hash(key, text) for text in texts]
            entries = np.searchsorted(column.rows, at[there])
            column.values[entries] = np.array(numbers, np.int64)[which[there]]
            column.hashes[entries] = np.array(hashes, np.uint64)[which[there]]

    def _lists(self, snapshot: Snapshot, at: Rows) -> tuple[list[Pair], Rows]:
        """Return the distinct lists of rows, and which of them each row has."""
        table = np.stack([snapshot.values(key)[at] for key in self.own], axis=1)
        distinct, which = np.unique(table, axis=0, return_inverse=True)
        columns = [snapshot.columns[key].column.texts for key in self.own]
        lists = [
            [texts[number] if number else None for texts, number in zip(columns, numbers, strict=True)]
            for numbers in distinct.tolist()
        ]
        return [(values, _in_order(values)) for values in lists], which.reshape(-1)

    def _hash(self, values: list[str | None]) -> int:
        """Return what a list adds to the hash of a page's key."""
        pairs = zip(self.own, values, strict=True)
        return sum(value_hash(key, text) for key, text in pairs if text is not None) % (1 << 64)


def repeated(snapshot: Snapshot) -> Iterator[Repeated]:
    """Yield the edit of each parameter that is there several times, or numbered."""
    lists: dict[str, list[tuple[int, ColumnKey]]] = defaultdict(list)
    for key in snapshot.columns:
        if in_query(key[0]) and key[0] != UNNAMED:
            name, number = list_name(key[0])
            lists[name].append((number, key))
    for name, keys in sorted(lists.items()):
        if 1 < len(keys) <= PAIRS:  # of more no page that serves as evidence has all
            yield Repeated(name, tuple(key for _, key in sorted(keys)))


def _in_order(values: list[str | None]) -> list[str | None]:
    """Return a list with its values in order; one with a key without ``=`` is none.

    >>> _in_order(["b", None, "a"]), _in_order(["b", VALUELESS])
    (['a', None, 'b'], ['b', '\\x00'])
    """
    if VALUELESS in values:
        return values
    ordered = iter(sorted(text for text in values if text is not None))
    return [None if text is None else next(ordered) for text in values]
