"""JSON lines: one object a line with ``url`` and one of ``html``, ``html_b64``, ``text``.

Optional: ``id``, ``content_type``, ``fetched_at`` (ISO 8601), ``sweep``, ``status``. With an ``id`` a document that is
only compared, not ingested, needs no ``url``. Of several contents the rawest is taken: ``html_b64`` (bytes as they were
sent), then ``html``, then ``text``. Other fields are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import IO, Any, Final

from clusterd.ingest.frames import trouble
from clusterd.ingest.raw import Broken, BrokenRecord, RawPage, milliseconds

#: Bytes of a line at most, with its end; and of one that is longer, bytes that are passed over at a time.
LONGEST: Final = 1 << 28
PORTION: Final = 1 << 20
#: What JSON calls that which Python reads.
_NAMES: Final = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array"}


def read_jsonl(stream: IO[bytes], name: str) -> Iterator[RawPage | Broken]:
    """Yield the pages of a stream of JSON lines; a broken line is named and skipped."""
    for number, row in rows(stream, name):
        where = f"{name}:{number}"
        if isinstance(row, Broken):
            yield row
            continue
        try:
            yield _page(row, where)
        except BrokenRecord as error:
            yield Broken(where, str(error))


def rows(stream: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any] | Broken]]:
    """Yield the numbered objects of a stream of JSON lines."""
    number = 0
    try:
        for number, line in enumerate(_lines(stream), start=1):
            if line is None or line.strip():
                yield number, _object(line, f"{name}:{number}")
    except (OSError, EOFError) as error:
        yield number + 1, Broken(f"{name}:{number + 1}", f"the rest of the file cannot be read: {error}", ends=True)
    if why := trouble(stream):
        yield number + 1, Broken(f"{name}:{number + 1}", why, ends=True)


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of a stream; None in the place of one that is longer than `LONGEST`, which is passed over."""
    while line := stream.readline(LONGEST + 1):
        if len(line) <= LONGEST:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(PORTION)
        yield None


def _object(line: bytes | None, where: str) -> dict[str, Any] | Broken:
    if line is None:
        return Broken(where, f"the line is longer than {LONGEST} bytes; JSON lines have one object a line")
    try:
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        return Broken(where, f"not JSON: {error}")
    if not isinstance(row, dict):
        return Broken(where, f"a JSON {_NAMES[type(row)]} where an object with url and html, html_b64 or text stands")
    return row


def _page(row: dict[str, Any], where: str) -> RawPage:
    body, text, content_type = _content(row)
    given = row.get("fetched_at")
    return RawPage(
        url=_text(row, "url") if row.get("url") is not None or row.get("id") is None else "",
        body=body,
        text=text,
        content_type=content_type,
        fetched_at=None if given is None else milliseconds(given),
        sweep=_text(row, "sweep") if row.get("sweep") is not None else "",
        status=200 if row.get("status") is None else _status(row["status"]),
        where=where,
        id=_id(row.get("id")),
    )


def _content(row: dict[str, Any]) -> tuple[bytes | None, str | None, str]:
    said = None if row.get("content_type") is None else _text(row, "content_type")
    if row.get("html_b64") is not None:
        try:
            return base64.b64decode(_text(row, "html_b64"), validate=True), None, said or "text/html"
        except (binascii.Error, ValueError) as error:
            raise BrokenRecord(f"html_b64 is not base64: {error}") from None
    if row.get("html") is not None:
        # Decoded already: whatever charset the page itself names is no longer its own.
        media = (said or "text/html").partition(";")[0].strip()
        return _text(row, "html").encode("utf-8", "replace"), None, f"{media}; charset=utf-8"
    if row.get("text") is not None:
        return None, _text(row, "text"), "text/plain"
    raise BrokenRecord("no content; a row has url and one of html, html_b64, text")


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if name == "sweep" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise BrokenRecord(f"{name} is missing" if value is None else f"{name} is not text: {str(value)[:60]!r}")
    return value


def _id(value: Any) -> str | int | None:
    if value == "":  # a column that this row leaves open
        return None
    if value is None or (isinstance(value, (str, int)) and not isinstance(value, bool)):
        return value
    raise BrokenRecord(f"id is {str(value)[:60]!r}; it takes text or a whole number")


def _status(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000:
        return value
    raise BrokenRecord(f"status is {value!r}; it takes an HTTP status such as 200")
