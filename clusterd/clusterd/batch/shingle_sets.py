"""The whole shingle sets of some documents, in a file: what a pair is counted by where its sketches leave it open.

A set is its distinct fingerprints, ascending, 8 bytes each, as a sketch that keeps every shingle holds them. Two of the
40-bit fingerprints of a pair of 10,000 shingles each fall together by chance once in 10,000 pairs.
"""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from clusterd_consumer.resemblance import Estimate, ratios


class ShingleSets:
    """Sets by number; all are put before one is asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="clusterd-batch-", dir=folder)  # noqa: SIM115 - lives as long as the object
        self._places: dict[int, tuple[int, int]] = {}
        self._size = 0
        self._bytes: mmap.mmap | bytes = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes = b""
        self._file.close()

    def put(self, number: int, values: bytes) -> None:
        """Keep a set."""
        self._places[number] = (self._size, len(values) // 8)
        self._size += self._file.write(values)

    def compare(self, a: int, b: int) -> Estimate:
        """Return resemblance and containment of two sets: counted, not estimated."""
        first, second = self._set(a), self._set(b)
        common = len(np.intersect1d(first, second, assume_unique=True))
        return ratios(common, len(first) - common, len(second) - common)

    def _set(self, number: int) -> npt.NDArray[np.uint64]:
        if len(self._bytes) != self._size:
            self._file.flush()
            self._bytes = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
        start, count = self._places[number]
        return np.frombuffer(self._bytes, "<u8", count, start)
