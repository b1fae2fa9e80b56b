"""HTML bytes of any charset → marked text: what is shown, with marks around what is not main text.

1. The charset is what the byte order mark, the HTTP header or the page says, in that order (`charsets`); where none
   does, ISO-2022-JP if the bytes hold its escapes. A page that is valid UTF-8 beyond ASCII, while that charset cannot
   decode it, is UTF-8. Where much of it is wrong in that charset (`mostly_right`: more than a cut character or a few
   bytes), it is in what the page says, be it behind its beginning (a long script or style sheet may stand before it),
   else in UTF-8, else in what its bytes look like where its script is not Latin (`charset_guess`), else in
   windows-1252. So is the little that is wrong: nothing is refused, and words stay words.
2. lexbor (selectolax) parses it as a browser does, and `markup.walk` reads the well nested markup that lexbor writes.
   Where the walk of the page's own markup finds nothing that a parser would nest otherwise, that result is the same
   (tests compare the two; a stray end tag, which a parser drops, still ends a word, and chrome left open inside a list
   item may reach beyond it), and the parse is saved: with the writing it would cost more than all else together. Markup
   whose parse could take unbounded time or memory (formatting elements reopened in thousands of blocks, extreme depth)
   is walked as it stands.

Cost: linear in the page, about 3 µs a KB compiled.
"""

from __future__ import annotations

import re
from typing import Final

from w3lib.encoding import read_bom

from clusterd_crawler.core import compiled
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.html import markup
from clusterd_crawler.html.charset_guess import guessed
from clusterd_crawler.html.charsets import said_by_header, said_by_markup, said_by_xml, said_further_on
from clusterd_crawler.html.declared import Declared
from clusterd_crawler.html.recoding import check_utf8, encoded, mostly_right, recoded, repaired
from clusterd_crawler.html.references import unescape
from clusterd_crawler.html.well_nested import well_nested
from clusterd_crawler.html.xhtml import as_html

#: Beginnings of files that are not text, whatever their content type says.
_SIGNATURES: Final = (
    b"\x89PNG\r\n", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"%PDF-", b"PK\x03\x04", b"\x1f\x8b\x08", b"\x7fELF",
    b"Rar!\x1a", b"7z\xbc\xaf", b"BZh9", b"\xfd7zXZ", b"OggS", b"ID3", b"wOFF", b"wOF2", b"\x00\x00\x01\x00",
)  # fmt: skip
#: Bytes of the beginning that are looked at, and the share of control characters there that makes it no text. Of
#: compressed bytes a tenth are such; text has none but those of ISO-2022-KR (SO, SI) and JP (ESC), and NUL in UTF-16.
_LOOKED_AT: Final = 4096
_CONTROL_SHARE: Final = 0.05
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\f\r\x0e\x0f\x1b\0"))
_NO_CONTROLS: Final = bytes(set(range(256)) - set(_CONTROLS))
#: Servers put a comma or a blank where a semicolon is to stand; browsers take what comes before for the type.
_MARKUP_TYPES: Final = re.compile(
    r"(text/(html|xml)|application/(xhtml\+xml|xml|[\w.+-]*\+xml))([\s;,]|$)", re.IGNORECASE
)
_XML_TYPES: Final = re.compile(r"(text/xml|application/([\w.+-]+\+)?xml)([\s;,]|$)", re.IGNORECASE)
_TEXT_TYPES: Final = re.compile(r"text/|application/(json|javascript|x-javascript)\b", re.IGNORECASE)
#: Charsets in which ASCII bytes are ASCII (as Python names them).
_ASCII_BASED: Final = re.compile(r"(utf-8|cp|iso8859|gb|euc|big5|koi8|shift_jis|mac|tis|latin|ascii)")


class NotText(WrongInput):
    """The body is no text: a picture, an archive, or another kind of file."""


class NeedsParser(Exception):
    """Only a parser can tell what this markup shows; its time is not bounded by the page's size alone."""


def is_markup(content_type: str | None, body: bytes) -> bool:
    """Tell markup from plain text; raises `NotText` for what is neither."""
    if body.startswith(_SIGNATURES):
        raise NotText(f"the body begins like a file that is no text: {body[:8]!r}")
    beginning = body[:_LOOKED_AT]
    controls = len(beginning.translate(None, _NO_CONTROLS))
    if controls > len(beginning) * _CONTROL_SHARE and not _is_wide(content_type, beginning):
        raise NotText("the body is no text: too many of its bytes are control characters")
    if not content_type or not content_type.strip() or _MARKUP_TYPES.match(content_type.strip()):
        return True
    if _is_plain(content_type):
        return False
    media = content_type.partition(";")[0].strip()  # a charset beside it may be ours: of a row that was decoded already
    raise NotText(f"the content type is {media!r}; HTML, XML and plain text are sketched")


def _is_wide(content_type: str | None, beginning: bytes) -> bool:
    """Whether a body says that it is UTF-16 or UTF-32: half of the bytes of a Russian one are control characters."""
    return bool(read_bom(beginning)[0]) or (said_by_header(content_type) or "").startswith(("utf-16", "utf-32"))


def _is_plain(content_type: str | None) -> bool:
    said = (content_type or "").strip()
    return bool(_TEXT_TYPES.match(said)) and not _MARKUP_TYPES.match(said)


def _is_xml(content_type: str | None) -> bool:
    return bool(content_type and _XML_TYPES.match(content_type.strip()))


def utf8(body: bytes, content_type: str | None) -> bytes:
    """Return a body of any charset in UTF-8; never fails."""
    bom, bom_bytes = read_bom(body)
    body = body[len(bom_bytes or b"") :]
    if bom and bom != "utf-8":
        return repaired(body, bom)
    charset = bom or said_by_header(content_type) or _said_inside(body[:_LOOKED_AT], content_type)
    if charset is None and b"\x1b" in body and b"\x1b$" in body:  # one byte is looked for much faster than two
        charset = "iso2022_jp_ext"  # its bytes are all ASCII: it would pass for UTF-8
    if body.isascii() and (charset is None or _ASCII_BASED.match(charset)):
        return body
    try:
        if charset not in (None, "utf-8"):
            return recoded(body, charset)
        check_utf8(body)
    except (UnicodeDecodeError, LookupError):
        return _decode_wrong(body, charset)
    return body


def _said_inside(beginning: bytes, content_type: str | None) -> str | None:
    """Return the charset that a body says; a plain text may hold markup of another one, and says nothing by it."""
    if _is_xml(content_type):
        return said_by_xml(beginning)
    return None if _is_plain(content_type) else said_by_markup(beginning)


def decode(body: bytes, content_type: str | None) -> str:
    """Decode a body of any charset; never fails."""
    return utf8(body, content_type).decode("utf-8", "surrogatepass")


def _decode_wrong(body: bytes, charset: str | None) -> bytes:
    """Return in UTF-8 a body that is not what it says, or that says nothing and is no UTF-8.

    What it says does not hold where much of it is wrong: of a page of windows-1251 that a server calls UTF-8 no letter
    would be left, and all such pages would have one text.
    """
    if charset not in (None, "utf-8") and not body.isascii():
        try:
            check_utf8(body)
        except UnicodeDecodeError:
            pass
        else:
            return body
    said = said_by_markup(body[:_LOOKED_AT]) or said_further_on(body)
    for likely in dict.fromkeys((charset, said, "utf-8")):
        if likely and (made := mostly_right(body, likely)):
            return made
    if (likely := guessed(body)) and (made := mostly_right(body, likely)):
        return made
    return repaired(body, "cp1252")


def marked_text(
    html: str | bytes, content_type: str | None = None, *, parse: bool = True
) -> tuple[bytes, list[Declared]]:
    """Return the marked text of HTML or XML (bytes are UTF-8), in UTF-8, and what the page declares (`markup`).

    Raises `NeedsParser` where ``parse`` is false and the walk of the markup as it stands is not enough.
    """
    data = html if isinstance(html, bytes) else encoded(html)
    if _is_xml(content_type):
        data = as_html(data)
    marked, flags, declared = _walk(data, nested=False)
    if flags & markup.IRREGULAR and not flags & markup.EXTREME:
        if not parse:
            raise NeedsParser
        marked, _, declared = _walk(well_nested(data), nested=True)
    return marked, declared


def _walk(data: bytes, *, nested: bool) -> tuple[bytes, int, list[Declared]]:
    if compiled.CORE is None:
        return markup.walk(data, nested)
    walked: tuple[bytes, int, list[Declared]] = compiled.CORE.walk(data, nested, unescape)
    return walked


def plain(marked: bytes) -> str:
    """Return all visible text of a marked text."""
    return marked.translate(None, b"\1\2").decode("utf-8", "replace")


def main_part(marked: bytes) -> str:
    """Return the main text of a marked text."""
    return re.sub(b"\1[^\2]*\2", b"\n", marked).decode("utf-8", "replace")
