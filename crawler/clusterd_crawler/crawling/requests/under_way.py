"""Pages on their way, by key: of two URLs of one key that are asked for at once the second waits for the first.

A key here says what a page is for, too: one that is for something else would be sent all the same, only later.

The first of a key never waits and a request that waits holds no key, so nobody waits for one that waits. A wait ends
with the page that is waited for, whatever became of it, at the latest after the time that a download may take. So that
slow pages do not hold the crawl up, at most three quarters of the requests that it may have under way wait, and half of
them for one page.

A page has come when the spider is given it. Where another middleware makes something else of it (a redirect, a retry),
or refuses it, that it left the downloader is all that is seen: `LEFT_SECONDS` later it counts as gone. Where another
answers the request with a request before it is sent, nothing is seen but that it is not among the downloads any more:
that is looked at when somebody would wait for it, every `LOOK_SECONDS` while somebody does, and when many are noted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy import Request
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from clusterd_crawler.crawling.requests.rewriting import is_rewritten

#: Seconds in which the middlewares between the downloader and ours, or between ours and the spider, pass a page on.
LEFT_SECONDS: Final = 0.5
#: Seconds between two looks whether a request that is waited for is still among the downloads.
LOOK_SECONDS: Final = 1.0
#: Requests noted beyond which those are forgotten that are not among the downloads any more.
NOTED: Final = 1_000


@dataclass(slots=True, eq=False)
class _Fetch:
    """A page on its way, and who waits for it."""

    key: Hashable
    request: Request
    waiters: list[Deferred[bool]] = field(default_factory=list)
    leaving: Any = None
    #: How many wait that count.
    waiting: int = 0
    #: Whether the response is here: it is on its way from the downloader to the spider.
    arrived: bool = False


class UnderWay:
    """For the loop's thread."""

    def __init__(self, at_once: int, downloading: Callable[[Request], bool] = lambda request: True) -> None:
        """``at_once``: requests that the crawl may have under way; ``downloading``: whether Scrapy has this one."""
        self._most = at_once * 3 // 4
        self._most_for_one = at_once // 2
        self._downloading = downloading
        self._waiting = 0
        self._noted = NOTED
        self._by_key: dict[Hashable, _Fetch] = {}
        self._by_request: dict[Request, _Fetch] = {}

    def begin(self, key: Hashable, request: Request) -> bool:
        """Note that a request goes out; False where another URL of its key is on its way."""
        first = self._by_key.get(key)
        if first is not None and self._is_there(first):
            # The key's own request waits for one that was rewritten to it: only one sent again does not.
            waits = is_rewritten(first.request) and not is_rewritten(request)
            return first.request.url == request.url and not waits
        self.end(request)  # sent again under another key: a rule has come or gone meanwhile
        self._by_key[key] = self._by_request[request] = _Fetch(key, request)
        if len(self._by_request) > self._noted:
            self._forget_gone()
        return True

    def _is_there(self, fetch: _Fetch) -> bool:
        """Whether a request is still on its way; one that is not among the downloads any more has ended."""
        if not self._downloading(fetch.request):
            self.end(fetch.request)
        return self._by_key.get(fetch.key) is fetch

    def _forget_gone(self) -> None:
        for fetch in list(self._by_request.values()):
            self._is_there(fetch)
        self._noted = max(NOTED, 2 * len(self._by_request))

    async def ended(self, key: Hashable, seconds: float) -> bool:
        """Return when the page of a key has come or will not come; False where that takes too long."""
        fetch = self._by_key.get(key)
        if fetch is None:
            return True
        counts = not fetch.arrived
        full = self._waiting >= self._most or fetch.waiting >= self._most_for_one
        if (counts and full) or seconds <= 0:
            return False
        until = time.monotonic() + seconds
        self._waiting += counts
        fetch.waiting += counts
        try:
            while self._is_there(fetch) and (left := until - time.monotonic()) > 0:
                if await self._ended_within(fetch, min(left, LOOK_SECONDS)):
                    return True
            return not self._is_there(fetch)
        finally:
            self._waiting -= counts
            fetch.waiting -= counts

    async def _ended_within(self, fetch: _Fetch, seconds: float) -> bool:
        done: Deferred[bool] = Deferred()
        fetch.waiters.append(done)
        timer = call_later(seconds, _tell, done, False)
        try:
            return await maybe_deferred_to_future(done)
        finally:
            fetch.waiters.remove(done)
            timer.cancel()

    def left(self, request: Request) -> None:
        """Note that a request has left the downloader, or its page our hands: soon it is read, or nobody reads it."""
        fetch = self._by_request.get(request)
        if fetch is not None and fetch.leaving is None:
            fetch.leaving = call_later(LEFT_SECONDS, self.end, request)

    def arrived(self, request: Request) -> None:
        """Note that the response is here; `left` follows when it is passed on, and `end` when it is read."""
        fetch = self._by_request.get(request)
        if fetch is None:
            return
        fetch.arrived = True
        if fetch.leaving is not None:
            fetch.leaving.cancel()
            fetch.leaving = None

    def end(self, request: Request) -> None:
        """Let those go on who wait for a request's page. May be repeated."""
        fetch = self._by_request.pop(request, None)
        if fetch is None:
            return
        del self._by_key[fetch.key]
        for waiter in list(fetch.waiters):
            _tell(waiter, True)


def _tell(waiter: Deferred[bool], came: bool) -> None:
    if not waiter.called:
        waiter.callback(came)
