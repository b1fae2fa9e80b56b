"""A row of a table of pages, as JSON lines and Parquet have them: ``url`` and one of ``html``, ``html_b64``, ``text``.

Optional: ``id``, ``content_type``, ``fetched_at`` (ISO 8601), ``sweep``, ``status``. With an ``id`` a document that is
only compared, not ingested, needs no ``url``. Where it has none, that of its ``metadata`` counts (datatrove, Dolma). Of
several contents the rawest is taken: ``html_b64`` (bytes as they were sent; in a table ``html`` may be bytes, too),
then ``html``, then ``text``; an empty one only where no other is there. Other fields are ignored.

A row leaves a field open by `null`, and by an empty text, as in what was made of CSV. In what was made of a table with
gaps `NaN` stands for `null`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from clusterd.ingest.raw import BrokenRecord, RawPage, milliseconds


def page_of(row: dict[str, Any], where: str) -> RawPage:
    """Return the page of a row; `BrokenRecord` where it is none. ``where`` it stands, for messages."""
    body, text, content_type = _content(row)
    at: Any = row.get("fetched_at")
    status = row.get("status")
    return RawPage(
        url=_url(row),
        body=body,
        text=text,
        content_type=content_type,
        fetched_at=None if _is_open(at) else milliseconds(at),
        sweep=_text(row, "sweep") if row.get("sweep") is not None else "",
        status=200 if _is_open(status) else _status(status),
        where=where,
        id=_id(row.get("id")),
    )


def _is_open(value: Any) -> bool:
    return value is None or value == ""


def _url(row: dict[str, Any]) -> str:
    metadata = row.get("metadata")
    where = metadata if _is_open(row.get("url")) and isinstance(metadata, dict) else row
    return _text(where, "url") if where.get("url") is not None or row.get("id") is None else ""


def _content(row: dict[str, Any]) -> tuple[bytes | None, str | None, str]:
    said = None if row.get("content_type") is None else _text(row, "content_type")
    there = [name for name in ("html_b64", "html", "text") if row.get(name) is not None]
    name = next((one for one in there if row[one]), there[0] if there else "")
    if name == "html_b64":
        lines = _text(row, "html_b64").split()  # of 76 characters, as base64 of a shell and MIME write it
        try:
            return base64.b64decode("".join(lines), validate=True), None, said or "text/html"
        except (binascii.Error, ValueError) as error:
            raise BrokenRecord(f"html_b64 is not base64: {error}") from None
    if name == "html" and isinstance(row["html"], bytes):
        return row["html"], None, said or "text/html"
    if name == "html":
        # Decoded already: whatever charset the page itself names is no longer its own.
        media = (said or "text/html").partition(";")[0].strip()
        return _text(row, "html").encode("utf-8", "replace"), None, f"{media}; charset=utf-8"
    if name == "text":
        return None, _text(row, "text"), "text/plain"
    raise BrokenRecord("no content; a row has url and one of html, html_b64, text")


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if name == "sweep" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(_whole(value))
    if not isinstance(value, str):
        raise BrokenRecord(f"{name} is missing" if value is None else f"{name} is not text: {str(value)[:60]!r}")
    return value


def _whole(value: Any) -> Any:
    """Return a whole number as one: where a column of them has gaps, pandas writes ``200.0``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _id(given: Any) -> str | int | None:
    value = _whole(given)
    if _is_open(value):
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return value
    raise BrokenRecord(f"id is {str(value)[:60]!r}; it takes text or a whole number")


def _status(given: Any) -> int:
    value = _whole(given)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000:
        return value
    raise BrokenRecord(f"status is {value!r}; it takes an HTTP status such as 200")
