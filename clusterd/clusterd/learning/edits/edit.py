"""Candidate edits of URLs, applied to the columns of a `Snapshot`: the same edit on every row at once.

An edit knows which rows it changes, the keys that result, and how to make the change stay when its rule is accepted,
so that the next candidate is judged on top of it (joint tests). What it does to a URL is said by `transformation`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from clusterd_crawler.rule_language.edits import ANY_VALUE
from clusterd_crawler.rule_language.keys import PASSES
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, distinct
from clusterd.learning.evidence.columns import value_hash
from clusterd.learning.evidence.moves import Moves
from clusterd.learning.evidence.shapes import ColumnKey, Shape, in_order, without
from clusterd.learning.evidence.snapshot import LiveColumn, Snapshot


class CandidateEdit(Protocol):
    """What a rule would do to URLs."""

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The edits as a rule says them."""
        ...

    @property
    def own(self) -> tuple[ColumnKey, ...]:
        """The query keys that are edited: a rule is applied to their values seen in its evidence."""
        ...

    @property
    def needs(self) -> tuple[Condition, ...]:
        """Conditions without which the edit is not meant."""
        ...

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return which rows the edit changes."""
        ...

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Return all keys after the edit of the given rows."""
        ...

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Make the edit of the given rows part of the snapshot."""
        ...


def movers(own: Iterable[ColumnKey], known: Container[ColumnKey]) -> list[ColumnKey]:
    """Return the parameters that take the place of deleted ones: less the first ``a`` of two, the second is the first.

    A page that has one is no page of the deletion: what is left would be read as another page's URL, and edited again.

    >>> movers([("a", 1), ("b", 1), ("b", 2)], {("a", 1), ("a", 2), ("b", 1), ("b", 2)})
    [('a', 2)]
    """
    gone = set(own)
    behind = sorted({(name, occurrence + 1) for name, occurrence in gone} - gone)
    return [key for key in behind if key in known]


def having(snapshot: Snapshot, keys: Iterable[ColumnKey]) -> Flags:
    """Return the rows that have one of the parameters."""
    found = np.zeros(len(snapshot), np.bool_)
    for key in keys:
        column = snapshot.columns[key]
        found[column.rows[column.alive]] = True
    return found


def unmoved(snapshot: Snapshot, own: Iterable[ColumnKey]) -> Flags:
    """Return the rows in which no parameter takes the place of one of these, were they deleted."""
    return ~having(snapshot, movers(own, snapshot.columns))


def chosen_of(column: LiveColumn, rows: Flags) -> Flags:
    """Return which entries of a column are of the given rows."""
    chosen: Flags = column.alive & rows[column.rows]
    return chosen


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop parameters, jointly."""

    own: tuple[ColumnKey, ...]
    needs: tuple[Condition, ...] = ()

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The deletions."""
        return deletions(self.own)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that have one of the parameters, and none that would take its place."""
        return having(snapshot, self.own) & unmoved(snapshot, self.own)

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Subtract the parameters' hashes and exchange the shapes'."""
        after = snapshot.key.copy()
        for key in self.own:
            column = snapshot.columns[key]
            chosen = chosen_of(column, rows)
            after[column.rows[chosen]] -= column.hashes[chosen]
        reshape(after, snapshot, rows, self._shapes(snapshot))
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Drop the parameters in the given rows."""
        snapshot.key = self.keys(snapshot, rows)
        renumber(snapshot, rows, self._left)
        for key in self.own:
            column = snapshot.columns[key]
            column.alive &= ~chosen_of(column, rows)

    def _shapes(self, snapshot: Snapshot) -> Hashes:
        return snapshot.evidence.shapes.hashes_left(self.own)

    def _left(self, shape: Shape) -> Shape:
        return without(shape, self.own)


@dataclass(frozen=True, slots=True)
class DropUnordered(Drop):
    """Drop parameters (or none) where the order of the others does not matter either."""

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The deletions, then the order."""
        return (*deletions(self.own), Edit(Key(), "sort"))

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that have one of the parameters, or whose parameters are not in order."""
        changed = reshaped(snapshot, self._shapes(snapshot))
        return changed & unmoved(snapshot, self.own)

    def _shapes(self, snapshot: Snapshot) -> Hashes:
        return snapshot.evidence.shapes.hashes_left(self.own, in_order=True)

    def _left(self, shape: Shape) -> Shape:
        return in_order(without(shape, self.own))


@dataclass(frozen=True, slots=True)
class Blank:
    """Make the values of parameters one: present or absent stays, which value does not matter."""

    own: tuple[ColumnKey, ...]

    @property
    def needs(self) -> tuple[Condition, ...]:
        """That all of several parameters are there: of ``a=1&b=2`` and ``a=3&b=4`` nothing is known of ``a=1``."""
        return tuple(Condition(Key(*key), "any") for key in self.own) if len(self.own) > 1 else ()

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The placeholders."""
        return tuple(Edit(Key(name, occurrence), "set", ANY_VALUE) for name, occurrence in self.own)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that have all of the parameters (the edit would add those that are absent)."""
        found = np.ones(len(snapshot), np.bool_)
        for key in self.own:
            found &= snapshot.values(key) > 0
        return found

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Exchange the parameters' hashes for one."""
        after = snapshot.key.copy()
        for key in self.own:
            column = snapshot.columns[key]
            chosen = chosen_of(column, rows)
            after[column.rows[chosen]] += np.uint64(value_hash(key, ANY_VALUE)) - column.hashes[chosen]
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Make the values one in the given rows: it is what later rules find there, in their contexts as well."""
        snapshot.key = self.keys(snapshot, rows)
        for key in self.own:
            column = snapshot.columns[key]
            chosen = chosen_of(column, rows)
            column.hashes[chosen] = value_hash(key, ANY_VALUE)
            column.values[chosen] = column.column.number(ANY_VALUE)


@dataclass(frozen=True, slots=True)
class Rewrite(ABC):
    """A parameter's value is written anew, by what it says."""

    own: tuple[ColumnKey, ...]

    @abstractmethod
    def written(self, text: str) -> str:
        """Return a value as it is written anew."""

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows whose value is written another way."""
        column = snapshot.columns[self.own[0]]
        numbers = [number for number, text in enumerate(column.column.texts) if self.written(text) != text]
        return snapshot.flags(column.rows[column.alive & np.isin(column.values, np.array(numbers, np.int64))])

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Exchange the hashes of the values."""
        after, column = snapshot.key.copy(), snapshot.columns[self.own[0]]
        chosen = np.flatnonzero(chosen_of(column, rows))
        after[column.rows[chosen]] += self._hashes(column, chosen) - column.hashes[chosen]
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Write the values of the given rows anew: later edits find them as the crawler will."""
        snapshot.key = self.keys(snapshot, rows)
        column = snapshot.columns[self.own[0]]
        chosen = np.flatnonzero(chosen_of(column, rows))
        column.hashes[chosen] = self._hashes(column, chosen)
        texts, which = self._texts(column, chosen)
        column.values[chosen] = np.array([column.column.number(text) for text in texts], np.int64)[which]

    def _texts(self, column: LiveColumn, chosen: Rows) -> tuple[list[str], Rows]:
        """Return the distinct values of rows as they are written anew, and which of them each row has."""
        numbers, which = np.unique(column.values[chosen], return_inverse=True)
        texts = column.column.texts
        return [self.written(texts[number]) for number in numbers.tolist()], which

    def _hashes(self, column: LiveColumn, chosen: Rows) -> Hashes:
        texts, which = self._texts(column, chosen)
        return np.array([value_hash(self.own[0], text) for text in texts], np.uint64)[which]


@dataclass(frozen=True, slots=True)
class Replace(Rewrite):
    """One value of a parameter means the same as another."""

    number: int
    gone: str
    kept: str

    @property
    def at_any_value(self) -> Drop:
        """Dropping the parameter, whichever value it has."""
        return Drop(self.own)

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The value that goes."""
        return (Condition(Key(*self.own[0]), "is", (self.gone,)),)

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The value that stands in its place."""
        return (Edit(Key(*self.own[0]), "set", self.kept),)

    def written(self, text: str) -> str:
        """Return the one value for the other."""
        return self.kept if text == self.gone else text

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows with the value that goes: as `Rewrite` does, without a look at all values."""
        found: Flags = snapshot.values(self.own[0]) == self.number
        return found


@dataclass(frozen=True, slots=True)
class PathEdit:
    """Edit the path: ``change`` returns the components after the edit, or None where it does not apply."""

    transformation: tuple[Edit, ...]
    change: Callable[[list[str]], list[str] | None]
    #: Conditions without which the edit is not meant.
    needs: tuple[Condition, ...] = ()
    own: tuple[ColumnKey, ...] = ()
    #: Place from the start of a further component that the context is narrowed and closed by (0: none).
    beyond: int = 0

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows whose path changes."""
        paths = self._paths(snapshot, snapshot.paths_present())
        changed: Flags = paths[snapshot.path] != snapshot.path
        return changed

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Exchange the paths' hashes."""
        after, before = snapshot.key.copy(), snapshot.path[rows]
        became = self._paths(snapshot, distinct(before))[before]
        hashes = snapshot.evidence.paths.table()  # of the paths, too, that the edit has just made
        after[rows] += hashes[became] - hashes[before]
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Edit the paths of the given rows."""
        snapshot.key = self.keys(snapshot, rows)
        before = snapshot.path[rows]
        snapshot.path[rows] = self._paths(snapshot, distinct(before))[before]

    def _paths(self, snapshot: Snapshot, among: Rows) -> Rows:
        """Return for every number what its path becomes, if it is among these, each once."""
        paths = snapshot.evidence.paths

        def move(path: str) -> int | None:
            parts = path.split("/")
            for _ in range(PASSES):  # as a crawl does, until nothing changes
                changed = self.change(parts)
                if changed is None or changed == parts:
                    break
                parts = changed
            else:
                return None  # and the path is its own key
            found = "/".join(parts)
            return None if found == path else paths.number(found)

        # What says where it applies is known by what it says; of other edits nothing is remembered.
        moves = snapshot.evidence.path_moves.moves((self.transformation, self.needs)) if self.needs else Moves()
        return moves.table(among, paths.items, move)


def deletions(own: Iterable[ColumnKey]) -> tuple[Edit, ...]:
    """Return the deletions of parameters; of repeated ones the last first, so that the numbers of the others stay."""
    ordered = sorted(own, key=lambda key: (key[0], -key[1]))
    return tuple(Edit(Key(name, occurrence), "delete") for name, occurrence in ordered)


def shortened(before: int, after: int) -> tuple[Edit, ...]:
    """Return the deletions that leave so many components of a path, the last first, so that places stay."""
    return tuple(Edit(component(at), "delete") for at in reversed(range(after, before)))


def reshaped(snapshot: Snapshot, hashes: Hashes) -> Flags:
    """Say which rows have another shape where each shape has these hashes."""
    changed: Flags = (hashes != snapshot.evidence.shapes.hashes())[snapshot.shape]
    return changed


def reshape(after: Hashes, snapshot: Snapshot, rows: Flags, hashes: Hashes) -> None:
    """Exchange, in the given rows, the hash of the shape for another."""
    after[rows] += (hashes - snapshot.evidence.shapes.hashes())[snapshot.shape[rows]]


def renumber(snapshot: Snapshot, rows: Flags, change: Callable[[Shape], Shape]) -> None:
    """Give the given rows the shapes that theirs become."""
    shapes = snapshot.evidence.shapes
    numbers, which = np.unique(snapshot.shape[rows], return_inverse=True)
    became = [shapes.number(change(shapes.items[number])) for number in numbers.tolist()]
    snapshot.shape[rows] = np.array(became, np.int64)[which]
