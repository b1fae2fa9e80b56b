"""How much memory a parser may take for text that it joins: what tells that it is not bounded by the page's size.

A parser joins text to the text before it where it drops what stands between, as a cell's tag outside a table; and all
text that stands directly in a table, which it moves before that. Has lexbor kept an attribute or a comment since, it
takes new memory for all of it and gives none back before the page ends: rows without a table take 250 MB at 400 KB, and
6 GB at 2 MB. So the walk (`markup`) adds up what may be copied. In doubt a tag is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.html import chrome

#: Bytes copied, of one page, beyond which a parser takes too much memory.
MAX_COPIED: Final = 100_000_000
_BLANKS: Final = b"\t\n\f\r "


def may_be_much(data: bytes) -> bool:
    """Whether so much may be copied of a page: each of its texts is joined once at most, to less than the page."""
    return (2 * data.count(b"<") + 1) * len(data) > MAX_COPIED


@dataclass(slots=True)
class Run:
    """Text that may be joined: how long it is, and whether lexbor has kept something else since it grew last."""

    size: int = 0
    passed: bool = False

    def grow(self, size: int) -> int:
        """Join text of so many bytes; return how many are copied for it."""
        copied = self.size * self.passed
        self.size += size
        self.passed = False
        return copied


@dataclass(slots=True)
class JoinedText:
    """What may have been joined so far."""

    copied: int = 0
    #: Behind the element that began last; and directly in tables.
    behind: Run = field(default_factory=Run)
    in_tables: Run = field(default_factory=Run)

    @property
    def extreme(self) -> bool:
        """Whether a parser would take too much memory."""
        return self.copied > MAX_COPIED

    def text(self, text: bytes, in_table: bool) -> None:
        """Note text; blanks directly in a table stay where they are."""
        run = self.in_tables if in_table and text.strip(_BLANKS) else self.behind
        self.copied += run.grow(len(text))

    def start(self, bits: int, attributes: int, in_table: bool) -> None:
        """Note a start tag; ``in_table``: what is open around it is a table, itself or its cell."""
        dropped = bits & chrome.DROPPED or (bits & (chrome.CELL | chrome.ROW) and not in_table)
        if not dropped:
            self.behind.size = 0
        if attributes:
            self.pass_over()

    def pass_over(self) -> None:
        """Note what lexbor keeps, an attribute or a comment."""
        self.behind.passed = self.in_tables.passed = True
