"""How a skipped request ends: in its errback, or silently where it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class SkippedDuplicate(IgnoreRequest):
    """The request was not sent: a rule says that ``known_url``, fetched in this crawl, shows the same content."""

    def __init__(self, rule: str, key: str, known_url: str) -> None:
        super().__init__(f"same content as {known_url} by rule {rule}")
        self.rule = rule
        self.key = key
        self.known_url = known_url


def end_unscheduled(crawler: Crawler, request: Request, skipped: SkippedDuplicate) -> None:
    """Have the errback of a request called that is skipped before it is scheduled: there Scrapy drops it silently."""
    if request.errback is None or crawler.engine is None:
        return
    scraper = crawler.engine.scraper
    if scraper.slot is not None and scraper.slot.closing is None:
        scraper.enqueue_scrape(Failure(skipped), request)  # type: ignore[no-untyped-call]
