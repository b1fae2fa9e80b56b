"""Tables of numbers in files without a name: the system's cache holds of them what it has room for.

`Column`  a number for each document, which may change
`Records` several numbers for each document, put once
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

import numpy as np

from clusterd.batch.held_bytes import HeldBytes, nameless

#: Numbers that are made at once.
CHUNK: Final = 1 << 16


def chunks(size: int) -> Iterator[range]:
    """Yield 0 … size - 1 in order, in ranges that memory has room for."""
    return (range(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK))


class Column:
    """A number of 32 bits for each of ``size`` documents, at first its own place."""

    def __init__(self, size: int) -> None:
        with nameless() as file:
            # Written before it is mapped: where the disk is full, only so an error says it.
            for chunk in chunks(size):
                file.write(np.arange(chunk.start, chunk.stop, dtype=np.uint32).data)
            file.flush()
            self._mapped = mmap.mmap(file.fileno(), 4 * size) if size else bytearray()
        #: The numbers, by place.
        self.at = memoryview(self._mapped).cast("I")


class Records:
    """Rows of numbers by their places, of the kinds that `struct` knows by these letters."""

    def __init__(self, kinds: str) -> None:
        self._packed = Struct(f"<{kinds}")
        self._held = HeldBytes()

    def __len__(self) -> int:
        return self._held.size // self._packed.size

    def append(self, *row: int) -> None:
        """Put a row at the next place."""
        self._held.add(self._packed.pack(*row))

    def __getitem__(self, place: int) -> tuple[Any, ...]:
        return self._packed.unpack(self._held.at(place * self._packed.size, self._packed.size))

    def close(self) -> None:
        """Let go of the file."""
        self._held.close()
