"""Pages that have come and that the spider has not been given yet.

A page is known, so that others of its key are skipped, when the spider has it: a spider middleware may refuse it still
(``process_spider_input``), without a word to us. In Scrapy a page takes some turns of the loop from the last downloader
middleware to the spider, so one that has not been given to it after `UNREAD_SECONDS` was refused. That it came has been
published; so then it is published that it is as good as not fetched, to other crawlers and to this crawl where it is
paused and goes on.

Cost: two dictionary entries a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scrapy.http import Response

from clusterd_crawler.crawling.pages.reporter import CACHED, Page, Reporter, Seen

#: Seconds from the response to the spider, beside those that it may wait for its verdict.
UNREAD_SECONDS: Final = 20


class Unread:
    """For the loop's thread. ``know`` is called there with a page that speaks for something: good and read, or bad."""

    def __init__(self, know: Callable[[Page, Seen], None], reporter: Reporter, waiting: float) -> None:
        """``waiting``: seconds that a page may wait for its verdict."""
        self._patience = 1000 * (UNREAD_SECONDS + waiting)
        self._know = know
        self._reporter = reporter
        #: In the order in which they came.
        self._pages: dict[Response, Page] = {}

    def __contains__(self, response: Response) -> bool:
        return response in self._pages

    def came(self, page: Page, awaited: bool) -> None:
        """Take a page; one that a callback awaits is given to it by nobody else."""
        self._give_up(page.at - self._patience)
        page.read = awaited
        if not awaited:
            self._pages[page.response] = page

    def seen(self, page: Page, seen: Seen) -> None:
        """Take what a page shows, before it is read or after."""
        page.seen = seen
        if not seen.good:
            self.forget(page)
        if page.read or not seen.good:
            self._know(page, seen)

    def read(self, response: Response) -> None:
        """Note that the spider is given a page."""
        page = self._pages.pop(response, None)
        if page is not None:
            page.read = True
            if page.seen is not None:
                self._know(page, page.seen)

    def forget(self, page: Page) -> None:
        """Drop a page that speaks for nothing."""
        self._pages.pop(page.response, None)

    def close(self) -> None:
        """Give up what was not read."""
        self._give_up(None)

    def _give_up(self, before: float | None) -> None:
        """Give up what came before a time (Unix milliseconds), and was not read since."""
        while self._pages:
            page = next(iter(self._pages.values()))
            if before is not None and page.at >= before:
                return
            self.forget(page)
            if page.seen is not CACHED:
                self._reporter.failed(page.url, page.at + 1, page.response.status, "refused before the spider")
