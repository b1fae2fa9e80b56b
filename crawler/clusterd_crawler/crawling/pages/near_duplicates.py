"""What the spider hears of near-duplicates: a flag on the response where the verdict comes before the callback runs, a
signal in any case, and a number in the stats.

Pages are sent to the daemon a tenth of a second's together. Where all that is under way waits for its verdict, as the
one page that has the link to the next, nothing would join them in that time: then they are sent at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from scrapy.http import Response
from scrapy.statscollectors import StatsCollector
from scrapy.utils.asyncio import call_later

from clusterd_crawler import signals
from clusterd_crawler.crawling.pages.download_places import DownloadPlaces
from clusterd_crawler.crawling.pages.nearly_equal import NearlyEqual
from clusterd_crawler.crawling.pages.verdicts import Verdicts, is_near
from clusterd_crawler.verdict import Verdict

#: Seconds in which another request may have taken the place of a page that waits.
LOOK_SECONDS: Final = 0.01


class NearDuplicates:
    """For the loop's thread; ``hurry`` sends what waits to be sent."""

    def __init__(
        self,
        stats: StatsCollector,
        verdicts: Verdicts,
        places: DownloadPlaces,
        announce: Callable[..., None],
        hurry: Callable[[], None],
    ) -> None:
        self._stats = stats
        self._verdicts = verdicts
        self._places = places
        self._announce = announce
        self._hurry = hurry
        self._timer: Any = None
        self._nearly_equal = NearlyEqual(stats)

    async def flag(self, response: Response, answer: Awaitable[Verdict | None]) -> None:
        """Wait for a page's verdict, and flag its response where it says so."""
        with self._places.lent():
            if self._timer is None and self._all_wait():
                self._timer = call_later(LOOK_SECONDS, self._look)
            verdict = await answer
        if verdict is not None and is_near(verdict):
            response.flags.append("near_duplicate")

    def _look(self) -> None:
        self._timer = None
        if self._all_wait():
            self._hurry()

    def _all_wait(self) -> bool:
        return self._places.taken <= self._verdicts.waiting

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
        """End the look, and say at the end of the crawl which hosts may be writing something else into each answer."""
        if self._timer is not None:
            self._timer.cancel()
        self._nearly_equal.tell()
