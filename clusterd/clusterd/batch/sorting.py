"""Divide, sort, merge (Broder et al. 1997, section 4): sort more than memory holds, adding up what is equal.

Entries are 64-bit keys with a 32-bit count. They gather until a run is full, which is sorted and written to disk; at
the end all runs are merged in one pass: of each run a block lies in memory, and what is not above the smallest last key
of these blocks can be sorted and given out.

The runs lie in files without a name, so that none is left behind, also where the process is killed.

Cost: O(n log n) time; memory of one run while dividing, of one block of each run while merging.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Final, Self

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint32]

#: Entries of a run: 12 bytes each, twice while sorting.
RUN: Final = 4_000_000
#: Arrays that are made one as they come: an array of one key takes a hundred bytes beside it.
PACKED: Final = 4096
#: Entries of each run in memory while merging.
BLOCK: Final = 65_536


class Sorter:
    """Takes keys in any order, gives them back ascending, each once, with how often it came."""

    def __init__(self, folder: Path | None = None, run: int = RUN) -> None:
        self._folder = folder
        self._run = run
        self._waiting: list[Keys] = []
        #: The latest of what waits, not packed yet.
        self._loose: list[Keys] = []
        self._size = 0
        #: Keys and counts of the runs, one behind the other, and where each ends.
        self._files: list[IO[bytes]] = []
        self._ends = [0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

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
        if not self._files:
            if self._size:
                yield _added(self._all(), None)
        else:
            self._write()
            yield from self._merged()

    def _write(self) -> None:
        """Sort what waits and write it as a run."""
        if not self._size:
            return
        if not self._files:
            for _ in range(2):
                file = tempfile.TemporaryFile(prefix="clusterd-batch-", dir=self._folder)  # noqa: SIM115 - see __exit__
                self._files.append(file)
        keys, counts = _added(self._all(), None)
        self._files[0].write(keys.data)
        self._files[1].write(counts.data)
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
        for file in self._files:
            file.flush()
        all_keys, all_counts = np.memmap(self._files[0], np.uint64, "r"), np.memmap(self._files[1], np.uint32, "r")
        runs = [(all_keys[start:end], all_counts[start:end]) for start, end in pairwise(self._ends)]
        at = [0] * len(runs)
        while True:
            open_runs = [n for n, (keys, _) in enumerate(runs) if at[n] < len(keys)]
            if not open_runs:
                return
            heads = {n: runs[n][0][at[n] : at[n] + BLOCK] for n in open_runs}
            limit = min(head[-1] for head in heads.values())
            parts = []
            for n, head in heads.items():
                size = int(np.searchsorted(head, limit, "right"))
                parts.append((np.array(head[:size]), np.array(runs[n][1][at[n] : at[n] + size])))
                at[n] += size
            yield _added(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))


def _added(keys: Keys, counts: Counts | None) -> tuple[Keys, Counts]:
    """Sort keys and add up the counts of equal ones (1 each where none are given)."""
    if counts is None:
        distinct, repeats = np.unique(keys, return_counts=True)
        return distinct, repeats.astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[starts], np.add.reduceat(counts, starts).astype(np.uint32) if len(starts) else counts
