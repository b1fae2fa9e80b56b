"""Hosts that a crawl meets: at the first request to one, its rules and those of its domain are asked for.

In a thread of its own, those that were met meanwhile together: a server that does not answer keeps that thread alone
waiting, some seconds each time. In the loop's pool it would take all threads, from the end of the crawl, from what is
to be written to the disk, and from the look-up of addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from scrapy import Request
from scrapy.utils.httpobj import urlparse_cached

from clusterd_crawler.crawling.event_loop import EventLoop, Worker
from clusterd_crawler.crawling.older_scrapy import sleep
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.urls import canonical_if_any, host_of, registrable

logger = logging.getLogger(__name__)

#: Seconds between two looks whether what hosts are asked for is there.
LOOK_SECONDS: Final = 0.02


class Meeting:
    """For the loop's thread."""

    def __init__(self, loop: EventLoop, subscriber: Subscriber) -> None:
        self._loop = loop
        self._subscriber = subscriber
        self._worker = Worker(loop, "clusterd-meeting")
        self._met: set[str] = set()
        #: Hosts whose rules are being asked for; of those that wait for it a URL each.
        self._asking: set[str] = set()
        self._waiting: dict[str, str] = {}
        self._working = self._closed = False

    def meet(self, request: Request) -> None:
        """Meet a request's host, soon."""
        netloc = urlparse_cached(request).netloc
        if netloc not in self._met and not self._closed:
            self._met.add(netloc)
            self._asking.add(netloc)
            self._waiting[netloc] = request.url
            if not self._working:
                self._working = True
                self._loop.start(self._ask())

    async def met(self, request: Request) -> None:
        """Meet a request's host; return when what there is of it, and of hosts met before, has been handed on."""
        self.meet(request)
        asked = set(self._asking)
        while asked & self._asking:
            await sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Ask no more; nobody waits for what is asked. The thread ends when it has what it is waiting for."""
        self._closed = True
        self._waiting.clear()
        self._asking.clear()
        self._worker.close()

    async def _ask(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting, {}
            try:
                await self._worker.start(self._meet, some.values())
            except Exception:
                logger.exception("The rules of %d hosts could not be asked for; those of others are", len(some))
            self._asking.difference_update(some)
        self._working = False

    def _meet(self, urls: Collection[str]) -> None:
        """In the worker's thread."""
        hosts: dict[str, None] = {}
        for url in urls:
            if form := canonical_if_any(url):
                host = host_of(form)
                hosts |= dict.fromkeys(sorted({host, registrable(host)}))
        self._subscriber.meet(*hosts)
