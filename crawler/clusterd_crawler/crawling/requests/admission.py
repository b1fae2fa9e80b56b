"""Which requests are sent: not those that rules skip, and not yet those of whose key a page for the same is on its way.

One decision a request, from memory, when it is scheduled or about to be sent, and again when it has waited.

What is fetched to try a rule goes before what is as urgent: the rule keeps others out meanwhile. In the order in which
Scrapy takes its queue, the latest first, seven of eight trials waited as long as links were added faster than fetched.
But trials are a share of the links, of which a page may have many, so only a share of what is sent goes before: where
each topic of a forum links to its twenty posts, nearly half of the first 2,000 pages were trials.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, signals

from clusterd_crawler.clock import now_ms
from clusterd_crawler.crawling.remembered import Remembered
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.explored import Explored
from clusterd_crawler.crawling.requests.kept import KeptOut
from clusterd_crawler.crawling.requests.kinds import QUEUED_AGAIN, may_be_skipped
from clusterd_crawler.crawling.requests.other_purposes import OtherPurposes
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.crawling.requests.rewriting import Rewriting
from clusterd_crawler.crawling.requests.under_way import UnderWay
from clusterd_crawler.crawling.skipped import SkippedDuplicate, end_unscheduled
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.skipping.skip import Skip

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: By how much the priority of a request rises that is sent to try a rule.
SOONER: Final = 1
#: Key of its meta until it is sent. Then it has its priority again: a spider may make its next request of it, which
#: would go before others for nothing, and so on along a chain of pages. (Such a key says nothing of a purpose.)
RAISED: Final = "_clusterd_sooner"

#: Requests at the beginning of a crawl after which it is said that none of them may be skipped.
UNFILTERED: Final = 300


class Admission:
    """For the loop's thread."""

    def __init__(
        self,
        crawler: Crawler,
        decisions: Decisions,
        purposes: Purposes,
        rewriting: Rewriting | None,
        under_way: UnderWay,
        note_skip: Callable[[str, Skip, KeptOut], None],
        keep: Callable[[KeptOut], None],
        explore: float,
    ) -> None:
        """``note_skip`` is called with the URL of each request that is skipped, once; ``keep`` with another of it.

        ``explore``: the share of what is sent that goes before the rest to try rules.
        """
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._decisions = decisions
        self._purposes = purposes
        self._rewriting = rewriting
        self._under_way = under_way
        self._note_skip = note_skip
        self._keep = keep
        self._explore = explore
        #: Requests that were about to be sent, and trials that were queued before others.
        self._begun = self._sooner = 0
        #: Whether all of the former had ``dont_filter``.
        self._all_unfiltered = True
        self._patience = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
        #: URLs, so that each counts once → whether a request is kept that the duplicate filter has let pass.
        self._skipped: Remembered[bool] = Remembered()
        self.explored = Explored()
        self._others = OtherPurposes(crawler.stats, decisions, purposes)
        #: The request that `fetch_again` has in hand, None once the scheduler has refused it.
        self._again: Request | None = None
        crawler.signals.connect(self._refused, signal=signals.request_dropped)

    def consider(self, request: Request, filtered: bool) -> None:
        """Raise `SkippedDuplicate` where the content is known; ``filtered``: the duplicate filter has let it pass."""
        if self._rewriting is None and not self._decisions.decides:
            return
        url = request.url.partition("#")[0]
        if self._rewriting is not None and not filtered:
            self._rewriting.linked(url)
        if url in self.explored:
            self.explored.go_on()
            return
        skip = self._decide(url, self._purposes.noted(request), again=url in self._skipped)
        if skip is None or (self.explores(url, skip) if filtered else self._tries(request, skip)):
            return
        skipped = SkippedDuplicate(skip.rule, skip.key, skip.known_url)
        kept = KeptOut(skip.rule, request, filtered)
        if url not in self._skipped:
            self._skipped.remember(url, filtered)
            self._note_skip(url, skip, kept)
            if not filtered:
                end_unscheduled(self._crawler, request, skipped)
        elif filtered and not self._skipped[url]:
            # It was queued before the one that is kept was linked, which the duplicate filter will not let pass.
            self._skipped.remember(url, True)
            self._keep(kept)
        raise skipped

    def may_be_skipped(self, request: Request) -> bool:
        """Whether a request is one that rules may keep out."""
        return may_be_skipped(request) and not self._purposes.is_awaited(request)

    def _decide(self, url: str, purpose: Purpose, again: bool) -> Skip | None:
        rule = self._rewriting.has_come(url, purpose) if self._rewriting is not None else None
        return self._decisions.decide(url, now_ms(), purpose, again) if rule is None else Skip(url, rule, url, url)

    def begin(self, request: Request) -> Coroutine[Any, Any, Request | None] | None:
        """Have a request that is not skipped sent, or wait for another of its key that is on its way."""
        self._begun += 1
        self._all_unfiltered &= request.dont_filter
        if self._begun == UNFILTERED and self._all_unfiltered:
            logger.info("The first %d requests all have dont_filter: clusterd skips none of that kind", UNFILTERED)
        if request.meta.pop(RAISED, False):
            request.priority -= SOONER
        if request.meta.pop(QUEUED_AGAIN, False):
            request.dont_filter = False
        key, rules = self._decisions.key(request.url)
        if not key:
            return None
        if rules and self.may_be_skipped(request) and request.url not in self.explored:
            self._others.note(request, key)
        place = key, self._purposes.noted(request)[:2]
        if self._under_way.begin(place, request):
            return self._sent(request, key, rules)
        if not self.may_be_skipped(request) or request.url in self.explored:
            return None
        return self._after_another(request, key, rules, place)

    async def _sent(self, request: Request, key: str, rules: tuple[str, ...]) -> Request | None:
        """Return the request that is to be sent instead, None where this one is."""
        if self._rewriting is None or not rules or not self.may_be_skipped(request) or request.url in self.explored:
            return None
        instead = self._rewriting.rewritten(request, key)
        if instead is not None:
            self._under_way.end(request)
            self._stats.inc_value("clusterd/rewritten")
            logger.debug("Rewritten by rule %s: %s to %s", rules[-1], request.url, key)
        return instead

    async def _after_another(
        self, request: Request, key: str, rules: tuple[str, ...], place: Hashable
    ) -> Request | None:
        """Wait for a page of the same key that is for the same; then decide anew, as often as another was faster."""
        self._stats.inc_value("clusterd/awaited")
        patience = float(request.meta.get("download_timeout") or self._patience)
        until = time.monotonic() + patience
        while await self._under_way.ended(place, until - time.monotonic()):
            self.consider(request, filtered=True)
            if request.url in self.explored:
                break
            if self._under_way.begin(place, request):
                return await self._sent(request, key, rules)
        return None

    def explores(self, url: str, skip: Skip) -> bool:
        """Whether a URL is fetched all the same, to try a rule; note that it is."""
        if skip.explore and self.explored.note(url, skip):
            self._stats.inc_value("clusterd/explored")
        return skip.explore

    def _tries(self, request: Request, skip: Skip) -> bool:
        """Whether a request is to be queued all the same, to try a rule; then before others, where few trials were."""
        if self.explores(request.url, skip) and self._sooner < self._explore * self._begun:
            request.priority += SOONER
            request.meta[RAISED] = True
            self._sooner += 1
        return skip.explore

    def decide_again(self, kept: KeptOut, counted: bool) -> Skip | None:
        """Return the skip of a request that was kept out, where there is one still; ``counted``: no further one."""
        request = kept.request
        # Of two of one URL this one would be no trial: the duplicate filter refuses it.
        counted |= not kept.filtered and self._skipped.get(request.url.partition("#")[0], False)
        skip = self._decide(request.url, self._purposes.noted(request), again=counted)
        if skip is not None:
            self._tries(request, skip)
        return skip

    @property
    def may_queue(self) -> bool:
        """Whether Scrapy's queue takes requests: no longer once the spider is being closed, for the queue is next."""
        engine = self._crawler.engine
        if engine is None or engine.spider is None:
            return False
        return engine.scraper.slot is not None and engine.scraper.slot.closing is None

    def fetch_again(self, kept: KeptOut) -> Request | None:
        """Queue and return a request that a rule had kept out; until it is sent another rule may say the same of it.

        Where an earlier run of a paused crawl has fetched it the duplicate filter refuses it: it is not queued again.
        """
        engine = self._crawler.engine
        assert engine is not None
        self._skipped.pop(kept.request.url.partition("#")[0], None)
        # Another object: Scrapy may still have to call the errback of this one, and counts each object once.
        request = kept.request.copy()
        if kept.filtered:
            request = request.replace(dont_filter=True, meta={**request.meta, QUEUED_AGAIN: True})
        self._again = request
        try:
            engine.crawl(request)
        finally:
            queued, self._again = self._again, None
        if queued is not None:
            self._stats.inc_value("clusterd/requeued")
        return queued

    def _refused(self, request: Request) -> None:
        if request is self._again:
            self._again = None
