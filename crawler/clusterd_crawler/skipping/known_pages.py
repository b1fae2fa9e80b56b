"""The pages that a crawl knows, by domain: what was fetched, and where its keys and names lead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.bearers import NameTable
from clusterd_crawler.skipping.leading import Leading
from clusterd_crawler.skipping.redirects import Redirects

#: Most keys of one domain that are known to be torn (rules with so many are long retired). Beyond it no key of the
#: domain justifies a skip until its rules change.
TORN_LIMIT: Final = 100_000
#: URLs of a key that were redirected to one content before it is taken for the key's, with fewer than one for as many
#: that were redirected to others; and as many as the root of all URLs that were redirected to that content. A site that
#: sends who asks too often to some page for a while says nothing of what its URLs show: then many keys lead there, each
#: with a few URLs, where few keys with many do to a log-in page.
ALIKE: Final = 10
#: Most contents to which it is known which URLs of a domain led: a URL that is asked for again and again may lead to
#: another each time. Of more all are noted anew, which costs fetches and loses nothing.
LED_LIMIT: Final = 200_000
#: Pages that are gone through before other threads get their turn (about 10 µs each).
AT_ONCE: Final = 50
#: A page's identity that is not known: it takes no part in telling whether the pages of a key agree.
UNKNOWN: Final = 0


@dataclass(slots=True)
class KnownPage:
    """A fetched page that may justify a skip."""

    url: str
    at: int
    content: int = UNKNOWN
    names: tuple[Name, ...] = ()
    #: Another crawl fetched it; this one has not.
    earlier: bool = False
    #: Ids of the rules applied to its URL, in order.
    applied: tuple[str, ...] = ()
    purpose: Purpose = ANYONE


@dataclass(slots=True)
class HostPages:
    """What is known of a host: its good pages, and where their keys and names lead."""

    pages: dict[str, KnownPage] = field(default_factory=dict)
    #: Hash of a key → the page fetched last under it.
    keys: dict[int, KnownPage] = field(default_factory=dict)
    #: Hash of a key's hash, a reader and a session → a page that was fetched for them, before others of the key were.
    read_before: dict[int, KnownPage] = field(default_factory=dict)
    #: Keys whose fetched pages differ: no skip rests on them, whatever the rule says.
    torn: set[int] = field(default_factory=set)
    #: Hash of a key under all rules, those included that ask what the known page shows → such a page.
    shown: dict[int, KnownPage] = field(default_factory=dict)
    names: NameTable | None = None
    #: Hashes of rules and paths of keys under which pages of several paths were fetched by them that show the same.
    tried: set[int] = field(default_factory=set)
    contents: set[int] = field(default_factory=set)
    leading: Leading = field(default_factory=Leading)
    redirects: Redirects = field(default_factory=Redirects)
    #: Hash of a key → the page to which a URL of it was redirected last.
    standing: dict[int, KnownPage] = field(default_factory=dict)
    #: Hash of a key → its URLs that were redirected; with that of what is shown → those to that; and of all keys.
    led_from: dict[int, set[str]] = field(default_factory=dict)
    led_here: dict[int, set[str]] = field(default_factory=dict)
    led: dict[int | str, set[str]] = field(default_factory=dict)

    def in_turns(self) -> Iterator[KnownPage]:
        """Yield all pages, and let other threads have the interpreter in between.

        A crawl's loop gives it away with each look at the network, and would wait 5 ms each time until it is back.
        """
        for number, page in enumerate(self.pages.values()):
            if number % AT_ONCE == 0:
                time.sleep(0)
            yield page

    def note(self, key: int, page: KnownPage) -> None:
        """Note a page under its key; what was fetched before for another purpose is known still."""
        before = self.keys.get(key)
        if before is not None and before.purpose[:2] != page.purpose[:2]:
            self.read_before[hash((key, *before.purpose[:2]))] = before
        self.keys[key] = page

    def stand(self, key: int, url: str, page: KnownPage) -> None:
        """Note a URL of a key, made by ``page.applied``, that was redirected to a page."""
        if len(self.led) >= LED_LIMIT:
            self._forget_led()
        shown = _shown(page)
        self.led.setdefault(shown, set()).add(url)
        if page.applied:
            self.led_from.setdefault(key, set()).add(url)
            self.led_here.setdefault(hash((key, shown)), set()).add(url)
            self.standing[key] = page

    def known(self, key: int) -> KnownPage | None:
        """Return the page fetched last under a key, or the one that stands for what was redirected to it."""
        fetched = self.keys.get(key)
        page = self.standing.get(key) if fetched is None and self.standing else None
        if page is None or page.url not in self.pages:  # it may have failed since
            return fetched
        alike = len(self.led_here.get(hash((key, _shown(page))), ()))
        others = len(self.led_from[key]) - alike
        many = alike >= ALIKE and alike * alike >= len(self.led[_shown(page)])
        return page if many and others * ALIKE < alike else None

    def find(self, key: int, purpose: Purpose) -> KnownPage | None:
        """Return the page of a key that has served a purpose."""
        known = self.known(key)
        if known is None or known.purpose.serves(purpose):
            return known
        for reader in (purpose.reader, ANYONE.reader):
            known = self.read_before.get(hash((key, reader, purpose.session)))
            if known is not None and known.purpose.serves(purpose) and known.url in self.pages:
                return known
        return None

    def forget_keys(self) -> None:
        """Forget what the rules have made of the pages."""
        for made in (self.keys, self.read_before, self.torn, self.tried, self.shown, self.leading):
            made.clear()
        self._forget_led()

    def _forget_led(self) -> None:
        for led in (self.standing, self.led_from, self.led_here, self.led):
            led.clear()

    def tear(self, key: int) -> None:
        """Note a key whose pages differ."""
        if len(self.torn) < TORN_LIMIT:
            self.torn.add(key)

    def is_torn(self, key: int) -> bool:
        """Whether no skip may rest on a key: its pages differ, or so many do that not all are known."""
        return key in self.torn or len(self.torn) >= TORN_LIMIT


def _shown(page: KnownPage) -> int | str:
    return page.url if page.content == UNKNOWN else page.content
