"""Pages under the keys that the rules make of their URLs: what the pages of a key say of it, and of the rules.

Two pages of a key that show other texts tear it: no skip rests on it. Two that show the same are a trial that agreed.
What tears several keys is a log-in form or "slow down", shown in place of pages: no skip rests on a page that shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from clusterd_crawler.rule_language.keys import FAMILY
from clusterd_crawler.skipping.bearers import NameTable
from clusterd_crawler.skipping.exploring import Exploring
from clusterd_crawler.skipping.host_pages import HostPages
from clusterd_crawler.skipping.known_page import UNKNOWN, KnownPage, Plain, names_of
from clusterd_crawler.skipping.leading import Leading
from clusterd_crawler.skipping.renaming import path_of
from clusterd_crawler.skipping.rule_sets import RuleSets
from clusterd_crawler.skipping.standing import Standing


class Noting:
    """The pages of all domains, kept under the keys of the rules in use."""

    def __init__(self, sets: RuleSets, exploring: Exploring, explored: Counter[str], limit: int) -> None:
        self._sets = sets
        self._exploring = exploring
        self._explored = explored
        self._limit = limit
        self.hosts: dict[str, HostPages] = {}
        #: Ids of rules of which some key led on to something new.
        self.reopened: set[str] = set()
        #: How often a content turned out to be no page's own (`Walls.is_anyones`): skips may rest on pages of it.
        self.doubted = 0
        #: What is applied to many pages, once.
        self._applied: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, domain: str) -> HostPages:
        """Return the pages of a domain, of which there may be none yet."""
        if (held := self.hosts.get(domain)) is None:
            held = self.hosts[domain] = HostPages(self._names(domain))
        return held

    def _names(self, domain: str) -> NameTable | None:
        rules = self._sets.names(domain)
        return NameTable(rules) if rules else None

    def load(self, domain: str) -> None:
        """Note all known pages of a domain anew: its rules have changed."""
        held = self.hosts.get(domain)
        if held is None:
            return
        held.forget_keys()
        held.names = self._names(domain)
        self._applied.clear()
        for page in held.in_turns():
            noted = self.note(held, page)
            self.stand_for(held, noted, held.led_to(page.url))

    def note(self, held: HostPages, page: KnownPage, new: bool = False, again: bool = False) -> KnownPage:
        """Note a page under its keys, and return it with its rules.

        ``new``: it may speak against a rule in a way that is not known yet. ``again``: it was known before.
        """
        key, applied = self._sets.key(page.url)
        if page.applied != applied:
            page = page.under(self._applied.setdefault(applied, applied))
        hashed = hash(key)
        before = None if key.startswith(FAMILY) else held.known(hashed)
        if before is not None:
            self._compare(held, key, before, page, new)
        kept = held.note(hashed, page)
        further = before is not None
        if not again:  # told of by the daemon, or fetched by another crawler too, it counts as one page
            if held.leading is None and (further or key.startswith(FAMILY)):
                held.leading = Leading(self.reopened)
            if held.leading is not None:
                held.leading.fetched(page.url, key, applied, further)
        held.bound(self._limit)
        self._note_shown(held, page.url, page.content, kept)
        if held.names is not None:
            held.names.note(page.url, names_of(page.names))
        return page

    def tears(self, held: HostPages, page: KnownPage) -> bool:
        """Whether a page that is not noted yet shows something else than the one of its key."""
        key, applied = self._sets.key(page.url)
        before = None if key.startswith(FAMILY) else held.known(hash(key))
        return before is not None and before.url != page.url and self._differ(before, page.under(applied))

    def _compare(self, held: HostPages, key: str, before: KnownPage, page: KnownPage, new: bool) -> None:
        """Note what two pages of a key show."""
        hashed = hash(key)
        rules = (*before.applied, *page.applied)
        if self._differ(before, page):
            is_first = new and before.url != page.url and not held.is_torn(hashed)
            self.doubted += held.tear(hashed, (before.content, page.content))
            if is_first and not any(map(held.walls.is_anyones, (before.content, page.content))):
                self._differed(page, before)
        elif before.url != page.url:
            self._exploring.agreed(set(rules), page.url)
            if before.content == page.content:  # both may be unknown, or its rules go by no text
                held.walls.repeat(hashed, page.content)
            if path_of(before.url) != path_of(page.url):
                held.agree(hash((rule, path_of(key))) for rule in rules)

    def _differ(self, before: KnownPage, page: KnownPage) -> bool:
        """Whether two pages of a key speak against it: they show other texts, and its rules go by the text."""
        if UNKNOWN in {before.content, page.content} or before.content == page.content:
            return False
        return self._sets.go_by_text((*before.applied, *page.applied))

    def _differed(self, page: KnownPage, before: KnownPage) -> None:
        """Count a trial that differed of the rule that answers for the key of two pages."""
        if applied := (*page.applied, *before.applied):
            rule = self._sets.deciding(page.url, before.url, applied)
            if self._exploring.differed(rule, page.url, self._explored[rule]):
                self.reopened.add(rule)

    def redirected(self, held: HostPages, url: str, target: str) -> str:
        """Note a redirect; return where it leads in the end."""
        if held.standing is None:
            held.standing = Standing()
        held.standing.redirects.note(url, target)
        return held.standing.redirects.target(url)

    def stand_for(self, held: HostPages, page: KnownPage, led_to: Iterable[str]) -> None:
        """Let a page stand for the keys of what led to it, and where a rule asks for what it shows."""
        for url in led_to:
            key, applied = self._sets.key(url)
            if held.standing is not None:
                held.standing.note(hash(key), url, page.under(applied))
            self._note_shown(held, url, page.content, held.pages[page.url])

    def _note_shown(self, held: HostPages, url: str, content: int, kept: Plain) -> None:
        """Note a page under the key of a URL under all rules, where some rule asks what it shows, and it does."""
        if self._sets.any_asks and content != UNKNOWN:
            key, applied = self._sets.key_under_all(url)
            # Which page of a family answers is not known: what one of them shows says nothing of the others.
            if not key.startswith(FAMILY) and self._sets.allow(applied, content):
                held.show(hash(key), kept)

    def led(self, held: HostPages, url: str) -> None:
        """Note that a known page linked to something new."""
        if held.leading is None:
            held.leading = Leading(self.reopened)
        held.leading.led_on(url, *self._sets.key(url))

    def forget(self, domain: str, url: str) -> None:
        """Forget a page, where it is known; of a domain without pages nothing stays."""
        held = self.hosts.get(domain)
        if held is None:
            return
        if (page := held.page(url)) is not None:
            shown = hash(self._sets.key_under_all(url)[0]) if held.shown else 0
            held.forget(page, hash(self._sets.key(url)[0]), shown)
        if not held.pages:  # as where all that it has is a redirect to what failed
            del self.hosts[domain]
