"""Verdicts that pages wait for, with a circuit breaker: a daemon that is silent or slow makes nobody wait.

A page is waited for only while the daemon is *prompt*: its last verdict took less than the timeout, and fewer than
`MISSES` pages in a row have waited in vain since. Verdicts are asked for all the same, so that a daemon that comes back
is noticed by its first answer.

All waits are equally long, so one timer serves them: it is set for the one that ends first.

Where no page has ever been answered, that is said once: nobody may have started a daemon. So it is where a daemon falls
silent, at every such time: the crawl goes on, and nobody would see that it learns nothing any more.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from scrapy.utils.asyncio import call_later
from twisted.internet.defer import Deferred

from clusterd_crawler.crawling.event_loop import Promise, awaited, keep
from clusterd_crawler.crawling.older_scrapy import sleep
from clusterd_crawler.verdict import Verdict

logger = logging.getLogger(__name__)

#: Vain waits in a row after which nobody waits until a verdict arrives in time again.
MISSES: Final = 3
#: Pages whose verdict is remembered as outstanding, as all of an outage are; of more the oldest are forgotten.
OUTSTANDING: Final = 100_000
#: Seconds between two looks whether all pages are answered.
LOOK_SECONDS: Final = 0.05
#: Seconds without any answer, though more than `MISSES` pages were asked about, after which that is said.
SILENT_SECONDS: Final = 60.0

#: Policies whose verdict makes a page a near-duplicate.
NEAR_POLICIES: Final = frozenset({"identical", "near"})

#: A version of a page: its URL and the time of its fetch.
Page = tuple[str, int]


def is_near(verdict: Verdict) -> bool:
    """Whether a verdict makes its page a near-duplicate."""
    return verdict.cluster is not None and verdict.policy in NEAR_POLICIES


class Verdicts:
    """The pages of a crawl that were asked about. For the loop's thread; ``promise`` makes what is awaited in it."""

    def __init__(self, timeout: float, promise: Callable[[], Promise] = Deferred) -> None:
        self._timeout = timeout
        self._promise = promise
        #: Pages whose verdict is outstanding, each with the time since which it is: numbers, of which the garbage
        #: collector has nothing to look at.
        self._asked: OrderedDict[Page, float] = OrderedDict()
        #: Those of them that wait; and the time until which each does, where answered ones stay until then.
        self._waiters: dict[Page, Promise] = {}
        self._waiting: deque[tuple[float, Page]] = deque()
        self._timer: Any = None
        self._misses = 0
        #: How many pages were asked about since the last answer to any, and when the first of them was.
        self._unanswered, self._silent_since = 0, 0.0
        #: Whether any page was ever answered; whether it was said that none is.
        self._heard = self._said = False
        #: Whether pages wait now. A daemon that never spoke is not waited for.
        self.prompt = False

    def ask(self, page: Page) -> None:
        """Note that a verdict was asked for, before the page is published."""
        now = time.monotonic()
        self._asked[page] = now
        if len(self._asked) > OUTSTANDING:
            self._asked.popitem(last=False)
        self._unanswered += 1
        if self._unanswered == 1:
            self._silent_since = now
        if self._unanswered > MISSES and now - self._silent_since > SILENT_SECONDS:
            self._say_silent()

    def forget(self, page: Page) -> None:
        """Note that no verdict will come, as of what cannot be sketched; who waits for it goes on."""
        asked = self._asked.pop(page, None)
        self._unanswered -= asked is not None and self._unanswered > 0
        self._end_wait(page, None)

    async def answered(self, seconds: float) -> None:
        """Wait until no page is outstanding, at most so many seconds: at the end, where all messages were sent."""
        until = time.monotonic() + seconds
        while self._asked and time.monotonic() < until:
            await sleep(LOOK_SECONDS)
        if self._asked and not self._heard:
            self._say_silent()

    def _say_silent(self) -> None:
        """Say that there is no answer, once for each silence."""
        if self._said:
            return
        self._said = True
        if self._heard:
            logger.warning("No daemon has answered for a minute: no verdicts, no new rules; what was sent waits")
        else:
            logger.warning("No daemon has answered so far; is one at work (clusterd run)? What was sent waits for it")

    def _hear(self) -> None:
        """Note that a daemon is there."""
        if self._said:
            logger.info("A daemon answers now")
        self._unanswered, self._heard, self._said = 0, True, False

    def wait(self, page: Page) -> Awaitable[Verdict | None] | None:
        """Return what brings the page's verdict, or None when it does not come in time; None where nobody waits now."""
        if page not in self._asked or page in self._waiters or not self.prompt or not self._timeout:
            return None
        waiter = self._waiters[page] = self._promise()
        self._waiting.append((time.monotonic() + self._timeout, page))
        if self._timer is None:
            self._timer = call_later(self._timeout, self._end_waits)
        return awaited(waiter)

    @property
    def waiting(self) -> int:
        """How many pages wait for their verdicts."""
        return len(self._waiters)

    def _end_waits(self) -> None:
        """End the waits whose time is over, and set the timer for the next."""
        self._timer = None
        now = time.monotonic()
        while self._waiting and (self._waiting[0][1] not in self._waiters or self._waiting[0][0] <= now):
            self._missed(self._waiting.popleft()[1])
        if self._waiting:
            self._timer = call_later(self._waiting[0][0] - now, self._end_waits)

    def _missed(self, page: Page) -> None:
        if self._end_wait(page, None):
            self._misses += 1
            if self._misses >= MISSES:
                self.prompt = False

    def _end_wait(self, page: Page, verdict: Verdict | None) -> bool:
        """Let whoever waits for a page's verdict have it, or go on without; say whether anybody did."""
        waiter = self._waiters.pop(page, None)
        if waiter is not None:
            keep(waiter, verdict)
        return waiter is not None

    def arrived(self, verdict: Verdict) -> bool:
        """Take a verdict from the daemon; False where none is outstanding on its page.

        Such a verdict is a repeated one, or on a page of another crawler of the crawl.
        """
        self._hear()
        page = verdict.url, verdict.fetched_at
        since = self._asked.pop(page, None)
        if since is None:
            return False
        if time.monotonic() - since <= self._timeout:
            self._misses = 0
            self.prompt = True
        self._end_wait(page, verdict)
        return True
