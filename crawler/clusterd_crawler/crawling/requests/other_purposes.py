"""Requests that rules would skip, and that are sent since the known pages were fetched for another purpose.

Where nearly all are, as each carries a number of its own, or a middleware writes the time into each, nothing is saved
whatever rules are learned, and nobody would know why. So it is said, with what differs.
"""

from __future__ import annotations

import logging
from typing import Final

from scrapy import Request
from scrapy.statscollectors import StatsCollector

from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.purposes import Purposes

logger = logging.getLogger(__name__)

#: Such requests after which that is said, where no more were skipped.
MANY: Final = 100


class OtherPurposes:
    """For the loop's thread."""

    def __init__(self, stats: StatsCollector, decisions: Decisions, purposes: Purposes) -> None:
        self._stats = stats
        self._decisions = decisions
        self._purposes = purposes
        #: How many there were so far: a project may keep no stats (``STATS_CLASS``).
        self._sent = 0
        self._said = False

    def note(self, request: Request, key: str) -> None:
        """Note a request that is sent, to whose key a rule has led."""
        known = self._decisions.known(request.url, key)
        if known is None or known.earlier or known.url == request.url.partition("#")[0]:
            return
        if known.serves(self._purposes.noted(request)):
            return
        self._stats.inc_value("clusterd/other_purpose")
        self._sent += 1
        if not self._said and self._sent >= max(MANY, self._stats.get_value("clusterd/skipped", 0)):
            self._said = True
            logger.info(
                "%d requests that rules would skip were sent, as the known pages were fetched for another purpose. "
                "The last is %.500s, beside %.500s; what differs: %s (docs/rules.md)",
                self._sent,
                request.url,
                known.url,
                self._purposes.difference(request, known.purpose),
            )
