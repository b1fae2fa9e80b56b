"""Progress on standard error where a person watches, for commands that take minutes over many pages."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Final, TypeVar

#: Told what is being done, and how many bytes of the file have been read by then (None: as before).
Tell = Callable[[str, int | None], None]
Record = TypeVar("Record")
#: What is being done first.
READING: Final = "reading"


@contextmanager
def watched(files: Sequence[str]) -> Iterator[Tell]:
    """Show how far files have been read, then what is done with it; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda doing, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("{task.description:<16}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(READING, total=sum(map(size_of, files)) or None)
        yield lambda doing, done: bar.update(task, description=doing, completed=done)


def size_of(path: str) -> int:
    """Return the bytes of a file; 0 where it is none, as standard input and folders are, or cannot be looked at."""
    try:
        status = None if path == "-" else os.stat(path)
    except OSError:
        return 0
    return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0


def counted(records: Iterable[Record], what: str) -> Iterator[Record]:
    """Yield records, and show how many there are so far."""
    if not sys.stderr.isatty():
        yield from records
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (SpinnerColumn("line"), TextColumn("{task.completed} {task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for record in records:
            bar.advance(task)
            yield record


def begun(records: Iterator[Record]) -> Iterator[Record]:
    """Return records when the first is there: by then the work is done, and the others are printed as they are read."""
    return chain(list(islice(records, 1)), records)
