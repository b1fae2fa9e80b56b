"""Which URLs redirect because of what they are, not because of who asks when.

A site that is asked too often sends whoever asks for anything to some page, for a while. That says nothing of what its
URLs show, and as evidence it would speak against every rule that is true. So a redirect counts where URLs of its kind
do nothing but redirect: those of its folder, those of its last component in any folder (whatever its numbers), or those
of its path with a certain value of a parameter (``index.php?action=edit&title=…``), each with the same query names.
They count once `SEVERAL` of a kind are seen, until when they are held. As soon as a page of the kind was seen, no more
of them do.

Cost: some hashes a page; what is held is bounded by `HELD`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.evidence import family

#: Redirects of a kind from which on they count; by the last component in as many folders.
SEVERAL: Final = 10
#: Most redirects that are held.
HELD: Final = 10_000
#: Most parameters of a URL whose values are looked at.
PAIRS: Final = 4
_NUMBER: Final = re.compile("[0-9]+")


class Redirecting:
    """The kinds of one host."""

    def __init__(self) -> None:
        #: Hashes of kinds of which a page was seen that was not redirected to.
        self._showing: set[int] = set()
        #: Hash of a kind → what tells its redirects apart → the redirects, until they count (None from then on).
        self._held: dict[int, dict[str, Page] | None] = {}
        self._held_count = 0

    def fetched(self, page: Page) -> None:
        """Note a page that was not redirected to."""
        self._showing.update(kind for kind, _ in _kinds(page.url))

    def counting(self, page: Page) -> list[Page]:
        """Return a redirect and those that count with it; nothing where it does not, or not yet."""
        for kind, apart in _kinds(page.url):
            if kind not in self._showing and (found := self._of_kind(kind, apart, page)):
                return found
        return []

    def _of_kind(self, kind: int, apart: str, page: Page) -> list[Page]:
        held = self._held.setdefault(kind, {})
        if held is None:
            return [page]
        if apart not in held and self._held_count < HELD:
            # What comes late says nothing of the rule that it was sent to watch: who knows what was seen since.
            held[apart] = replace(page, explored="")
            self._held_count += 1
        if len(held) < SEVERAL:
            return []
        self._held_count -= len(held)
        self._held[kind] = None
        return list(held.values())


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
