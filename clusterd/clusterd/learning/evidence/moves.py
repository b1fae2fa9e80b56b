"""What a host's paths become under an edit: each is edited once, not once a look.

They are numbered (`columns.Paths`), and numbers stay: what an edit made of one is right whatever came since, and
whatever edits a snapshot has accepted, since these only exchange numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Rows

#: Edits of which it is remembered what they make of each path; each costs a byte a path, and more for what it changes.
REMEMBERED: Final = 96


class Moves:
    """What paths become under one edit, as far as they were asked for."""

    def __init__(self) -> None:
        self._known = np.zeros(0, np.bool_)
        self._moved: dict[int, int] = {}

    def table(self, present: Rows, items: Sequence[str], move: Callable[[str], int | None]) -> Rows:
        """Return for every number what its path becomes; of paths that are not present, itself. None: it stays."""
        if len(self._known) < len(items):
            self._known = np.append(self._known, np.zeros(len(items) - len(self._known), np.bool_))
        for number in present[~self._known[present]].tolist():
            became = move(items[number])
            if became is not None:
                self._moved[number] = became
        self._known[present] = True
        mapped = np.arange(len(items), dtype=np.int64)
        if self._moved:
            size = len(self._moved)
            mapped[np.fromiter(self._moved.keys(), np.int64, size)] = np.fromiter(self._moved.values(), np.int64, size)
        return mapped


class Remembered:
    """The latest edits that were asked for, each known by what it says."""

    def __init__(self) -> None:
        self._moves: OrderedDict[object, Moves] = OrderedDict()

    def moves(self, said: object) -> Moves:
        """Return what is known of an edit."""
        found = self._moves.setdefault(said, Moves())
        self._moves.move_to_end(said)
        if len(self._moves) > REMEMBERED:
            self._moves.popitem(last=False)
        return found
