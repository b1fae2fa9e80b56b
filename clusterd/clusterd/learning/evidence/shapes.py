"""The query keys of a host's URLs in their order, numbered: what an edit makes of all of them is some array operations.

A host whose URLs bear any of twenty parameters has about as many shapes as pages, so no edit is worked out shape by
shape. The hash of a shape is the sum, modulo 2^64, of each key's hash times a factor of its place (0 where there is
none); what is left of it when keys go is summed up the same way.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_crawler.urls import hash_of

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows

#: A query key: its name and which of the repeated ones.
ColumnKey = tuple[str, int]
Shape = tuple[ColumnKey, ...]

#: A factor for each place, odd so that no key's hash is lost; the last for whatever comes behind it.
PLACES: Final = np.array([hash_of(f"\x02{place}") | 1 for place in range(64)], np.uint64)


class Shapes:
    """Shapes numbered in the order in which they came, with a hash each."""

    def __init__(self) -> None:
        self.items: list[Shape] = []
        self.numbers: dict[Shape, int] = {}
        #: Number of a key, from 1 on, and the hash of each.
        self._keys: dict[ColumnKey, int] = {}
        self._key_hashes = array("Q", [0])
        #: A row of key numbers for each shape, filled up with zeros.
        self._table = np.zeros((0, 1), np.uint16)
        self._hashes = np.zeros(0, np.uint64)

    def number(self, shape: Shape) -> int:
        """Return the shape's number, a new one where it is new."""
        number = self.numbers.get(shape)
        if number is None:
            number = self.numbers[shape] = len(self.items)
            self.items.append(shape)
            for key in shape:
                if key not in self._keys:
                    self._keys[key] = len(self._key_hashes)
                    self._key_hashes.append(int(_key_hash(key)))
        return number

    def hashes(self) -> Hashes:
        """Return the hashes by number."""
        if len(self._hashes) < len(self.items):
            self._hashes = self._summed(*self._left(()))
        return self._hashes

    def hashes_left(self, without: Collection[ColumnKey], *, in_order: bool = False) -> Hashes:
        """Return, by number, the hashes of the shapes when keys are left out, and the others sorted by their names."""
        table, kept = self._left(without)
        if in_order:
            order = np.argsort(np.where(kept, self._ranks()[table], len(self._key_hashes)), axis=1, kind="stable")
            table, kept = np.take_along_axis(table, order, 1), np.take_along_axis(kept, order, 1)
        return self._summed(table, kept)

    def hashes_with(self, without: Collection[ColumnKey], then: ColumnKey) -> Hashes:
        """Return, by number, the hashes of the shapes when keys are left out and another is put at the end."""
        table, kept = self._left(without)
        found: Hashes = self._summed(table, kept) + _key_hash(then) * PLACES[kept.sum(axis=1)]
        return found

    def hashes_renamed(self, old: ColumnKey, new: ColumnKey) -> Hashes:
        """Return, by number, the hashes of the shapes when one key is called as another."""
        table, kept = self._left(())
        return self._summed(np.where(table == self._keys[old], self._keys[new], table), kept)

    def of_names(self, names: Collection[str]) -> Flags:
        """Say, by number, which shapes have no keys but of these names."""
        fits = np.array([True, *(name in names for name, _ in self._keys)], np.bool_)
        found: Flags = np.logical_and.reduce(fits[self._rows()], axis=1)
        return found

    def keys_of(self, numbers: Rows) -> list[ColumnKey]:
        """Return the keys of the shapes of these numbers, in the order in which they stand there."""
        present, first = np.unique(self._rows()[numbers].ravel(), return_index=True)
        keys = list(self._keys)
        return [keys[number - 1] for number in present[np.argsort(first)].tolist() if number]

    def _left(self, without: Collection[ColumnKey]) -> tuple[npt.NDArray[np.uint16], Flags]:
        """Return the table, and which of its keys stay."""
        gone = np.zeros(len(self._key_hashes), np.bool_)
        gone[[0, *(self._keys[key] for key in without if key in self._keys)]] = True
        table = self._rows()
        return table, ~gone[table]

    def _summed(self, table: npt.NDArray[np.uint16], kept: Flags) -> Hashes:
        places: Rows = np.cumsum(kept, axis=1) - kept
        terms = np.array(self._key_hashes, np.uint64)[table] * PLACES[places]
        found: Hashes = np.where(kept, terms, np.uint64(0)).sum(axis=1, dtype=np.uint64)
        return found

    def _ranks(self) -> Rows:
        """Return, by number of a key, the place of its name among all."""
        names = [name for name, _ in self._keys]
        ranks = {name: at for at, name in enumerate(sorted(set(names)))}
        return np.array([0, *(ranks[name] for name in names)], np.int64)

    def _rows(self) -> npt.NDArray[np.uint16]:
        """Return the table, with the shapes that are new."""
        known, width = self._table.shape
        if known < len(self.items):
            new = [[self._keys[key] for key in shape] for shape in self.items[known:]]
            wide = max(width, *map(len, new)) if new else width
            table = np.zeros((len(self.items), wide), np.uint16)
            table[:known, :width] = self._table
            for at, numbers in enumerate(new, known):
                table[at, : len(numbers)] = numbers
            self._table = table
        return self._table


def without(shape: Shape, keys: Collection[ColumnKey]) -> Shape:
    """Return what is left of a shape when keys are left out."""
    return tuple(key for key in shape if key not in keys)


def in_order(shape: Shape) -> Shape:
    """Return a shape with its keys sorted by their names, as the edit ``sort`` does."""
    return tuple(sorted(shape, key=lambda key: key[0]))


def has_names(shape: Shape) -> bool:
    """Whether each key has a name by which a condition can state it: ``12-any-title`` in ``?12-any-title`` has none."""
    return all(name for name, _ in shape)


def _key_hash(key: ColumnKey) -> np.uint64:
    return np.uint64(hash_of(f"\x02{key!r}"))
