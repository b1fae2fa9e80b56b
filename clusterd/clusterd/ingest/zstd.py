"""Zstandard, frame by frame. It is noticed when a file ends inside a frame (the library's reader passes it over)."""

from __future__ import annotations

import io
from typing import IO, Any, Final

import zstandard

#: Compressed bytes that are taken at a time: bounds what a hostile file unpacks to at once (some 100 MB).
PORTION: Final = 4096
CUT_SHORT: Final = "the file is cut short: it ends inside a Zstandard frame"


def cut_short(stream: IO[bytes]) -> bool:
    """Whether what a stream was unpacked from ended inside a frame; known at its end."""
    return bool(getattr(getattr(stream, "raw", None), "cut_short", False))


class Frames(io.RawIOBase):
    """The content of a stream of frames."""

    def __init__(self, stream: IO[bytes], decompressor: zstandard.ZstdDecompressor | None = None) -> None:
        self._stream = stream
        self._decompressor = decompressor or zstandard.ZstdDecompressor()
        #: The frame that is open, what of the stream lies after a frame, and what is unpacked.
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._rest = b""
        self._unpacked = memoryview(b"")
        #: Whether the stream ended inside a frame. No error: a buffer around us would throw away what came before it.
        self.cut_short = False

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        while not self._unpacked:
            packed = self._rest or self._stream.read(PORTION)
            if not packed:
                self.cut_short = self._frame is not None
                return 0
            self._unpack(packed)
        size = min(len(buffer), len(self._unpacked))
        buffer[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size

    def _unpack(self, packed: bytes) -> None:
        frame = self._frame or self._decompressor.decompressobj()
        self._unpacked = memoryview(frame.decompress(packed))
        self._rest = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
