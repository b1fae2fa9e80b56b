"""Divide, sort, merge (Broder et al. 1997, section 4): sort more than memory holds, adding up what is equal.

Entries are 64-bit keys with a 32-bit count. They gather until a run is full, which is sorted and written to disk; at
the end all runs are merged in one pass: of each run a block lies in memory, and what is not above the smallest last key
of these blocks can be sorted and given out.

The runs lie in files without a name (`held_bytes`): none is left behind, also where the process is killed.

Cost: O(n log n) time; memory of one run while dividing, of one block of each run while merging.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from clusterd.batch.held_bytes import HeldBytes

Keys = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint32]

#: Entries of a run: 12 bytes each, twice while sorting.
RUN: Final = 1_000_000
#: Arrays that are made one as they come: an array of one key takes a hundred bytes beside it.
PACKED: Final = 4096
#: Entries of each run in memory while merging, at most; of all runs together as many as a run has.
BLOCK: Final = 65_536


class Sorter:
    """Takes keys in any order, gives them back ascending, each once, with how often it came."""

    def __init__(self, run: int = RUN) -> None:
        self._run = run
        self._waiting: list[Keys] = []
        #: The latest of what waits, not packed yet.
        self._loose: list[Keys] = []
        self._size = 0
        #: Keys and counts of the runs, one behind the other, and where each ends.
        self._keys = HeldBytes()
        self._counts = HeldBytes()
        self._ends = [0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._keys.close()
        self._counts.close()

    def add(self, keys: Keys) -> None:
        """Take keys."""
        self._loose.append(keys)
        self._size += len(keys)
        if len(self._loose) == PACKED:
            self._pack()
        if self._size >= self._run:
            self._write()

    def blocks(self) -> Iterator[tuple[Keys, Counts]]:
        """Yield ascending blocks of distinct keys and their counts; no key is in two blocks."""
        if len(self._ends) == 1:
            if self._size:
                yield _added(self._all(), None)
        else:
            self._write()
            yield from self._merged()

    def _write(self) -> None:
        """Sort what waits and write it as a run."""
        if not self._size:
            return
        keys, counts = _added(self._all(), None)
        self._keys.add(keys.data)
        self._counts.add(counts.data)
        self._ends.append(self._ends[-1] + len(keys))
        self._size = 0

    def _pack(self) -> None:
        self._waiting.append(np.concatenate(self._loose))
        self._loose = []

    def _all(self) -> Keys:
        """Give away all that waits."""
        keys = np.concatenate([*self._waiting, *self._loose])
        self._waiting, self._loose = [], []
        return keys

    def _merged(self) -> Iterator[tuple[Keys, Counts]]:
        block = min(BLOCK, 1 + self._run // len(self._ends))
        runs = [self._read(start, end, block) for start, end in pairwise(self._ends)]
        heads = [(run, *next(run)) for run in runs]
        while heads:
            limit = min(keys[-1] for _, keys, _ in heads)
            taken, left = [], []
            for run, keys, counts in heads:
                size = int(np.searchsorted(keys, limit, "right"))
                taken.append((keys[:size], counts[:size]))
                rest = keys[size:], counts[size:]
                # Filled up before it is empty: else each round takes no more than the shortest rest, of all runs.
                if 2 * len(rest[0]) < block and (more := next(run, None)):
                    rest = np.concatenate((rest[0], more[0])), np.concatenate((rest[1], more[1]))
                if len(rest[0]):
                    left.append((run, *rest))
            yield _added(*map(np.concatenate, zip(*taken, strict=True)))
            heads = left

    def _read(self, start: int, end: int, block: int) -> Iterator[tuple[Keys, Counts]]:
        """Yield a run in blocks."""
        for at in range(start, end, block):
            size = min(block, end - at)
            keys, counts = self._keys.at(8 * at, 8 * size), self._counts.at(4 * at, 4 * size)
            yield np.frombuffer(keys, np.uint64), np.frombuffer(counts, np.uint32)


def _added(keys: Keys, counts: Counts | None) -> tuple[Keys, Counts]:
    """Sort keys and add up the counts of equal ones (1 each where none are given)."""
    if counts is None:
        distinct, repeats = np.unique(keys, return_counts=True)
        return distinct, repeats.astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[starts], np.add.reduceat(counts, starts).astype(np.uint32) if len(starts) else counts
