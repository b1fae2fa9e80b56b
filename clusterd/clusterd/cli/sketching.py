"""What commands share that sketch documents in files: their options, and what they say of what was not taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from clusterd.cli.invocation import Invocation
from clusterd.cli.printing import pages
from clusterd.cli.progress import READING, Tell, size_of

if TYPE_CHECKING:
    from clusterd.ingest.beside import Beside
    from clusterd.ingest.raw import Broken
    from clusterd.ingest.reading import Item
    from clusterd.ingest.revisits import Revisits
    from clusterd.ingest.sketching import Sketching

#: Rejected records that are named one by one.
NAMED: Final = 20
#: Most characters of a reason that are shown: it may quote what a stranger's file says.
SHOWN: Final = 1000


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Command = TypeVar("Command", bound=Callable[..., Any])

PROFILE: Final = click.option(
    "--profile", type=click.Choice(["text", "compact", "short"]), help="How a text becomes a sketch."
)
JOBS: Final = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=cores,
    help="Processes that sketch, where there are many pages; default: one for each core.",
)


def sketching(command: Command) -> Command:
    """Give a command the options ``--profile`` and ``--jobs``."""
    return PROFILE(JOBS(command))


def items_of(
    paths: Iterable[str],
    revisits: Revisits,
    tell: Tell,
    doing: str = READING,
    *,
    base: str = "",
    beside: Beside | None = None,
) -> Iterator[Item]:
    """Yield what the files hold, then the pages that their revisit records refer to: each time in one order."""
    from clusterd.ingest.reading import read
    from clusterd.ingest.warc import originals

    done = 0
    for path in paths:

        def advance(read_so_far: int, before: int = done) -> None:
            tell(doing, before + read_so_far)

        yield from read(path, base, advance, revisits, beside)
        done += size_of(path)
        advance(0, done)
    yield from originals(revisits)


def tell_shortened(invocation: Invocation, run: Sketching) -> None:
    """Say how many pages were too long to be taken whole, here or by whoever archived them."""
    if run.truncated:
        why = "WARC-Truncated, segments, Content-Length"
        invocation.hint(f"of {pages(run.truncated)} the file has only the beginning ({why})")
    if run.shortened:
        invocation.hint(
            f"of {pages(run.shortened)} only the first {run.max_page_bytes} bytes were taken (CLUSTERD_MAX_PAGE_BYTES)"
        )


def tell_unresolved(invocation: Invocation, revisits: Revisits) -> None:
    """Say how many revisit records refer to what is in none of the files."""
    if revisits.unresolved:
        invocation.hint(
            f"of {pages(revisits.unresolved)} it is only said that they were as before (revisit records), and what was "
            "before is in no file of this run: passed over"
        )


class Rejections:
    """Names the first rejected records on standard error, and every one with which the rest of a file is lost."""

    def __init__(self, invocation: Invocation, run: Sketching) -> None:
        self._invocation = invocation
        self._run = run
        self._told_more = False

    def __call__(self, broken: Broken) -> None:
        """Name a record, or say once that there are more."""
        if self._run.rejected <= NAMED or broken.ends:
            self._invocation.hint(f"rejected: {broken.where}: {_shown(broken.reason)}")
        elif not self._told_more:
            self._told_more = True
            self._invocation.hint("rejected: more, counted only")


def _shown(reason: str) -> str:
    return reason if len(reason) <= SHOWN else reason[:SHOWN] + "…"
