"""Compressed files as they are stored: gzip members, Zstandard frames, streams of bzip2 or xz, one after the other.

It is noticed when a file ends inside one, is damaged, or has something else behind the last (the libraries' readers
pass it over, or lose what came before it). A gzipped file may be one member as a whole, as ``gzip`` makes it, or have
one for each record, as crawlers do; zeros behind it are passed over, as ``gzip`` does.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any, Final

from clusterd.ingest.packings import DAMAGED, Frame

#: Bytes of a page at most: what is packed may unpack to a thousand times as much, in Brotli to a million times.
MOST: Final = 1 << 28
#: Compressed bytes that are taken at a time: bounds what a hostile file unpacks to at once (some 100 MB).
PORTION: Final = 4096
CUT_SHORT: Final = "the file is cut short: it ends inside a compressed frame"
#: Bytes of the checksum behind a Zstandard frame (RFC 8878, 3.1.1).
CHECKSUM: Final = 4


def trouble(stream: IO[bytes]) -> str:
    """Return why a stream ended before what it was unpacked from did, or that this is not whole; known at its end."""
    return str(getattr(getattr(stream, "raw", None), "trouble", ""))


class Frames(io.RawIOBase):
    """The content of a stream of frames, up to where that is broken: of a gzip member every byte before the break."""

    def __init__(self, stream: IO[bytes], begin: Callable[[], Frame]) -> None:
        self._stream = stream
        self._begin = begin
        #: The frame that is open, what of the stream was read and not taken, and what is unpacked.
        self._frame: Frame | None = None
        self._rest = b""
        self._unpacked = memoryview(b"")
        #: Bytes of the stream that were read.
        self._read = 0
        #: See `trouble`. No error: a buffer around us would throw away what came before it.
        self.trouble = ""
        #: What is wrong inside a frame, where that is the trouble.
        self.damage = ""

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        while not self._unpacked and not self.trouble:
            if self._frame is not None and not getattr(self._frame, "needs_input", True):
                self._unpack(b"")
                continue
            packed = self._packed()
            if not packed:
                self.trouble = CUT_SHORT if self._frame is not None else ""
                return 0
            packed = packed if self._frame is not None else packed.lstrip(b"\0")
            if packed:
                self._unpack(packed)
        size = min(len(buffer), len(self._unpacked))
        buffer[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size

    def _packed(self) -> bytes:
        """Return what is to be unpacked next; nothing at the end."""
        if not self._rest:
            self._rest = self._stream.read(PORTION)
            self._read += len(self._rest)
        packed, self._rest = self._rest, b""
        return packed

    def _unpack(self, packed: bytes) -> None:
        frame, inside = self._frame or self._begin(), self._frame is not None
        before = _copy(frame)
        if before is None and len(packed) > CHECKSUM:  # else a checksum that is wrong costs what came with it
            packed, self._rest = packed[:-CHECKSUM], packed[-CHECKSUM:]
        try:
            content, taken = frame.decompress(packed), len(packed)
        except DAMAGED as error:
            content, taken = (b"", 0) if before is None else _up_to_damage(before, packed)
            at = self._read - len(self._rest) - len(packed) + taken
            self.damage = f"{error} (at byte {at} of what is packed)" if inside or content else ""
            self.trouble = f"the rest of the file cannot be read: {self.damage or error}"
        else:
            self._rest = frame.unused_data + self._rest if frame.eof else self._rest
            self._frame = None if frame.eof else frame
        self._unpacked = memoryview(content)


def _copy(frame: Frame) -> Frame | None:
    """Return a frame as it stands now; None of a library that makes no copies (zlib makes one in some microseconds)."""
    copy: Callable[[], Frame] | None = getattr(frame, "copy", None)
    return None if copy is None else copy()


def _up_to_damage(frame: Frame, packed: bytes) -> tuple[bytes, int]:
    """Return the content of data up to where it is damaged, and how many bytes come before that."""
    content: list[bytes] = []
    for at in range(len(packed)):
        try:
            content.append(frame.decompress(packed[at : at + 1]))
        except DAMAGED:
            break
    return b"".join(content), len(content)
