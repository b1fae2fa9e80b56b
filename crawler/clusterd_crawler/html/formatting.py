"""How much a parser may have to hold open: what tells that its work on a page is not bounded by the page's size.

A parser opens the formatting elements (``<b>``, ``<font>``) that were not closed again in every block that follows, and
looks through all open elements at many tags: 30 KB of the right markup take it minutes, and gigabytes. So of elements
that are no containers the walk (`markup`) keeps those that *may* still be open. In doubt one is: an end tag closes the
element of its name only where a parser surely does, which is near the top and within one cell of a table. What opens
something that the walk does not follow (``<li><dd><li><dd>``, tags in a drawing's title) adds an entry without a name;
so do parts of tables, options and empty elements in a drawing or a formula, where none of them ends another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.html import chrome

#: Open elements beyond which a parser's work may explode.
MAX_FORMATTING: Final = 2000
#: The same, summed over the blocks of the page.
MAX_REOPENED: Final = 300_000
#: Elements opened since, across which an end tag closes its own (the standard's adoption agency turns eight times).
MAX_CROSSED: Final = 8
#: Attributes of one element, each of which a parser compares with all of them.
MAX_ATTRIBUTES: Final = 1000
#: Options of a page: of one ``select``, lexbor looks through them all at each of them.
MAX_OPTIONS: Final = 10_000
_FORMULA: Final = b"math"
#: Containers in which a cell shuts off what is open outside it.
_BARRIER: Final = chrome.TABLE | chrome.MARKER
#: What ends a drawing or a formula in which it begins, of elements that have no end tag, or may have none.
_BREAKING: Final = frozenset(b"p li dt dd br embed hr img meta".split())


@dataclass(slots=True)
class Open:
    """An open element on the stack of the walk, with what had been counted when it opened."""

    name: bytes
    bits: int
    start: int = 0
    letters: int = 0
    chrome_letters: int = 0
    link_letters: int = 0
    links: int = 0
    chrome: bool = False
    #: What the walk's was around it.
    hidden: int = 0
    main: bool = False
    odd: bool = False
    cell: bool = False
    #: Bits of `chrome.SAID`: whether it is chrome unless it holds prose, or what was found; and what stood before it: a
    #: first heading, one within a main element, and how many embedded files.
    doubtful: int = 0
    headed: tuple[bool, bool] = (False, False)
    files: int = 0
    #: Whether it is chrome unless it begins with a title and is not mostly links.
    boxed: bool = False
    #: The class of the last list item in it.
    item: int = 0
    formatting: int = 0
    floor: int = 0

    @property
    def is_barrier(self) -> bool:
        """Whether it is a table or a template."""
        return bool(self.bits & chrome.CONTAINER and self.bits & _BARRIER)


@dataclass(slots=True)
class Formatting:
    """What may be open beside the containers: name, bits, and how many containers were open."""

    open: list[tuple[bytes, int, int]] = field(default_factory=list)
    #: Those below were opened outside the cell, or the template, that is open.
    floor: int = 0
    barriers: int = 0
    #: The class of the last list item outside all containers.
    item: int = 0
    reopened: int = 0
    #: Attributes of the tags that are one element to a parser.
    merged: int = 0
    options: int = 0
    #: Formulas (``math``) among what may be open.
    formulas: int = 0
    extreme: bool = False

    def start(self, name: bytes, bits: int, stack: list[Open]) -> None:
        """Note a start tag."""
        if not bits & (chrome.CONTAINER | chrome.IMPLIED):
            self._begin(name, bits, len(stack))
            return
        self.reopened += len(self.open)
        self.options += bool(bits & chrome.OPTION)
        if self.reopened > MAX_REOPENED or self.options > MAX_OPTIONS:
            self.extreme = True
        if bits & chrome.CELL and self.barriers:
            self.floor = len(self.open)
        kind, parent = bits & (chrome.ITEM | chrome.TERM), stack[-1] if stack else self
        if kind:
            self.unknown(parent.item not in (0, kind))  # <li> does not close <dd>, nor the other way round
            parent.item = kind
        if bits & chrome.LOOSE and not (name == b"optgroup" and stack and stack[-1].bits & chrome.CHOICE):
            self.unknown(not self.open or self.open[-1][0] != b"ruby")

    def count_attributes(self, count: int, bits: int) -> None:
        """Note how many attributes a start tag has, repeated ones too."""
        if bits & chrome.MERGED:
            self.merged += count
        if max(count, self.merged) > MAX_ATTRIBUTES:
            self.extreme = True

    def end(self, name: bytes, depth: int) -> None:
        """Note an end tag of no container."""
        top = len(self.open) - 1
        for at in range(top, max(self.floor, top - MAX_CROSSED) - 1, -1):
            opened, bits, outer = self.open[at]
            if opened == name:
                if max(depth - outer, 0) + top - at <= MAX_CROSSED:
                    del self.open[at]
                    self.formulas -= opened == _FORMULA
                return
            if bits & chrome.MARKER:
                return

    def start_unended(self, name: bytes, bits: int) -> None:
        """Note a start tag in a drawing or a formula: there what has no end tag, or may have none, stays open."""
        self.unknown(bool(bits & (chrome.IMPLIED | chrome.VOID)) and name not in _BREAKING)

    def unknown(self, count: int) -> None:
        """Note so many elements that may be open, and whose end will not be seen."""
        for _ in range(min(count, MAX_FORMATTING + 1)):
            self._begin(b"", 0, 0)

    def push(self, opened: Open) -> None:
        """Note that the walk stacks an element."""
        opened.formatting, opened.floor = len(self.open), self.floor
        if opened.is_barrier:
            self.barriers += 1
            self.floor = len(self.open)

    def pop(self, opened: Open) -> None:
        """Note the end of a stacked element. The shapes of a drawing, which ``<path/>`` leaves open, end with it."""
        if opened.is_barrier:
            self.barriers -= 1
            self.floor = opened.floor
        if opened.bits & chrome.FOREIGN:
            inside = self.open[opened.formatting :]
            self.open[opened.formatting :] = [one for one in inside if one[1] or not one[0]]
            self.formulas -= sum(one[0] == _FORMULA for one in inside)
            self.floor = min(self.floor, len(self.open))

    def _begin(self, name: bytes, bits: int, depth: int) -> None:
        if len(self.open) == MAX_FORMATTING:
            self.extreme = True
        else:
            self.open.append((name, bits, depth))
            self.formulas += name == _FORMULA
