"""The sketches of a collection, in a file: 3 KB each would fill the memory long before the numbers that stand for them.

Memory: 36 bytes a sketch, and the latest that were read. Cost of one that is read: some microseconds (`held_bytes`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Self, overload

from clusterd_crawler.sketch import StreamSketch

from clusterd.batch.held_bytes import HeldBytes

#: Sketches that stay in memory when they have been read: pairs come by their first document.
RECENT: Final = 4096


class KeptSketches(Sequence[StreamSketch]):
    """Sketches by their numbers; more may be appended at any time."""

    def __init__(self) -> None:
        self._held = HeldBytes()
        #: Where each begins in the file, and at the end where the next would.
        self._starts = array("Q", [0])
        #: Bytes of its values; behind them is its parity.
        self._values = array("I")
        self._shingles = array("Q")
        self._tokens = array("Q")
        self._texts = array("Q")
        self._recent = lru_cache(RECENT)(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def append(self, sketch: StreamSketch) -> None:
        """Keep a sketch under the next number."""
        self._held.add(sketch.values + sketch.parity)
        self._values.append(len(sketch.values))
        self._starts.append(self._held.size)
        self._shingles.append(sketch.shingles)
        self._tokens.append(sketch.tokens)
        self._texts.append(sketch.text)

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, number: int) -> StreamSketch: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[StreamSketch]: ...
    def __getitem__(self, number: int | slice) -> StreamSketch | Sequence[StreamSketch]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._recent(number)

    def _read(self, number: int) -> StreamSketch:
        start, end = self._starts[number : number + 2]
        held, values = bytes(self._held.at(start, end - start)), self._values[number]
        numbers = self._shingles[number], self._tokens[number], self._texts[number]
        return StreamSketch(held[:values], *numbers, parity=held[values:])
