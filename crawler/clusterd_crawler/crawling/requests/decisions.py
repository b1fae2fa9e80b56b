"""A decider that is loaded in one thread while the crawl asks it in another, and makes the crawl wait at its end only.

Loading a rule set computes the keys of all known pages of its host, which takes a second for some hundred thousand.
Meanwhile nothing is skipped, and fetched pages are noted as soon as it is done. Until there is something to decide by,
pages are only written down, and looked at for traps that are to be reported: most crawls begin without rules, and those
that never have any pay next to nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from clusterd_crawler.fetches import Fetch
from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.known_page import KnownPage, Plain, names_of, plain_names, plain_purpose
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.skipping.traps import Trap
from clusterd_crawler.turn import IN_THREAD, Turn
from clusterd_crawler.urls import canonical_if_any, host_of, registrable

#: Failed URLs that are remembered, so that an older good fetch that is told of later does not stand for them.
FAILED: Final = 100_000

Answer = TypeVar("Answer")


class _Noted(NamedTuple):
    """A page as it was fetched, to be told to the decider; kept as a plain tuple until then (`known_page` says why)."""

    url: str
    at: int
    #: See `plain_names`.
    names: Plain = ()
    good: bool = True
    content: int = 0
    #: Whether the guard against traps has been told of it.
    watched: bool = False
    #: See `plain_purpose`.
    served: Plain = tuple(ANYONE)
    #: The page that linked to it.
    via: str = ""
    #: It was no page, but was redirected to this one.
    target: str = ""


class Decisions:
    """`load` and `learn_of` in any thread but the loop's; the rest in the loop's."""

    def __init__(self, known: KnownPages, limit: int) -> None:
        """Decide by ``known``; remember at most ``limit`` pages that it has not been told of."""
        self._known = known
        self._lock = threading.Lock()
        self._noted: deque[Plain] = deque(maxlen=limit)
        self._failed: OrderedDict[str, int] = OrderedDict()
        self._has_rules = False
        #: Pages on which skips might rest and of which others told that they failed; how many were heard of.
        self._withdrawn = self._heard_of = 0
        mode = known.traps.mode
        self._decides = mode in {"sample", "cut"}
        self._watches = mode != "off"
        #: Hashes of domains and contents of their pages, as long as nothing is decided; at most ``limit``.
        self._contents: set[int] = set()
        self._limit = limit

    @property
    def decides(self) -> bool:
        """Whether `decide` may answer with a skip: there are rules, or traps are left."""
        return self._decides

    @property
    def loading(self) -> bool:
        """Whether rules or pages are being taken, so that `decide` would not say what they do."""
        return self._lock.locked()

    def load(self, *sets: RuleSet) -> None:
        """Take the rule sets of hosts. Blocks until they are in use."""
        with self._lock:
            self._note()
            self._known.load(*sets)
            self._has_rules = self._has_rules or any(rules.rules for rules in sets)
            self._decides = self._decides or self._has_rules
            self._note()
            if self._decides:
                self._contents.clear()

    def learn_of(self, pages: Sequence[tuple[Fetch, bool]]) -> None:
        """Take pages that others fetched, each with whether another crawl did. Blocks."""
        left = deque(pages)
        while left:
            # The interpreter changes threads where it likes, mostly within, where the crawl finds the lock held: of
            # its would-be skips hardly any was seen. Here it is asked to.
            time.sleep(0)
            with self._lock:
                self._note()
                turn = Turn(IN_THREAD)
                while left and not turn.is_over:
                    self._learn_of(*left.popleft())

    def _learn_of(self, page: Fetch, earlier: bool) -> None:
        if not page.good:
            self._note_failure(page.url, page.at)
        if not page.good or self._failed.get(page.url, -1) < page.at:
            before = len(self._known)
            self._known.fetched(
                page.url, page.at, page.names, page.good, page.content, earlier, purpose=page.purpose, told=True
            )
            self._withdrawn += len(self._known) < before and not page.good

    def withdrawn(self) -> bool:
        """Whether a skip may rest, since the last call, on a page that justifies none.

        Others told that it has failed, or it shows what turned out to be shown in place of pages.
        """
        before, self._heard_of = self._heard_of, self._withdrawn + self._known.doubted
        return self._heard_of > before

    def fetched(
        self,
        url: str,
        at: int,
        names: Iterable[Name] = (),
        good: bool = True,
        content: int = 0,
        purpose: Purpose = ANYONE,
        via: str = "",
    ) -> None:
        """Note a page that was fetched, at once or after the loading that is going on."""
        if not good:
            url = canonical_if_any(url) or url
            self._note_failure(url, at)
        kept, served = plain_names(names), plain_purpose(purpose)
        if (self._decides or self._watches) and self._lock.acquire(blocking=False):
            try:
                watched = not self._decides
                if watched and good and content:
                    self._watch(url, content)
                self._noted.append(_Noted(url, at, kept, good, content, watched, served, via)[:])
                if self._decides:
                    self._note()
            finally:
                self._lock.release()
        else:
            self._noted.append(_Noted(url, at, kept, good, content, served=served, via=via)[:])

    def redirected(self, url: str, at: int, target: str) -> None:
        """Note a URL that was redirected to another."""
        self._noted.append(_Noted(url, at, target=target)[:])

    def led(self, url: str) -> None:
        """Note a page that linked to a file; "" where none says that it did."""
        if url:
            self._noted.append(_Noted("", 0, via=url)[:])

    def reopened(self) -> frozenset[str]:
        """Return the rules, and traps, of which fewer skips are right than was thought, for where pages lead."""
        if not self._decides:
            return frozenset()
        return self._asked(lambda: frozenset(self._known.reopened()), frozenset())

    def look_once_more(self, kept: Counter[str]) -> frozenset[str]:
        """Return the rules to be decided anew about before the crawl ends: as `reopened`, and what is looked at then.

        Nobody would ask again, so this waits for the pages that are being taken, a few milliseconds. Not for the loop
        while a rule set is.
        """
        if not self._decides:
            return frozenset()
        with self._lock:
            self._note()
            return frozenset(self._known.reopened() | self._known.look_once_more(kept))

    def _watch(self, url: str, content: int) -> None:
        """Tell the guard against traps of a page whose key nobody needs yet."""
        if not (url := canonical_if_any(url)):
            return
        shown = hash((registrable(host_of(url)), content))
        new = shown not in self._contents
        self._known.traps.fetched(url, content, new)
        if new and len(self._contents) >= self._limit:  # begun anew: a trap is noticed later by as many pages
            self._contents.clear()
        self._contents.add(shown)

    def _note_failure(self, url: str, at: int) -> None:
        self._failed[url] = max(at, self._failed.pop(url, at))
        if len(self._failed) > FAILED:
            self._failed.popitem(last=False)

    def decide(self, url: str, at: int, purpose: Purpose = ANYONE, again: bool = False) -> Skip | None:
        """Return the skip that the rules or traps ask for; None while rules are being loaded.

        ``again``: the URL is skipped already, so that this is no further skip (`KnownPages.decide`).
        """
        if not self._decides:
            return None
        return self._asked(lambda: self._known.decide(url, at, purpose, again), None)

    def led_elsewhere(self, url: str, target: str, content: int) -> Skip | None:
        """Return the skip of a URL whose key led to a page of its own; None where that is not sure."""
        if not self._has_rules:
            return None
        return self._asked(lambda: self._known.led_elsewhere(url, target, content), None)

    def key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the URL's key and the rules that made it; no key where no skip may rest on it, or rules are loaded."""
        no_key: tuple[str, tuple[str, ...]] = "", ()
        return self._asked(lambda: self._known.resting_key(url), no_key) if self._has_rules else no_key

    def known(self, url: str, key: str) -> KnownPage | None:
        """Return the page fetched last under the key of a URL, for whatever purpose; None while rules are loaded."""
        if not self._has_rules:
            return None
        return self._asked(lambda: self._known.under(url, key), None)

    def differs(self, url: str, content: int) -> bool:
        """Whether the key of a URL has a page of another content; true where nobody can tell, for that is loaded."""
        if not self._has_rules:
            return False
        return self._asked(lambda: self._known.differs(url, content), True)

    def traps(self) -> list[Trap]:
        """Return the traps noticed since the last call."""
        return self._asked(self._known.traps.noticed, []) if self._watches else []

    def _asked(self, question: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Return the answer, by all that was noted where anything is decided; ``otherwise`` while rules are loaded."""
        if not self._lock.acquire(blocking=False):
            return otherwise
        try:
            if self._decides:
                self._note()
            return question()
        finally:
            self._lock.release()

    def _note(self) -> None:
        while self._noted:
            page = _Noted(*self._noted.popleft())
            if not page.url:
                self._known.led(page.via)
                continue
            if page.target:
                self._known.redirected(page.url, page.target)
                continue
            self._known.fetched(
                page.url,
                page.at,
                names_of(page.names),
                page.good,
                page.content,
                watched=page.watched,
                purpose=Purpose(*page.served),
                via=page.via,
            )
