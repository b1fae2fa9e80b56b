"""What other crawlers have fetched, as it is published on `topics.KNOWN`: pages that may stand for others of their key,
and fetches that brought none, after which the page stands for no other.

A record's key is ``HOST CRAWL`` (a host holds no space), so that one that is of no use is told without being read. Its
value is a block of pages of one host and one crawl, read in any language:

    offset  bytes  field
    0       1      version, 1
    1       8      the latest fetch among them, Unix milliseconds, little-endian
    9       …      zlib stream of a JSON list of fetches: [url, fetched_at, content, [[kind of name, hash], …]];
                   a fifth is ``false`` where it was no good page (an error, a soft error, no answer), else
                   ``true``, and a sixth what it was fetched for: [reader, session, depth] (`purpose.Purpose`)

URLs of a host repeat each other: a block of a thousand pages packs to about 40 bytes a page.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterd_crawler.errors import MessageError
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.sketch import NAME_KINDS, Name

VERSION: Final = 1
#: Most pages of one block.
BLOCK: Final = 1_000
#: Most bytes of an unpacked block: 1,000 pages of 8 kB URLs with 64 names each, all at once.
UNPACKED: Final = 16 * 1024 * 1024
_HEAD: Final = struct.Struct("<Bq")


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a crawl has fetched."""

    url: str
    #: Unix milliseconds.
    at: int
    #: Identity of the main text.
    content: int = 0
    names: tuple[Name, ...] = ()
    #: Whether it may justify a skip. One that failed justifies none, nor does any earlier fetch of its URL.
    good: bool = True
    purpose: Purpose = ANYONE


def key(host: str, crawl: str) -> bytes:
    """Return a record's key."""
    return f"{host} {crawl}".encode("utf-8", "surrogatepass")


def host_and_crawl(key: bytes) -> tuple[str, str]:
    """Read a record's key.

    >>> host_and_crawl(key("h.com:8080", "a crawl"))
    ('h.com:8080', 'a crawl')
    """
    host, _, crawl = key.decode("utf-8", "replace").partition(" ")
    return host, crawl


def pack(pages: Sequence[Fetch]) -> bytes:
    """Return the block of pages of one host and crawl."""
    text = json.dumps([_row(page) for page in pages], ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
    return _HEAD.pack(VERSION, max(page.at for page in pages)) + zlib.compress(text, 1)


def latest(block: bytes) -> int:
    """Return the time of a block's latest fetch; `MessageError` where it is none of ours."""
    if len(block) < _HEAD.size or block[0] != VERSION:
        raise MessageError(f"not a block of known pages of version {VERSION}", block)
    return int(_HEAD.unpack_from(block)[1])


def unpack(block: bytes) -> list[Fetch]:
    """Return the pages of a block; `MessageError` where it is not one of ours or was cut short."""
    latest(block)
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(block[_HEAD.size :], UNPACKED)
        if not unpacking.eof:
            raise ValueError("cut short, or too long")
        return [_page(*row) for row in json.loads(text)]
    except (zlib.error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise MessageError(f"a damaged block of known pages: {error}", block) from None


def _row(page: Fetch) -> list[Any]:
    row: list[Any] = [page.url, page.at, page.content, [[name.kind, name.hash] for name in page.names]]
    if not page.good:
        return [*row, False]
    return row if page.purpose == ANYONE else [*row, True, page.purpose]


def _page(
    url: Any, at: Any, content: Any, names: Iterable[Any], good: Any = True, purpose: Iterable[Any] = ANYONE
) -> Fetch:
    if not (isinstance(url, str) and isinstance(at, int) and isinstance(content, int)):
        raise TypeError("a page is a URL, a time and an identity")
    named = tuple(Name(kind, int(value)) for kind, value in names if kind in NAME_KINDS)
    return Fetch(url, at, content, named, bool(good), Purpose(*map(int, purpose)))
