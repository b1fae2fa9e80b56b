"""An edit of the path and one of the query that hold only together: ``dir/index.html`` is ``dir/?C=N;O=A``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.aliases import Alias
from clusterd.learning.edits.edit import CandidateEdit, Drop, PathEdit, unmoved
from clusterd.learning.evidence.arrays import Flags, Hashes
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Both:
    """An edit of the path and one of the query that hold only together."""

    path: PathEdit
    query: Drop

    @property
    def own(self) -> tuple[ColumnKey, ...]:
        """The parameters dropped."""
        return self.query.own

    @property
    def needs(self) -> tuple[Condition, ...]:
        """What either needs."""
        return self.path.needs + self.query.needs

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The edits of both."""
        return self.path.transformation + self.query.transformation

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that either changes."""
        changed: Flags = self.path.rows(snapshot) | self.query.rows(snapshot)
        return changed & unmoved(snapshot, self.own)

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Add up what both change: they touch different parts of the sum."""
        changed = self.path.keys(snapshot, rows) - snapshot.key
        return self.query.keys(snapshot, rows) + changed

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Make both edits of the given rows."""
        self.path.commit(snapshot, rows)
        self.query.commit(snapshot, rows)


@dataclass(frozen=True, slots=True)
class BothAtIndex(Both):
    """The same where the path is that of an index page: ``dir/index.html`` is ``dir/?C=N;O=A``."""

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The component that is exchanged, or what it is exchanged for."""
        (condition,), ends = self.path.needs, self._ends
        return (Condition(condition.key, "in", tuple(sorted(ends))),)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that either changes, among those that end in one of the two components."""
        ends, items = self._ends, snapshot.evidence.paths.items
        meant = np.array([path.rpartition("/")[2] in ends for path in items], np.bool_)
        found: Flags = Both.rows(self, snapshot) & meant[snapshot.path]
        return found

    @property
    def _ends(self) -> set[str]:
        (condition,), (edit,) = self.path.needs, self.path.transformation
        return {edit.value, *condition.values}


@dataclass(frozen=True, slots=True)
class BothThere(Both):
    """The same where all of the parameters are there: ``index2.php?id=5&pop=1`` is ``index.php?id=5``."""

    @property
    def needs(self) -> tuple[Condition, ...]:
        """What the edit of the path needs, and the parameters."""
        return (*self.path.needs, *(Condition(Key(*key), "any") for key in self.own))

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return the rows that both change, and that have all of the parameters."""
        found = self.path.rows(snapshot) & unmoved(snapshot, self.own)
        for key in self.own:
            found &= snapshot.values(key) > 0
        return found


def alias_of(edit: CandidateEdit) -> Alias | None:
    """Return the alias that an edit is, or makes where it drops parameters; None where it is none."""
    path = edit.path if isinstance(edit, BothThere) else edit
    return path if isinstance(path, Alias) else None
