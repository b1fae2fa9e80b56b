"""Progress on standard error where a person watches, for commands that take minutes over many pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

#: Told what is being done, and how many bytes of the file have been read by then (None: as before).
Tell = Callable[[str, int | None], None]
Record = TypeVar("Record")


@contextmanager
def watched(file: str) -> Iterator[Tell]:
    """Show how far a file has been read, then what is done with it; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda doing, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    size = Path(file).stat().st_size if Path(file).is_file() else None
    parts = (TextColumn("{task.description:<10}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=size)
        yield lambda doing, done: bar.update(task, description=doing, completed=done)


def counted(records: Iterable[Record], what: str) -> Iterator[Record]:
    """Yield records, and show how many there are so far."""
    if not sys.stderr.isatty():
        yield from records
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    parts = (SpinnerColumn(), TextColumn("{task.completed} {task.description}"), TimeElapsedColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for record in records:
            bar.advance(task)
            yield record
