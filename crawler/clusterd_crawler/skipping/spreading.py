"""Trials of a rule spread over the values that its URLs have besides: a parameter may matter for one category alone.

Of ``view.php?cat=7&id=12&wide=1`` in one of 45 categories a hundred trials at random meet none in one case of ten, and
then all its pages are lost at once. So a value on which `SKIPS` skips rest, and of which no page was tried, is tried: a
component of the path, or a parameter's value. Where that page differs the next one is, too, until one agrees. (An
identifier is on few pages; a place of very many values is not looked at further.) So is a folder of a host that shows
the pages of another: a server may hand one folder to another program under one of its names alone. And so is a folder
below one that is renamed: of 100 folders that have a print view (``/print/news/7``) one may show something else there.

Cost: a look-up for each component and parameter of a would-be skip; a number for each value, up to `VALUES` a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from clusterd_crawler.urls import query_pair

#: Skips on a value without a trial.
SKIPS: Final = 10
#: Most values of a place that are told apart.
VALUES: Final = 1000
#: Stands for the skips of a value of which a page was tried.
TRIED: Final = -1

#: Number of a component of the path, or name of a parameter.
Place = int | str


class Spreading:
    """Some of the rules in use, and how many skips rest on each value that was not tried."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[Place, dict[str, int]]] = {}

    def load(self, gone: Iterable[str], rules: Mapping[str, Iterable[tuple[Place, str]]]) -> None:
        """Take rules in the place of others; one that stays is among both, and so are the skips on its values.

        Each comes with values that it states: all its skips have them, and a trial says nothing of them.

        A host's rules are published anew whenever one of them changes. Counted anew each time, few skips would ever be
        `SKIPS` on one value in a crawl that goes slowly.
        """
        stay = {rule: self._rules.pop(rule, {}) for rule in gone}
        for rule, stated in rules.items():
            self._rules[rule] = stay.get(rule) or {place: {value: TRIED} for place, value in stated}

    def asks(self, rule: str, url: str) -> bool:
        """Whether a would-be skip is to be fetched, for the sake of one of its values; count it where not."""
        found = [known for known in self._values(rule, url) if known[0].get(known[1], 0) != TRIED]
        asked = [known for known in found if known[0].get(known[1], 0) >= SKIPS]
        for skips, value in asked or found:
            skips[value] = 0 if asked else skips.get(value, 0) + 1
        return bool(asked)

    def tried(self, rule: str, url: str, agreed: bool) -> None:
        """Note a page that was fetched beside another one of its key."""
        for skips, value in self._values(rule, url):
            if agreed:
                skips[value] = TRIED
            elif skips.get(value) != TRIED:
                skips[value] = SKIPS

    def _values(self, rule: str, url: str) -> Iterator[tuple[dict[str, int], str]]:
        """Yield the values of a URL, each with the skips on the values of its place."""
        places = self._rules.get(rule)
        if places is None:
            return
        for place, value in _parts(url):
            skips = places.setdefault(place, {})
            if value in skips or len(skips) < VALUES:
                yield skips, value


def _parts(url: str) -> Iterator[tuple[Place, str]]:
    path, _, query = url.partition("?")
    yield from enumerate(path.split("/")[3:])
    for name, value in map(query_pair, query.split("&") if query else ()):
        yield name, value or ""
