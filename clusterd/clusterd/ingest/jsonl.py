"""JSON lines: one object a line, which says what `rows` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from clusterd.ingest.frames import trouble
from clusterd.ingest.raw import Broken, BrokenRecord, RawPage
from clusterd.ingest.rows import page_of

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
            yield page_of(row, where)
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
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf"), parse_constant=_gap)
    except (ValueError, RecursionError) as error:
        return Broken(where, f"not JSON: {error}")
    if not isinstance(row, dict):
        return Broken(where, f"a JSON {_NAMES[type(row)]} where an object with url and html, html_b64 or text stands")
    return row


def _gap(constant: str) -> None:
    """Return what ``NaN`` says: Python writes it for a gap in a column of numbers, and JSON knows no such number."""
