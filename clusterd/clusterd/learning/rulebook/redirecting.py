"""Which URLs redirect because of what they are, not because of who asks when.

A site that is asked too often sends whoever asks for anything to some page, for a while. That says nothing of what its
URLs show, and as evidence it would speak against every rule that is true. So a redirect counts

- where URLs of its kind do nothing but redirect: those of its folder, those of its last component in any folder
  (whatever its numbers), or those of its path with a certain value of a parameter (``index.php?action=edit&title=…``),
  each with the same query names. As soon as a page of the kind was seen, no more of them do by this;
- where it leads to a page of its own, to which hardly any other of its kind leads while `PATIENCE` more pages come. A
  site that keeps somebody out shows the same to all.

Of a kind it counts at once when `SEVERAL` have been seen that do nothing but redirect, or `APART` that have led to
pages of their own; until then it is held.

Cost: some hashes a page; what is held is bounded by `HELD`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from clusterd_crawler.urls import host_of

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.reservoir import family

#: Redirects of a kind that does nothing else from which on they count; by the last component in as many folders.
SEVERAL: Final = 10
#: Most redirects of a kind that lead to a content that is still their own.
OWN: Final = 2
#: Pages of the host that come before it is said that a content is their own.
PATIENCE: Final = 50
#: Redirects of a kind that led to contents of their own from which on others that do count at once.
APART: Final = 3
#: Most redirects that are held.
HELD: Final = 10_000
#: Most parameters of a URL whose values are looked at.
PAIRS: Final = 4
_NUMBER: Final = re.compile("[0-9]+")


@dataclass(slots=True)
class _Kind:
    """The redirects of a kind."""

    #: What tells redirects apart → those that are held, as long as no page of the kind was seen.
    held: dict[str, Page] = field(default_factory=dict)
    #: Whether there were several to hold.
    full: bool = False
    #: What redirects led to → how many.
    led: dict[int | str, int] = field(default_factory=dict)
    #: Redirects that led to contents of their own.
    apart: int = 0


class Redirecting:
    """The kinds of one host."""

    def __init__(self) -> None:
        #: Hashes of kinds of which a page was seen that was not redirected to.
        self._showing: set[int] = set()
        #: By hash, those that have redirects.
        self._kinds: dict[int, _Kind] = {}
        self._held_count = 0
        self._seen = 0
        #: When it is said whether a redirect led to a content of its own: that many pages seen, and the redirect.
        self._unsettled: deque[tuple[int, Page]] = deque()

    def counting(self, page: Page) -> list[Page]:
        """Return what counts when a page or a redirect has come: itself, or not yet, behind what was held so far."""
        self._seen += 1
        late = list(self._settled()) if self._unsettled else []
        if page.target:
            return [*late, *self._led(page)]
        if page.is_witness:
            self._showing.update(kind for kind, _ in _kinds(page.url))
        return [*late, page]

    def _led(self, page: Page) -> list[Page]:
        """Return a redirect and those that count with it; nothing where it does not, or not yet."""
        kinds = [(hashed, self._kinds.setdefault(hashed, _Kind()), apart) for hashed, apart in _kinds(page.url)]
        shown = _led_to(page)
        for _, kind, _ in kinds:
            kind.led[shown] = kind.led.get(shown, 0) + 1
        alike = [(kind, apart) for hashed, kind, apart in kinds if hashed not in self._showing]
        if any(kind.full for kind, _ in alike):
            return [page]
        for kind, apart in alike:
            if found := self._alike(kind, apart, page):
                return found
        showing = [kind for hashed, kind, _ in kinds if hashed in self._showing]
        if showing and _is_own(page, showing):
            if any(kind.apart >= APART for kind in showing):
                return [page]
            for kind in showing:
                self._wait(self._let_go(kind))
            self._wait([page])
        return []

    def _alike(self, kind: _Kind, apart: str, page: Page) -> list[Page]:
        """Hold a redirect of a kind that did nothing else so far; return what counts where there are enough of them."""
        if apart not in kind.held and self._held_count < HELD:
            kind.held[apart] = _without_trial(page)
            self._held_count += 1
        kind.full = len(kind.held) >= SEVERAL
        return self._let_go(kind) if kind.full else []

    def _let_go(self, kind: _Kind) -> list[Page]:
        held, kind.held = list(kind.held.values()), {}
        self._held_count -= len(held)
        return held

    def _wait(self, pages: Iterable[Page]) -> None:
        for page in pages:
            if len(self._unsettled) < HELD:
                self._unsettled.append((self._seen + PATIENCE, _without_trial(page)))

    def _settled(self) -> Iterator[Page]:
        """Yield the redirects that have waited and led to contents of their own."""
        while self._unsettled and self._unsettled[0][0] <= self._seen:
            _, page = self._unsettled.popleft()
            kinds = [self._kinds[hashed] for hashed, _ in _kinds(page.url) if hashed in self._showing]
            if _is_own(page, kinds):
                for kind in kinds:
                    kind.apart += 1
                yield page


def _is_own(page: Page, kinds: Iterable[_Kind]) -> bool:
    shown = _led_to(page)
    return all(kind.led[shown] <= OWN for kind in kinds)


def _led_to(page: Page) -> int | str:
    """Return what a redirect leads to; on another host, whose pages are not known, whatever is asked for there."""
    return page.content if host_of(page.target) == host_of(page.url) else page.target.partition("?")[0]


def _without_trial(page: Page) -> Page:
    """Return a redirect that is held: what comes late says nothing of the rule that it was sent to watch."""
    return replace(page, explored="")


def _kinds(url: str) -> Iterator[tuple[int, str]]:
    """Yield hashes of the kinds of a URL, each with what tells the URLs of that kind apart."""
    path, _, query = url.partition("?")
    folder, _, last = path.rstrip("/").rpartition("/")
    names = family(url).partition("?")[2]
    yield hash((folder, names)), url
    yield hash((folder.count("/"), _NUMBER.sub("0", last), names)), folder
    pairs = [pair for pair in query.split("&") if not pair.partition("=")[2].isdecimal()] if "&" in query else ()
    for pair in pairs[:PAIRS]:
        yield hash((path, names, pair)), query
