"""Fetched pages on their way to the log, those of a moment together.

A page alone in the loop's thread is sketched with cold caches: between two pages the processor has run all of Scrapy,
and finds neither the code nor the tables of clusterd where it left them. Twelve pages one after the other cost half of
what they cost apart (measured: 230 and 130 µs a page). So pages are gathered, for as long as the publisher would have
them wait for each other anyway (`GATHER_SECONDS`), and are then sketched, published and noted in one go, which is kept
far below 10 ms. Large pages, and those that need a parser, go to the worker's thread together.

Where there is something to decide by, a page is noted before the crawl goes on: there each is sketched at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from scrapy.utils.asyncio import call_later

from clusterd_crawler.crawling.event_loop import EventLoop, Worker
from clusterd_crawler.crawling.pages.reporter import AT_ONCE, Outcome, Page, Reporter, Seen
from clusterd_crawler.errors import ClusterdError

#: Seconds from the first of the gathered pages to the sketching of all.
GATHER_SECONDS: Final = 0.1
#: Most pages that are gathered, and bytes of those that are sketched in the loop's thread (3 ms) and in the worker's.
PAGES: Final = 16
SMALL_BYTES: Final = 192 * 1024
LARGE_BYTES: Final = 4 * 1024 * 1024


class Pages:
    """For the loop's thread. What is given is called there: ``note`` with a sketched page, ``refuse`` with another."""

    def __init__(
        self,
        loop: EventLoop,
        reporter: Reporter,
        note: Callable[[Page, Seen], None],
        refuse: Callable[[Page, ClusterdError], None],
    ) -> None:
        self._loop = loop
        self._worker = Worker(loop, "clusterd-sketcher")
        self._reporter = reporter
        self._note = note
        self._refuse = refuse
        self._gathered: list[Page] = []
        self._small = 0
        self._large = 0
        self._timer: Any = None

    async def take(self, page: Page) -> None:
        """Sketch a page and note it, before returning."""
        self.flush()
        (outcome,) = self._reporter.sketch_now([page])
        if outcome is None:
            (outcome,) = await self._worker.start(self._reporter.sketch, [page])
        self._tell(page, outcome)

    def gather(self, page: Page) -> None:
        """Take a page that is to be sketched soon."""
        self._gathered.append(page)
        size = len(page.response.body)
        if size > AT_ONCE:
            self._large += size
        else:
            self._small += size
        if len(self._gathered) >= PAGES or self._small >= SMALL_BYTES or self._large >= LARGE_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Sketch what was gathered: in steps, each of which finds its code in the processor's caches."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._gathered:
            return
        pages, self._gathered, self._small, self._large = self._gathered, [], 0, 0
        outcomes = self._reporter.sketch_now(pages)
        left = [page for page, outcome in zip(pages, outcomes, strict=True) if outcome is None]
        if left:
            self._loop.start(self._tell_of(left, self._worker.start(self._reporter.sketch, left)))
        for page, outcome in zip(pages, outcomes, strict=True):
            if outcome is not None:
                self._tell(page, outcome)

    async def _tell_of(self, pages: list[Page], sketched: Awaitable[list[Outcome]]) -> None:
        for page, outcome in zip(pages, await sketched, strict=True):
            self._tell(page, outcome)

    def _tell(self, page: Page, outcome: Outcome) -> None:
        if isinstance(outcome, ClusterdError):
            self._refuse(page, outcome)
        else:
            self._note(page, outcome)

    async def close(self) -> None:
        """Sketch what waits, and end the thread."""
        self.flush()
        await self._worker.start(int)  # comes when all is done that was asked for before
        self._worker.close()
