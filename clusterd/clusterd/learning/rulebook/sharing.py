"""Pages of hosts with live rules, or mirrored by some → the crawls that share what they know (`topics.KNOWN`).

Done by the worker that holds the host's lease, so that a page is published once, in blocks, a second or so after it was
applied: the whole evidence when the host's first rule goes live, from then on what is new. Up to where is noted in the
book, so that another worker goes on from there (and repeats the last minute, for pages that came late). Fetches that
failed are shared like pages: what failed for one crawler justifies no skip for any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from clusterd_crawler import topics
from clusterd_crawler.fetches import BLOCK, Fetch, key, pack

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.recall import Recall
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.reservoir import latest
from clusterd.portions import portions

#: `Transport.publish`: topic, key, value.
Publish = Callable[[str, bytes, bytes], None]

#: Milliseconds of fetch time before the noted one that are published again by the worker that takes a host over.
LATE_MS: Final = 60_000


def share(book: RuleBook, publish: Publish, host: str, recall: Recall, now: int) -> int:
    """Publish the pages of a host that are new to the crawls; return how many."""
    pages, recall.fresh = recall.fresh, []
    if not recall.is_spoken_of:
        recall.shared = False
        return 0
    if not recall.shared:
        since = book.shared(host) - LATE_MS
        known = latest(book.evidence(host).pages)
        pages = [page for page in known if page.fetched_at > since and page.state != "redirected"]
    blocks = list(_blocks(host, pages))
    for named, block in blocks:
        publish(topics.KNOWN, named, pack(block))
    if pages:
        book.note_shared(host, min(now, max(page.fetched_at for page in pages)))
    recall.shared = True
    return sum(len(block) for _, block in blocks)


def _blocks(host: str, pages: Iterable[Page]) -> Iterable[tuple[bytes, Sequence[Fetch]]]:
    """Yield blocks of one crawl's pages each; a page of no crawl stands for nothing."""
    by_crawl: dict[str, list[Fetch]] = {}
    for page in pages:
        if page.crawl:
            good = page.state == "good"
            content, names = (page.content, page.names) if good else (0, ())
            fetch = Fetch(page.url, page.fetched_at, content, names, good, page.purpose)
            by_crawl.setdefault(page.crawl, []).append(fetch)
    for crawl, fetches in by_crawl.items():
        for block in portions(fetches, BLOCK):
            yield key(host, crawl), block
