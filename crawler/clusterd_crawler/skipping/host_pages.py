"""The pages that a crawl knows of a domain: what was fetched, and where its keys and names lead.

A broad crawl meets very many domains, each with a page or two. So what few of them need is made where it is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.skipping.bearers import NameTable
from clusterd_crawler.skipping.known_page import UNKNOWN, KnownPage, Plain, names_of
from clusterd_crawler.skipping.leading import Leading
from clusterd_crawler.skipping.rows import GAP, Rows
from clusterd_crawler.skipping.standing import Standing
from clusterd_crawler.skipping.walls import NO_WALLS, ROW, Walls
from clusterd_crawler.turn import IN_THREAD, Turn

#: Most keys of one domain that are known to be torn (rules with so many are long retired). Beyond it no key of the
#: domain justifies a skip until its rules change.
TORN_LIMIT: Final = 100_000


@dataclass(slots=True)
class HostPages:
    """What is known of a domain: its good pages, and where their keys and names lead."""

    names: NameTable | None = None
    #: URL → page.
    pages: dict[str, Plain] = field(default_factory=dict)
    #: Hash of a key → the page fetched last under it.
    keys: dict[int, Plain] = field(default_factory=dict)
    #: What its pages showed to this crawl → how many of them. (A dictionary of numbers is nothing to the garbage
    #: collector.)
    contents: dict[int, int] = field(default_factory=dict)
    leading: Leading | None = None
    standing: Standing | None = None
    #: Hash of a key's hash, a reader and a session → a page that was fetched for them, before others of the key were.
    read_before: dict[int, Plain] | None = None
    #: Hash of a key under all rules, those included that ask what the known page shows → such a page.
    shown: dict[int, Plain] | None = None
    #: Keys whose fetched pages differ: no skip rests on them, whatever the rule says.
    torn: set[int] | None = None
    #: What the pages noted last show, one after the other, and how many new keys these had.
    row: tuple[int, int] = (UNKNOWN, 0)
    walls: Walls = NO_WALLS
    #: The same of all keys, once there are pages enough.
    rows: Rows | None = None
    #: Hashes of rules and paths of keys under which pages of several paths were fetched by them that show the same.
    tried: set[int] | None = None

    def in_turns(self) -> Iterator[KnownPage]:
        """Yield all pages, and let other threads have the interpreter in between (else every 5 ms)."""
        turn = Turn(IN_THREAD)
        for page in self.pages.values():
            if turn.is_over:
                time.sleep(0)
                turn.begin()
            yield KnownPage(*page)

    def page(self, url: str) -> KnownPage | None:
        """Return the known page of a URL."""
        page = self.pages.get(url)
        return None if page is None else KnownPage(*page)

    def note(self, key: int, page: KnownPage) -> Plain:
        """Note a page under its key, and return what is kept of it; what others fetched before is known still."""
        before = self.keys.get(key)
        self._note_row(page.content, before is None)
        kept = self.pages[page.url] = page.plain()
        if before is not None:
            known = KnownPage(*before)
            if _tells_more(known, page):
                return kept
            if known.served[:2] != page.served[:2]:
                if self.read_before is None:
                    self.read_before = {}
                self.read_before[hash((key, *known.served[:2]))] = before
        self.keys[key] = kept
        return kept

    def _note_row(self, content: int, is_new: bool) -> None:
        self.row = (content, self.row[1] + is_new) if content == self.row[0] else (content, int(is_new))
        if self.row[1] == ROW and content != UNKNOWN:
            self._made_walls().show_in_row(content)

    def _made_walls(self) -> Walls:
        if self.walls is NO_WALLS:
            self.walls = Walls()
        return self.walls

    def count(self, content: int, before: KnownPage | None) -> None:
        """Count what a page shows; ``before``: the page as it was known, which may have been counted by that."""
        if before is None or before.earlier or before.content != content:
            self.contents[content] = self.contents.get(content, 0) + 1

    def note_shown(self, url: str, content: int, is_new: bool) -> tuple[int, Sequence[str]]:
        """Note what a page shows; return a wall, and the URLs that turned out to have shown it (`Rows.add`)."""
        if self.rows is None:
            if len(self.pages) < GAP:
                return content, ()
            self.rows = Rows()
        return self.rows.add(url, content, is_new)

    def known(self, key: int) -> KnownPage | None:
        """Return the page fetched last under a key, or the one that stands for what was redirected to it."""
        fetched = self.keys.get(key)
        if fetched is not None:
            return KnownPage(*fetched)
        return None if self.standing is None else self.standing.page(key, self.pages)

    def find(self, key: int, purpose: Purpose) -> KnownPage | None:
        """Return the page of a key that has served a purpose."""
        known = self.known(key)
        if known is None or known.serves(purpose):
            return known
        read_before = self.read_before or {}
        for reader in (purpose.reader, ANYONE.reader):
            before = read_before.get(hash((key, reader, purpose.session)))
            if before is not None and (known := KnownPage(*before)).serves(purpose) and known.url in self.pages:
                return known
        return None

    def show(self, key: int, kept: Plain) -> None:
        """Note a page under its key under all rules."""
        if self.shown is None:
            self.shown = {}
        self.shown[key] = kept

    def showing(self, key: int) -> KnownPage | None:
        """Return the page of a key under all rules, unless it was fetched again and shows something else."""
        known = None if self.shown is None else self.shown.get(key)
        page = None if known is None else KnownPage(*known)
        return page if page is not None and self.pages.get(page.url) is known else None

    def led_to(self, url: str) -> Iterator[str]:
        """Yield the URLs that were redirected to one."""
        return iter(()) if self.standing is None else self.standing.redirects.led_to(url)

    def is_redirected(self, url: str) -> bool:
        """Whether a URL was redirected."""
        return self.standing is not None and url in self.standing.redirects

    def bears(self, key: str, rules: Iterable[str]) -> bool:
        """Whether skips may rest on a key that these rules made, for all that its pages lead to."""
        return self.leading is None or self.leading.bears(key, rules)

    def is_tried(self, trial: int) -> bool:
        """Whether pages of several paths show the same under a rule and a path of a key (its hash)."""
        return self.tried is not None and trial in self.tried

    def tear(self, key: int, contents: Iterable[int]) -> bool:
        """Note a key whose pages differ, and what they show; whether some of that is no page's own from now on."""
        if self.torn is None:
            self.torn = set()
        if key in self.torn or len(self.torn) >= TORN_LIMIT:
            return False
        self.torn.add(key)
        return self._made_walls().tear(contents)

    def is_torn(self, key: int) -> bool:
        """Whether no skip may rest on a key: its pages differ, or so many do that not all are known."""
        return self.torn is not None and (key in self.torn or len(self.torn) >= TORN_LIMIT)

    def agree(self, tried: Iterable[int]) -> None:
        """Note paths of keys under which pages of several paths show the same."""
        if self.tried is None:
            self.tried = set()
        self.tried.update(tried)

    def bound(self, limit: int) -> None:
        """Forget marks of which there are more than pages may be known."""
        if self.read_before is not None and len(self.read_before) > limit:
            self.read_before = None
        if self.tried is not None and len(self.tried) > limit:
            self.tried = None
        if len(self.contents) > limit:  # of URLs that show something else each time that they are asked for
            self.contents.clear()

    def forget_keys(self) -> None:
        """Forget what the rules have made of the pages."""
        self.keys.clear()
        self.read_before = self.shown = self.torn = self.tried = None
        self.row = UNKNOWN, 0
        self.walls.forget_keys()
        if self.leading is not None:
            self.leading.clear()
        if self.standing is not None:
            self.standing.forget_keys()

    def forget(self, page: KnownPage, key: int, shown: int) -> None:
        """Forget a page, under its key and its key under all rules."""
        kept = self.pages.pop(page.url)
        _drop(self.keys, key, kept)
        _drop(self.read_before, hash((key, *page.served[:2])), kept)
        _drop(self.shown, shown, kept)
        if self.names is not None:
            self.names.forget(page.url, names_of(page.names))
        self._forget_content(page)
        if self.leading is not None:
            self.leading.led.pop(page.url, None)

    def _forget_content(self, page: KnownPage) -> None:
        """Forget what a page showed, unless other pages show it, too: it is nothing new where it comes again."""
        if not page.earlier and page.content in self.contents:
            self.contents[page.content] -= 1
            if not self.contents[page.content]:
                del self.contents[page.content]


def _tells_more(known: KnownPage, page: KnownPage) -> bool:
    """Whether the page of a key answers sooner than one of which nobody knows what it shows.

    Such a one, as of Scrapy's HTTP cache, would hide that the next page of the key shows something else than it does.
    """
    return page.content == UNKNOWN != known.content and known.url != page.url and known.serves(page.purpose)


def _drop(kept: dict[int, Plain] | None, key: int, page: Plain) -> None:
    """Take a page out of what is kept, where no other stands there by now."""
    if kept and kept.get(key) is page:
        del kept[key]
