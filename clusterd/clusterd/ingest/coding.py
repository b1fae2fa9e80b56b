"""The body of an HTTP answer without its codings: gzip, deflate, br, zstd (RFC 9110, 8.4.1; RFC 8878), chunked (RFC
9112, 7.1).

Many an archive keeps the header and has taken the coding off: a body that does not begin as its header says is the
page itself. One that ends early gives what came before. `BrokenRecord` where it is damaged within.

warcio's own readers fail at every ``br`` with the brotli library of today and know neither ``x-gzip`` nor two codings;
of chunks that are cut short, or whose sizes have extensions, they give the sizes for text.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from clusterd.ingest.frames import MOST, Frames
from clusterd.ingest.packings import GZIP, ZSTANDARD, Frame
from clusterd.ingest.raw import BrokenRecord


class _Brotli:
    """A body in Brotli (RFC 7932) as a `Frame`, which gives no more once it had more than `MOST` to give at a time."""

    unused_data = b""

    def __init__(self) -> None:
        try:
            import brotli  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            brotli = None
        if not hasattr(getattr(brotli, "Decompressor", None), "can_accept_more_data"):
            raise BrokenRecord("its content is packed with brotli; pip install 'brotli>=1.2' to read it")
        self._decompressor: Any = brotli.Decompressor()
        self._error: type[Exception] = brotli.error

    @property
    def eof(self) -> bool:
        return bool(self._decompressor.is_finished())

    def decompress(self, data: bytes, /) -> bytes:
        if not self._decompressor.can_accept_more_data():
            return b""
        try:
            return bytes(self._decompressor.process(data, output_buffer_limit=MOST))
        except self._error as error:
            raise zlib.error(str(error)) from None


def _zlib_stream() -> Frame:
    return zlib.decompressobj()


def _deflate_stream() -> Frame:
    return zlib.decompressobj(-zlib.MAX_WBITS)


#: Ways to begin a coding, in the order in which they are tried: "deflate" is zlib's format, and raw from some servers.
_BEGINNINGS: Final[Mapping[str, tuple[Callable[[], Frame], ...]]] = {
    "gzip": (GZIP.begin,),
    "x-gzip": (GZIP.begin,),
    "deflate": (_zlib_stream, _deflate_stream),
    "br": (_Brotli,),
    "zstd": (ZSTANDARD.begin,),
}


#: What begins a chunk: its size in hexadecimal digits, extensions.
_CHUNK: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r\n")
_LINE_END: Final = b"\r\n"


def transferred(body: bytes, codings: str) -> bytes:
    """Return a body without the codings that a Transfer-Encoding lists."""
    *others, last = codings.split(",")
    if last.strip().lower() != "chunked":
        return decoded(body, codings)
    return decoded(_unchunked(body), ",".join(others))


def _unchunked(body: bytes) -> bytes:
    """Return what chunks hold, up to where they end or are chunks no more; what does not begin with one as it is."""
    chunks: list[bytes] = []
    at = 0
    while head := _CHUNK.match(body, at):
        size, start = int(head[1], 16), head.end()
        at = start + size
        ended = body.startswith(_LINE_END, at)
        if not chunks and not ended and at + 1 < len(body):  # a text whose first line is a number
            return body
        if not size:
            return b"".join(chunks)
        chunks.append(body[start:at])
        at += len(_LINE_END) if ended else 0
    return b"".join(chunks) if chunks else body


def decoded(body: bytes, codings: str) -> bytes:
    """Return a body without the codings that a Content-Encoding lists; those that are not known stay."""
    for coding in reversed(codings.split(",")):
        damage = ""
        for begin in _BEGINNINGS.get(coding.strip().lower(), ()):
            frames = Frames(io.BytesIO(body), begin)
            unpacked = io.BufferedReader(frames).read(MOST)
            damage = damage or frames.damage
            if not frames.damage and (unpacked or not frames.trouble):
                body, damage = unpacked, ""
                break
        if damage:
            raise BrokenRecord(f"its content is no whole {coding.strip()}: {damage}")
    return body
