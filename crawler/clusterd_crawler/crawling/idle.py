"""A spider that has nothing to do: held open while it must be, and ended as soon as nothing holds it.

Scrapy looks for what there is to do when a request is done, and every five seconds besides. One that was told not to
end for three seconds would end up to five seconds later than it could.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from scrapy.exceptions import DontCloseSpider
from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Seconds between two looks whether anything still holds the spider.
LOOK_SECONDS: Final = 0.1


def look_now(crawler: Crawler) -> None:
    """Have Scrapy look for the next request, or whether its spider may end, before it would by itself."""
    slot = getattr(crawler.engine, "_slot", None)
    if slot is not None:
        slot.nextcall.schedule()


class HeldOpen:
    """For the loop's thread."""

    def __init__(self, crawler: Crawler, is_held: Callable[[], bool]) -> None:
        self._crawler = crawler
        self._is_held = is_held
        self._looks = False

    def hold(self) -> None:
        """Raise `DontCloseSpider`, and have Scrapy ask again once nothing holds the spider any more."""
        if not self._looks:
            self._looks = True
            call_later(LOOK_SECONDS, self._look)
        raise DontCloseSpider

    def _look(self) -> None:
        if self._is_held():
            call_later(LOOK_SECONDS, self._look)
        else:
            self._looks = False
            look_now(self._crawler)
