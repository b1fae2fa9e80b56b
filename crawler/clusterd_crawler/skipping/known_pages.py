"""The crawl's decision, from memory: is the content of this URL known already? No round trip, bounded work.

A rule is used as a *key*: the linked URL is fetched unless a page with the same key has been, in this crawl (or within
the stated time), and was a good page. What a skip rests on is always named.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, Self, cast

from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.rule_language.keys import FAMILY
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.endings import may_show_file
from clusterd_crawler.skipping.exploring import Exploring
from clusterd_crawler.skipping.host_pages import HostPages
from clusterd_crawler.skipping.known_page import UNKNOWN, KnownPage, names_of, plain_names, plain_purpose
from clusterd_crawler.skipping.noting import Noting
from clusterd_crawler.skipping.renaming import path_of
from clusterd_crawler.skipping.rule_sets import RuleSets
from clusterd_crawler.skipping.skip import WITHIN, Skip
from clusterd_crawler.skipping.traps import Guard, TrapGuard
from clusterd_crawler.urls import canonical_if_any, host_of, registrable

#: Most URLs that a page stands for anew when it is fetched, or more leads to it (about 10 µs each); the rest as before.
LED_AT_ONCE: Final = 200


class KnownPages:
    """What a crawl, or a replay of one, decides by: rule sets and the keys of fetched pages, in memory.

    Methods take Unix milliseconds, so that a replay is repeatable.
    Hashes are Python's keyed ones (SipHash, 8 bytes) and tables are one per registrable domain, so that no host can
    choose URLs whose hash falls on another's. At most ``limit`` pages are remembered; the oldest are forgotten first,
    which costs fetches and loses nothing.
    """

    def __init__(
        self,
        *,
        explore: float = 0.02,
        within: float | None = None,
        limit: int = 2_000_000,
        guard: Guard = "report",
        crawl: str | None = None,
        seed: str = "",
    ) -> None:
        """Take the share of would-be skips that is fetched, and how old a known page may be (seconds; None: any).

        ``crawl``: rules that speak of another one are not used (None: all are). ``seed``: what says which would-be
        skips are fetched.
        """
        self._sets = RuleSets(crawl)
        #: Rule → how many would-be skips of it were explored.
        self.explored: Counter[str] = Counter()
        self._exploring = Exploring(explore, seed)
        self._noting = Noting(self._sets, self._exploring, self.explored, limit)
        self._hosts = self._noting.hosts
        self._within = None if within is None else within * 1000
        self._limit = limit
        self._remembered: OrderedDict[str, str] = OrderedDict()
        #: Families that bring nothing new: reported, slowed or cut by setting.
        self.traps = TrapGuard(guard)

    @classmethod
    def from_settings(cls, settings: Settings, crawl: str | None = None) -> Self:
        """Make the decider that the settings ask for, for this crawl."""
        guard = cast(Guard, settings.trap_guard)
        return cls(
            explore=settings.explore,
            within=settings.counts_for(),
            limit=settings.known_limit,
            guard=guard,
            crawl=crawl,
            seed=crawl or "",
        )

    def __len__(self) -> int:
        return len(self._remembered)

    def rules_of(self, host: str) -> RuleSet | None:
        """Return the rule set in use for a host."""
        return self._sets.of(host)

    def load(self, *sets: RuleSet) -> None:
        """Take the rule sets of hosts; an older version than the one in use is ignored.

        Cost: a pass over the known pages of each domain of theirs (5 µs each and more).
        """
        domains: dict[str, None] = {}
        for rules in sets:
            loaded = self._sets.load(rules)
            if loaded is not None:
                gone, used = loaded
                self._exploring.load(gone, used.rules, lambda url: self._sets.key(url)[1], self.explored)
                domains[registrable(used.host)] = None
        for domain in domains:
            self._noting.load(domain)

    def fetched(
        self,
        url: str,
        at: int,
        names: Iterable[Name] = (),
        good: bool = True,
        content: int = UNKNOWN,
        earlier: bool = False,
        watched: bool = False,
        purpose: Purpose = ANYONE,
        via: str = "",
        told: bool = False,
    ) -> None:
        """Note a page that was fetched; one that failed or was a soft error (``good`` false) justifies no skip.

        ``content`` is its identity where it is known: a key whose pages differ justifies no skip either.
        ``earlier``: another crawl fetched it. What is known of a later fetch stays, whatever an earlier one brought.
        ``watched``: the guard against traps has been told of it. ``via``: the page that linked to it.
        ``told``: others told of it (also of what this crawler fetched itself).
        """
        if not (url := canonical_if_any(url)):
            return
        self._exploring.came(url)
        domain = registrable(host_of(url))
        held = self._hosts.get(domain)
        before = None if held is None else held.page(url)
        if before is not None and before.at > at:
            return
        if not good:
            self._forget(domain, url)
            return
        held = self._noting.of(domain)
        walled: tuple[int, Sequence[str]] = UNKNOWN, ()
        if content != UNKNOWN and not earlier:  # In each crawl every content is new once.
            walled = self._shown(held, url, content, before, watched, via)
        told = told and (before is None or before.told)
        page = KnownPage(url, at, content, plain_names(names), earlier, served=plain_purpose(purpose), told=told)
        if before is not None and held.names is not None:
            held.names.forget(url, names_of(before.names))
        page = self._noting.note(held, page, new=not earlier, again=before is not None)
        self._noting.stand_for(held, page, islice(held.led_to(url), LED_AT_ONCE))
        self._remember(url, domain)
        self._take_back(domain, held, *walled)

    def _shown(
        self, held: HostPages, url: str, content: int, before: KnownPage | None, watched: bool, via: str
    ) -> tuple[int, Sequence[str]]:
        """Count a content that this crawl was shown; return the wall that has come to an end with it, and its URLs."""
        new = content not in held.contents
        # A URL that shows again what it showed, to another crawler or in another session, is no step into a trap.
        if not watched and (new or before is None or before.content != content):
            self.traps.fetched(url, content, new)
        if new and via:
            self.led(via)
        walled = held.note_shown(url, content, new)
        held.count(content, before)
        return walled

    def _remember(self, url: str, domain: str) -> None:
        """Keep a page as the latest one, in place of the oldest where there are too many."""
        self._remembered[url] = domain
        self._remembered.move_to_end(url)
        if len(self._remembered) > self._limit:
            oldest, home = next(iter(self._remembered.items()))
            self._forget(home, oldest)

    def _take_back(self, domain: str, held: HostPages, wall: int, walled: Sequence[str]) -> None:
        """Let the pages justify nothing that have shown a wall; what they tore is whole when rules change next."""
        for url in walled:
            page = held.page(url)
            if page is not None and page.content == wall:
                self._forget(domain, url)
                self._noting.doubted += 1
        if walled:
            held.count(wall, None)  # it stays known

    def differs(self, url: str, content: int) -> bool:
        """Whether the key of a URL has a page that shows something else, so that this content would tear it."""
        url = canonical_if_any(url)
        held = self._pages_of(url)
        return held is not None and self._noting.tears(held, KnownPage(url, 0, content))

    def redirected(self, url: str, target: str) -> None:
        """Note that a URL was redirected to another, before that is fetched or after."""
        url, target = canonical_if_any(url), canonical_if_any(target)
        if not url or not target:
            return
        self._exploring.came(url)
        domain = registrable(host_of(url))
        if registrable(host_of(target)) != domain:
            return
        held = self._noting.of(domain)
        page = held.page(self._noting.redirected(held, url, target))
        if page is not None:
            self._noting.stand_for(held, page, [url, *islice(held.led_to(url), LED_AT_ONCE)])

    def led(self, url: str) -> None:
        """Note a known page that linked to something new."""
        url = canonical_if_any(url)
        held = self._pages_of(url)
        if held is not None and url in held.pages:
            self._noting.led(held, url)

    def reopened(self) -> set[str]:
        """Return the ids of rules, and traps, of which fewer skips are right than was thought, since the last call."""
        reopened = self._noting.reopened | self.traps.over()
        self._noting.reopened.clear()
        return reopened

    @property
    def doubted(self) -> int:
        """How often so far it turned out of a content that skips may wrongly rest on pages of it."""
        return self._noting.doubted

    def look_once_more(self, kept: Counter[str]) -> set[str]:
        """Return the rules of which some of what they keep out, so many each, is explored when it is decided anew."""
        return self._exploring.look_once_more(kept, self.explored)

    def _pages_of(self, url: str) -> HostPages | None:
        """Return what is known of the domain of a URL (canonical, or "")."""
        return self._hosts.get(registrable(host_of(url))) if url else None

    def _forget(self, domain: str, url: str) -> None:
        self._remembered.pop(url, None)
        self._noting.forget(domain, url)

    def key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the URL's key and the ids of the rules that were applied, in order."""
        form = canonical_if_any(url)
        return self._sets.key(form) if form else (url, ())

    def resting_key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the same; no key for a URL that is unskipped, nor one whose pages differ or lead to what is new."""
        url = canonical_if_any(url)
        if not url or self._sets.is_unskipped(url):
            return "", ()
        key, applied = self._sets.key(url)
        held = self._pages_of(url)
        if held is not None and (not held.bears(key, applied) or held.is_torn(hash(key))):
            return "", ()
        return key, applied

    def under(self, url: str, key: str) -> KnownPage | None:
        """Return the page fetched last under the key of a URL, for whatever purpose."""
        held = self._pages_of(canonical_if_any(url))
        return None if held is None else held.known(hash(key))

    def decide(self, url: str, at: int, purpose: Purpose = ANYONE, again: bool = False) -> Skip | None:
        """Return the skip that the rules ask for, or None where the URL is to be fetched for this purpose.

        ``again``: it is skipped already. However many links lead to it, one page may be lost: it counts once.
        """
        url = canonical_if_any(url)
        if not url or self._sets.is_unskipped(url):
            return None
        held = self._pages_of(url)
        if held is None:
            return self._trapped(url)
        if held.is_redirected(url):
            return None
        itself = held.page(url)
        if itself is not None and not itself.earlier and not itself.told:
            return None
        found = self._find(held, url, at, purpose)
        if itself is not None and not itself.earlier:
            # Another crawler of this crawl has fetched it: no reason to skip it, nor to fetch two pages of its key.
            if found is None or found[2].url == url:
                return None
        elif found is None and itself is not None and self._stands(held, itself, purpose, at):
            return Skip(url, WITHIN, url, url)
        if found is None:
            return self._trapped(url)
        rule, key, known = found
        if again:
            return Skip(url, rule, key, known.url)
        tried = held.is_tried(hash((rule, path_of(key))))
        owed = not key.startswith(FAMILY) and self._sets.asking([rule]) is None and held.walls.owes_trial(known.content)
        return self._counted(url, rule, key, known.url, tried, owed)

    def led_elsewhere(self, url: str, target: str, content: int) -> Skip | None:
        """Return the skip of a URL whose key was asked for in its place and was redirected.

        None where what that led to was known before: it may be the log-in page, or the first of the site.
        """
        key, applied = self.resting_key(url)
        led_to = canonical_if_any(target)
        held = self._pages_of(led_to)
        if not applied or not led_to or (held is not None and (content == UNKNOWN or content in held.contents)):
            return None
        return self._counted(url, applied[-1], key, target)

    def _counted(self, url: str, rule: str, key: str, known_url: str, tried: bool = False, owed: bool = False) -> Skip:
        """Return a skip, or the trial in its place, and count that."""
        explore = self._exploring.explores(url, rule, key, self.explored[rule], tried, owed)
        self.explored[rule] += explore
        return Skip(url, rule, key, known_url, explore)

    def _find(self, held: HostPages, url: str, at: int, purpose: Purpose) -> tuple[str, str, KnownPage] | None:
        for by in (self._by_key, self._by_name, self._by_shown):
            found = by(held, url, at, purpose)
            if found is not None and may_show_file(url, found[2].url):
                return found
        return None

    def _trapped(self, url: str) -> Skip | None:
        """Return the skip of a URL that lies in a trap."""
        trap = self.traps.leaves(url)
        return None if trap is None else Skip(url, trap.id, trap.family, trap.example)

    def _by_key(self, held: HostPages, url: str, at: int, purpose: Purpose) -> tuple[str, str, KnownPage] | None:
        key, applied = self._sets.key(url)
        hashed = hash(key)
        known = held.find(hashed, purpose)
        if known is None or held.is_torn(hashed) or not self._recent(known, at):
            return None
        # A linked URL that is its own key may be known by a page whose key it is: that page's rules decided.
        applied = (*applied, *known.applied)
        if not applied or not held.bears(key, applied):
            return None
        if not _is_own(held, key, known):
            return None
        return self._sets.deciding(url, known.url, applied), key, known

    def _by_shown(self, held: HostPages, url: str, at: int, purpose: Purpose) -> tuple[str, str, KnownPage] | None:
        if not held.shown:
            return None
        key, applied = self._sets.key_under_all(url)
        known = held.showing(hash(key))
        if known is None or not self._serves(known, purpose, at) or not self._sets.allow(applied, known.content):
            return None
        own_key, own = self._sets.key_under_all(known.url)
        # What was redirected to it is known by its key: rules of the page's own URL say nothing of that.
        asking = self._sets.asking((*applied, *own) if own_key == key else applied)
        return None if asking is None else (asking, key, known)

    def _by_name(self, held: HostPages, url: str, at: int, purpose: Purpose) -> tuple[str, str, KnownPage] | None:
        found = None if held.names is None else held.names.find(url)
        if found is None:
            return None
        rule, named = found
        known = held.page(named)
        if known is None or not self._serves(known, purpose, at) or held.walls.is_anyones(known.content):
            return None
        return rule, f"{rule}:{url}", known

    def _stands(self, held: HostPages, itself: KnownPage, purpose: Purpose, at: int) -> bool:
        """Whether a page that another crawl fetched answers for its URL."""
        return self._serves(itself, purpose, at) and _is_own(held, self._sets.key(itself.url)[0], itself)

    def _serves(self, known: KnownPage, purpose: Purpose, at: int) -> bool:
        return known.serves(purpose) and self._recent(known, at)

    def _recent(self, known: KnownPage, at: int) -> bool:
        """Whether a page is as recent as asked; one of a clock that was far ahead is not until then."""
        return self._within is None or abs(at - known.at) <= self._within


def _is_own(held: HostPages, key: str, known: KnownPage) -> bool:
    """Whether a page shows no log-in form in its place; of a family it may."""
    return key.startswith(FAMILY) or held.walls.is_own(hash(key), known.content)
