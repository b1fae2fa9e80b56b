"""The middlewares: a thin shell around `crawl.Crawl`, at five places on a page's way.

Requests are considered twice: by the ``request_scheduled`` signal, before any scheduler sees them, once the crawl has
rules; and when they are about to be sent, for those that were queued before a rule was learned. Responses are taken
where the engine gets them, so that what is sketched is what all other downloader middlewares (the HTTP cache,
redirects, decompression, retries, the project's own) made of them; only those that send their reader on are seen
before Scrapy makes a redirect of them. They are noted where the spider gets them, after all other spider middlewares: a
page that one of those refuses justifies no skip.

To Scrapy a skip is an exception like any other, told to all downloader middlewares. Those that change proxies take one
out of use for it, or send the request once more, and soon none is left; who counts exceptions is alarmed. So they hear
nothing of it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.conf import closest_scrapy_cfg
from twisted.python.failure import Failure

from clusterd_crawler.crawling.connections import Connections
from clusterd_crawler.crawling.crawl import Crawl
from clusterd_crawler.crawling.embedded_daemon import check_settings
from clusterd_crawler.crawling.pages.responses import is_good
from clusterd_crawler.crawling.requests.rewriting import goes_round, original
from clusterd_crawler.crawling.skipped import SkippedDuplicate
from clusterd_crawler.crawling.wrong_settings import told_plainly
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.settings import Settings, daemons_own

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

#: The crawls that are going on.
_CRAWLS: Final[WeakKeyDictionary[Crawler, Crawl]] = WeakKeyDictionary()


@contextmanager
def _going_on(url: str) -> Iterator[None]:
    """Let no fault of ours cost the spider a page: it is logged. A skip is none."""
    try:
        yield
    except IgnoreRequest:
        raise
    except Exception:
        logger.exception("clusterd failed on %s; the crawl goes on with it", url)


async def _admitted(admitting: Coroutine[Any, Any, Request | None], url: str) -> Request | None:
    """Return the request that is to be sent instead, None where the one that is looked at is."""
    with _going_on(url):
        return await admitting
    return None


class _Place:
    """A place on a page's way through a crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make one for a crawl."""
        return cls(crawler)

    @property
    def _crawl(self) -> Crawl | None:
        return _CRAWLS.get(self._crawler)


class ClusterdMiddleware(_Place):
    """The downloader middleware for requests. Begins and ends the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._settings = _checked(crawler.settings)
        if not self._settings.enabled:
            raise NotConfigured("CLUSTERD_ENABLED is off")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect to the crawl's signals."""
        made = super().from_crawler(crawler)
        crawler.signals.connect(made.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(made.response_downloaded, signal=signals.response_downloaded)
        crawler.signals.connect(made.item_scraped, signal=signals.item_scraped)
        crawler.signals.connect(made.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        return made

    def _attend(self) -> None:
        """Consider links when they are scheduled, from now on: a signal costs 10 µs a link, most of which are known."""
        self._crawler.signals.connect(self.request_scheduled, signal=signals.request_scheduled)
        self._crawler.signals.connect(self.request_left_downloader, signal=signals.request_left_downloader)

    async def spider_opened(self, spider: Spider) -> None:
        """Begin, where this is a crawl; unless an embedded store cannot be kept: then nothing of it is looked at.

        What only the store could refuse of the settings ends the crawl before its first request, as soon as Scrapy lets
        it: what is raised here does so from Scrapy 2.19 on only.
        """
        if not is_crawl(self._crawler, spider):
            logger.debug("clusterd stands aside: a command of Scrapy asks for a few pages, and this is no crawl")
            return
        crawl = Crawl(self._crawler, self._settings, project_folder(), self._attend)
        try:
            await crawl.open()
        except Unreachable as error:
            logger.error("The crawl goes on without clusterd: %s", error)
            await crawl.close()
            return
        except SettingError:  # has been said
            await crawl.close()
            self._crawler.signals.connect(self._end, signal=signals.engine_started)
            return
        except BaseException:
            await crawl.close()
            raise
        _CRAWLS[self._crawler] = crawl

    async def _end(self) -> None:
        assert self._crawler.engine is not None
        await self._crawler.engine.close_spider_async(reason="wrong_setting")

    async def spider_closed(self, spider: Spider) -> None:
        """End."""
        crawl = _CRAWLS.pop(self._crawler, None)
        if crawl is not None:
            await crawl.close()

    def spider_idle(self, spider: Spider) -> None:
        """Keep the spider open where a rule may be withdrawn."""
        if (crawl := self._crawl) is not None:
            crawl.idle()

    def item_scraped(self, item: Any, response: Response | None) -> None:
        """Notice what files a page's items name."""
        if (crawl := self._crawl) is not None:
            crawl.item_files.scraped(item, response)

    def response_downloaded(self, response: Response, request: Request) -> None:
        """Notice a redirect."""
        if response.status >= 300 and (crawl := self._crawl) is not None:
            crawl.redirected.note(request, response)

    def request_scheduled(self, request: Request, spider: Spider) -> None:
        """Skip a request before it is queued."""
        if (crawl := self._crawl) is not None:
            crawl.consider(request, filtered=False)

    def process_request(self, request: Request) -> Coroutine[Any, Any, Request | None] | Request | None:
        """Skip a request that was queued before its rule was learned, or whose key is on its way."""
        crawl = self._crawl
        if crawl is None:
            return None
        with _going_on(request.url):
            if goes_round(request) and (instead := original(request)) is not None:
                return instead
            admitting = crawl.admit(request)
            return None if admitting is None else _admitted(admitting, request.url)
        return None

    def request_left_downloader(self, request: Request, spider: Spider) -> None:
        """Notice the end of a download, also where other middlewares make a redirect or a retry of it."""
        if (crawl := self._crawl) is not None:
            crawl.left_downloader(request)


class ClusterdRefreshes(_Place):
    """The downloader middleware for pages that Scrapy takes for redirects."""

    def process_response(self, request: Request, response: Response) -> Response:
        """Notice where a page sends its reader."""
        if (crawl := self._crawl) is not None:
            with _going_on(request.url):
                crawl.redirected.refreshed(request, response)
        return response


class ClusterdSkips(_Place):
    """The downloader middleware for skips of requests that were about to be sent."""

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """End a skipped request here: what is raised anew no further middleware hears of."""
        if not isinstance(exception, SkippedDuplicate):
            return None
        if (crawl := self._crawl) is not None:
            with _going_on(request.url):
                crawl.ended(request)
        instead = original(request)
        if instead is None:
            raise exception
        return instead


class ClusterdPages(_Place):
    """The downloader middleware for responses."""

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        """Sketch a page."""
        crawl = self._crawl
        if crawl is None:
            return response
        with _going_on(request.url):
            try:
                await crawl.fetched(request, response)
            finally:
                crawl.ended(request, response)
        instead = original(request)
        return response if instead is None or is_good(response) else instead

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Note a page that could not be fetched; retries are behind us."""
        crawl = self._crawl
        if crawl is None:
            return None
        with _going_on(request.url):
            crawl.ended(request)
            if not isinstance(exception, IgnoreRequest):
                crawl.failed(request, 0, type(exception).__name__)
        return original(request)  # robots.txt may forbid the key alone


class ClusterdReading(_Place):
    """The spider middleware."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect to the signals of what breaks off behind the callback."""
        made = super().from_crawler(crawler)
        crawler.signals.connect(made.broke_off, signal=signals.spider_error)
        crawler.signals.connect(made.broke_off, signal=signals.item_error)
        return made

    def process_spider_input(self, response: Response) -> None:
        """Note that the spider is given a page."""
        if (crawl := self._crawl) is not None:
            with _going_on(response.url):
                crawl.unread.read(response)

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        """Notice what the spider asks for again."""
        for one in result:
            self._note(response, one)
            yield one

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Do the same."""
        async for one in result:
            self._note(response, one)
            yield one

    def _note(self, response: Response, asked: Any) -> None:
        if isinstance(asked, Request) and (crawl := self._crawl) is not None:
            with _going_on(response.url):
                crawl.unread.asks(response, asked)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        """Note that a callback broke off, before a middleware that makes up for it."""
        if not isinstance(exception, CloseSpider):
            self.broke_off(response)

    def broke_off(self, response: Response | Failure | None) -> None:
        """Note that of a page something was lost: by its callback, by a middleware or a pipeline behind that."""
        if (crawl := self._crawl) is not None and isinstance(response, Response):
            with _going_on(response.url):
                crawl.unread.broke_off(response)


def _checked(given: BaseSettings) -> Settings:
    """Return a crawl's settings. A wrong one ends its start with one line, be it of its daemon; so does a client that
    is missing.
    """
    with told_plainly():
        chosen = Settings.from_crawl(dict(given))
        if chosen.enabled and Connections(chosen, project_folder()).embedded:
            check_settings(chosen.redis_prefix, daemons_own(given))
    return chosen


def is_crawl(crawler: Crawler, spider: Spider) -> bool:
    """Whether a spider crawls. Where ``scrapy shell``, ``fetch``, ``view``, ``parse``, ``check`` or ``bench`` uses one,
    somebody tries something out, and wants his page at once: there is nothing to skip, and nothing to be learned from.

    ``shell`` opens the spider without a crawl; the others put what they ask for in the place of the spider's start.
    """
    return crawler.crawling and not type(spider).start.__module__.startswith("scrapy.commands.")


def project_folder() -> Path:
    """Return the folder of the Scrapy project, or the working folder outside of one."""
    configuration = closest_scrapy_cfg()
    return Path(configuration).parent if configuration else Path.cwd()
