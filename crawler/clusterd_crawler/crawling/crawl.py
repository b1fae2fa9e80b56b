"""One spider's crawl as clusterd sees it: decides about requests, notes pages, listens to the daemon.

Everything that waits (network, disk, HTML, rule sets) happens in other threads; what is here runs in the crawl's loop
and touches memory alone: one decision a request, and of a page what `pages.reporter` does at once. Until there is
something to decide by, links are not looked at before they are sent. The middleware is a thin shell around it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.http import Response

from clusterd_crawler import signals
from clusterd_crawler.clock import now_ms
from clusterd_crawler.core import compiled
from clusterd_crawler.crawling.collector import Frozen
from clusterd_crawler.crawling.counting import Counting
from clusterd_crawler.crawling.crawl_id import identify
from clusterd_crawler.crawling.daemon_link import DaemonLink
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.idle import HeldOpen
from clusterd_crawler.crawling.older_scrapy import run_in_thread
from clusterd_crawler.crawling.pages.download_places import DownloadPlaces
from clusterd_crawler.crawling.pages.gathered import Pages
from clusterd_crawler.crawling.pages.item_files import ItemFiles
from clusterd_crawler.crawling.pages.near_duplicates import NearDuplicates
from clusterd_crawler.crawling.pages.redirected import Redirected
from clusterd_crawler.crawling.pages.reporter import Page, Reporter, Seen
from clusterd_crawler.crawling.pages.responses import is_good, is_part
from clusterd_crawler.crawling.pages.rewritten import Rewritten
from clusterd_crawler.crawling.pages.unread import Unread
from clusterd_crawler.crawling.pages.verdicts import Verdicts
from clusterd_crawler.crawling.requests.admission import Admission
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut
from clusterd_crawler.crawling.requests.kinds import is_page, referrer
from clusterd_crawler.crawling.requests.offsite import dropped_as_offsite
from clusterd_crawler.crawling.requests.paused import Paused
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.crawling.requests.rewriting import Rewriting
from clusterd_crawler.crawling.requests.under_way import UnderWay
from clusterd_crawler.crawling.rule_changes import RuleChanges
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.message import SkipReport, may_speak_of
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.settings import Settings
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.urls import registrable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Seconds that the daemon's verdicts on the last pages get at the end, where the log answers.
HEAR_SECONDS: Final = 0.5


class Crawl:
    """See the module. Made when the spider opens, in the loop's thread."""

    def __init__(self, crawler: Crawler, settings: Settings, project: Path, attend: Callable[[], None]) -> None:
        """``attend`` is called when there is something to decide by: links are then to be considered when scheduled."""
        assert crawler.spider is not None
        assert crawler.stats is not None
        self._crawler = crawler
        self._spider: Spider = crawler.spider
        self._stats = crawler.stats
        self._settings = settings
        self._loop = EventLoop()
        self._attend = attend
        wanted = identify(settings, self._spider.name, crawler.settings.get("JOBDIR"))
        self.id = wanted.crawl
        self._link = DaemonLink(self._loop, settings, project, wanted)
        self._purposes = Purposes(self._spider, crawler.settings, crawler.engine)
        self._decisions = Decisions(KnownPages.from_settings(settings, self.id), settings.known_limit)
        self.item_files = ItemFiles(crawler.settings, self._decisions.led)
        self._kept = Kept(self._spider, self._link.spool, settings.spool_bytes)
        self._verdicts = Verdicts(settings.verdict_timeout, promise=self._loop.promise)
        self._places = DownloadPlaces(crawler)
        self._near_duplicates = NearDuplicates(
            crawler.stats, self._verdicts, self._places, self._announce, self._send_now
        )
        self._reporter = Reporter(settings, self.id)
        self._pages = Pages(self._loop, self._reporter, self._note_page, self._refuse_page)
        self.unread = Unread(self._know, self._decisions.differs, self._reporter, settings.verdict_timeout)
        self._rewriting = Rewriting() if settings.rewrite and settings.skip else None
        self._is_offsite = dropped_as_offsite(crawler)
        self._under_way = UnderWay(crawler.settings.getint("CONCURRENT_REQUESTS"), self._places.holds)
        self._admission = admission = Admission(
            crawler,
            self._decisions,
            self._purposes,
            self._rewriting,
            self._under_way,
            self._note_skip,
            self._keep,
            settings.explore,
        )
        self._explored = admission.explored
        self._changes = RuleChanges(
            self._loop, self._decisions, self._kept, self._fetch_again, self._announce, admission.decide_again
        )
        self._rewritten = Rewritten(self._rewriting, self._decisions, self._purposes, self._changes, admission.explores)
        self._paused = Paused(self._spider, crawler.settings.get("JOBDIR"))
        self._held_open = HeldOpen(crawler, self._is_held)
        self.redirected = Redirected(crawler, self._decisions, self._reporter, self._explored)
        self._counting: Counting | None = None
        self._frozen = Frozen()

    async def open(self) -> None:
        """Start the threads, and the daemon where it is ours; the crawl waits for nobody but an embedded store."""
        if compiled.CORE is None:
            logger.info(compiled.LACKING)
        self._verdicts.prompt = await self._link.start_daemon(self._crawler.settings)
        self._reporter.publisher = publisher = self._link.publish()
        self._counting = Counting(
            self._stats, self._settings, publisher, self._decisions, self._reporter, self._kept, self._paused
        )
        await self._link.listen(self._take_rules, self._near_duplicates.answered, self._decisions.learn_of)
        if self._settings.skip and (self._rewriting is not None or self._decisions.decides):
            self._attend()
        if self._settings.skip and self._paused.there:
            self._loop.start(self._paused.resume(self._link.is_connected, self._link.met, self._decide_anew))
        await run_in_thread(registrable, "example.com")  # reads the list of public suffixes: 10 ms
        self._frozen.freeze()
        self._counting.start()

    async def close(self) -> None:
        """Bring what waits into the log or on the spool, let an embedded daemon finish, end the threads.

        Each part ends whatever becomes of those before it: else a fault of one would lose what others hold.
        """
        self._frozen.thaw()
        self._paused.stop()
        ends = (self._end_requests, self._end_pages, self._link.end_publishing, self._end_answers, self._end_listening)
        for end in (*ends, self._link.end_daemon):
            await _contained(end)
        await _contained(run_in_thread, self._paused.keep, self._kept)
        await _contained(run_in_thread, self._kept.close)
        if self._counting is not None:
            self._counting.count()

    async def _end_requests(self) -> None:
        if self._counting is not None:
            self._counting.stop()
        await self._changes.close()

    async def _end_pages(self) -> None:
        await self._pages.close()
        self.unread.close()

    async def _end_answers(self) -> None:
        await self._link.drain()
        if self._link.is_reachable:
            await self._verdicts.answered(HEAR_SECONDS)

    async def _end_listening(self) -> None:
        await self._link.end_listening()
        self._near_duplicates.close()

    def idle(self) -> None:
        """Hold the spider open while a rule may still be withdrawn whose kept-out pages would then be fetched.

        Before it ends it looks once more at some of these.
        """
        self._changes.all_sent()
        self.unread.all_stand()
        self._changes.look_again(everything=self.unread.broken() | self._decisions.withdrawn())
        if self._is_held() or self._changes.look_once_more():
            self._held_open.hold()

    def _is_held(self) -> bool:
        watching = self._explored.recent(self.unread.revocable) and self._kept and self._link.is_reachable
        return bool(self._changes.busy or self._rewritten.busy or self._paused.busy or watching)

    # Requests.

    def consider(self, request: Request, filtered: bool) -> None:
        """Raise `SkippedDuplicate` where the content is known; ``filtered``: the duplicate filter has let it pass."""
        if not self._settings.skip or not self._admission.may_be_skipped(request):
            return
        if not filtered and self._is_offsite(request):  # before it is decided, which counts skips and trials
            return
        self._link.meet(request)
        self._admission.consider(request, filtered)

    def admit(self, request: Request) -> Coroutine[Any, Any, Request | None] | None:
        """Skip a request that is about to be sent, or have it wait for another of its key that is on its way."""
        if not self._settings.skip or not is_page(request):
            return None
        self._changes.sent(request)
        self._purposes.note(request)
        self.consider(request, filtered=True)
        return self._admission.begin(request)

    def left_downloader(self, request: Request) -> None:
        """Note that a request has left the downloader, whatever comes of it."""
        self._under_way.left(request)

    def ended(self, request: Request, response: Response | None = None) -> None:
        """Note that a request's page has come, and is to be given to the spider, or will not come."""
        if self._rewriting is not None:
            self._rewriting.asked(request.url)
        if response is not None and response in self.unread:
            self._under_way.left(request)
        else:
            self._under_way.end(request)

    def _note_skip(self, url: str, skip: Skip, kept: KeptOut) -> None:
        """Leave the traces of a skip: stats, log, report to the daemon, signal, and the request itself."""
        self._stats.inc_value("clusterd/skipped")
        self._stats.inc_value(f"clusterd/skipped/{skip.rule}")
        logger.debug("Skipped %s: same content as %s by rule %s", url, skip.known_url, skip.rule)
        self._reporter.report(SkipReport(url, skip.rule, skip.key, skip.known_url, now_ms(), self.id))
        self._keep(kept)
        self._announce(
            signals.request_skipped, request=kept.request, rule=skip.rule, key=skip.key, known_url=skip.known_url
        )

    def _keep(self, kept: KeptOut) -> None:
        if old := self._kept.add(kept):
            self._loop.start(self._changes.spill(old))

    def _fetch_again(self, kept: KeptOut) -> Request | None:
        if not self._admission.may_queue:
            self._changes.stop()  # what a closed queue is given is lost to a crawl that is paused
            self._keep(kept)
            return None
        try:
            return self._admission.fetch_again(kept)
        except Exception as error:  # of Scrapy's queue, as on a full disk; it may take the next one
            logger.error("%.500s cannot be queued again, and stays kept out: %s", kept.request, error)
            self._keep(replace(kept, filtered=True))
            return None

    async def _decide_anew(self, kept_out: list[KeptOut]) -> None:
        await self._changes.settled()
        await self._changes.decide_anew(kept_out)

    # Pages.

    async def fetched(self, request: Request, response: Response) -> None:
        """Take a page: sketch it, publish it, wait for its verdict where that is prompt. `pages.unread` notes it."""
        if not is_page(request):
            return
        self._under_way.arrived(request)
        self.redirected.browsed(request, response)
        url, at = response.url.partition("#")[0], now_ms()
        explored = self._explored.pop(url)
        page = Page(url, at, request, response, explored, self._purposes.noted(request))
        if "cached" in response.flags and not self._settings.sweep and explored is None:
            # Sketched when it was fetched. Of a sweep each page is told, lest it seem lost.
            if not is_good(response):
                self._decisions.fetched(url, at, good=False)
            elif not page.is_file:
                self.unread.cached(page, self._purposes.is_awaited(request))
        elif not may_speak_of(url):
            self._stats.inc_value("clusterd/rejected")
        elif not 200 <= response.status < 300:
            self.failed(request, response.status, f"HTTP status {response.status}")
        elif not page.is_told:
            self._decisions.led(referrer(request))
        elif is_part(response):
            self._stats.inc_value("clusterd/rejected")
            self.failed(request, response.status, "only a part of the page came")
        else:
            self._changes.look_again()
            self.unread.came(page, self._purposes.is_awaited(request))
            await self._sketched(page)

    async def _sketched(self, page: Page) -> None:
        version = page.url, page.at
        if page.is_file:
            self._decisions.led(referrer(page.request))
        else:
            self._verdicts.ask(version)
        if self._decisions.decides or self._rewriting is not None:
            await self._pages.take(page)
            answer = self._verdicts.wait(version)
        else:
            answer = self._verdicts.wait(version)
            self._pages.gather(page)
        if answer is not None:
            await self._near_duplicates.flag(page.response, answer)

    def _send_now(self) -> None:
        """Have the daemon get what has been gathered: the crawl goes on when it answers."""
        self._pages.flush()
        self._link.send_now()

    def _note_page(self, page: Page, seen: Seen) -> None:
        """Note what a page was sketched to."""
        assert self._counting is not None
        self._counting.sketches += not page.is_file
        self.unread.seen(page, seen)

    def _refuse_page(self, page: Page, error: ClusterdError) -> None:
        """Note that a page cannot be sketched."""
        self.unread.forget(page)
        self._verdicts.forget((page.url, page.at))
        self._stats.inc_value("clusterd/rejected")
        logger.debug("Not sketched: %s", error)

    def _know(self, page: Page, seen: Seen) -> None:
        """Let skips rest on a page, where it is good."""
        via = referrer(page.request)
        linked = self._rewritten.linked(page, seen)
        self._decisions.fetched(page.url, page.at, seen.names, seen.good, seen.content, page.purpose, via)
        if linked is not None:
            self._loop.start(self._rewritten.came(page, linked))
        self._under_way.end(page.request)

    def failed(self, request: Request, status: int, reason: str) -> None:
        """Note a fetch that brought no page."""
        if not is_page(request):
            return
        url, at = request.url.partition("#")[0], now_ms()
        self._decisions.fetched(url, at, good=False)
        self._reporter.failed(url, at, status, reason)

    # What the daemon says.

    def _take_rules(self, rules: RuleSet) -> None:
        if rules.rules and self._settings.skip:
            self._attend()
        self._changes.arrived(rules)

    def _announce(self, signal: object, **arguments: Any) -> None:
        self._loop.start(self._send(signal, arguments))

    async def _send(self, signal: object, arguments: dict[str, Any]) -> None:
        await self._crawler.signals.send_catch_log_async(signal, spider=self._spider, **arguments)


async def _contained(end: Callable[..., Coroutine[Any, Any, None]], *given: Any) -> None:
    """Log what a part of the crawl raises at its end."""
    try:
        await end(*given)
    except Exception:
        logger.exception("clusterd could not end as it should; the other parts of it do")
