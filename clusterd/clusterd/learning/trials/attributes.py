"""The keys by which a context can be narrowed or closed: places in the path and parameters, as columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from clusterd_crawler.rules import FIRST_COMPONENT, Condition, Key

from clusterd.learning.edits.edit import CandidateEdit, PathEdit
from clusterd.learning.evidence.arrays import Flags, Rows, distinct
from clusterd.learning.evidence.columns import VALUELESS
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: Most values that a condition lists.
LISTED: Final = 400
#: Up to so many values of a key are few.
FEW_VALUES: Final = 16
#: Name of the key that is the number of a path's components.
DEPTH: Final = "depth"
#: Folders below the first two components by which a context is narrowed, and never closed: name, place from the start.
DEEPER: Final = (("third", 5), ("fourth", 6))


def one_of(key: Key, texts: Iterable[str]) -> Condition:
    """Return the condition that a key has one of these values."""
    found = tuple(sorted(texts))
    return Condition(key, "is" if len(found) == 1 else "in", found)


@dataclass(slots=True)
class Attribute:
    """A key that a context can restrict, as a value number for every row (0: absent)."""

    name: str
    values: Rows
    column: ColumnKey | None = None
    start: int = 0
    end: int = 0
    #: The values by number.
    texts: list[str] = field(default_factory=list)
    #: Numbers of values that a condition cannot tell apart: of a key without ``=``, and of nothing after it.
    alike: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        """The key as rules write it."""
        return Key(*self.column) if self.column is not None else Key(start=self.start, end=self.end)

    def written(self, numbers: Rows) -> Rows:
        """Return those of the values that a condition can name.

        A key without ``=`` (``?print``) is to a condition what it is with nothing after it: it names both, so neither
        where the host has one that is not among the values.
        """
        return numbers if np.isin(self.alike, numbers).all() else numbers[~np.isin(numbers, self.alike)]

    def condition(self, numbers: Rows) -> Condition | None:
        """Return the condition that the value is one of these, or None where they are too many to list."""
        absent = bool(len(numbers)) and int(numbers[0]) == 0
        named = {self.texts[number] for number in numbers.tolist() if number}
        texts = tuple(sorted({"" if text == VALUELESS else text for text in named}))
        if self.name == DEPTH:
            return Condition(Key(), "depth", tuple(sorted(texts, key=int))) if texts else None
        if len(texts) > LISTED:
            return None
        if not texts:
            return Condition(self.key, "absent")
        if absent:
            return Condition(self.key, "within", texts)
        return one_of(self.key, texts)

    def named(self, numbers: Rows) -> int:
        """Return how many values a condition names: of many, where the parameter has to be there, none but itself."""
        every = self.column is not None and numbers[0] > 0 and len(numbers) == int(self.values.max())
        return 1 if every and len(numbers) > FEW_VALUES else len(numbers)

    def stated(self, numbers: Rows) -> tuple[Rows, Condition | None]:
        """Return those of the values that a condition lets through, and the condition (None: too many to list)."""
        if self.named(numbers) < len(numbers):
            return numbers, Condition(self.key, "any")
        numbers = self.written(numbers)
        return numbers, self.condition(numbers)


def attributes(snapshot: Snapshot, edit: CandidateEdit, rows: Flags) -> Iterator[Attribute]:
    """Yield the keys that a context can be narrowed or closed by: places in the path, then parameters."""
    yield from path_attributes(snapshot)
    if isinstance(edit, PathEdit) and edit.beyond:
        yield _component(snapshot, f"component {edit.beyond}", edit.beyond, 0)
    for key in snapshot.evidence.shapes.keys_of(distinct(snapshot.shape[rows])):
        if key in snapshot.columns and key[0]:
            column = snapshot.columns[key].column
            alike = tuple(column.numbers[text] for text in (VALUELESS, "") if text in column.numbers)
            name = f"?{key[0]}#{key[1]}"
            yield Attribute(name, snapshot.values(key), column=key, texts=column.texts, alike=alike)


def path_attributes(snapshot: Snapshot) -> list[Attribute]:
    """Return the whole path, its first two components and its last."""
    places = (("path", 0, 0), ("first", 3, 0), ("second", 4, 0), ("last", 0, 1))
    return snapshot.derived("path attributes", lambda: [_component(snapshot, *place) for place in places])


def deeper_attributes(snapshot: Snapshot, rows: Flags) -> list[Attribute]:
    """Return the folders of these rows below the first two components (``/shop/en/shoes/7``: the parts are third)."""
    depths = depth_attribute(snapshot).values[rows]
    deepest = int(depths.max(initial=0)) + FIRST_COMPONENT - 1
    return [_component(snapshot, name, start, 0) for name, start in DEEPER if start < deepest]


def _component(snapshot: Snapshot, name: str, start: int, end: int) -> Attribute:
    components = snapshot.evidence.path_tables.components(start, end)
    table = components.table(snapshot.evidence.paths.items)
    return Attribute(name, table[snapshot.path], start=start, end=end, texts=components.texts)


def depth_attribute(snapshot: Snapshot) -> Attribute:
    """Return of how many components a path is as a key."""

    def depth() -> Attribute:
        depths = snapshot.evidence.path_tables.depths(snapshot.evidence.paths.items)[snapshot.path]
        return Attribute(DEPTH, depths, texts=[str(depth) for depth in range(int(depths.max(initial=0)) + 1)])

    return snapshot.derived(DEPTH, depth)
