"""Rule sets as they reach a running crawl: put to use, announced, and what a withdrawn rule kept out queued again.

What lies in memory is queued at once; what lies on the disk follows beside all else, no faster than the crawl sends it
where its queue is in memory: queued at once, 20,000 requests took 50 MB, and the garbage collector went through them
again and again. It is decided about each when it is its turn, so a rule that comes back meanwhile keeps it out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final
from weakref import WeakSet

from scrapy import Request

from clusterd_crawler import signals
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.older_scrapy import run_in_thread, sleep
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut
from clusterd_crawler.rules import LIVE, Rule, RuleSet
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.turn import IN_LOOP, Turn
from clusterd_crawler.urls import canonical, registrable

logger = logging.getLogger(__name__)

#: Seconds between two looks whether the rule sets that have arrived are in use.
LOOK_SECONDS: Final = 0.02
#: How many times as long as the sets of some hosts of a domain took those of others wait. Each takes a pass over all
#: known pages of the domain (5 µs each), in which no request is skipped, be it of another domain; and thousands of its
#: hosts may have rules of their own, as blogs do.
REST: Final = 4
#: Requests of a withdrawn rule, and of one level of priorities, that wait in the memory of Scrapy's queue (2.5 kB each)
#: and keep the next portion from following.
AHEAD: Final = 500
#: Seconds between two looks whether there are fewer.
PACE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class InUse:
    """What is in use for a host."""

    version: int
    rules: frozenset[str]
    unskip: frozenset[str]


@dataclass(frozen=True, slots=True)
class Anew:
    """Rules of which it is decided anew about what they kept out; ``counted``: what stays so is no further skip."""

    rules: frozenset[str]
    counted: bool = False


NOTHING: Final = InUse(-1, frozenset(), frozenset())


class RuleChanges:
    """For the loop's thread. Those of one domain together, in the order in which the first of each domain arrived."""

    def __init__(
        self,
        loop: EventLoop,
        decisions: Decisions,
        kept: Kept,
        fetch: Callable[[KeptOut], Request | None],
        announce: Callable[..., None],
        decide: Callable[[KeptOut, bool], Skip | None],
    ) -> None:
        self._loop = loop
        self._decisions = decisions
        self._kept = kept
        self._fetch = fetch
        self._announce = announce
        self._decide = decide
        self._in_use: dict[str, InUse] = {}
        #: Rules that were in use and are not any more.
        self._gone: set[str] = set()
        #: Domains of rule sets, and rules to be decided about anew.
        self._waiting: deque[str | Anew] = deque()
        #: Domain → host → its latest rule set that waits.
        self._latest: dict[str, dict[str, RuleSet]] = {}
        #: Domain → hosts whose sets were put to use last, and until when (monotonic) those of others wait.
        self._rests: dict[str, tuple[Collection[str], float]] = {}
        self._working = False
        #: How often requests are on their way between memory, disk and the scheduler.
        self._moving = 0
        #: Of each lot that is being written to the disk, where nobody finds it, the rules.
        self._spilling: dict[object, frozenset[str]] = {}
        #: Of each level that follows from the disk, what of it is queued and not sent yet. A queue on a disk, or in a
        #: store, keeps no request itself, so nothing of it is in here, and nothing waits for it.
        self._following: list[WeakSet[Request]] = []
        #: One for all requests that are decided about, by however many tasks.
        self._turn = Turn(IN_LOOP)
        self._closing = False

    @property
    def busy(self) -> bool:
        """Whether a rule set is being put to use, or requests are on their way."""
        return self._working or self._moving > 0 or bool(self._following)

    def arrived(self, rules: RuleSet) -> None:
        """Take a rule set; it is in use soon. One of its host that still waits never is: each takes seconds to load."""
        domain = registrable(rules.host)
        sets = self._latest.setdefault(domain, {})
        is_first = not sets
        if (waits := sets.get(rules.host)) is not None:
            early, rules = sorted((waits, rules), key=lambda known: known.version)
            rules = replace(rules, retired=(*early.retired, *rules.retired))
        sets[rules.host] = rules
        if is_first:
            self._take(domain)  # at last: without asyncio the work begins within this call

    def look_again(self, everything: bool = False) -> None:
        """Decide anew about what rules kept out whose pages turned out to lead to something new, or everything.

        A page is gone on which something of everything may rest. The rest is skipped as before, and tried no further.
        """
        if reopened := self._keeping() if everything else self._decisions.reopened():
            self._take(Anew(reopened, counted=everything))

    def _keeping(self) -> frozenset[str]:
        """Return the rules that keep something out."""
        return frozenset(self._kept.by_rule()).union(*self._spilling.values())

    def look_once_more(self) -> bool:
        """Have some of what a run of this crawl speaks for fetched, now that the crawl would end; whether any is.

        Only while nothing else is `busy`.
        """
        if looked := self._decisions.look_once_more(self._kept.by_rule()):
            self._take(Anew(looked))
        return bool(looked)

    def sent(self, request: Request) -> None:
        """Note that a request has left Scrapy's queue."""
        for ahead in self._following:
            ahead.discard(request)

    def all_sent(self) -> None:
        """Note that Scrapy's queue is empty, be it that another middleware has dropped what was in it."""
        for ahead in self._following:
            ahead.clear()

    def _take(self, what: str | Anew) -> None:
        self._waiting.append(what)
        if not self._working:
            self._working = True
            self._loop.start(self._work())

    def stop(self) -> None:
        """Leave kept out what is kept out from now on: the scheduler takes nothing more."""
        self._closing = True

    async def close(self) -> None:
        """Do so, and return when nothing is on its way."""
        self.stop()
        while self._moving or self._following:
            await sleep(LOOK_SECONDS)

    async def _work(self) -> None:
        try:
            while self._waiting:
                what = self._next()
                if what is None:
                    await sleep(LOOK_SECONDS)
                elif isinstance(what, Anew):
                    if not self._closing:
                        await self._reconsider(what.rules, what.counted)
                else:
                    await self._try(what, list(self._latest.pop(what).values()))
        finally:
            self._working = False

    def _next(self) -> str | Anew | None:
        """Take out what has waited longest, but for domains that rest; None where nothing else waits."""
        for number, what in enumerate(self._waiting):
            if isinstance(what, Anew) or not self._is_resting(what):
                del self._waiting[number]
                return what
        return None

    def _is_resting(self, domain: str) -> bool:
        hosts, until = self._rests.get(domain, ((), 0.0))
        return monotonic() < until and not self._closing and not self._latest[domain].keys() <= set(hosts)

    async def _try(self, domain: str, sets: list[RuleSet]) -> None:
        """Put rule sets of a domain to use; where that fails each by itself, so that one keeps no other out of use."""
        try:
            await self._use(domain, sets)
        except Exception:
            if len(sets) > 1:
                for rules in sets:
                    await self._try(domain, [rules])
                return
            logger.exception("Version %d of the rules of %s cannot be used", sets[0].version, sets[0].host)

    async def _use(self, domain: str, sets: list[RuleSet]) -> None:
        sets = [rules for rules in sets if rules.version > self._in_use.get(rules.host, NOTHING).version]
        if not sets:
            return
        began = monotonic()
        await run_in_thread(self._decisions.load, *sets)
        ended = monotonic()
        self._rests.pop(domain, None)
        if ended - began > LOOK_SECONDS:
            self._rests[domain] = [rules.host for rules in sets], ended + REST * (ended - began)
        for rules in sets:
            try:
                await self._follow(rules)
            except Exception:  # it is in use all the same, and is not tried again
                logger.exception(
                    "Not all that version %d of the rules of %s lets go is fetched", rules.version, rules.host
                )

    async def _follow(self, rules: RuleSet) -> None:
        """Announce a rule set that is in use by now, and decide anew about what it does not keep out any more."""
        before = self._in_use.get(rules.host, NOTHING)
        live = {rule.id: rule for rule in rules.rules if rule.state in LIVE}
        after = InUse(rules.version, frozenset(live), frozenset(rules.unskip))
        self._in_use[rules.host] = after
        gone = before.rules - after.rules
        self._gone = (self._gone | gone) - after.rules
        self._tell(rules, [live[rule] for rule in sorted(after.rules - before.rules)], sorted(gone))
        if gone and not self._closing:
            await self._reconsider(gone)
        exempt = after.unskip - before.unskip
        if exempt and self._keeping() and not self._closing:
            await self._let_go(exempt, rules.host)

    def _may_keep_out(self, host: str) -> frozenset[str]:
        """Return the rules that may keep out pages of a host: all but those of other domains.

        Its own are not all: a mirror's rule is in the set of its domain, a trap and ``within`` are in none.
        """
        domain = registrable(host)
        others = [known.rules for name, known in self._in_use.items() if registrable(name) != domain]
        return self._keeping().difference(*others)

    def _tell(self, rules: RuleSet, learned: list[Rule], gone: list[str]) -> None:
        for rule in learned:
            self._announce(signals.rule_learned, rule=rule, host=rules.host)
        reasons: dict[str, Any] = dict(rules.retired)
        for name in gone:
            self._announce(signals.rule_retired, rule=name, reason=reasons.get(name, "replaced"), host=rules.host)

    async def spill(self, old: list[KeptOut]) -> None:
        """Have requests written to the disk; those whose rule was withdrawn meanwhile are decided anew."""
        self._moving += 1
        lot = object()
        self._spilling[lot] = frozenset(kept.rule for kept in old)
        try:
            self._kept.hold(await run_in_thread(self._kept.spill, old))
        finally:
            del self._spilling[lot]
            self._moving -= 1
        gone = frozenset(self._gone & {kept.rule for kept in old})
        if gone and not self._closing:
            await self._reconsider(gone)

    async def _reconsider(self, gone: frozenset[str], counted: bool = False) -> None:
        """Decide anew about what these rules kept out: another rule may say the same, else it is fetched."""
        self._moving += 1
        try:
            held = await self._held(gone)
            if self._kept.has_spilled(gone):
                for portions in await run_in_thread(self._kept.read_by_level, gone):
                    ahead: WeakSet[Request] = WeakSet()
                    self._following.append(ahead)
                    self._loop.start(self._follow_up(portions, counted, ahead))
            await self.decide_anew(held, counted)
        finally:
            self._moving -= 1

    async def _held(self, rules: frozenset[str]) -> list[KeptOut]:
        """Return what these rules kept out that is in memory; what was on its way to the disk is there by then."""
        held = self._kept.take(rules)
        lots = [lot for lot, of_lot in self._spilling.items() if of_lot & rules]
        while any(lot in self._spilling for lot in lots):
            await sleep(LOOK_SECONDS)
        return held + self._kept.take(rules) if lots else held

    async def _follow_up(self, portions: Iterator[list[KeptOut]], counted: bool, ahead: WeakSet[Request]) -> None:
        """Decide anew about what lies on the disk, as long as few of it wait to be sent."""
        try:
            while not self._closing:
                if len(ahead) >= AHEAD:
                    await sleep(PACE_SECONDS)
                elif not await self._decide_next(portions, counted, ahead):
                    break
        finally:
            self._following = [other for other in self._following if other is not ahead]

    async def _decide_next(self, portions: Iterator[list[KeptOut]], counted: bool, ahead: WeakSet[Request]) -> bool:
        """Decide anew about a portion; whether there was one."""
        self._moving += 1
        try:
            if portion := await run_in_thread(next, portions, None):
                await self.decide_anew(portion, counted, ahead)
            return bool(portion)
        finally:
            self._moving -= 1

    async def _let_go(self, exempt: frozenset[str], host: str) -> None:
        """Queue these URLs of a host again, whatever rule kept them out; the others stay kept out unasked."""
        self._moving += 1
        try:
            async for kept_out in self._taken(self._may_keep_out(host)):
                for kept in kept_out:
                    if canonical(kept.request.url) in exempt and not self._closing:
                        self._fetch(kept)
                    else:
                        await self.keep(kept)
                    await self._pass_on()
        finally:
            self._moving -= 1

    async def _taken(self, rules: frozenset[str]) -> AsyncIterator[list[KeptOut]]:
        """Yield what these rules kept out, in portions: all of it may be more than memory holds."""
        held = await self._held(rules)
        written = await run_in_thread(self._kept.read, rules)
        yield held
        while not self._closing and (portion := await run_in_thread(next, written, None)):
            yield portion

    async def settled(self) -> None:
        """Return when the rule sets that have arrived are in use."""
        while self._working:
            await sleep(LOOK_SECONDS)

    async def rewritten(self, kept: KeptOut, skip: Skip | None) -> None:
        """Decide about a request that was rewritten, now that the page has come; ``skip``: what was decided already."""
        if skip is None:
            await self.decide_anew([kept])
        elif skip.explore:
            self._fetch(kept)
        else:
            await self.keep(kept)

    async def keep(self, kept: KeptOut) -> None:
        """Keep a request out."""
        if old := self._kept.add(kept):
            await self.spill(old)

    async def decide_anew(
        self, kept_out: Sequence[KeptOut], counted: bool = False, ahead: WeakSet[Request] | None = None
    ) -> None:
        """Decide about requests that were kept out: where rules say the same they still are, else they are fetched.

        ``counted``: those that still are have been counted as skips, and it was decided which are tried. ``ahead``
        gets what is queued.
        """
        for kept in kept_out:
            while self._decisions.loading and not self._closing:  # other requests go out then; these have time
                await sleep(LOOK_SECONDS)
            skip = None if self._closing else self._decide(kept, counted)
            if self._closing or (skip is not None and not skip.explore):
                await self.keep(kept if skip is None else replace(kept, rule=skip.rule))
            elif (queued := self._fetch(kept)) is not None and ahead is not None:
                ahead.add(queued)
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Let the loop have its turn where what is decided here has had its own."""
        if self._turn.is_over:
            await sleep(0)
            self._turn.begin()
