"""Pages of the crawl → sketches → messages → publisher.

A page of the usual size is sketched in the loop's thread: that takes .2 ms, during which another thread would hold the
interpreter's lock anyway, and the two switches of threads cost as much again. Large pages, and those that need a
parser, are sketched in a thread of their own, by native code that lets go of the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from scrapy import Request
from scrapy.http import HtmlResponse, Response

from clusterd_crawler.core import compiled
from clusterd_crawler.errors import ClusterdError, WrongInput
from clusterd_crawler.message import Failure, File, Message, Redirect, SkipReport, encode
from clusterd_crawler.page import by_whole, content_identity, sketch_page
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.spool import Entry
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import PROFILES, SHORT, Name
from clusterd_crawler.skipping.endings import ending
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.text import NeedsParser, NotText

logger = logging.getLogger(__name__)

#: Bytes of a page up to which it is sketched at once: .7 ms. To work on it in another thread native code would keep the
#: interpreter's lock all the same (``core/lock.h``).
AT_ONCE: Final = 128 * 1024
#: Seconds after which no further page is begun at once: sixteen pages take 2 ms, where nothing else is in the way.
NOW_SECONDS: Final = 0.003

#: Bytes of a page beyond which the short profile, which keeps every shingle, sketches only the beginning: a shingle
#: takes at least 2 bytes of text and 5 of each of two streams, so that a message stays below 0.8 MB.
SHORT_BYTES: Final = 150_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What the crawl keeps of a page."""

    names: tuple[Name, ...]
    #: Identity of what it shows, by which pages are judged to be equal.
    content: int
    #: Not a soft error.
    good: bool


@dataclass(slots=True, eq=False)
class Page:
    """A page as it was fetched: its URL without fragment, and when (Unix milliseconds)."""

    url: str
    at: int
    request: Request
    response: Response
    explored: Skip | None = None
    purpose: Purpose = ANYONE
    #: What it shows, once it is sketched, and whether the spider has been given it, and broke off (`unread`).
    seen: Seen | None = None
    read: bool = False
    broken: bool = False

    @property
    def is_file(self) -> bool:
        """Whether what came is no page."""
        return not isinstance(self.response, HtmlResponse)

    @property
    def is_told(self) -> bool:
        """Whether rules are to hear of it: not of a file whose URL says that it is one, if nothing says otherwise."""
        is_led_to = "redirect_urls" in self.request.meta
        return not self.is_file or is_led_to or self.explored is not None or not ending(self.url)


#: Of a page from the HTTP cache, which was sketched when it was fetched.
CACHED: Final = Seen((), 0, True)

#: What came of a page: why it cannot be sketched, if it cannot.
Outcome = Seen | ClusterdError


class Reporter:
    """Writes the crawl's messages. ``publisher`` is set when the crawl opens."""

    publisher: Publisher

    def __init__(self, settings: Settings, crawl: str) -> None:
        self._profile = next(profile for profile in PROFILES.values() if profile.name == settings.profile)
        self._most = min(settings.max_page_bytes, SHORT_BYTES) if self._profile is SHORT else settings.max_page_bytes
        #: Pages of which only the beginning was sketched.
        self.shortened = 0
        self._sweep = settings.sweep
        self._crawl = crawl

    def sketch(self, pages: Iterable[Page]) -> list[Outcome]:
        """Sketch pages and publish them, with what `sketch_now` left before; in any thread."""
        entries: list[Entry] = []
        outcomes = [self._sketched(page, entries) for page in pages]
        self.publisher.offer_together(entries)
        return outcomes

    def sketch_now(self, pages: Iterable[Page]) -> list[Outcome | None]:
        """Do the same where that takes no time to speak of; None for a page that another thread is to sketch.

        That are also the pages that are left after `NOW_SECONDS`, on a machine that is slow or busy at this moment.
        """
        entries: list[Entry] = []
        until = perf_counter() + NOW_SECONDS
        outcomes = [self._sketched_now(page, entries) if perf_counter() < until else None for page in pages]
        if len(outcomes) == len(entries) == 1:
            self.publisher.offer(*entries[0])
        else:
            self.publisher.offer_together(entries, more=None in outcomes)
        return outcomes

    def _sketched_now(self, page: Page, entries: list[Entry]) -> Outcome | None:
        body = page.response.body
        if len(body) > AT_ONCE or not (page.is_file or self._is_quick(body)):
            return None
        try:
            return self._sketched(page, entries, parse=False)
        except NeedsParser:
            return None

    def _is_quick(self, body: bytes) -> bool:
        # tables for another script take .5 ms for each 256 characters, of which Chinese has 82
        return compiled.CORE is not None and bool(compiled.CORE.at_hand(body))

    def _sketched(self, page: Page, entries: list[Entry], *, parse: bool = True) -> Outcome:
        """Sketch one page; its message is added to the entries. `NeedsParser` where it needs one."""
        try:
            message, outcome = self._filed(page) if page.is_file else self._shown(page, parse)
            entries.append((page.url.encode(), encode(message)))
        except NeedsParser:
            raise
        except ClusterdError as error:
            return error
        except Exception as error:
            logger.exception("A page could not be sketched; the crawl goes on: %s", page.url)
            return WrongInput(f"{page.url}: {type(error).__name__}: {error}")
        self.shortened += not isinstance(message, File) and len(page.response.body) > self._most
        return outcome

    def _shown(self, page: Page, parse: bool) -> tuple[Message, Outcome]:
        """Return what is said of a page: that it is a file, where it cannot be sketched as its bytes are no text."""
        try:
            return self._sketch(page, parse)
        except NotText as error:  # sent with the header of a page, as scripts do
            return self._filed(page)[0], error

    def _filed(self, page: Page) -> tuple[Message, Seen]:
        """Return what is said of a file: only that it is something else matters, where a rule says what it shows."""
        rule, known = _watched(page.explored)
        content = content_identity(page.response.body)
        return File(page.url, page.at, content, self._crawl, rule, known), Seen((), content, False)

    def _sketch(self, page: Page, parse: bool) -> tuple[Message, Seen]:
        response = page.response
        whole = response.body
        body = whole[: self._most]
        content_type = response.headers.get("Content-Type")
        rule, known = _watched(page.explored)
        sketch = sketch_page(
            page.url,
            body,
            None if content_type is None else content_type.decode("latin-1"),
            profile=self._profile,
            fetched_at=page.at,
            status=response.status,
            crawl=self._crawl,
            sweep=self._sweep,
            explored=rule,
            instead_of=known,
            wants_verdict=True,
            purpose=page.purpose,
            parse=parse,
        )
        if len(whole) > len(body):
            sketch = by_whole(sketch, content_identity(whole))
        return sketch, Seen(sketch.names, sketch.showing(sketch.main.text), not sketch.soft_error)

    def report(self, message: SkipReport | Failure | Redirect) -> None:
        """Publish what is no page; small, and done at once."""
        try:
            self.publisher.offer(message.url.encode(), encode(message))
        except (ClusterdError, UnicodeEncodeError) as error:
            logger.debug("Not reported: %s", error)

    def failed(self, url: str, at: int, status: int, reason: str) -> None:
        """Publish that a fetch has brought no page that may justify a skip."""
        self.report(Failure(url, at, status, reason, self._crawl))

    def redirected(self, url: str, at: int, target: str, explored: Skip | None) -> None:
        """Publish what a URL was redirected to; ``explored``: the skip in whose place it was asked for."""
        rule, known = _watched(explored)
        self.report(Redirect(url, at, target, self._crawl, rule, known))


def _watched(explored: Skip | None) -> tuple[str, str]:
    """Return the rule that a fetch is to watch, and the page that the skip would have rested on."""
    return ("", "") if explored is None else (explored.rule, explored.known_url)
