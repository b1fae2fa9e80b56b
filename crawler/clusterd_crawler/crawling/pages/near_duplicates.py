"""What the spider hears of near-duplicates: a flag on the response where the verdict comes before the callback runs, a
signal in any case, and a number in the stats."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from scrapy.http import Response
from scrapy.statscollectors import StatsCollector

from clusterd_crawler import signals
from clusterd_crawler.crawling.pages.download_places import DownloadPlaces
from clusterd_crawler.crawling.pages.nearly_equal import NearlyEqual
from clusterd_crawler.crawling.pages.verdicts import Verdicts, is_near
from clusterd_crawler.verdict import Verdict


class NearDuplicates:
    """For the loop's thread."""

    def __init__(
        self, stats: StatsCollector, verdicts: Verdicts, places: DownloadPlaces, announce: Callable[..., None]
    ) -> None:
        self._stats = stats
        self._verdicts = verdicts
        self._places = places
        self._announce = announce
        self._nearly_equal = NearlyEqual(stats)

    async def flag(self, response: Response, answer: Awaitable[Verdict | None]) -> None:
        """Wait for a page's verdict, and flag its response where it says so."""
        with self._places.lent():
            verdict = await answer
        if verdict is not None and is_near(verdict):
            response.flags.append("near_duplicate")

    def answered(self, verdicts: Iterable[Verdict]) -> None:
        """Take verdicts from the daemon. Each page of this crawler counts once; the others of its crawl hear of it."""
        for verdict in verdicts:
            if not self._verdicts.arrived(verdict):
                continue
            self._nearly_equal.note(verdict)
            if is_near(verdict):
                self._stats.inc_value("clusterd/near_duplicates")
                arguments: dict[str, Any] = {
                    "response_url": verdict.url,
                    "cluster": verdict.cluster,
                    "match": verdict.match,
                    "resemblance": verdict.resemblance,
                }
                self._announce(signals.near_duplicate, **arguments)

    def close(self) -> None:
        """Say at the end of the crawl which hosts may be writing something else into each answer."""
        self._nearly_equal.tell()
