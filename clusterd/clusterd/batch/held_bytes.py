"""Byte strings of a collection, in a file without a name: memory holds where they lie, and the system's cache the rest.

Cost of one that is read: some microseconds.
"""

from __future__ import annotations

import os
import tempfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def nameless() -> IO[bytes]:
    """Return a file without a name, of which nothing is left behind, also where the process is killed."""
    return tempfile.TemporaryFile(prefix="clusterd-batch-")


class HeldBytes:
    """Byte strings by the place where they begin; more may be added at any time."""

    def __init__(self) -> None:
        self._file = nameless()
        #: Bytes in the file, where the next begins; and how many of them can be read.
        self.size = 0
        self._readable = 0

    def add(self, data: ReadableBuffer) -> int:
        """Take a byte string; return where it begins."""
        start = self.size
        self.size += self._file.write(data)
        return start

    def at(self, start: int, size: int) -> bytes:
        """Return so many bytes from a place on."""
        if start + size > self._readable:
            self._file.flush()
            self._readable = self.size
        return os.pread(self._file.fileno(), size, start)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
