"""Pages of several crawls beside each other: what a later crawl has fetched anew, and what it has not come to yet.

A page that changed between two crawls is no other page than its duplicate, of which the learner still has what the
crawl before showed; and a crawl that skips the duplicate never fetches it again. So pages are only compared that one
crawl has seen, both of them. What a crawl has not fetched yet, but other pages that showed the same content before, is
taken for what these show now: that they show the same is what was seen of them, and stays so until one of them is
fetched and shows something else. Where these have come to differ, nothing is known of it.

Both hold for pages that agree and for pages that differ: to count the ones across crawls and not the others would make
rules of what matters. On a host that one crawl alone has fetched there is nothing to do.

Cost: 8 bytes a page; one pass over the pages when a crawl begins, and at each look while pages of several are there.
(Where more than `CRAWLS` go on at a time, one of them begins anew with nearly each page: so it is a pass by NumPy.)
"""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Rows

#: Crawls that are told apart, one bit each; then the oldest is forgotten.
CRAWLS: Final = 62
#: What became of a content that the latest crawl has found changed into several.
SEVERAL: Final = -1
#: What became of one that it has not met.
UNKNOWN: Final = -2


def seen_beside(seen: Rows, others: Rows) -> Flags:
    """Say which rows a crawl has seen that has seen one of the others, too, given which crawls have seen each."""
    found: Flags = (seen & np.bitwise_or.reduce(others)) != 0
    return found


class Crawls:
    """Which crawls have seen each row, and what became in the latest of the contents that were known before."""

    def __init__(self) -> None:
        #: Crawl → its bit: the later it began, the higher.
        self._bits: dict[str, int] = {}
        self._latest = 0
        self._seen = array("q")
        self._became: dict[int, int] = {}
        self._some_taken_back = False

    def begin(self, crawl: str, contents: array[int]) -> int:
        """Return a crawl's bit; where it is new, write into the contents what the one before has shown of them."""
        bit = self._bits.get(crawl)
        if bit is None:
            self._settle(contents)
            bit = self._bits[crawl] = self._latest = self._free_bit()
        return bit

    def first(self, bit: int) -> None:
        """Note that a crawl fetched a new row."""
        self._seen.append(bit)

    def again(self, row: int, bit: int, before: int, now: int) -> None:
        """Note that a crawl fetched a row again, which showed one content before and shows another, or the same."""
        seen = self._seen[row]
        if seen and bit == self._latest and not seen & bit:
            self._became[before] = now if self._became.get(before, now) == now else SEVERAL
        self._seen[row] = seen | bit

    def take_back(self, row: int) -> None:
        """Note that what was said of a row was wrong: nothing is known of it until it is fetched again."""
        self._seen[row] = 0
        self._some_taken_back = True

    def present(self, contents: Rows) -> tuple[Rows, Rows | None]:
        """Return what each row shows now, and which crawls have seen it; None where one has seen them all."""
        if len(self._bits) < 2 and not self._some_taken_back:
            return contents, None
        contents, seen = self._followed(contents)
        return contents, None if np.bitwise_and.reduce(seen) else seen

    def _followed(self, contents: Rows) -> tuple[Rows, Rows]:
        """Return what each row shows, and who has seen it, if what became of a content holds for all that showed it."""
        seen = np.array(self._seen, np.int64)
        if not self._became:
            return contents, seen
        known = np.fromiter(self._became.keys(), np.int64, len(self._became))
        # (The content with the highest number may be one that no row shows any more.)
        became = np.full(max(int(contents.max(initial=0)), int(known.max())) + 1, UNKNOWN, np.int64)
        became[known] = np.fromiter(self._became.values(), np.int64, len(self._became))
        # What has been seen by none, as its like had come to differ, follows none of them.
        now = np.where((seen & self._latest != 0) | (seen == 0), UNKNOWN, became[contents])
        seen[now == SEVERAL] = 0
        seen[now >= 0] |= self._latest
        return np.where(now >= 0, now, contents), seen

    def _settle(self, contents: array[int]) -> None:
        if self._became:
            now, seen = self._followed(np.array(contents, np.int64))
            np.frombuffer(contents, np.int64)[:] = now
            np.frombuffer(self._seen, np.int64)[:] = seen
            self._became.clear()

    def _free_bit(self) -> int:
        if len(self._bits) < CRAWLS:
            return 1 << len(self._bits)
        # All move down by one, since the highest bit stands for the crawl that began last (`agreement.grouped`).
        del self._bits[next(iter(self._bits))]
        self._bits = {crawl: bit >> 1 for crawl, bit in self._bits.items()}
        if self._seen:
            np.frombuffer(self._seen, np.int64)[:] >>= 1
        return 1 << (CRAWLS - 1)
