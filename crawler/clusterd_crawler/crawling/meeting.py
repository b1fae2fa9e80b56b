"""Hosts that a crawl meets: at the first request to one, its rules and those of its domain are asked for."""

from __future__ import annotations

from typing import Final

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.older_scrapy import run_in_thread, sleep
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.urls import canonical, host_of, registrable

#: Seconds between two looks whether what hosts are asked for is there.
LOOK_SECONDS: Final = 0.02


class Meeting:
    """For the loop's thread."""

    def __init__(self, loop: EventLoop, subscriber: Subscriber) -> None:
        self._loop = loop
        self._subscriber = subscriber
        self._met: set[str] = set()
        #: Hosts whose rules are being asked for.
        self._asking: set[str] = set()

    def meet(self, request: Request) -> None:
        """Meet a request's host, soon."""
        netloc = urlparse_cached(request).netloc
        if netloc not in self._met:
            self._met.add(netloc)
            self._asking.add(netloc)
            self._loop.start(self._ask(request, netloc))

    async def met(self, request: Request) -> None:
        """Meet a request's host; return when what there is of it, and of hosts met before, has been handed on."""
        self.meet(request)
        asked = set(self._asking)
        while asked & self._asking:
            await sleep(LOOK_SECONDS)

    async def _ask(self, request: Request, netloc: str) -> None:
        try:
            host = host_of(canonical(request.url))
            for one in sorted({host, registrable(host)}):
                await run_in_thread(self._subscriber.meet, one)
        except WrongInput:
            return
        finally:
            self._asking.discard(netloc)
