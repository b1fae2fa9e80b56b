"""Replies of Redis as bytes (RESP2): where they end, so that a long one is read where it lies.

A reply is a line; after ``$`` so many bytes follow, after ``*`` so many replies. So what is still to come is a number
of replies, whatever they are nested in, and the reading of a reply that arrives in pieces goes on where it stopped.
Cost: compiled (`core/_replies.c`) 5 ns a string, 1 µs here; both find the same ends.
"""

from __future__ import annotations

import re
from typing import Final

import hiredis

from clusterd_consumer.core.compiled import REPLIES as CORE

#: What stands behind ``$`` and ``*``.
NUMBER: Final = re.compile(rb"(-?\d+)\r\n")


def ends(buffer: bytes | bytearray, at: int, end: int, left: int) -> tuple[int, int, bool]:
    """Pass up to ``left`` replies; return where that ends, how many are still to come, and whether one is an error.

    ``at`` and ``end``: where the replies begin in the buffer, and what was received.
    """
    if CORE is not None:
        passed: tuple[int, int, bool] = CORE.ends(buffer, at, end, left)
        return passed
    refused = False
    while left and at < end:
        kind, line = buffer[at : at + 1], buffer.find(b"\n", at, end) + 1
        if kind not in b"+-:$*":
            raise ValueError("not a reply of Redis")
        number = _number(buffer, at + 1, line) if line and kind in b"$*" else 0
        after = line + number + 2 if kind == b"$" and number >= 0 else line
        if not line or after > end:
            break
        refused |= kind == b"-"
        left += number - 1 if kind == b"*" and number > 0 else -1
        at = after
    return at, left, refused


def _number(buffer: bytes | bytearray, at: int, line: int) -> int:
    found = NUMBER.fullmatch(buffer, at, line)
    if not found:
        raise ValueError("not a reply of Redis")
    return int(found[1])


def strings(reply: bytes | memoryview) -> list[bytes | None]:
    """Return the strings of a reply that is their list."""
    reader = hiredis.Reader()
    reader.feed(bytes(reply))
    found: list[bytes | None] = reader.gets()
    return found
