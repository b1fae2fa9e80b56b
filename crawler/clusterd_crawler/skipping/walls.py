"""What a site shows in place of its pages, for a while or for good: a log-in form, "slow down", "not available".

It comes with status 200 and looks like a page, so the spider may notice nothing. But it is shown under several keys of
which each has shown something else, too: from then on no skip rests on a page that shows it, save at its own address.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

#: Keys that one content has torn from which on it is no page's own. A page belongs to one key, and tears that alone.
SEVERAL_TORN: Final = 2
#: URLs of one key that show such a content, once it is known to be one, from which on it is the key's own all the same:
#: the log-in form at its own address, which each page links to with another way back.
OWN: Final = 8
#: New keys in a row that show one content from which on it may be shown in place of pages, as long as the row lasts.
ROW: Final = 8


@dataclass(slots=True, eq=False)
class Walls:
    """Of one domain: the contents that are no page's own, or may be none."""

    #: Content → how many keys it has torn, each the first time.
    tore: dict[int, int] = field(default_factory=dict)
    #: Key → how many of its pages show what is no page's own, as the one before did.
    repeated: dict[int, int] = field(default_factory=dict)
    #: Content that was shown under `ROW` new keys in a row → how many would-be skips have rested on its pages.
    in_rows: dict[int, int] = field(default_factory=dict)

    def tear(self, contents: Iterable[int]) -> bool:
        """Note what the pages of a key show that differ; whether some of that is no page's own from now on."""
        for content in contents:
            self.tore[content] = self.tore.get(content, 0) + 1
        return any(self.tore[content] == SEVERAL_TORN for content in contents)

    def is_anyones(self, content: int) -> bool:
        """Whether a content is no page's own: under several keys it was shown where another page showed another."""
        return self.tore.get(content, 0) >= SEVERAL_TORN

    def repeat(self, key: int, content: int) -> None:
        """Note a page that shows what another of its key did."""
        if self.is_anyones(content):
            self.repeated[key] = self.repeated.get(key, 0) + 1

    def is_own(self, key: int, content: int) -> bool:
        """Whether a content is a page's own under a key."""
        return not self.is_anyones(content) or self.repeated.get(key, 0) >= OWN

    def show_in_row(self, content: int) -> None:
        """Note what `ROW` new keys in a row have shown."""
        self.in_rows.setdefault(content, 0)

    def owes_trial(self, content: int) -> bool:
        """Whether a would-be skip on a page is to be tried: the 1st, 2nd, 4th, 8th … on what was shown in a row."""
        if content not in self.in_rows:
            return False
        self.in_rows[content] = skips = self.in_rows[content] + 1
        return skips & (skips - 1) == 0

    def forget_keys(self) -> None:
        """Forget what rests on keys: rules have changed. What was tried stays so, for they may come by the dozen."""
        self.tore.clear()
        self.repeated.clear()


#: Of a domain that has none, as most have: nothing is noted here (`HostPages` makes one that is its own before that).
NO_WALLS: Final = Walls()
