"""How answers are printed: JSON lines for scripts, tables for people.

On a terminal a table is drawn by rich and long URLs are folded; in a pipe the columns are plain text of full length,
so that nothing that a person greps for is cut.
"""

from __future__ import annotations

import json as codec
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

#: Members of a cluster that a table names; ``--json`` gives all.
SHOWN_MEMBERS: Final = 3
#: Cells longer than this are folded on a terminal, down to columns of this many characters.
FOLDED: Final = 30
NARROWEST: Final = 12

Record = Mapping[str, Any]


def show(records: Iterable[Record], columns: Sequence[str], *, json: bool, empty: str) -> int:
    """Print records as JSON lines, each at once, or as a table of ``columns``; return their number."""
    if json:
        count = 0
        for record in records:
            write_line(to_json(record))
            count += 1
        return count
    rows = [[cell(record.get(column)) for column in columns] for record in records]
    if not rows:
        if empty:
            print(printable(empty), file=sys.stderr)
    elif sys.stdout.isatty():
        _draw(rows, columns)
    else:
        _plain(rows, columns)
    return len(rows)


def emit(record: Record, text: str | None, *, json: bool) -> None:
    """Print one record: a JSON line, the text given, or its fields one below the other."""
    if json:
        write_line(to_json(record))
    elif text is not None:
        write_line("\n".join(map(printable, text.split("\n"))))
    else:
        width = max(map(len, record), default=0)
        for name, value in record.items():
            write_line(f"{name:<{width}}  {cell(value)}")


def to_json(record: Record) -> str:
    """Return a record on one line; numbers rounded to the sixth place, what would command a terminal escaped."""
    return escaped(codec.dumps(_rounded(dict(record)), ensure_ascii=False))


def escaped(text: str) -> str:
    """Return a line of JSON with what would command a terminal escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else codec.dumps(c)[1:-1] for c in text)


def write_line(line: str) -> None:
    """Write a line to standard output as UTF-8, whatever the locale; a lone surrogate becomes its JSON escape."""
    sys.stdout.flush()
    data = (line + "\n").encode("utf-8", "backslashreplace")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode())
    else:
        buffer.write(data)
        buffer.flush()


def pages(number: int) -> str:
    """Return so many pages in words."""
    return f"{number} page" if number == 1 else f"{number} pages"


def cell(value: Any) -> str:
    """Return what a table shows of a value."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {cell(v)}" for name, v in value.items())
    if isinstance(value, (list, tuple)):
        more = f" … {len(value) - SHOWN_MEMBERS} more" if len(value) > SHOWN_MEMBERS else ""
        return " ".join(cell(v) for v in value[:SHOWN_MEMBERS]) + more
    return printable(str(value))


def printable(text: str) -> str:
    """Return a text without what would command a terminal, or begin a line: a page's URL may hold anything."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: _rounded(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return value


def _draw(rows: list[list[str]], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    widths = [max(len(column), *(len(row[n]) for row in rows)) for n, column in enumerate(columns)]
    if sum(NARROWEST if width > FOLDED else width for width in widths) + 2 * len(columns) > console.width:
        _stack(rows, columns)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, column in enumerate(columns):
        numeric = all(_is_number(row[number]) for row in rows)
        table.add_column(
            column.replace("_", " "),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=widths[number] <= FOLDED,
        )
    for row in rows:
        table.add_row(*row)
    with console.capture() as drawn:
        console.print(table)
    write_line(drawn.get().removesuffix("\n"))  # in UTF-8, which rich would not write in another locale


def _stack(rows: list[list[str]], columns: Sequence[str]) -> None:
    """Print a record below the other, each field on its line: for tables that are too wide for a terminal."""
    width = max(map(len, columns))
    for row in rows:
        for column, text in zip(columns, row, strict=True):
            write_line(f"{column:<{width}}  {text}")
        write_line("")


def _plain(rows: list[list[str]], columns: Sequence[str]) -> None:
    widths = [max(len(column), *(len(row[n]) for row in rows)) for n, column in enumerate(columns)]
    for row in (list(columns), *rows):
        write_line("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(".", "", 1).isdigit()
