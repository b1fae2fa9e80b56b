"""What joins a crawl with its daemon: what it publishes, what it hears, and the daemon itself where it brings its own.

Each runs in threads or a process of its own. The crawl waits for nobody but an embedded store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from scrapy import Request

from clusterd_crawler.clock import now_ms
from clusterd_crawler.crawling.connections import Connections
from clusterd_crawler.crawling.embedded_daemon import EmbeddedDaemon
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.meeting import Meeting
from clusterd_crawler.crawling.older_scrapy import run_in_thread
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.spool import Spool
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.settings import Settings, daemons_own
from clusterd_crawler.subscribe.others_pages import OthersPages, Wanted
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.verdict import Verdict

logger = logging.getLogger(__name__)

#: Seconds for the first contact with the embedded store before the spider starts, so that its rules are in use.
START_SECONDS: Final = 30.0
#: Seconds for reading what is known of earlier and other crawls before the spider starts, where it is to be used.
KNOWN_SECONDS: Final = 5.0
#: Seconds that the publisher gets at the end: where the log answers, and where it does not.
CLOSE_SECONDS: Final = (15.0, 1.0)
#: Seconds that the subscriber gets at the end.
HEARD_SECONDS: Final = 5.0


class DaemonLink:
    """For the loop's thread: `start_daemon`, `publish` and `listen`, in this order. The ends do what there is to do."""

    def __init__(self, loop: EventLoop, settings: Settings, project: Path, wanted: Wanted) -> None:
        self._loop = loop
        self._settings = settings
        self._connections = Connections(settings, project)
        self._wanted = wanted
        self._daemon: EmbeddedDaemon | None = None
        self._works = False
        self._publisher: Publisher | None = None
        self._subscriber: Subscriber | None = None
        self._meeting: Meeting | None = None

    @property
    def spool(self) -> Path:
        """The folder of what waits on the disk."""
        return self._connections.spool

    @property
    def is_reachable(self) -> bool:
        """Whether the log takes what is published."""
        return self._publisher is not None and self._publisher.reachable

    async def start_daemon(self, given: Mapping[str, Any]) -> bool:
        """Start the daemon where the crawl brings it along, with its own of the crawl's settings; whether it works."""
        if self._connections.embedded:
            self._daemon = EmbeddedDaemon(self._connections.data, self._settings.redis_prefix, daemons_own(given))
            self._works = await run_in_thread(self._daemon.start)
        return self._works

    def publish(self) -> Publisher:
        """Return what takes the messages from now on."""
        spool, limit, name = self._connections.spool, self._settings.spool_bytes, self._connections.log_name
        self._publisher = Publisher(self._connections.log(), lambda: Spool(spool, limit, name), self._settings.queue)
        return self._publisher

    def send_now(self) -> None:
        """Have the daemon get what has been published."""
        if self._publisher is not None:
            self._publisher.offer_together(())

    async def listen(
        self,
        take_rules: Callable[[RuleSet], None],
        take_verdicts: Callable[[Iterable[Verdict]], None],
        take_pages: Callable[[list[tuple[Fetch, bool]]], None],
    ) -> None:
        """Hear what daemon and other crawlers say. Rules and verdicts are taken in the loop's thread, pages are not.

        Returns when the rules of an embedded store are in use, and the pages of others known, if these are wanted.
        """
        since = self._wanted.since(now_ms()) if self._settings.skip else None
        self._subscriber = Subscriber(
            self._connections.feed(since),
            lambda rules: self._loop.call(take_rules, rules),
            lambda verdicts: self._loop.call(take_verdicts, verdicts),
            self._wanted.crawl,
            OthersPages(self._wanted),
            take_pages,
        )
        self._meeting = Meeting(self._loop, self._subscriber)
        if self._works:
            await run_in_thread(self._subscriber.connected.wait, START_SECONDS)
        if since is not None:
            await run_in_thread(self._subscriber.caught_up.wait, KNOWN_SECONDS)

    def meet(self, request: Request) -> None:
        """Ask for the rules of a request's host, where it is met for the first time."""
        assert self._meeting is not None
        self._meeting.meet(request)

    async def met(self, request: Request) -> None:
        """Do so, and return when what there is of them has been handed on."""
        assert self._meeting is not None
        await self._meeting.met(request)

    def is_connected(self) -> bool:
        """Whether what the daemon says has been heard, be it nothing."""
        return self._subscriber is not None and self._subscriber.connected.is_set()

    async def end_publishing(self) -> None:
        """Bring what waits into the log or on the spool."""
        if self._publisher is not None:
            await run_in_thread(self._publisher.close, *CLOSE_SECONDS)

    async def drain(self) -> None:
        """Let the crawl's own daemon work off what it was sent."""
        if self._daemon is not None and not await run_in_thread(self._daemon.drain):
            logger.warning("The daemon has not worked off this crawl yet; the next one goes on with it")

    async def end_listening(self) -> None:
        """Hear nothing more."""
        if self._meeting is not None:
            self._meeting.close()
        if self._subscriber is not None:
            await run_in_thread(self._subscriber.close, HEARD_SECONDS)

    async def end_daemon(self) -> None:
        """Stop the crawl's own daemon."""
        if self._daemon is not None:
            await run_in_thread(self._daemon.stop)
