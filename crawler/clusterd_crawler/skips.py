"""The crawl's decision, from memory: is the content of this URL known already? No round trip, bounded work.

A rule is used as a *key*: the linked URL is fetched unless a page with the same key has been, in this crawl (or within
the stated time), and was a good page. What a skip rests on is always named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Name


@dataclass(frozen=True, slots=True)
class Skip:
    """A request whose content is known. ``explore``: fetch it all the same, to watch the rule."""

    url: str
    #: Id of the rule that decided (of the last one applied, where several were).
    rule: str
    key: str
    known_url: str
    explore: bool = False


class Decider(Protocol):
    """What the middleware and the replay ask. Methods take Unix milliseconds, so that a replay is repeatable."""

    def load(self, rules: RuleSet) -> None:
        """Take a host's rule set; keys of the pages fetched so far are computed at once (back-fill)."""
        ...

    def fetched(self, url: str, at: int, names: Iterable[Name] = (), good: bool = True) -> None:
        """Note a page that was fetched; one that failed or was a soft error (``good`` false) justifies no skip."""
        ...

    def decide(self, url: str, at: int) -> Skip | None:
        """Return the skip that the rules ask for, or None where the URL is to be fetched."""
        ...

    def key(self, url: str) -> tuple[str, tuple[str, ...]]:
        """Return the URL's key and the ids of the rules that were applied, in order."""
        ...
