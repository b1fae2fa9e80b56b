"""Byte strings of a collection, in a file without a name: memory holds where they lie, and the system's cache the rest.

Cost of one that is read: some microseconds.
"""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path


class HeldBytes:
    """Byte strings by the place where they begin; more may be added at any time."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="clusterd-batch-", dir=folder)  # noqa: SIM115 - see `close`
        self._mapped: mmap.mmap | bytes = b""
        #: Bytes in the file: where the next begins.
        self.size = 0

    def add(self, data: bytes) -> int:
        """Take a byte string; return where it begins."""
        start = self.size
        self.size += self._file.write(data)
        return start

    def at(self, start: int, size: int) -> memoryview:
        """Return so many bytes from a place on."""
        if len(self._mapped) != self.size:
            self._file.flush()
            self._mapped = mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)
        return memoryview(self._mapped)[start : start + size]

    def close(self) -> None:
        """Let go of the file; what was returned stays readable."""
        self._mapped = b""
        self._file.close()
