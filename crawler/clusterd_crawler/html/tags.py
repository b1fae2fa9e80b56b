"""Reading one tag or comment of UTF-8 markup as the HTML standard's tokenizer reads them (section 13.2.5).

The compiled core has the same (`core/tags.h`, `core/markup.h`). Cost: linear. Pages write most of their tags in the
same few ways, so that what those say is kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from clusterd_crawler.html import chrome

#: Ways to write a tag that are kept, and the longest of them in bytes.
_KEPT: Final = 4096
_SHORT: Final = 256

#: A start or end tag up to its name.
_TAG: Final = re.compile(rb"<(/?)([A-Za-z][^\t\n\f\r />]*)")
_ATTRIBUTE: Final = re.compile(
    rb"""[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"""
    rb"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)(?:"|\Z)|'([^']*)(?:'|\Z)|([^\t\n\f\r >]*)))?"""
)
_TAG_END: Final = re.compile(rb"[\t\n\f\r /]*>")
_COMMENT_END: Final = re.compile(rb"--!?>")

#: Bytes behind a tag in which the title of what it begins is looked for.
_TITLE_WITHIN: Final = 256
_TITLE: Final = re.compile(rb"[\t\n\f\r ]*<[hH][1-6](?=[\t\n\f\r />])[^<>]*>(.*?)</[hH]", re.DOTALL)
_NO_WORDS: Final = re.compile(rb"<[^<>]*>|&#?[0-9A-Za-z]+;|[^0-9A-Za-z]")


class Tag(NamedTuple):
    """What a tag says by itself, whatever stands around it."""

    name: bytes
    #: Whether it is an end tag: of its attributes only counts how many there are.
    ends: bool
    #: Its element's bits (`chrome.TAGS`).
    bits: int
    #: The first of each name, and how many are written, repeated ones too.
    attributes: dict[bytes, bytes]
    written: int
    hidden: bool
    #: Whether it begins a main element, and what its class, id and role say otherwise (`chrome.SAID`).
    main: bool
    said: int
    #: The same without its id.
    said_without_id: int


def read_tag(data: bytes, at: int) -> tuple[Tag | None, int]:
    """Read the tag that begins with the ``<`` at a place; return it and where it ends.

    Without a tag the end is that of the markup where this ends within one, and 0 where there is none.
    """
    end = data.find(b">", at, at + _SHORT) + 1
    if end and (tag := _written(data[at:end])):
        return tag, end
    return _read(data, at)


@lru_cache(_KEPT)
def _written(tag: bytes) -> Tag | None:
    """Read what ends with its first ``>``; None where that does not end a tag, as within quotes."""
    return _read(tag, 0)[0]


def _read(data: bytes, at: int) -> tuple[Tag | None, int]:
    match = _TAG.match(data, at)
    if not match:
        return None, 0
    attributes, count, end = _read_attributes(data, match.end())
    if end < 0:
        return None, len(data)
    name = match[2].lower()
    bits = chrome.TAGS.get(name, 0)
    if match[1]:
        return Tag(name, True, bits, {}, count, False, False, 0, 0), end
    role = attributes.get(b"role", name if name == b"search" else b"").strip(chrome.BLANKS).lower()
    main = bool(bits & chrome.MAIN) or role == b"main"
    said = without_id = 0 if main else chrome.ROLES.get(role, 0)
    if bits & chrome.NAMED and not main:
        without_id |= chrome.named(attributes.get(b"class", b""))
        said = without_id if without_id & chrome.PART else without_id | chrome.named(attributes.get(b"id", b""))
    return Tag(name, False, bits, attributes, count, chrome.is_hidden(bits, attributes), main, said, without_id), end


def is_titled(data: bytes, at: int, named: bytes) -> bool:
    """Whether what begins at a place begins with a heading of this id's words, behind a number it may have.

    Generators of documents make the ids of sections from their titles: "Languages", "Copyright".
    """
    title = _TITLE.match(data, at, at + _TITLE_WITHIN)
    words = _NO_WORDS.sub(b"", title[1]).lower().lstrip(b"0123456789") if title else b""
    return bool(words) and words == _NO_WORDS.sub(b"", named).lower()


def _read_attributes(data: bytes, at: int) -> tuple[dict[bytes, bytes], int, int]:
    """Read a tag's attributes from behind its name: the first of each name, how many in all, and where the tag ends.

    The end is -1 where the markup ends first.
    """
    found: dict[bytes, bytes] = {}
    count = 0
    while True:
        end = _TAG_END.match(data, at)
        if end:
            return found, count, end.end()
        match = _ATTRIBUTE.match(data, at)
        if not match:
            return found, count, -1
        at = match.end()
        count += 1
        name, double, single, bare = match.groups()
        found.setdefault(name.lower(), double or single or bare or b"")


def end_of_comment(data: bytes, at: int) -> int:
    """Return where a comment ends, from behind its ``<!--``."""
    for closed in (b">", b"->"):
        if data.startswith(closed, at):
            return at + len(closed)
    match = _COMMENT_END.search(data, at)
    return match.end() if match else len(data)
