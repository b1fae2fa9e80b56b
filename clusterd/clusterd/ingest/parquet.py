"""Tables in Parquet, as datatrove, Hugging Face and Common Crawl have them: a row says what `rows` reads.

Only the columns that mean something are read, some rows at a time. A column of times is one of ISO 8601 here.

No value costs more than its row: what Python has no time for (nanoseconds, as pandas writes them; years beyond 9999)
Arrow makes text of, and what is no UTF-8 in a column of texts is replaced, as few writers look at it. pandas turns a
column of numbers with gaps into one of floats, in which ``nan`` is a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusterd_crawler.errors import ClusterdError

from clusterd.ingest.raw import Broken, BrokenRecord, RawPage
from clusterd.ingest.rows import page_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: What a row says, by the names of columns; what lies in another has a dot in its name.
COLUMNS: Final = (
    *("url", "metadata.url", "id", "html", "html_b64", "text"),
    *("content_type", "fetched_at", "sweep", "status"),
)
#: Rows in memory, and bytes of a column that are read, at a time.
ROWS: Final = 100
BUFFER: Final = 1 << 20


def check_reader(path: str) -> None:
    """Raise `ClusterdError` where what reads Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise ClusterdError(f"{path}: is a table in Parquet, and pyarrow reads it: pip install 'clusterd[parquet]'")


def read_parquet(path: str, progress: Callable[[int], None] | None = None) -> Iterator[RawPage | Broken]:
    """Yield the pages of a file; a broken row is named and skipped. ``progress``: told the bytes that were read."""
    size, number = Path(path).stat().st_size, 0
    try:
        for number, (of_all, row) in enumerate(_rows(path), start=1):
            if progress is not None:
                progress(size * number // of_all)
            try:
                yield page_of(row, f"{path}:{number}")
            except BrokenRecord as error:
                yield Broken(f"{path}:{number}", str(error))
    except (OSError, ValueError, NotImplementedError, MemoryError) as error:  # pyarrow's errors are of these kinds
        reason = f"the rest of the file cannot be read: {str(error).partition(chr(10))[0]}"
        yield Broken(f"{path}:{number + 1}", reason, ends=True)


def _rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each row, beside the number of all."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, buffer_size=BUFFER) as file:
        known = {column.path for column in file.schema}
        columns = [name for name in COLUMNS if name in known]
        for batch in file.iter_batches(batch_size=ROWS, columns=columns):
            for row in _readable(batch).to_pylist():
                yield file.metadata.num_rows, {name: _said(name, value) for name, value in row.items()}


def _readable(batch: RecordBatch) -> RecordBatch:
    """Return rows of which Python has every value."""
    from pyarrow import string, timestamp, types

    for n, field in enumerate(batch.schema):
        column = batch.column(n)
        if types.is_timestamp(field.type):  # without its zone these are of UTC
            column = column.cast(timestamp("ms"), safe=False).cast(string())
        elif types.is_date(field.type):
            column = column.cast(string())
        elif types.is_string(field.type) or types.is_large_string(field.type):
            column = _text(column)
        batch = batch.set_column(n, field.name, column)
    return batch


def _text(column: Any) -> Any:
    """Return a column of texts, of which each is one."""
    from pyarrow import ArrowInvalid, array, large_binary

    try:
        column.validate(full=True)
    except ArrowInvalid:
        values = column.cast(large_binary()).to_pylist()
        return array([None if value is None else value.decode("utf-8", "replace") for value in values])
    return column


def _said(name: str, value: Any) -> Any:
    """Return a value as JSON would have it: bytes are UTF-8, but those of a page."""
    if isinstance(value, bytes) and name != "html":
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {inside: _said(inside, one) for inside, one in value.items()}
    return None if isinstance(value, float) and isnan(value) else value
