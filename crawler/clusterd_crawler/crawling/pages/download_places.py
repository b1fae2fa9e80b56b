"""Places among the downloads of a crawl (``CONCURRENT_REQUESTS``), lent while a page waits for its verdict.

Scrapy counts a page among the downloads until all downloader middlewares have seen it. One that waits for its verdict
is downloaded: were its place not free for another, a crawl of 16 requests at once whose verdicts take a tenth of a
second would fetch no more than 160 pages a second, however fast its processor. So the number of places grows by those
that wait, at most to twice what it was or by `LENT` (their responses lie in memory); of more, each keeps its own. How
many requests are sent at a time stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request

from clusterd_crawler.crawling.idle import look_now

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Places that are lent where a crawl has fewer: of one at a time it would make a crawl of 20 pages a second.
LENT: Final = 16


class DownloadPlaces:
    """For the loop's thread."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._most = max(crawler.settings.getint("CONCURRENT_REQUESTS"), LENT)
        self._lent = 0

    def holds(self, request: Request) -> bool:
        """Whether a request is among the downloads: no more once all downloader middlewares are done with it."""
        return request in getattr(self._downloader, "active", (request,))

    @property
    def taken(self) -> int:
        """How many requests are among the downloads."""
        return len(getattr(self._downloader, "active", ()))

    @property
    def _downloader(self) -> Any:
        return None if self._crawler.engine is None else self._crawler.engine.downloader

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let another request have the place of one for a while."""
        downloader = self._downloader
        if downloader is None or self._lent >= self._most or downloader.total_concurrency <= 0:
            yield
            return
        self._lent += 1
        downloader.total_concurrency += 1
        look_now(self._crawler)  # Scrapy does when a request is done; this one is not
        try:
            yield
        finally:
            self._lent -= 1
            downloader.total_concurrency -= 1
