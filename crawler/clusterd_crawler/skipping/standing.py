"""Which page stands for the key of URLs that were redirected to it: what it shows, they do (`redirects` has where to).

A site that sends who asks too often to some page for a while says nothing of what its URLs show: then many keys lead
there, each with a few URLs, where few keys with many do to a log-in page.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from clusterd_crawler.skipping.known_page import UNKNOWN, KnownPage, Plain
from clusterd_crawler.skipping.redirects import Redirects

#: URLs of a key that were redirected to one content before it is taken for the key's, with fewer than one for as many
#: that were redirected to others; and as many as the root of all URLs that were redirected to that content.
ALIKE: Final = 10
#: Most contents to which it is known which URLs of a domain led: a URL that is asked for again and again may lead to
#: another each time. Of more all are noted anew, which costs fetches and loses nothing.
LED_LIMIT: Final = 200_000


class Standing:
    """Of one domain: its redirects, and the pages that stand for keys by them."""

    def __init__(self) -> None:
        self.redirects = Redirects()
        #: Hash of a key → the page to which a URL of it was redirected last.
        self._pages: dict[int, Plain] = {}
        #: Hash of a key → its URLs that were redirected; with that of what is shown → those to that; and of all keys.
        self._led_from: dict[int, set[str]] = {}
        self._led_here: dict[int, set[str]] = {}
        self.led: dict[int | str, set[str]] = {}

    def note(self, key: int, url: str, page: KnownPage) -> None:
        """Note a URL of a key, made by ``page.applied``, that was redirected to a page."""
        if len(self.led) >= LED_LIMIT:
            self.forget_keys()
        shown = _shown(page)
        self.led.setdefault(shown, set()).add(url)
        if page.applied:
            self._led_from.setdefault(key, set()).add(url)
            self._led_here.setdefault(hash((key, shown)), set()).add(url)
            self._pages[key] = page.plain()

    def page(self, key: int, known: Container[str]) -> KnownPage | None:
        """Return the page that stands for a key; None where it is not among the URLs of known pages any more."""
        plain = self._pages.get(key)
        page = None if plain is None else KnownPage(*plain)
        if page is None or page.url not in known:  # it may have failed since
            return None
        alike = len(self._led_here.get(hash((key, _shown(page))), ()))
        others = len(self._led_from[key]) - alike
        many = alike >= ALIKE and alike * alike >= len(self.led[_shown(page)])
        return page if many and others * ALIKE < alike else None

    def forget_keys(self) -> None:
        """Forget all but the redirects: rules have changed."""
        for led in (self._pages, self._led_from, self._led_here, self.led):
            led.clear()


def _shown(page: KnownPage) -> int | str:
    return page.url if page.content == UNKNOWN else page.content
