"""Hosts that a crawl meets: at the first request to one, its rules and those of its domain are asked for."""

from __future__ import annotations

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.older_scrapy import run_in_thread
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.urls import canonical, host_of, registrable


class Meeting:
    """For the loop's thread."""

    def __init__(self, loop: EventLoop, subscriber: Subscriber) -> None:
        self._loop = loop
        self._subscriber = subscriber
        self._met: set[str] = set()

    def meet(self, request: Request) -> None:
        """Meet a request's host, soon."""
        if self._is_new(request):
            self._loop.start(self._ask(request))

    async def met(self, request: Request) -> None:
        """Meet a request's host; return when what there is has been handed on, or at once where it was met before."""
        if self._is_new(request):
            await self._ask(request)

    def _is_new(self, request: Request) -> bool:
        netloc = urlparse_cached(request).netloc
        new = netloc not in self._met
        self._met.add(netloc)
        return new

    async def _ask(self, request: Request) -> None:
        try:
            host = host_of(canonical(request.url))
        except WrongInput:
            return
        for one in sorted({host, registrable(host)}):
            await run_in_thread(self._subscriber.meet, one)
