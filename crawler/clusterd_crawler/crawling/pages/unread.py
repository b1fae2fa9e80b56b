"""Pages that have come and that the spider has not been given yet.

A page is known, so that others of its key are skipped, once the spider has it: until then a spider middleware may
refuse it (``process_spider_input``), and tells nobody. From the last downloader middleware to the spider a page takes
some turns of Scrapy's loop, so one that has not been given to the spider after `UNREAD_SECONDS` was refused. By then it
has been published; so it is published once more, as a fetch that failed, for other crawlers, and for this crawl where
it is paused and goes on.

The same is done with a page of which an exception was raised, by its callback or by what takes the callback's items:
another URL of the page may bring what was lost. And with one that the spider asks for again (`get_retry_request`), as
soon as it does, for that may come last of all; also when it comes again: nobody tells whether the spider gives it up
then.

In a crawl in which some have broken off each page counts `BREAK_SECONDS` after the spider was given it: what shows
something else than its key's page would tear the key, and take trials from its rule, before its callback raises. One
that does so then waits on, half as long again as any took to break off (a pipeline may look something up first), but
for those that took longer than `LATEST_SECONDS`.

Cost: three dictionary entries a page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.asyncio import call_later

from clusterd_crawler.clock import now_ms
from clusterd_crawler.crawling.pages.reporter import CACHED, Page, Reporter, Seen
from clusterd_crawler.crawling.pages.responses import is_good
from clusterd_crawler.crawling.requests.kinds import LED, READ, is_page, is_passed_on
from clusterd_crawler.crawling.requests.rewriting import META

logger = logging.getLogger(__name__)

#: Seconds from the response to the spider, beside those that it may wait for its verdict.
UNREAD_SECONDS: Final = 20
#: Seconds from the spider's being given a page in which most break off that do.
BREAK_SECONDS: Final = 0.2
#: How many times as long as the slowest so far what shows something else waits, and the slowest for which it does.
AS_LONG: Final = 1.5
LATEST_SECONDS: Final = 20.0
#: Why a page is none, as is reported of it.
RAISED: Final = "an exception was raised of it"
ASKED_AGAIN: Final = "the spider asked for it again"
#: Of such a page.
BROKEN: Final = Seen((), 0, False)


class Unread:
    """For the loop's thread. ``know`` is called there with a page that speaks for something: good and read, or bad."""

    def __init__(
        self,
        know: Callable[[Page, Seen], None],
        differs: Callable[[str, int], bool],
        reporter: Reporter,
        waiting: float,
    ) -> None:
        """``differs``: whether a URL's key has a page of another content. ``waiting``: seconds for a page's verdict."""
        self._patience = 1000 * (UNREAD_SECONDS + waiting)
        self._know = know
        self._differs = differs
        self._reporter = reporter
        #: In the order in which they came.
        self._pages: dict[Response, Page] = {}
        #: Those that the spider has and that are not sketched yet.
        self._unseen: dict[Response, Page] = {}
        self._broken = self._some_broke_off = False
        self._broke_off: WeakSet[Response] = WeakSet()
        #: When the spider was given each page (monotonic), and the seconds in which one may break off yet.
        self._given: WeakKeyDictionary[Response, float] = WeakKeyDictionary()
        self._revocable = 0.0
        #: Whether it was said that pages of the HTTP cache are not sketched.
        self._said = False

    def __contains__(self, response: Response) -> bool:
        return response in self._pages

    def came(self, page: Page, awaited: bool) -> None:
        """Take a page; one that a callback awaits is given to it by nobody else."""
        self._give_up(page.at - self._patience)
        page.read = awaited
        if not awaited:
            self._pages[page.response] = page
        if page.request.meta.get(READ) == page.request.url and not is_passed_on(page.request):
            page.broken = self._broken = True
            if "cached" not in page.response.flags:
                self._reporter.failed(page.url, page.at + 1, page.response.status, ASKED_AGAIN)

    def cached(self, page: Page, awaited: bool) -> None:
        """Take a page of the HTTP cache, of which only a sweep is told: it was sketched when it was fetched."""
        if not self._said:
            self._said = True
            logger.info(
                "Pages of the HTTP cache are not sketched again; where it was filled without clusterd, a crawl with "
                "CLUSTERD_SWEEP = 'a name' has them all sketched"
            )
        self.came(page, awaited)
        self.seen(page, CACHED)

    def seen(self, page: Page, seen: Seen) -> None:
        """Take what a page shows, before it is read or after."""
        page.seen = seen = replace(seen, good=False) if page.broken else seen
        self._unseen.pop(page.response, None)
        if not seen.good:
            self.forget(page)
        if page.read or not seen.good:
            self._know(page, seen)

    def read(self, response: Response) -> None:
        """Note that the spider is given a page."""
        page = self._pages.pop(response, None)
        if page is not None:
            if is_passed_on(page.request):  # that another request was rewritten is said of no page of its own
                page.request.meta.pop(META, None)
            page.request.meta[READ] = page.request.url
            if "redirect_urls" in page.request.meta:
                page.request.meta[LED] = page.request.meta["redirect_urls"]
            page.read = True
            self._given[response] = monotonic()
            if page.seen is not None and not self._some_broke_off:
                self._know(page, page.seen)
                return
            self._unseen[response] = page
            if page.seen is not None:
                call_later(BREAK_SECONDS, self._stands, page)

    def _stands(self, page: Page) -> None:
        """Let a page count that has not broken off, of a crawl in which some do: else each spoke against its rule."""
        if page.seen is None or page.response not in self._unseen:
            return
        left = self._given[page.response] + self._revocable - monotonic()
        if left > 0 and self._differs(page.url, page.seen.content):
            call_later(left, self._stands, page)
        else:
            self._count(page, page.seen)

    def _count(self, page: Page, seen: Seen) -> None:
        del self._unseen[page.response]
        self._know(page, seen)

    def asks(self, response: Response, request: Request) -> None:
        """Note what the spider asks for of a page: that page once more, where it makes nothing of this one.

        Past the duplicate filter: what it refuses may be a page's link to itself, with all that its ``meta`` held. And
        without a body: a form may go to its page's own address.
        """
        if request.dont_filter and request.meta.get(READ) == request.url and is_page(request):
            self.broke_off(response, ASKED_AGAIN)

    def broke_off(self, response: Response, why: str = RAISED) -> None:
        """Note that the spider made nothing of what it was given. May be repeated."""
        request = response.request
        if request is None or not is_page(request) or not is_good(response):
            return
        if response in self._pages or response in self._broke_off:
            return
        self._broke_off.add(response)
        took = monotonic() - self._given.get(response, inf)
        if took <= LATEST_SECONDS:
            self._revocable = max(self._revocable, AS_LONG * took)
        page = self._unseen.get(response) or Page(response.url.partition("#")[0], now_ms(), request, response)
        page.broken = self._broken = self._some_broke_off = True
        if page.seen is not None or response not in self._unseen:
            self._unseen.pop(response, None)
            self._know(page, BROKEN)
        if "cached" not in response.flags:
            self._reporter.failed(page.url, page.at + 1, response.status, why)

    def broken(self) -> bool:
        """Whether one has broken off since the last call: a skip may rest on its page."""
        broken, self._broken = self._broken, False
        return broken

    @property
    def revocable(self) -> float:
        """Seconds in which a page that the spider has may break off yet, as far as some did so; 0: none did."""
        return self._revocable

    def all_stand(self) -> None:
        """Let all pages count that the spider has: it is idle, so none breaks off any more."""
        for page in list(self._unseen.values()):
            if page.seen is not None:
                self._count(page, page.seen)

    def forget(self, page: Page) -> None:
        """Drop a page that speaks for nothing."""
        self._pages.pop(page.response, None)
        self._unseen.pop(page.response, None)

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
