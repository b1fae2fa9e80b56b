"""What is counted beside Scrapy's stats, by threads and by objects that know no stats, brought into them."""

from __future__ import annotations

import logging
from typing import Any, Final

from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import create_looping_call

from clusterd_crawler.crawling.pages.reporter import Reporter
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import Kept
from clusterd_crawler.crawling.requests.paused import Paused
from clusterd_crawler.publish.publisher import Counts, Publisher
from clusterd_crawler.settings import Settings
from clusterd_crawler.skipping.traps import GUARDED

logger = logging.getLogger(__name__)

#: Seconds between two looks.
SECONDS: Final = 1.0


class Counting:
    """For the loop's thread."""

    def __init__(
        self,
        stats: StatsCollector,
        settings: Settings,
        publisher: Publisher,
        decisions: Decisions,
        reporter: Reporter,
        kept: Kept,
        paused: Paused,
    ) -> None:
        self._stats = stats
        self._guarded = GUARDED.get(settings.trap_guard, "")
        self._publisher = publisher
        self._decisions = decisions
        self._reporter = reporter
        self._kept = kept
        self._paused = paused
        self._counted = Counts()
        self._looking: Any = None
        #: Pages sketched since the last look.
        self.sketches = 0

    def start(self) -> None:
        """Look every `SECONDS`."""
        self._looking = create_looping_call(self.count)
        self._looking.start(SECONDS, now=False)

    def stop(self) -> None:
        """Look no more. May be repeated."""
        if self._looking is not None and self._looking.running:
            self._looking.stop()

    def count(self) -> None:
        """Bring what was counted into the stats, and say which traps were noticed."""
        for trap in self._decisions.traps():
            self._stats.inc_value("clusterd/trapped")
            logger.warning(
                "%.500s looks like a crawler trap, and %s: %.500s; see %.500s",  # a URL may be long
                trap.family,
                self._guarded,
                trap.reason,
                trap.example,
            )
        counts = self._publisher.counts
        for name in ("published", "spooled", "dropped"):
            more = getattr(counts, name) - getattr(self._counted, name)
            if more:
                self._stats.inc_value(f"clusterd/{name}", more)
        self._counted = counts
        if self.sketches:
            self._stats.inc_value("clusterd/sketched", self.sketches)
            self.sketches = 0
        if self._reporter.shortened:
            self._stats.set_value("clusterd/shortened", self._reporter.shortened)
        if forgotten := self._kept.forgotten + self._paused.forgotten:
            self._stats.set_value("clusterd/forgotten", forgotten)
