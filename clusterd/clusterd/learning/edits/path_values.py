"""Numbers in a path that are a parameter's value: ``thread-7-1-1.html`` is ``forum.php?mod=viewthread&tid=7``.

Koppula et al. 2010, algorithm 3, with a key reference from a query key to a deep token of the path (definition 2,
section 3.1.2): of two pages of one content one has no query, and a number in a component of its path is the value of a
parameter of the other. The rule writes the other's path and parameters; those that the path does not show are literals.
What a component is as a whole is said the other way round (`path_references`).

Cost: proposing is linear in the pages compared; judging is a pass over the paths of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from clusterd_crawler.rule_language.conditions import NUMBER as ANY_NUMBER
from clusterd_crawler.rule_language.conditions import stars
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.edit import shortened
from clusterd.learning.edits.path_fields import NUMBER, token_of
from clusterd.learning.edits.proposing import by_plain_pages
from clusterd.learning.evidence.arrays import Flags, Hashes, Rows
from clusterd.learning.evidence.columns import VALUELESS, value_hash
from clusterd.learning.evidence.shapes import ColumnKey, Shape
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 20
EDITS: Final = 4
#: What no value or component may hold that a rule states: it would stand for any.
_PLACEHOLDERS: Final = re.compile(r"[*#]")


@dataclass(frozen=True, slots=True)
class PathValue:
    """Write a path without a query as another path with the parameters of a shape, one of which has its number."""

    #: The components of the path that is edited, and which of them has the number: as a form, with `ANY_NUMBER` in it.
    parts: tuple[str, ...]
    at: int
    #: The path that is written, its query keys, the one that has the number, and the values of the others.
    path: str
    shape: Shape
    target: ColumnKey
    fixed: tuple[tuple[ColumnKey, str], ...]
    own: tuple[ColumnKey, ...] = ()

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The components, and that there is no query."""
        said = [
            Condition(component(at), "like" if at == self.at else "is", (part,)) for at, part in enumerate(self.parts)
        ]
        return (*said, Condition(Key(), "depth", (str(len(self.parts)),)), Condition(Key(), "only"))

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The parameters in their order, then the components that differ, and the deletion of those that are left."""
        source = component(self.at, deep=token_of(self.parts[self.at], 0))
        texts = dict(self.fixed)
        query = [
            Edit(Key(*key), "copy", source=source) if key == self.target else Edit(Key(*key), "set", texts[key])
            for key in self.shape
        ]
        new = self.path.split("/")
        path = [Edit(component(at), "set", part) for at, part in enumerate(new) if self.parts[at : at + 1] != (part,)]
        return (*query, *path, *shortened(len(self.parts), len(new)))

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows of the form, without a query and without a trace of one."""
        numbers = np.array(sorted(self._numbers(snapshot)), np.int64)
        found: Flags = np.isin(snapshot.path, numbers) & (snapshot.shape == snapshot.evidence.shapes.number(()))
        for key in self.shape:
            found[snapshot.columns[key].rows] = False
        return found

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Return the hashes of the path, the shape and the values that are written."""
        evidence = snapshot.evidence
        at = np.flatnonzero(rows)
        after = snapshot.key.copy()
        after[at] = evidence.paths.table()[evidence.paths.number(self.path)]
        after[at] += evidence.shapes.hashes()[evidence.shapes.number(self.shape)]
        for key in self.shape:
            after[at] += self._hashes(key, self._texts(snapshot, key, at))
        return after

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Give the given rows the path and the parameters."""
        at = np.flatnonzero(rows)
        texts = {key: self._texts(snapshot, key, at) for key in self.shape}
        snapshot.key = self.keys(snapshot, rows)
        snapshot.path[at] = snapshot.evidence.paths.number(self.path)
        snapshot.shape[at] = snapshot.evidence.shapes.number(self.shape)
        for key in self.shape:
            snapshot.columns[key].insert(at, texts[key], self._hashes(key, texts[key]))
        snapshot.changed(self.shape)

    def _texts(self, snapshot: Snapshot, key: ColumnKey, at: Rows) -> list[str]:
        """Return the values that a parameter has in rows after the edit."""
        if key != self.target:
            return [dict(self.fixed)[key]] * len(at)
        numbers = self._numbers(snapshot)
        return [numbers[path] for path in snapshot.path[at].tolist()]

    def _hashes(self, key: ColumnKey, texts: list[str]) -> Hashes:
        return np.array([value_hash(key, text) for text in texts], np.uint64)

    def _numbers(self, snapshot: Snapshot) -> dict[int, str]:
        """Return, of each path of the form, its number."""
        found = {}
        for path in snapshot.paths_present().tolist():
            number = self._number(snapshot.evidence.paths.parts(path))
            if number is not None:
                found[path] = number
        return found

    def _number(self, parts: list[str]) -> str | None:
        before, behind = self.parts[: self.at], self.parts[self.at + 1 :]
        if len(parts) != len(self.parts) or (*parts[: self.at],) != before or (*parts[self.at + 1 :],) != behind:
            return None
        found = stars(self.parts[self.at], parts[self.at])
        number = parts[self.at][slice(*found[0])] if found else ""
        return number if number.isdecimal() else None


def path_values(snapshot: Snapshot, clusters: Iterable[Rows]) -> list[PathValue]:
    """Return the edits that are worth judging, those of most contents first."""
    return by_plain_pages(snapshot, clusters, _between, PROPOSED, EDITS)


def _between(path: str, pairs: dict[ColumnKey, str], parts: list[str]) -> Iterator[PathValue]:
    """Yield what makes a path without a query a page with one: a number in the one is a value of the other."""
    if any(_PLACEHOLDERS.search(text) for text in (*parts, path)):
        return
    if any(text in {"", VALUELESS} or _PLACEHOLDERS.search(text) for text in pairs.values()):
        return
    for at, part in enumerate(parts):
        for number in NUMBER.finditer(part):
            form = part[: number.start()] + ANY_NUMBER + part[number.end() :]
            for target in [key for key, text in pairs.items() if form != ANY_NUMBER and text == number[0]]:
                fixed = tuple((key, text) for key, text in pairs.items() if key != target)
                yield PathValue((*parts[:at], form, *parts[at + 1 :]), at, path, tuple(pairs), target, fixed)
