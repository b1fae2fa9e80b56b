"""Requests that are fetched although a rule would skip them: what was decided once holds until the page comes.

A request is decided about when it is scheduled, when it is sent, and each time it has waited for another of its key.
Which skips are tried depends on how many were (`renaming`, `resting`), so a second decision would take back the first.
"""

from __future__ import annotations

import time
from typing import Final

from clusterd_crawler.crawling.remembered import Remembered
from clusterd_crawler.skipping.skip import Skip

#: Seconds after an explored page in which the spider does not end, so that a rule that the page contradicts is
#: withdrawn while what it kept out can still be fetched.
RECENT_SECONDS: Final = 3.0


class Explored:
    """For the loop's thread. URLs may have a fragment."""

    def __init__(self) -> None:
        self._skips: Remembered[Skip] = Remembered()
        #: When the last one was noted or sent.
        self._last = float("-inf")

    def __contains__(self, url: str) -> bool:
        return url.partition("#")[0] in self._skips

    def note(self, url: str, skip: Skip) -> bool:
        """Note the skip in whose place a URL is fetched; return whether it is noted for the first time."""
        self.go_on()
        url = url.partition("#")[0]
        if url in self._skips:
            return False
        self._skips.remember(url, skip)
        return True

    def go_on(self) -> None:
        """Note that one is on its way."""
        self._last = time.monotonic()

    def pop(self, url: str) -> Skip | None:
        """Return the skip in whose place a page was fetched, and forget it."""
        return self._skips.pop(url.partition("#")[0], None)

    def recent(self, revocable: float) -> bool:
        """Whether one was on its way just now; ``revocable``: seconds in which its page may yet be taken back."""
        return time.monotonic() - self._last < RECENT_SECONDS + revocable
