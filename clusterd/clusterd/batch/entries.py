"""Divide, sort, merge (Broder et al. 1997, section 4) for entries of any length: URLs with what is known of them.

As `sorting` does for keys of 64 bits: entries gather until a run is full, which is sorted and written to a file without
a name; at the end all runs are merged, and of each a block lies in memory.

Cost: some microseconds an entry; memory of one run while dividing, of one block of each run while merging.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterator
from heapq import merge
from itertools import pairwise
from typing import Any, Final, Self

from clusterd.batch.held_bytes import HeldBytes

#: Entries of a run at most, some 500 bytes each.
RUN: Final = 1 << 16
#: Blocks of a run.
BLOCKS: Final = 256

#: Numbers, bytes, texts, and tuples of these: what is sorted by, first.
Entry = tuple[Any, ...]


class Entries:
    """Takes entries in any order, gives them back ascending."""

    def __init__(self, run: int = RUN) -> None:
        self._run = min(run, RUN)
        self._waiting: list[Entry] = []
        self._size = 0
        self._held = HeldBytes()
        #: Of each run, where its blocks begin, and where the last ends.
        self._runs: list[array[int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, entry: Entry, size: int = 1) -> None:
        """Take an entry that needs as much memory as so many of usual length."""
        self._waiting.append(entry)
        self._size += size
        if self._size >= self._run:
            self._write()

    def ascending(self) -> Iterator[Entry]:
        """Yield all entries; none is taken after this."""
        self._waiting.sort()
        yield from merge(*map(self._read, self._runs), self._waiting)

    def close(self) -> None:
        """Let go of the entries."""
        self._waiting = []
        self._held.close()

    def _write(self) -> None:
        """Sort what waits and write it as a run."""
        self._waiting.sort()
        blocks = array("Q", [self._held.size])
        length = 1 + len(self._waiting) // BLOCKS
        for start in range(0, len(self._waiting), length):
            self._held.add(marshal.dumps(self._waiting[start : start + length]))
            blocks.append(self._held.size)
        self._runs.append(blocks)
        self._waiting, self._size = [], 0

    def _read(self, blocks: array[int]) -> Iterator[Entry]:
        for start, end in pairwise(blocks):
            yield from marshal.loads(self._held.at(start, end - start))
