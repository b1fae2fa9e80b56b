"""Hosts whose pages would be one but for a few words, as of a counter or a date: rules rest on equal texts.

Such a host looks like one without duplicates: nothing is learned, nothing skipped, and nobody would know why. So it is
said at the end of the crawl, with two pages to compare. Whether the few words are content, only their reader can tell.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from scrapy.statscollectors import StatsCollector

from clusterd_crawler.urls import host_of
from clusterd_crawler.verdict import Verdict

logger = logging.getLogger(__name__)

#: Fewest such pages of a host that are spoken of, and their least share of its pages: where one item in 25 shows a
#: counter, little or nothing is saved. (Of ten recorded crawls without such pages one has 1 %, and a small forum 8
#: pages; of gitweb, whose ages differ, all pairs that were found show one page.)
FEWEST: Final = 20
LEAST_SHARE: Final = 0.02
#: Most hosts that are counted, and that are spoken of: those with the most such pages.
HOSTS: Final = 10_000
TOLD: Final = 10


class NearlyEqual:
    """For the loop's thread."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        #: Host → pages that were answered, and those of them that are nearly equal to another, with two that are.
        self._pages: Counter[str] = Counter()
        self._nearly: Counter[str] = Counter()
        self._pairs: dict[str, tuple[str, str]] = {}

    def note(self, verdict: Verdict) -> None:
        """Take the verdict on a page of this crawler."""
        host = host_of(verdict.url)
        if host not in self._pages and len(self._pages) >= HOSTS:
            return
        self._pages[host] += 1
        if verdict.nearly and verdict.match is not None:
            self._stats.inc_value("clusterd/nearly_equal")
            self._nearly[host] += 1
            self._pairs.setdefault(host, (verdict.url, verdict.match))

    def tell(self) -> None:
        """Say of which hosts these are many."""
        many = [
            (host, count)
            for host, count in self._nearly.most_common()
            if count >= max(FEWEST, LEAST_SHARE * self._pages[host])
        ]
        for host, count in many[:TOLD]:
            logger.info(
                "%s: %d of %d pages differ a little from a page whose URL has other parameters, such as %s and %s: no "
                "rule brings these together. Where the words are no content, as a counter or the time, take them out, "
                "or see CLUSTERD_RULE_IDENTITY (docs/rules.md)",
                host,
                count,
                self._pages[host],
                *self._pairs[host],
            )
