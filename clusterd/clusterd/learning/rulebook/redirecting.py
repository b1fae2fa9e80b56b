"""Which URLs redirect because of what they are, not because of who asks when.

A site that is asked too often sends whoever asks for anything to some page, for a while. That says nothing of what its
URLs show, and as evidence it would speak against every rule that is true. So a redirect counts

- where URLs of its kind do nothing but redirect: those of its folder, those of its last component in any folder
  (whatever its numbers), or those of its path with a certain value of a parameter (``index.php?action=edit&title=…``),
  each with the same query names. As soon as a page of the kind was seen, they do not count by this any more;
- where those of its kind lead to pages of their own, each to another. A site that keeps somebody out shows the same to
  all.

Either from the time on when there are `SEVERAL` of a kind, until when they are held.

Cost: some hashes a page; what is held is bounded by `HELD`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.evidence import family

#: Redirects of a kind from which on they count, by the last component in as many folders; or contents of their own.
SEVERAL: Final = 10
#: Most redirects of a kind that lead to a content that is still their own.
OWN: Final = 2
#: Most redirects that are held.
HELD: Final = 10_000
#: Most parameters of a URL whose values are looked at.
PAIRS: Final = 4
_NUMBER: Final = re.compile("[0-9]+")


@dataclass(slots=True)
class _Kind:
    """The redirects of a kind."""

    #: What tells them apart → those that do not count yet.
    held: dict[str, Page] = field(default_factory=dict)
    #: Whether there were several to hold.
    full: bool = False
    #: What they lead to → how many of them, and how many of these contents are their own.
    led: dict[int, int] = field(default_factory=dict)
    own: int = 0

    def lead(self, content: int) -> None:
        count = self.led[content] = self.led.get(content, 0) + 1
        self.own += (count == 1) - (count == OWN + 1)

    def is_own(self, page: Page) -> bool:
        return self.led[page.content] <= OWN


class Redirecting:
    """The kinds of one host."""

    def __init__(self) -> None:
        #: Hashes of kinds of which a page was seen that was not redirected to.
        self._showing: set[int] = set()
        #: By hash.
        self._kinds: dict[int, _Kind] = {}
        self._held_count = 0

    def fetched(self, page: Page) -> None:
        """Note a page that was not redirected to."""
        self._showing.update(kind for kind, _ in _kinds(page.url))

    def counting(self, page: Page) -> list[Page]:
        """Return a redirect and those that count with it; nothing where it does not, or not yet."""
        for hashed, apart in _kinds(page.url):
            kind = self._kinds.setdefault(hashed, _Kind())
            kind.lead(page.content)
            found = self._leading_apart(kind, page) if hashed in self._showing else self._alike(kind, apart, page)
            if found:
                return found
        return []

    def _alike(self, kind: _Kind, apart: str, page: Page) -> list[Page]:
        """Return what counts of a kind that does nothing but redirect."""
        if not kind.full:
            self._hold(kind, apart, page)
            kind.full = len(kind.held) >= SEVERAL
            return self._let_go(kind) if kind.full else []
        return [page]

    def _leading_apart(self, kind: _Kind, page: Page) -> list[Page]:
        """Return what counts of a kind whose URLs show pages, too."""
        if not kind.is_own(page):
            return []
        if kind.own < SEVERAL:
            self._hold(kind, page.url, page)
            return []
        return [*(one for one in self._let_go(kind) if kind.is_own(one)), page]

    def _hold(self, kind: _Kind, apart: str, page: Page) -> None:
        if apart not in kind.held and self._held_count < HELD:
            # What comes late says nothing of the rule that it was sent to watch: who knows what was seen since.
            kind.held[apart] = replace(page, explored="")
            self._held_count += 1

    def _let_go(self, kind: _Kind) -> list[Page]:
        held, kind.held = list(kind.held.values()), {}
        self._held_count -= len(held)
        return held


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
