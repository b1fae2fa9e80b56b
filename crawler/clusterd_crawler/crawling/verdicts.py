"""Verdicts that pages wait for, with a circuit breaker: a daemon that is silent or slow makes nobody wait.

A page is waited for only while the daemon is *prompt*: its last verdict took less than the timeout, and fewer than
`MISSES` pages in a row have waited in vain since. Verdicts are asked for all the same, so that a daemon that comes back
is noticed by its first answer.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from clusterd_crawler.message import Verdict

#: Vain waits in a row after which nobody waits until a verdict arrives in time again.
MISSES: Final = 3
#: Pages whose verdict is remembered as outstanding; of more the oldest are forgotten.
OUTSTANDING: Final = 10_000

#: A version of a page: its URL and the time of its fetch.
Page = tuple[str, int]


@dataclass(slots=True)
class Asked:
    """A page whose verdict is outstanding."""

    since: float
    waiter: Deferred[Verdict | None] | None = None


class Verdicts:
    """The pages of a crawl that were asked about. For the loop's thread."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout = timeout
        self._clock = clock
        self._asked: OrderedDict[Page, Asked] = OrderedDict()
        self._misses = 0
        #: Whether pages wait now. A daemon that never spoke is not waited for.
        self.prompt = False

    def ask(self, page: Page) -> None:
        """Note that a verdict was asked for, before the page is published."""
        self._asked[page] = Asked(self._clock())
        if len(self._asked) > OUTSTANDING:
            self._asked.popitem(last=False)

    def forget(self, page: Page) -> None:
        """Note that no verdict will come."""
        self._asked.pop(page, None)

    def outstanding(self, since: float) -> int:
        """Return how many pages asked about at or after a time are unanswered."""
        return sum(asked.since >= since for asked in self._asked.values())

    async def wait(self, page: Page) -> Verdict | None:
        """Return the page's verdict, or None when it does not come in time or nobody waits now."""
        asked = self._asked.get(page)
        if asked is None or not self.prompt or not self._timeout:
            return None
        asked.waiter = Deferred()
        timer = call_later(self._timeout, self._missed, asked)
        try:
            return await maybe_deferred_to_future(asked.waiter)
        finally:
            timer.cancel()

    def _missed(self, asked: Asked) -> None:
        waiter, asked.waiter = asked.waiter, None
        if waiter is not None and not waiter.called:
            self._misses += 1
            if self._misses >= MISSES:
                self.prompt = False
            waiter.callback(None)

    def arrived(self, verdict: Verdict) -> None:
        """Take a verdict from the daemon."""
        asked = self._asked.pop((verdict.url, verdict.fetched_at), None)
        if asked is None:
            return
        if self._clock() - asked.since <= self._timeout:
            self._misses = 0
            self.prompt = True
        if asked.waiter is not None and not asked.waiter.called:
            asked.waiter.callback(verdict)
