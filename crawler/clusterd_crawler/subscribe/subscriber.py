"""Subscriber: a thread that follows the daemon's rule sets, verdicts and known pages and hands them on, decoded.

Only rule sets of hosts that the crawl has met are decoded: a store may know a million hosts, a crawl meets few. Those
that mirrors lead to are met with these: the rules of what a key says are asked for, though nothing links there. What
cannot be decoded is counted and logged, and changes nothing: the rules in use stay in use.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import Final

from clusterd_crawler import topics
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import ClusterdError, Forbidden, MessageError, Unreachable
from clusterd_crawler.fetches import Fetch, host_and_crawl, key
from clusterd_crawler.rule_language.json_form import rule_set_from_json
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.subscribe.contract import Feed, News
from clusterd_crawler.subscribe.others_pages import OthersPages, Wanted
from clusterd_crawler.verdict import Verdict, decode_verdict

logger = logging.getLogger(__name__)

#: Seconds that one poll waits, so that closing takes no longer.
POLL_SECONDS: Final = 0.25
#: Seconds from one batch of news to the next: those that come one by one share a call. Verdicts come as the publisher
#: sends pages, ten times a second, and pages wait for them: so this is short.
LINGER_SECONDS: Final = 0.03
#: Seconds between two attempts to reach a feed that is away: the first wait, doubled up to the second.
RETRY_SECONDS: Final = (0.25, 5.0)
#: Hosts whose rule sets are asked for in one call: after an absence, all that were met.
ASKED_TOGETHER: Final = 100
#: Seconds after which hosts are asked for again whose rules a feed did not say that goes on.
AGAIN_SECONDS: Final = 1.0


class Subscriber:
    """See the module. What is given to be called is called in the subscriber's thread or in that of `meet`."""

    def __init__(
        self,
        connect: Callable[[], Feed],
        on_rules: Callable[[RuleSet], None],
        on_verdicts: Callable[[list[Verdict]], None],
        crawl: str,
        others: OthersPages | None = None,
        on_pages: Callable[[list[tuple[Fetch, bool]]], None] = lambda pages: None,
    ) -> None:
        self._connect = connect
        self._on_rules = on_rules
        self._on_verdicts = on_verdicts
        self._crawl = crawl
        self._others = others or OthersPages(Wanted(crawl))
        self._others_lock = threading.Lock()
        self._on_pages = on_pages
        self._lock = threading.Lock()
        self._met: set[str] = set()
        #: Of these, those whose rules could not be asked for, and when (monotonic) they are asked for again.
        self._unasked: set[str] = set()
        self._again_at = 0.0
        self._feed: Feed | None = None
        self._closing = threading.Event()
        #: What was said to be lacking.
        self._told: set[str] = set()
        #: Set when the feed has been reached for the first time, and when it had nothing more to say for a moment.
        self.connected = threading.Event()
        self.caught_up = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="clusterd-subscriber", daemon=True)
        self._thread.start()

    def meet(self, *hosts: str) -> None:
        """Hand on the hosts' rule sets, now and from now on. May block: not for the reactor's thread."""
        with self._lock:
            new = [host for host in hosts if host not in self._met]
            self._met.update(new)
            feed = self._feed
        for host in new:  # first: what the rules are to be applied to
            self._take_held(host)
        if feed is not None:
            self._catch_up(feed, new)

    def close(self, timeout: float) -> None:
        """Stop following. Blocks: not for the reactor's thread."""
        self._closing.set()
        self._thread.join(timeout)

    def _follow(self) -> None:
        wait = RETRY_SECONDS[0]
        while not self._closing.is_set():
            try:
                feed = self._feed or self._join()
                news = feed.poll(POLL_SECONDS)
                self._take(news)
                self._ask_again(feed)
                if not news:
                    self.caught_up.set()
                wait = RETRY_SECONDS[0]
                self._closing.wait(LINGER_SECONDS)
            except Exception as error:  # whatever it is: rules must still be followed, above all withdrawn ones
                if isinstance(error, ClusterdError):  # also a file of TLS that is just being renewed
                    self._tell(error)
                else:  # a client library's fault, say
                    logger.exception("The daemon's messages cannot be read; it is tried again")
                self._leave()
                self._closing.wait(wait)
                wait = min(2 * wait, RETRY_SECONDS[1])
        self._leave()

    def _join(self) -> Feed:
        """Connect, and hand on what was published for the hosts met while there was no connection."""
        feed = self._connect()
        with self._lock:
            self._feed = feed
            met = sorted(self._met)
        self._catch_up(feed, met)
        self.connected.set()
        return feed

    def _leave(self) -> None:
        with self._lock:
            feed, self._feed = self._feed, None
        if feed is not None:
            try:
                feed.close()
            except Exception as error:  # it is given up anyway
                logger.debug("Closing the feed: %s", error)

    def _catch_up(self, feed: Feed, hosts: Iterable[str]) -> None:
        left = deque(hosts)
        try:
            while left:
                known = feed.known(list(islice(left, ASKED_TOGETHER)))
                for raw in known:
                    host = left.popleft()
                    if raw is not None:
                        self._read_rules(host, raw)
        except Unreachable as error:
            self._tell(error)
            with self._lock:
                self._unasked.update(left)

    def _ask_again(self, feed: Feed) -> None:
        """Ask for the hosts whose rules could not be had: a feed that goes on says nothing of them by itself."""
        if self._unasked and monotonic() >= self._again_at:
            self._again_at = monotonic() + AGAIN_SECONDS
            with self._lock:
                hosts = sorted(self._unasked)
                self._unasked.clear()
            self._catch_up(feed, hosts)

    def _tell(self, error: ClusterdError) -> None:
        """Say once which right is lacking, or which file: nobody else may. Of an outage the publisher speaks."""
        level = logging.DEBUG
        outage = isinstance(error, Unreachable) and not isinstance(error, Forbidden)
        if not outage and str(error) not in self._told:
            self._told.add(str(error))
            level = logging.WARNING
        logger.log(level, "The daemon's rules and verdicts cannot be read now: %s", error)

    def _take(self, several: Sequence[News]) -> None:
        verdicts = [verdict for news in several if news.topic == topics.VERDICTS for verdict in self._verdict(news)]
        if verdicts:
            self._on_verdicts(verdicts)
        for news in several:
            host = news.key.decode("utf-8", "replace")
            if news.topic == topics.RULES and host in self._met:
                self._read_rules(host, news.value)
            elif news.topic == topics.KNOWN:
                self._take_pages(news.key, news.value)

    def _take_held(self, host: str) -> None:
        """Hand on the pages that were known of a host before the crawl met it."""
        with self._others_lock:
            held = self._others.met(host)
        for crawl, block in held:
            self._take_pages(key(host, crawl), block)

    def _take_pages(self, named: bytes, block: bytes) -> None:
        host, _ = host_and_crawl(named)
        try:
            with self._others_lock:
                pages = self._others.arrived(named, block, host in self._met, now_ms())
        except MessageError as error:
            _refuse("block of known pages", error)
            return
        if pages:
            self._on_pages(pages)

    def _verdict(self, news: News) -> Iterator[Verdict]:
        """Yield the verdict where it is one on this crawl."""
        try:
            verdict = decode_verdict(news.value)
        except MessageError as error:
            _refuse("verdict", error)
            return
        if verdict.crawl == self._crawl:
            yield verdict

    def _read_rules(self, host: str, raw: bytes) -> None:
        """Hand on a rule set; an empty message (a deleted key of the compacted topic) leaves the host without rules."""
        try:
            rules = rule_set_from_json(json.loads(raw)) if raw else RuleSet(host, 0, ())
            if rules.host != host:
                raise ValueError(f"rules of {rules.host} under the key of {host}")
        except (ValueError, TypeError, RecursionError, ClusterdError) as error:
            _refuse(f"rule set of {host}", error)
            return
        for mirrored in rules.led_to:
            self.meet(mirrored)
        self._on_rules(rules)


def _refuse(what: str, error: Exception) -> None:
    logger.warning("A %s from the daemon cannot be read and is ignored: %s", what, error)
