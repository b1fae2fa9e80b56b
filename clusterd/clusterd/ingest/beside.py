"""What archives hold beside pages, as far as rules are to hear of it: as a crawl would have told it.

A file that came where a page might have been speaks against what would take its URL for a page's; of a URL that ends as
files do nothing is told, unless a redirect has led there. A redirect says that its URL shows what another does. Both
become messages; neither is a document of the store. What is wrong with such a record is nobody's loss: it is passed
over, as it was before.

A page that sends its reader on (``<meta http-equiv="refresh">``) is a redirect as well, as it is to Scrapy. An archive
may know nothing else of it, so it is kept as a document; but it speaks for no rule, or all that say "one moment" would
be one page.
"""

from __future__ import annotations

from typing import Final

from clusterd_crawler import text
from clusterd_crawler.message import File, Redirect, may_speak_of
from clusterd_crawler.page import content_identity
from clusterd_crawler.skipping.endings import ending
from clusterd_crawler.skipping.redirects import leads_to
from clusterd_crawler.urls import canonical, canonical_if_any, is_text
from w3lib.html import get_base_url, get_meta_refresh

from clusterd.ingest.raw import RawPage

#: Most targets of redirects that end as files do, and are remembered for that.
LIMIT: Final = 100_000
#: Bytes in which Scrapy looks for a refresh, and the seconds from which on it takes it for none.
HEAD: Final = 4096
LATE: Final = 100


class Beside:
    """Of one run: what was answered that is no page. Times are Unix milliseconds, 0 where none is known."""

    def __init__(self) -> None:
        self._led_to: set[int] = set()

    def redirect(self, url: str, location: str, at: int) -> Redirect | None:
        """Return what is told of a redirect; None where it leads to no page of the web."""
        url, target = url.partition("#")[0], leads_to(url, location) if location else None
        if target is None or not (_is_told(url) and _is_told(target)):
            return None
        if ending(target) and len(self._led_to) < LIMIT:
            self._led_to.add(hash(target))
        return Redirect(url, at, target)

    def refresh(self, page: RawPage, at: int) -> Redirect | None:
        """Return what is told of a page of markup that sends its reader on to another, and came at a time."""
        head = (page.body or b"")[:HEAD]
        if b"refresh" not in head.lower() or not text.is_markup(page.content_type, head):
            return None
        shown = text.utf8(head, page.content_type).decode("utf-8", "replace")
        try:
            delay, target = get_meta_refresh(shown, get_base_url(shown, page.url), "utf-8")
        except ValueError:  # ``url=http://[``
            return None
        told = self.redirect(page.url, target, at) if target and delay is not None and delay < LATE else None
        return None if told is None or canonical(told.target) == canonical(told.url) else told

    def may_tell_of(self, url: str) -> bool:
        """Whether rules are to hear of a file at a URL."""
        url = url.partition("#")[0]
        return _is_told(url) and (not ending(url) or hash(url) in self._led_to)

    def file(self, url: str, body: bytes, at: int) -> File:
        """Return what is told of a file."""
        return File(url.partition("#")[0], at, content_identity(body))


def _is_told(url: str) -> bool:
    return may_speak_of(url) and is_text(url) and bool(canonical_if_any(url))
