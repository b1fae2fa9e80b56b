"""What a file holds: packed or not, HTML or plain text. Its content decides; its name tells XHTML from HTML."""

from __future__ import annotations

import io
import re
from typing import Final

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.html.chrome import TAGS

from clusterd.ingest.frames import MOST, Frames
from clusterd.ingest.packings import MARK, packing_of, without_packing

ZIP: Final = b"PK\x03\x04"
PARQUET: Final = b"PAR1"
#: First bytes of the files of web archives; a WARC file's are also those of each of its records.
WARC: Final = b"WARC/"
ARC: Final = b"filedesc://"
ARCHIVES: Final = (WARC, ARC)
#: Endings of the names of JSON lines.
LINES: Final = (".jsonl", ".jl", ".ndjson")
#: How files begin that hold others, or are packed otherwise. Their pages may lie in them as they are, or nearly so:
#: such a file would be one page of HTML, or a text.
_CONTAINERS: Final = {
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\0": "packed with xz",
    b"\x04\x22\x4d\x18": "packed with LZ4",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    ZIP: "a zip archive",
    PARQUET: "a table in Parquet",
    b"From: <Saved by ": "MHTML, a page with its pictures (browsers save it as HTML, too)",
}
_TAR: Final = slice(257, 262)
#: How much of a file is looked at to tell HTML from plain text.
LOOKED_AT: Final = 2048
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|div|p|table|article|h[1-6])[\s>/]", re.I)
#: What may stand before the first tag: byte order marks, blanks, comments (often a licence) and XML's declaration. It
#: is passed over in so many bytes.
PASSED_OVER: Final = 65536
_BEFORE: Final = re.compile(rb"(?:[\xef\xbb\xbf\xff\xfe\s]+|<!--.*?-->|<\?[^>]*>)*", re.DOTALL)
_FIRST_TAG: Final = re.compile(rb"<([a-z][a-z0-9]*)[\s>/]", re.I)
_ELEMENTS: Final = TAGS.keys() - {b"svg"}


def unpacked(data: bytes, name: str) -> bytes:
    """Return the content of packed data (`packings.PACKINGS`), other data as it is.

    `WrongInput` where it is broken, or more than `MOST` bytes.
    """
    packing = packing_of(data)
    if packing is None:
        return data
    frames = Frames(io.BytesIO(data), packing.begin)
    content = io.BufferedReader(frames).read(MOST + 1)
    if len(content) > MOST:
        raise WrongInput(f"{name} is packed and holds more than {MOST} bytes; unpack it if all of it is one page")
    if frames.trouble:
        raise WrongInput(f"{name} begins like {packing.name}, but is broken: {frames.damage or frames.trouble}")
    return content


def decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    """Return what a packed stream (`packings.PACKINGS`) holds, as it is read; another stream as it is."""
    packing = packing_of(stream.peek(MARK))
    return stream if packing is None else io.BufferedReader(Frames(stream, packing.begin))


def container(head: bytes, looked_at: int | None = None) -> str:
    """Return what a file is that holds other files, or is packed otherwise, by its first bytes; "" where it is none.

    ``looked_at``: how many of them are there, of what comes through a pipe; of a longer mark no more is looked for.
    """
    if head[_TAR] == b"ustar":
        return "a tar archive"
    return next((what for magic, what in _CONTAINERS.items() if head.startswith(magic[:looked_at])), "")


def is_html(data: bytes) -> bool:
    """Whether a file looks like HTML rather than plain text: it begins with a tag, or one is near its beginning."""
    head, begin = _start(data)
    return _begins(head, begin) or bool(_HTML.search(head, begin, begin + LOOKED_AT))


def begins_as_html(data: bytes) -> bool:
    """Whether a file begins with a tag of HTML."""
    return _begins(*_start(data))


def _start(data: bytes) -> tuple[bytes, int]:
    """Return the beginning of a file, and where its first tag or text stands there."""
    head = data[:PASSED_OVER].replace(b"\0", b"")  # UTF-16 has a NUL beside every letter of a tag
    before = _BEFORE.match(head)
    return head, before.end() if before else 0


def _begins(head: bytes, begin: int) -> bool:
    first = _FIRST_TAG.match(head, begin)
    return bool(first and first[1].lower() in _ELEMENTS) or bool(_HTML.match(head, begin))


def type_of(name: str) -> str:
    """Return the content type of markup in a file: of XHTML by its name."""
    return "application/xhtml+xml" if without_packing(name.lower()).endswith(".xhtml") else "text/html"
