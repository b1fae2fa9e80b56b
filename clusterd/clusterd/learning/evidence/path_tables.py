"""What is derived from a host's paths, kept while more of them come: a path is taken apart once, not once a candidate.

The tables go by path number (`columns.Paths`), are extended by the numbers that are new, and stay right whatever
edits a snapshot has accepted, since these only exchange numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from clusterd_crawler.rules import FIRST_COMPONENT

from clusterd.learning.evidence.arrays import Rows


class Components:
    """For every path the number of one of its components (0: it has none), and the texts by number."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._table = array("q")
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = [""]

    def table(self, items: Sequence[str]) -> Rows:
        """Return the numbers for all paths."""
        known, texts = self._numbers, self.texts
        new = items[len(self._table) :]
        if not self._start and not self._end:  # The paths themselves, which are distinct.
            self._table.extend(range(len(texts), len(texts) + len(new)))
            texts += new
            return np.array(self._table, np.int64)
        found: list[int] = []
        for text in self._components(new):
            number = 0 if text is None else known.get(text, -1)
            if text is not None and number < 0:
                number = known[text] = len(texts)
                texts.append(text)
            found.append(number)
        self._table.extend(found)
        return np.array(self._table, np.int64)

    def _components(self, paths: Sequence[str]) -> list[str | None]:
        if not self._start:
            return [path.rpartition("/")[2] for path in paths]
        at = self._start - FIRST_COMPONENT
        return [parts[at] if len(parts) > at else None for path in paths for parts in [path.split("/", at + 1)]]


class PathTables:
    """The tables of one host's evidence."""

    def __init__(self) -> None:
        self._components: dict[tuple[int, int], Components] = {}
        self._depths = array("q")

    def depths(self, items: Sequence[str]) -> Rows:
        """Return of how many components each of all paths is."""
        self._depths.extend(path.count("/") + 1 for path in items[len(self._depths) :])
        return np.array(self._depths, np.int64)

    def components(self, start: int, end: int) -> Components:
        """Return the table of a component: its place from the start or from the end; of (0, 0) the whole path."""
        return self._components.setdefault((start, end), Components(start, end))
