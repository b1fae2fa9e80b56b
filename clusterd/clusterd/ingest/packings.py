"""The ways in which files are packed: by which first bytes each is known, how names end, and what unpacks it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import zstandard

#: Bytes by which a packing is known, at most.
MARK: Final = 4
#: Bytes of memory that a stream of xz may ask for: its strongest preset takes 65 MB, a hostile stream any number.
XZ_MEMORY: Final = 1 << 28
#: Bytes that bzip2 and xz give at a time: what is read of bzip2 at once may hold 4 GB.
AT_ONCE: Final = 1 << 20
#: zlib's window of 32 KB, with the header and the checksum of gzip (RFC 1952).
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


class Frame(Protocol):
    """One frame, member or stream of a packed file while it is unpacked."""

    @property
    def eof(self) -> bool:
        """Whether its end was reached."""

    @property
    def unused_data(self) -> bytes:
        """What of the data lies behind its end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return the content of more data; one of `DAMAGED` where it is broken.

        One that has a ``needs_input`` which is false gives more of it for no data.
        """


class _Bounded:
    """A stream of bzip2 or xz that gives so much at a time."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def eof(self) -> bool:
        """See `Frame`."""
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        """See `Frame`."""
        return bytes(self._stream.unused_data)

    @property
    def needs_input(self) -> bool:
        """See `Frame.decompress`."""
        return bool(self._stream.needs_input)

    def decompress(self, data: bytes, /) -> bytes:
        """See `Frame`."""
        return bytes(self._stream.decompress(data, AT_ONCE))


class Packing(NamedTuple):
    """A way in which files are packed."""

    name: str
    #: How what is packed begins (one of these), and how its name ends.
    marks: tuple[bytes, ...]
    ending: str
    #: Begins a new frame.
    begin: Callable[[], Frame]


def _zstandard_frame() -> Frame:
    return zstandard.ZstdDecompressor().decompressobj()


GZIP: Final = Packing("gzip", (b"\x1f\x8b",), ".gz", partial(zlib.decompressobj, _GZIP_WINDOW))
ZSTANDARD: Final = Packing("Zstandard", (b"\x28\xb5\x2f\xfd",), ".zst", _zstandard_frame)
#: All that are taken off. A Python may have been built without the libraries of the two that Scrapy's feeds know, too.
PACKINGS = [GZIP, ZSTANDARD]
#: What unpacking raises where a frame is damaged.
DAMAGED: tuple[type[Exception], ...] = (zlib.error, zstandard.ZstdError)

with suppress(ImportError):
    import bz2

    _BZIP2: Final = tuple(b"BZh%d" % size for size in range(1, 10))
    PACKINGS.append(Packing("bzip2", _BZIP2, ".bz2", lambda: _Bounded(bz2.BZ2Decompressor())))
    DAMAGED += (OSError,)

with suppress(ImportError):
    import lzma

    _xz_stream = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY)
    PACKINGS.append(Packing("xz", (b"\xfd7zX",), ".xz", lambda: _Bounded(_xz_stream())))
    DAMAGED += (lzma.LZMAError,)

#: How the names of what is packed end.
ENDINGS: Final = tuple(packing.ending for packing in PACKINGS)


def packing_of(head: bytes) -> Packing | None:
    """Return how a file that begins so is packed; None where it is not."""
    return next((packing for packing in PACKINGS if head.startswith(packing.marks)), None)


def without_packing(name: str) -> str:
    """Return a file's name, or its URL, without the ending that says how it is packed."""
    return next((name[: -len(ending)] for ending in ENDINGS if name.lower().endswith(ending)), name)
