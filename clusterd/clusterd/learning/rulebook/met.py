"""What crawls have met on pages that were cut from a host's evidence log: pages that watch its rules are judged by it.

Such a page agrees where its crawl knew what it shows. Where all that is left of the pages before is the log, what was
cut would be new once more, and would be waited for. So of each page that leaves it 32 bits of its content stay, and as
many of its URL, for the crawls of which pages were cut last. Of a crawl that came before these it is not known any more
what it met.

Cost: 8 bytes a page and crawl, in the store and in the worker that learns the host; a look-up takes some µs. Of a
million pages one new content in two thousand is taken for a known one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_crawler.urls import hash_of

from clusterd.learning.contract import Page

#: Bytes of it that are kept of a host; of one crawl all.
BYTES: Final = 32 * 1024 * 1024
#: Bits that stay of a content, and of the hash of a URL.
MASK: Final = 0xFFFF_FFFF
_PACKED: Final = np.dtype("<u4")
#: Page → what tells it from others, also where it was told that it watches a rule no more.
_FETCH: Final = attrgetter("url", "crawl", "fetched_at")


class Met:
    """What is known of one host, or of the hosts of a group."""

    def __init__(self) -> None:
        #: Crawl → what is kept of its pages, ascending.
        self._of: dict[str, npt.NDArray[np.uint32]] = {}
        self._forgotten: set[str] = set()

    def add(self, packed: Mapping[str, Sequence[bytes]]) -> None:
        """Take what the rule book keeps of a host (`RuleBook.met`)."""
        for crawl, parts in packed.items():
            if not all(parts):
                self._forgotten.add(crawl)
            before = self._of.get(crawl, np.empty(0, _PACKED))
            every = np.concatenate([before, *(np.frombuffer(part, _PACKED) for part in parts)])
            # (It sorts to count. Where it need not, NumPy 2.4 takes a hundred times as long.)
            self._of[crawl], _ = np.unique(every, return_counts=True)

    def has_cut(self, crawl: str, url: str) -> bool:
        """Return whether a crawl's page of a URL was cut."""
        return self.knows(crawl, hash_of(url))

    def knows(self, crawl: str, content: int) -> bool:
        """Return whether a crawl has met a content on a page that was cut."""
        of = self._of.get(crawl)
        if of is None:
            return False
        place = int(np.searchsorted(of, np.uint32(content & MASK)))
        return place < len(of) and int(of[place]) == content & MASK

    def has_met(self, content: int) -> bool:
        """Return whether some crawl has."""
        return any(self.knows(crawl, content) for crawl in self._of)

    def has_forgotten(self, crawl: str) -> bool:
        """Return whether it is not known any more what a crawl has met."""
        return crawl in self._forgotten


def cut_contents(whole: Iterable[Page], kept: Iterable[Page]) -> dict[str, bytes]:
    """Return, packed, the URLs and contents of the pages of a log that are not kept, for each crawl.

    What showed something on a page that watches a rule alone was met by no crawl: it speaks against that. What leads to
    another host shows its address (`arrivals`).
    """
    staying = set(map(_FETCH, kept))
    gone: dict[str, set[int]] = {}
    for page in whole:
        if (page.is_witness or page.target) and _FETCH(page) not in staying:
            of = gone.setdefault(page.crawl, set())
            of.add(hash_of(page.url) & MASK)
            if not page.explored:
                of.add((hash_of(page.target) if page.target else page.content) & MASK)
    return {crawl: np.array(sorted(met), _PACKED).tobytes() for crawl, met in gone.items()}
