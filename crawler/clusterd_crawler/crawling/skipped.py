"""How a skipped request ends: in its errback, or silently where it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from clusterd_crawler.crawling.idle import look_now

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
        ended = scraper.enqueue_scrape(Failure(skipped), request)  # type: ignore[no-untyped-call]
        ended.addBoth(_look_now, crawler)  # Scrapy does when a request is done that it has sent; this one is not sent


def _look_now(result: Any, crawler: Crawler) -> Any:
    look_now(crawler)
    return result
