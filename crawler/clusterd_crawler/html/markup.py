"""Markup → its visible text, with marks around what is not main text. One pass over the bytes, linear.

The input is UTF-8 markup. Tags and comments are read as the HTML standard's tokenizer reads them (`tags`); the text
that is shown is copied, blocks are set apart by a line break, and a stack of the open containers says what is hidden,
what is chrome (`chrome`), and how much of a block is links. At the end `main_text` decides, from the page alone.

Of a drawing (``svg``) the labels are text. An image's ``alt`` is not: it is not shown, and templates fill it with file
names and with what is there anyway.

Result: the text in which \\1 … \\2 enclose what is not main (text that contains those two gets blanks for them), flags,
and what the page declares about itself. `IRREGULAR` says that the nesting of tags is not plain enough for this walk to
know the tree: such markup is to be parsed and serialised by a real parser first (`text`). `EXTREME` says that it is
nested so deeply, with so many open formatting elements, or so much text in wrong places, that a parser's work on it is
not bounded.

The compiled core has the same walk (`core/markup.h`), some fifty times faster; this is what it must agree with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.html import chrome
from clusterd_crawler.html.declared import Declarations, Declared
from clusterd_crawler.html.embedded_content import Embedded
from clusterd_crawler.html.formatting import Formatting, Open
from clusterd_crawler.html.joined_text import JoinedText, may_be_much
from clusterd_crawler.html.main_text import CHROME_BEGINS, CHROME_ENDS, Found, other_spans, with_marks
from clusterd_crawler.html.raw_elements import end_of_raw
from clusterd_crawler.html.references import unescape
from clusterd_crawler.html.tags import Tag, end_of_comment, is_titled, read_tag

IRREGULAR: Final = 1
EXTREME: Final = 2

#: What keeps text from being shown: a drawing, save in its labels; anything that hides its content.
DRAWING: Final = 1
HIDING: Final = 2

#: Open containers that are kept apart; deeper ones are not.
MAX_DEPTH: Final = 256
#: Main elements whose bounds are kept.
MAX_MAINS: Final = 8

#: A block is dense that has so many links, with so many percent of its letters.
DENSE_LINKS: Final = 5
DENSE_PERCENT: Final = 85

#: All but the bytes that are counted as letters: ASCII letters and digits, and everything beyond ASCII.
_NO_LETTERS: Final = bytes(i for i in range(128) if not chr(i).isalnum())
_BLANKED: Final = bytes.maketrans(CHROME_BEGINS + CHROME_ENDS, b"  ")


def walk(data: bytes, well_nested: bool = False) -> tuple[bytes, int, list[Declared]]:
    """Return the marked text of UTF-8 markup, flags, and what the page declares and embeds."""
    state = Walk(data, well_nested)
    state.run()
    spans = other_spans(state.out, state.letters - state.chrome_letters, state.found)
    declared = state.page.declared + state.embedded.shown(spans, state.letters)
    return with_marks(state.out, spans), state.flags, declared


@dataclass(slots=True)
class Walk:
    """The state of one walk."""

    data: bytes
    well_nested: bool
    out: bytearray = field(default_factory=bytearray)
    flags: int = 0
    page: Declarations = field(default_factory=Declarations)
    embedded: Embedded = field(default_factory=Embedded)
    found: Found = field(default_factory=Found)
    stack: list[Open] = field(default_factory=list)
    #: Open elements on the stack that are no containers: while there are any, every element is stacked.
    odd: int = 0
    #: Why text is not shown (`DRAWING`, `HIDING`); 0 where it is.
    hidden: int = 0
    chrome: int = 0
    scopes: int = 0
    foreign: int = 0
    in_main: bool = False
    letters: int = 0
    chrome_letters: int = 0
    link_letters: int = 0
    links: int = 0
    #: Height of the stack where the open link began; -1 where none is open.
    link_depth: int = -1
    formatting: Formatting = field(default_factory=Formatting)
    #: Of a page of which a parser may have to copy much.
    joined: JoinedText | None = None
    #: Letters where the open ``h1`` began; -1 where none is open.
    heading: int = -1

    def run(self) -> None:
        """Read all markup."""
        data, at = self.data, 0
        self.joined = JoinedText() if may_be_much(data) else None
        while at < len(data):
            tag = data.find(b"<", at)
            if tag < 0:
                tag = len(data)
            self._data(at, tag)
            at = self._markup(tag) if tag < len(data) else tag
        # An end tag that is not followed may have ended what hides the rest, or keeps it from the main text.
        if self.link_depth >= 0 or self.hidden or self.foreign or self.chrome:
            self._irregular()
        while self.stack:
            self._pop()
        self.flags |= EXTREME * (self.formatting.extreme or (self.joined is not None and self.joined.extreme))

    def _markup(self, at: int) -> int:
        """Read what begins with the ``<`` at a place; return where it ends."""
        data = self.data
        tag, end = read_tag(data, at)
        if tag:
            if not tag.ends:
                return self._start(tag, end)
            if self.joined and tag.written:
                self.joined.pass_over()
            self._end(tag.name, tag.bits)
        if end:
            return end
        if data.startswith((b"<!", b"<?"), at) or (data.startswith(b"</", at) and at + 2 < len(data)):
            if self.joined:
                self.joined.pass_over()
            if data.startswith(b"<!--", at):
                return end_of_comment(data, at + 4)
            if data.startswith(b"<![CDATA[", at):
                self._irregular()
            end = data.find(b">", at + 2)
            return len(data) if end < 0 else end + 1
        self._data(at, at + 1)  # a lone "<" is a sign like any other
        return at + 1

    def _data(self, start: int, end: int) -> None:
        if self.joined and start < end:
            self.joined.text(self.data[start:end], self._is_beside_cells())
        self._text(start, end)

    def _text(self, start: int, end: int, as_it_stands: bool = False) -> None:
        if self.hidden or start >= end:
            return
        segment = self.data[start:end]
        if b"&" in segment and not as_it_stands:
            segment = unescape(segment)
        segment = segment.translate(_BLANKED, b"\0")
        count = len(segment.translate(None, _NO_LETTERS))
        self.out += segment
        self.letters += count
        if self.chrome:
            self.chrome_letters += count
        elif self.link_depth >= 0:
            self.link_letters += count
        if count and self._is_beside_cells():
            self._irregular()

    def _is_beside_cells(self) -> bool:
        """Whether what is open is a table outside its cells."""
        if not self.stack:
            return False
        top = self.stack[-1]
        return bool(top.bits & chrome.ROW or (top.bits & chrome.TABLE and not top.cell))

    def _break(self) -> None:
        if not self.hidden and self.out and self.out[-1] > 0x20:
            self.out.append(0x0A)

    def _irregular(self) -> None:
        if not self.well_nested:
            self.flags |= IRREGULAR

    def _start(self, tag: Tag, end: int) -> int:
        bits = tag.bits
        if not bits & chrome.INLINE:
            self._break()
        if tag.written:
            if tag.name in chrome.EMBEDDING and not (self.hidden or self.chrome or tag.hidden):
                self.embedded.take(tag.attributes, len(self.out))
            self.page.take(tag.name, bits, tag.attributes)
            self.formatting.count_attributes(tag.written, bits)
        if self.joined:
            self.joined.start(bits, tag.written, bool(self.stack and self.stack[-1].bits & chrome.TABLE))
        if self.foreign and bits and not bits & chrome.LINK:
            self._irregular()  # a parser leaves the foreign element, or reads this one otherwise
        if self.foreign or self.formatting.formulas:
            self.formatting.start_unended(tag.name, bits)
        if bits & (chrome.RAW | chrome.ESCAPABLE):
            return self._unparsed(tag, end)
        if bits & chrome.VOID:
            return end
        self._check_nesting(tag.name, bits)
        if bits & chrome.HEADING:
            self.heading = self.letters
        if bits & chrome.LINK and b"href" in tag.attributes:
            if self.link_depth >= 0:
                self._irregular()
            self.link_depth = len(self.stack)
            self.links += not self.chrome and not self.hidden
        self.formatting.start(tag.name, bits, self.stack)
        self._push(tag, end)
        return end

    def _unparsed(self, tag: Tag, at: int) -> int:
        """Pass over the content of a raw element, or take it as text; return where the end tag begins."""
        endless = tag.name == b"plaintext" and not self.well_nested  # a parser writes its end
        end = len(self.data) if endless else end_of_raw(self.data, tag.name, at)
        in_choice = self.stack and self.stack[-1].bits & chrome.CHOICE
        if self.foreign or self.formatting.formulas or in_choice:  # a parser may read it as markup
            self.formatting.unknown(self.data.count(b"<", at, end))
        if tag.name == b"script" and not tag.attributes.get(b"src") and not self.hidden:
            self.embedded.take_script(self.data[at:end])
        if tag.bits & chrome.ESCAPABLE and not tag.hidden and not self.foreign:  # a drawing's title is not shown
            start, letters = len(self.out), self.letters
            self._text(at, end, bool(tag.bits & chrome.RAW))
            if (
                tag.bits & chrome.TITLE
                and self.found.title[0] < 0
                and not self.hidden
                and not self.chrome
                and not self.in_main
            ):
                self.found.title, self.found.title_letters = (start, len(self.out)), self.letters - letters
        return end

    def _check_nesting(self, name: bytes, bits: int) -> None:
        """Note an element whose parent the standard would close, or that it would move out of a table."""
        top = self.stack[-1] if self.stack else None
        if bits & (chrome.CELL | chrome.ROW) and not (top and top.bits & (chrome.TABLE | chrome.CELL | chrome.ROW)):
            self._irregular()
        if not top:
            return
        if (top.bits & chrome.CHOICE and not bits & chrome.IMPLIED) or (
            top.odd and not (top.bits & (chrome.IMPLIED | chrome.NAMED) or bits & chrome.INLINE)
        ):
            self._irregular()
        if top.bits & chrome.TABLE:
            if bits & (chrome.CELL | chrome.ROW):
                top.cell = bool(bits & chrome.CELL)
            elif bits & (chrome.CONTAINER | chrome.NAMED) and not top.cell:
                self._irregular()
        elif top.bits & chrome.IMPLIED and (
            top.name == name
            or (top.bits & chrome.PARAGRAPH and not bits & chrome.INLINE)
            or (top.bits & chrome.CELL and bits & (chrome.CELL | chrome.ROW))
            or (top.bits & chrome.ROW and not bits & (chrome.CELL | chrome.ROW))
            or (top.bits & chrome.TERM and bits & chrome.TERM)
        ):
            self._irregular()

    def _push(self, tag: Tag, at: int) -> None:
        bits, main, said = tag.bits, tag.main, tag.said
        if said != tag.said_without_id and is_titled(self.data, at, tag.attributes[b"id"]):
            said = tag.said_without_id or chrome.TITLED
        lettering = self.hidden == DRAWING and tag.name in chrome.LETTERING
        stacked = bits & chrome.CONTAINER or lettering or (self.odd and not self._is_shape(bits))
        surely = bool(said & chrome.SURELY or bits & chrome.CHROME)
        doubtful = said & (chrome.DOUBTFULLY | chrome.SEARCHING | chrome.TITLED)
        is_chrome = not main and (
            surely or bool(said & chrome.BOXED) or (bool(bits & chrome.SECTIONAL) and not self.scopes)
        )
        if said & chrome.TITLING:
            self._title_box()
        if not (stacked or tag.hidden or is_chrome or main or doubtful):
            return
        if len(self.stack) == MAX_DEPTH:
            self.flags |= EXTREME
            return
        main = main and not (self.hidden or self.chrome or self.in_main)
        start = len(self.out)
        opened = Open(tag.name, bits, start, self.letters, self.chrome_letters, self.link_letters, self.links)
        opened.chrome, opened.hidden, opened.main = is_chrome, self.hidden, main
        opened.doubtful, opened.files = doubtful, len(self.embedded.files)
        opened.boxed = bool(said & chrome.BOXED) and not surely
        opened.headed = self.found.headed, self.found.headed_in_main
        opened.odd = not bits & chrome.CONTAINER
        self.formatting.push(opened)
        self.stack.append(opened)
        self.odd += opened.odd
        if tag.hidden:
            self.hidden = HIDING
        elif lettering:
            self.hidden = 0
        elif bits & chrome.FOREIGN and not self.hidden:
            self.hidden = DRAWING
        self.chrome += is_chrome
        self.in_main = self.in_main or main
        self.scopes += bool(bits & chrome.SCOPE)
        self.foreign += bool(bits & chrome.FOREIGN)

    def _title_box(self) -> None:
        """Doubt whether an element is chrome that begins with a title."""
        top = self.stack[-1] if self.stack else None
        if top and top.boxed and top.chrome and top.letters == self.letters:
            top.chrome, top.doubtful = False, chrome.DOUBTFULLY
            self.chrome -= 1

    def _is_shape(self, bits: int) -> bool:
        """Whether an element is a hidden part of a drawing, which may have no end tag there, as ``<path/>``."""
        return not bits and self.foreign > 0 and self.hidden > 0 and not self.well_nested

    def _end(self, name: bytes, bits: int) -> None:
        if not bits & chrome.INLINE:
            self._break()
        if self.foreign and bits & ~(chrome.INLINE | chrome.LINK) and not bits & chrome.FOREIGN:
            self._irregular()
        if bits & (chrome.VOID | chrome.RAW | chrome.ESCAPABLE):
            return
        if bits & chrome.HEADING:
            self._end_heading()
        if not bits & (chrome.CONTAINER | chrome.IMPLIED):
            self.formatting.end(name, len(self.stack))
        if self.stack and self.stack[-1].bits & chrome.TABLE and bits & (chrome.CELL | chrome.ROW):
            self.stack[-1].cell = False
        if bits & chrome.CONTAINER or (self.odd and not self._is_shape(bits)):
            self._close(name)
        if bits & chrome.LINK and self.link_depth >= 0:
            if self.link_depth != len(self.stack):
                self._irregular()
            self.link_depth = -1

    def _end_heading(self) -> None:
        if 0 <= self.heading < self.letters and not self.chrome:
            self.found.headed = True
            self.found.headed_in_main |= self.in_main
        self.heading = -1

    def _close(self, name: bytes) -> None:
        """Close the innermost open element of that name with what is in it, never across a table or a template."""
        for height in range(len(self.stack) - 1, -1, -1):
            opened = self.stack[height]
            if opened.name == name:
                if any(not inner.bits & chrome.IMPLIED for inner in self.stack[height + 1 :]):
                    self._irregular()
                while len(self.stack) > height:
                    self._pop()
                return
            if opened.hidden == DRAWING:
                self._irregular()  # it may be what a label stands in that ends
            if opened.bits & (chrome.TABLE | chrome.MARKER):
                self._irregular()
                return

    def _pop(self) -> None:
        opened = self.stack.pop()
        end = len(self.out)
        self.odd -= opened.odd
        self.hidden = opened.hidden
        self.chrome -= opened.chrome
        self.scopes -= bool(opened.bits & chrome.SCOPE)
        self.foreign -= bool(opened.bits & chrome.FOREIGN)
        self.formatting.pop(opened)
        if self.link_depth > len(self.stack):
            self._irregular()
            self.link_depth = -1
        if opened.chrome and not self.chrome and end > opened.start:
            self.found.cut.append((opened.start, end))
        if self.chrome or self.hidden:
            return
        letters = self.letters - opened.letters - (self.chrome_letters - opened.chrome_letters)
        if opened.doubtful and not self._is_content(opened, letters):
            self._cut(opened, end, letters)
        elif opened.main:
            self.in_main = False
            if len(self.found.mains) < MAX_MAINS:
                self.found.mains.append((opened.start, end, letters))
        elif opened.bits & chrome.DENSE:
            self._judge_links(opened, end, letters)

    def _is_content(self, opened: Open, letters: int) -> bool:
        if opened.doubtful & chrome.SEARCHING:
            return letters >= chrome.SEARCH_LETTERS
        linked, titled = self.link_letters - opened.link_letters, opened.boxed or opened.doubtful & chrome.TITLED
        return letters - linked >= max(0 if titled else chrome.PROSE_LETTERS, linked)

    def _cut(self, opened: Open, end: int, letters: int) -> None:
        """Take an element for chrome that has been read as content."""
        found = self.found
        if end > opened.start:
            found.cut.append((opened.start, end))
        self.chrome_letters += letters
        self.link_letters, self.links = opened.link_letters, opened.links
        found.headed, found.headed_in_main = opened.headed
        del self.embedded.files[opened.files :]
        if found.title[0] >= opened.start:
            found.title, found.title_letters = (-1, -1), 0
        for inside in (found.dense, found.mains):
            while inside and inside[-1][0] >= opened.start:
                inside.pop()

    def _judge_links(self, opened: Open, end: int, letters: int) -> None:
        linked = self.link_letters - opened.link_letters
        if self.links - opened.links < DENSE_LINKS or not letters or linked * 100 < letters * DENSE_PERCENT:
            return
        while self.found.dense and self.found.dense[-1][0] >= opened.start:
            self.found.dense.pop()
        self.found.dense.append((opened.start, end, letters))
