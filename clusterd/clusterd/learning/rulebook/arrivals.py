"""Pages of a host's evidence as they are shown to its learner: each fetch once, redirects as what they lead to.

A redirect says that one URL is another, but not what is seen there. It waits for the page of its crawl to which it
leads, be it over further redirects, and is then shown before that page: it was asked for first, so that a page which
was fetched to watch a rule brings something new where nothing but its own redirect led to it. One that leads to no good
page of its crawl is never shown, nor one that says nothing of its URL (`redirecting`). Pages of other hosts do not
arrive: what leads there shows something of its own, named by that address. Log and order are the store's, so a learner
that is rebuilt is shown the same.

Cost: a dictionary entry a URL; of redirects that wait at most `WAITING`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from clusterd_crawler.urls import hash_of, host_of

from clusterd.learning.contract import WITNESSES, Page, State
from clusterd.learning.rulebook.redirecting import Redirecting

#: Most redirects that wait for a page; beyond it those are forgotten that have waited longest: some pages never come.
WAITING: Final = 10_000
#: Milliseconds, and how many times the longest that a crawl took so far, in which a page may be taken back. One that is
#: taken back later than `LATEST_MS` lengthens nothing: so late is one that was refused before the spider (`unread`).
SOON_MS: Final = 300
AS_LONG: Final = 1.5
LATEST_MS: Final = 20_000


class _Arrived(NamedTuple):
    """The last fetch of a URL."""

    at: int
    content: int
    crawl: str
    state: State

    def is_shown_by(self, crawl: str) -> bool:
        """Whether this crawl fetched it, and that says what it shows."""
        return self.crawl == crawl and self.state in WITNESSES


class Arrivals:
    """What has been shown of one host, or of one group."""

    def __init__(self, host: str = "") -> None:
        """Take the host of which alone pages arrive; "" where others do."""
        self._host = host
        #: By hash of the URL.
        self._last: dict[int, _Arrived] = {}
        #: Crawl and hash of what they lead to → redirects.
        self._waiting: dict[tuple[str, int], list[Page]] = {}
        self._waiting_count = 0
        self._redirecting = Redirecting()
        #: When the latest that came was fetched.
        self._latest = 0
        #: Milliseconds in which a crawl may take back a page, as the spider made nothing of it: as long as none did, 0.
        self._revocable = 0.0

    def __len__(self) -> int:
        return len(self._last)

    def content_of(self, url: str) -> int | None:
        """Return what a URL showed when it was fetched last, None where it was not, or brought nothing."""
        known = self._last.get(hash_of(url))
        return None if known is None or known.state == "failed" else known.content

    def has_failed(self, url: str, crawl: str) -> bool:
        """Return whether this crawl fetched a URL last, and got no page, or one that it took back."""
        known = self._last.get(hash_of(url))
        return known is not None and known.state == "failed" and known.crawl == crawl

    def taken_back(self, url: str, crawl: str, content: int) -> Page | None:
        """Return what says that a page of a crawl says nothing; None where that has shown something else since."""
        known = self._last.get(hash_of(url))
        if known is None or known.state != "good" or (known.crawl, known.content) != (crawl, content):
            return None
        return Page(url, content, fetched_at=known.at + 1, crawl=crawl, state="failed")

    def awaits(self, url: str, crawl: str) -> bool:
        """Whether a crawl's page of a URL has not come yet, and may: those of other hosts do not arrive."""
        known = self._last.get(hash_of(url))
        return (known is None or not known.is_shown_by(crawl)) and (not self._host or host_of(url) == self._host)

    def stands(self, page: Page, until: int, known_for: float) -> bool:
        """Whether a page is taken back no more, as far as crawls did that.

        ``until``: up to which fetch time (Unix ms) others were seen after it; ``known_for``: seconds since it came. How
        long crawls took is told by the pages that came meanwhile: where few do, nobody knows, and it is waited longest.
        """
        return until - page.fetched_at >= self._revocable or 1000 * known_for >= max(self._revocable, LATEST_MS)

    def fresh(self, pages: Iterable[Page]) -> Iterator[Page]:
        """Yield the pages that are new: not deliveries repeated, nor what comes after a later fetch of its URL.

        A redirect is a good page that has a ``target``, once it is known what it leads to.
        """
        for page in pages:
            for shown in self._led_here(page) if page.state != "redirected" else self._followed(page):
                if self._is_new(shown):
                    yield from self._redirecting.counting(shown)

    def _is_new(self, page: Page) -> bool:
        known = self._last.get(url := hash_of(page.url))
        if known is not None and known.at >= page.fetched_at:
            return False
        self._latest = max(self._latest, page.fetched_at)
        if page.state == "failed" and known is not None and known.is_shown_by(page.crawl):
            self._took_back(known, page)
        self._last[url] = _Arrived(page.fetched_at, page.content, sys.intern(page.crawl), page.state)
        return True

    def _took_back(self, known: _Arrived, gone: Page) -> None:
        if (gone.content, gone.fetched_at) == (known.content, known.at + 1):  # a wall's: no spider did (`taken_back`)
            return
        taken = self._latest - known.at
        self._revocable = max(self._revocable, SOON_MS + (AS_LONG * taken if taken <= LATEST_MS else 0.0))

    def _followed(self, page: Page) -> list[Page]:
        """Return a redirect as what it leads to, with those that led to it; nothing where that is not known yet."""
        if self._host and host_of(page.target) != self._host:
            return self._led_here(self._as_shown(page, "good", hash_of(page.target), page.fetched_at))
        target = self._last.get(hash_of(page.target))
        if target is not None and target.is_shown_by(page.crawl):
            return self._led_here(self._as_shown(page, target.state, target.content, target.at))
        if self._waiting_count >= WAITING:
            self._waiting_count -= len(self._waiting.pop(next(iter(self._waiting))))
        self._waiting.setdefault((page.crawl, hash_of(page.target)), []).append(page)
        self._waiting_count += 1
        return []

    def _led_here(self, page: Page) -> list[Page]:
        """Return a page behind the redirects that waited for it, and those that waited for these."""
        reached = [page]
        for arrived in reached if self._waiting and page.is_witness else ():
            led = self._waiting.pop((arrived.crawl, hash_of(arrived.url)), [])
            self._waiting_count -= len(led)
            reached += [self._as_shown(one, page.state, page.content, page.fetched_at) for one in led]
        return reached[::-1]

    def _as_shown(self, page: Page, state: State, content: int, at: int) -> Page:
        """Return a redirect as a page of this state and content, which was fetched at a time.

        Of one whose target came first it cannot be told whether that would have been fetched without it.
        """
        watches = at >= page.fetched_at or content == self.content_of(page.instead_of)
        return replace(page, content=content, state=state, explored=page.explored if watches else "")
