"""A host's evidence while it is judged: its columns as arrays, in which accepted edits are made one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import TypeVar, cast

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, as_array, distinct
from clusterd.learning.evidence.columns import DEEPEST, Column, Evidence
from clusterd.learning.evidence.settled import Settled
from clusterd.learning.evidence.shapes import ColumnKey, Shape

Derived = TypeVar("Derived")


class Snapshot:
    """The evidence at one moment, with the edits of the rules accepted so far applied to its keys."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        #: What each page shows, and which crawls have seen it, a bit each (None: one crawl has seen them all).
        self.content, self.seen = evidence.seen_by.present(as_array(evidence.contents))
        self.path: Rows = as_array(evidence.path_numbers)
        self.shape: Rows = as_array(evidence.shape_numbers)
        self.columns = {key: LiveColumn(column) for key, column in evidence.columns.items()}
        self.key: Hashes = evidence.paths.table()[self.path] + evidence.shapes.hashes()[self.shape]
        for column in self.columns.values():
            self.key[column.rows] += column.hashes
        #: What became of the keys that accepted edits have changed.
        self.settled = Settled()
        #: Rows that were judged value by value, for each edited key anew (`narrowing`): what a lesson costs.
        self.judged = 0
        self._values: dict[ColumnKey, Rows] = {}
        self._derived: dict[str, object] = {}

    def __len__(self) -> int:
        return len(self.content)

    def copy(self) -> Snapshot:
        """Return the same evidence, on which edits can be accepted apart from this one."""
        twin = copy(self)
        twin.key, twin.path, twin.shape = self.key.copy(), self.path.copy(), self.shape.copy()
        twin.columns = {key: column.copy() for key, column in self.columns.items()}
        twin._values, twin._derived, twin.settled = dict(self._values), dict(self._derived), copy(self.settled)
        return twin

    def shape_of(self, row: int) -> Shape:
        """Return the query keys of a page, in order."""
        return self.evidence.shapes.items[int(self.shape[row])]

    def paths_present(self) -> Rows:
        """Return the numbers of the paths that pages have."""
        return self.derived("paths present", lambda: distinct(self.path))

    def paths_by_query(self, rows: Rows) -> Iterator[list[list[str]]]:
        """Yield the paths of pages, in components, those of one query together, where they differ.

        Without those of more than `DEEPEST` components.
        """
        paths, known = self.path[rows].tolist(), self.evidence.paths
        if len(set(paths)) == 1:
            return
        queries = self.derived("hashes without paths", lambda: self.key - known.table()[self.path])
        numbers: dict[int, dict[int, None]] = {}
        for query, path in zip(queries[rows].tolist(), paths, strict=True):
            numbers.setdefault(query, {})[path] = None
        for _, of_query in sorted(item for item in numbers.items() if len(item[1]) > 1):
            yield [parts for parts in map(known.parts, of_query) if len(parts) <= DEEPEST]

    def values(self, key: ColumnKey) -> Rows:
        """Return a query key's value number for every row, 0 where it is absent (or dropped by an accepted rule)."""
        known = self._values.get(key)
        if known is not None:
            return known
        column, dense = self.columns[key], np.zeros(len(self), np.int64)
        dense[column.rows[column.alive]] = column.values[column.alive]
        self._values[key] = dense
        return dense

    def text(self, key: ColumnKey, row: int) -> str:
        """Return the value of a query key that a row has."""
        return self.columns[key].column.text(int(self.values(key)[row]))

    def rows_with(self, key: ColumnKey, text: str) -> Flags:
        """Return the rows in which a query key has this value."""
        found: Flags = self.values(key) == self.columns[key].column.numbers.get(text, -1)
        return found

    def flags(self, rows: Rows) -> Flags:
        """Return flags that say of every row whether it is among these."""
        found = np.zeros(len(self), np.bool_)
        found[rows] = True
        return found

    def derived(self, name: str, derive: Callable[[], Derived]) -> Derived:
        """Return what is derived from the paths, once until the next edit is accepted."""
        if name not in self._derived:
            self._derived[name] = derive()
        return cast(Derived, self._derived[name])

    def changed(self, keys: Iterable[ColumnKey] = ()) -> None:
        """Forget what was derived from these columns, and from the paths, before an edit was accepted."""
        self._derived.clear()
        for key in keys:
            self._values.pop(key, None)


class LiveColumn:
    """A column as arrays; ``alive`` is false in rows where an accepted rule has dropped the key."""

    __slots__ = ("alive", "column", "hashes", "rows", "values")

    def __init__(self, column: Column) -> None:
        self.column = column
        self.rows: Rows = as_array(column.rows)
        self.values: Rows = as_array(column.values)
        self.hashes: Hashes = np.array(column.hashes, dtype=np.uint64)
        self.alive: Flags = np.ones(len(self.rows), np.bool_)

    def copy(self) -> LiveColumn:
        """Return the same column, to edit."""
        twin = copy(self)
        twin.values, twin.hashes, twin.alive = self.values.copy(), self.hashes.copy(), self.alive.copy()
        return twin

    def insert(self, rows: Rows, texts: Iterable[str], hashes: Hashes) -> None:
        """Give rows that had no entry the values of these texts, with their hashes."""
        at = np.searchsorted(self.rows, rows)
        numbers = [self.column.number(text) for text in texts]
        self.rows = np.insert(self.rows, at, rows)
        self.values = np.insert(self.values, at, np.array(numbers, np.int64))
        self.hashes = np.insert(self.hashes, at, hashes)
        self.alive = np.insert(self.alive, at, True)
