"""Reading one tag or comment of UTF-8 markup as the HTML standard's tokenizer reads them (section 13.2.5).

The compiled core has the same (`core/tags.h`, `core/markup.h`). Cost: linear.
"""

from __future__ import annotations

import re
from typing import Final

#: A start or end tag up to its name.
TAG: Final = re.compile(rb"</?([A-Za-z][^\t\n\f\r />]*)")
_ATTRIBUTE: Final = re.compile(
    rb"""[\t\n\f\r /]*([^\t\n\f\r />][^\t\n\f\r />=]*)"""
    rb"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)(?:"|\Z)|'([^']*)(?:'|\Z)|([^\t\n\f\r >]*)))?"""
)
_TAG_END: Final = re.compile(rb"[\t\n\f\r /]*>")
_COMMENT_END: Final = re.compile(rb"--!?>")


def read_attributes(data: bytes, at: int) -> tuple[dict[bytes, bytes], int, int]:
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
