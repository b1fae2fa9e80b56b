"""The whole shingle sets of some documents, in a file: what a pair is counted by where its sketches leave it open.

A set is its distinct fingerprints, ascending, 8 bytes each, as a sketch that keeps every shingle holds them. Two of the
40-bit fingerprints of a pair of 10,000 shingles each fall together by chance once in 10,000 pairs.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from clusterd_consumer.resemblance import Estimate, common_values, ratios

from clusterd.batch.held_bytes import HeldBytes


class ShingleSets:
    """Sets by number; all are put before one is asked for."""

    def __init__(self) -> None:
        self._held = HeldBytes()
        self._places: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def __contains__(self, number: int) -> bool:
        return number in self._places

    def put(self, number: int, values: bytes) -> None:
        """Keep a set."""
        self._places[number] = (self._held.add(values), len(values))

    def compare(self, a: int, b: int) -> Estimate:
        """Return resemblance and containment of two sets: counted, not estimated."""
        first, second = self._set(a), self._set(b)
        common = common_values(first, second)
        return ratios(common, len(first) - common, len(second) - common)

    def _set(self, number: int) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self._held.at(*self._places[number]), "<u8")
