"""Parameters whose values are components of another page's path: ``wiki.php?title=A&target=B+C`` is ``wiki.php/A/B_C``.

Koppula et al. 2010, algorithm 3, with key references from query keys to path components (definition 2) and a value
conversion: of two pages of one content one has no query, and components of its path are what parameters of the other
say, as they stand or with spaces written ``_``. The rule writes the path and drops the parameters; components that are
no parameter's value are literals, and so are the values of parameters that the path does not show.

Cost: proposing is linear in the pages compared; judging is a pass over the rows of the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from clusterd_crawler.rule_language.edits import as_component
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.edit import deletions, shortened
from clusterd.learning.edits.proposing import by_plain_pages
from clusterd.learning.evidence.arrays import Flags, Hashes, Rows
from clusterd.learning.evidence.columns import VALUELESS, path_hash
from clusterd.learning.evidence.shapes import ColumnKey, Shape
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose a reference before it is judged.
PROPOSED: Final = 4
#: Most references judged at a time.
REFERENCES: Final = 4
Conversion = Literal["copy", "underscore"]
#: How a value is written in a path, the plainest first.
CONVERSIONS: Final[tuple[Conversion, ...]] = ("copy", "underscore")


@dataclass(frozen=True, slots=True)
class PathReference:
    """Write the path from parameters, and drop all of them."""

    #: Path and query keys of the pages that are edited.
    path: str
    shape: Shape
    #: Parameters at stated values, which the new path does not show.
    fixed: tuple[tuple[ColumnKey, str], ...]
    #: The components of the new path: literals, or parameters.
    parts: tuple[str | ColumnKey, ...]
    conversion: Conversion
    own: tuple[ColumnKey, ...] = ()

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The path, the parameters, and that there are no others."""
        fixed = [Condition(Key(*key), "is", (text,)) for key, text in self.fixed]
        shown = [Condition(Key(*key), "any") for key in dict.fromkeys(self._sources)]
        return (Condition(Key(), "is", (self.path,)), *fixed, *shown)

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The components that differ, those that are too many, then the deletions."""
        before = self.path.split("/")
        edits = []
        for at, part in enumerate(self.parts):
            key = component(at)
            if not isinstance(part, str):
                edits.append(Edit(key, self.conversion, source=Key(*part)))
            elif at >= len(before) or before[at] != part:
                edits.append(Edit(key, "set", part))
        return (
            *edits,
            *shortened(len(before), len(self.parts)),
            *deletions(self.shape),
        )

    @property
    def _sources(self) -> list[ColumnKey]:
        return [part for part in self.parts if not isinstance(part, str)]

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows of the form with the stated values."""
        path = snapshot.evidence.paths.numbers.get(self.path, -1)
        wanted = sorted(self.shape)
        shapes = [number for number, shape in enumerate(snapshot.evidence.shapes.items) if sorted(shape) == wanted]
        found: Flags = (snapshot.path == path) & np.isin(snapshot.shape, shapes)
        for key, text in self.fixed:
            found &= snapshot.rows_with(key, text)
        return found

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Return the hashes of the paths that are written; no query adds nothing."""
        after = snapshot.key.copy()
        at = np.flatnonzero(rows)
        hashes = [path_hash(path) for path in self._paths(snapshot, at)]
        after[at] = np.array(hashes, np.uint64)
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Write the paths of the given rows, and drop their parameters."""
        after = self.keys(snapshot, rows)
        at = np.flatnonzero(rows)
        paths = [snapshot.evidence.paths.number(path) for path in self._paths(snapshot, at)]
        snapshot.key = after
        snapshot.path[at] = np.array(paths, np.int64)
        snapshot.shape[at] = snapshot.evidence.shapes.number(())
        for key in self.shape:
            column = snapshot.columns[key]
            column.alive &= ~rows[column.rows]
        snapshot.changed(self.shape)

    def _paths(self, snapshot: Snapshot, at: Rows) -> list[str]:
        columns: list[list[str]] = []
        for part in self.parts:
            if isinstance(part, str):
                columns.append([part] * len(at))
                continue
            texts = snapshot.columns[part].column.texts
            written = [as_component(self.conversion, text if text != VALUELESS else "") for text in texts]
            columns.append([written[number] for number in snapshot.values(part)[at].tolist()])
        return ["/".join(parts) for parts in zip(*columns, strict=True)]


def path_references(snapshot: Snapshot, clusters: Iterable[Rows]) -> list[PathReference]:
    """Return the references that are worth judging, those of most contents first."""
    return by_plain_pages(snapshot, clusters, _between, PROPOSED, REFERENCES)


def _between(path: str, pairs: dict[ColumnKey, str], parts: list[str]) -> Iterator[PathReference]:
    """Yield what makes a page with a query the page without one: at least one component is a parameter's value."""
    if any(not text or text == VALUELESS for text in pairs.values()):
        return
    before = path.split("/")
    for conversion in CONVERSIONS:
        said = {as_component(conversion, text): key for key, text in reversed(pairs.items())}
        shown = tuple(
            part if part == "" or before[at : at + 1] == [part] else said.get(part, part)
            for at, part in enumerate(parts)
        )
        sources = {part for part in shown if not isinstance(part, str)}
        if sources:
            fixed = tuple((key, text) for key, text in pairs.items() if key not in sources)
            yield PathReference(path, tuple(sorted(pairs)), fixed, shown, conversion)
