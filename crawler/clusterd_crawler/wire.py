"""Numbers and texts as bytes, as messages hold them (`message` says how)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from clusterd_crawler.errors import MessageError


def put_texts(out: bytearray, texts: Iterable[str]) -> None:
    """Append texts, each as the number of its bytes and its UTF-8."""
    for text in texts:
        coded = text.encode()
        put_varint(out, len(coded))
        out += coded


def put_varint(out: bytearray, number: int) -> None:
    """Append a number as LEB128; `OverflowError` where it has more than 64 bits or is negative."""
    if not 0 <= number < 1 << 64:
        raise OverflowError(f"{number} is not between 0 and 2^64")
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


class Reader:
    """A position in bytes; every read is checked against where they end. `MessageError` where it goes beyond."""

    __slots__ = ("end", "position", "raw")

    def __init__(self, raw: bytes, start: int, end: int) -> None:
        self.raw = raw
        self.position = start
        self.end = end

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return self.end - self.position

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        if size > self.left:
            raise MessageError(f"{size} bytes wanted where {self.left} are left", self.raw)
        start = self.position
        self.position += size
        return self.raw[start : self.position]

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read fixed fields."""
        return layout.unpack(self.take(layout.size))

    def varint(self) -> int:
        """Read a varint of at most 64 bits."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number >> 64:
                    break
                return number
        raise MessageError("a varint of more than 64 bits", self.raw)

    def texts(self, count: int) -> list[str]:
        """Read so many texts."""
        try:
            return [self.take(self.varint()).decode() for _ in range(count)]
        except UnicodeDecodeError as error:
            raise MessageError(f"a text that is not UTF-8: {error}", self.raw) from None
