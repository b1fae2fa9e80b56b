"""Blocks of known pages as they arrive → the pages that this crawl may rest skips on.

Of use are pages of this crawl that another of its crawlers fetched (or that it fetched itself before it was resumed),
and, where a time within which a page counts is set, pages of any crawl that are recent enough. Blocks of hosts that the
crawl has not met yet are held as they are, so that a host costs nothing before it is met: at most `HELD_BYTES`, of more
the oldest are dropped, which costs fetches and loses nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from clusterd_crawler import fetches
from clusterd_crawler.fetches import Fetch

#: Bytes of blocks of hosts not met (40 bytes a page: 1.6 million pages).
HELD_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose pages a crawl takes as known."""

    crawl: str
    #: Seconds for which pages of other crawls count; None: only pages of this crawl do.
    within: float | None = None
    #: Whether pages of this crawl may have been fetched elsewhere or before.
    own: bool = False

    def since(self, now: int) -> int | None:
        """Return from which time on (Unix milliseconds) blocks are of use; None: a crawl of its own needs none."""
        if self.within is not None:
            return max(0, now - int(1000 * self.within))
        return 0 if self.own else None

    def takes(self, crawl: str, at: int, now: int) -> bool:
        """Whether a page of a crawl counts."""
        return self.own and crawl == self.crawl if self.within is None else now - at <= 1000 * self.within


class OthersPages:
    """For one thread at a time."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._held: OrderedDict[str, list[tuple[str, bytes]]] = OrderedDict()
        self._size = 0

    def arrived(self, key: bytes, block: bytes, met: bool, now: int) -> list[tuple[Fetch, bool]]:
        """Take a block; return its pages, each with whether it is of another crawl, where the host has been met.

        Raises `MessageError` where the block is none.
        """
        host, crawl = fetches.host_and_crawl(key)
        if not self._wanted.takes(crawl, fetches.latest(block), now):
            return []
        if met:
            return self._pages(crawl, block, now)
        self._held.setdefault(host, []).append((crawl, block))
        self._size += len(block)
        while self._size > HELD_BYTES:
            _, dropped = self._held.popitem(last=False)
            self._size -= sum(len(block) for _, block in dropped)
        return []

    def met(self, host: str) -> list[tuple[str, bytes]]:
        """Return the blocks held of a host, to be given to `arrived` one by one."""
        held = self._held.pop(host, [])
        self._size -= sum(len(block) for _, block in held)
        return held

    def _pages(self, crawl: str, block: bytes, now: int) -> list[tuple[Fetch, bool]]:
        other = crawl != self._wanted.crawl
        return [(page, other) for page in fetches.unpack(block) if self._wanted.takes(crawl, page.at, now)]
