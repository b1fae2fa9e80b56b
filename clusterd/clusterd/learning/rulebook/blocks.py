"""Pages of evidence as bytes.

A block is one or more pages. Integers are little-endian, a ``varint`` is LEB128, a ``text`` a varint with the number of
bytes, then UTF-8:

    offset  bytes  field
    0       1      version, 1
    1       …      zlib stream of the pages, each:
                   text url, u64 content, i64 fetched_at (Unix ms), varint words,
                   varint n, n × (u8 kind: 1 canonical, 2 shortlink, 3 og, 4 anchor; u64 hash),
                   text explored, text instead_of, text crawl, u8 state: 0 good, 1 soft error, 2 failed,
                   3 redirected, 4 a file, u64 reader, u64 session, u32 depth (`purpose.Purpose`),
                   text target; of what was redirected only

URLs of a host repeat each other, so a block of a thousand pages packs to 30–60 bytes a page.

Cost: packing and unpacking are linear in the pages (about 6 µs each).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from clusterd_crawler.errors import MessageError
from clusterd_crawler.purpose import PACKED, Purpose
from clusterd_crawler.sketch import NAME_KINDS, Name
from clusterd_crawler.wire import put_texts, put_varint

from clusterd.learning.contract import Page, State

VERSION: Final = 1
#: Pages of one block when a log is rewritten.
BLOCK_PAGES: Final = 1_000
#: Fast, and within a tenth of the size that the best level reaches on URLs.
ZLIB_LEVEL: Final = 1

_CODES: Final = {kind: code for code, kind in enumerate(NAME_KINDS, start=1)}
_STATES: Final[tuple[State, ...]] = ("good", "soft", "failed", "redirected", "file")
_HEAD: Final = struct.Struct("<Qq")
_NAME: Final = struct.Struct("<BQ")


def pack(pages: Iterable[Page]) -> bytes:
    """Return the block that holds the pages."""
    out = bytearray()
    for page in pages:
        put_texts(out, (page.url,))
        out += _HEAD.pack(page.content, page.fetched_at)
        put_varint(out, page.words)
        put_varint(out, len(page.names))
        for name in page.names:
            out += _NAME.pack(_CODES[name.kind], name.hash)
        put_texts(out, (page.explored, page.instead_of, page.crawl))
        out.append(_STATES.index(page.state))
        out += PACKED.pack(*page.purpose)
        if page.state == "redirected":
            put_texts(out, (page.target,))
    return bytes((VERSION,)) + zlib.compress(out, ZLIB_LEVEL)


def unpack(block: bytes) -> list[Page]:
    """Return the pages of a block; `MessageError` where it is not one of ours or was cut short."""
    if not block or block[0] != VERSION:
        raise MessageError(f"not a block of evidence of version {VERSION}", block)
    try:
        return list(_pages(zlib.decompress(block[1:])))
    except (zlib.error, struct.error, IndexError, UnicodeDecodeError) as error:
        raise MessageError(f"a damaged block of evidence: {error}", block) from None


def _pages(data: bytes) -> Iterator[Page]:
    at = 0
    while at < len(data):
        url, at = _text(data, at)
        content, fetched_at = _HEAD.unpack_from(data, at)
        words, at = _varint(data, at + _HEAD.size)
        count, at = _varint(data, at)
        names = []
        for _ in range(count):
            code, value = _NAME.unpack_from(data, at)
            names.append(Name(NAME_KINDS[code - 1], value))
            at += _NAME.size
        explored, at = _text(data, at)
        instead_of, at = _text(data, at)
        crawl, at = _text(data, at)
        state = _STATES[data[at]]
        purpose = Purpose(*PACKED.unpack_from(data, at + 1))
        at += 1 + PACKED.size
        target, at = _text(data, at) if state == "redirected" else ("", at)
        yield Page(url, content, words, tuple(names), fetched_at, explored, instead_of, crawl, state, purpose, target)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends (in half the time that `wire.Reader` takes)."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = _varint(data, at)
    raw = data[at : at + size]
    if len(raw) < size:
        raise IndexError("it ends inside a text")
    return raw.decode(), at + size
