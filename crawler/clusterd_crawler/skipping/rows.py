"""Rows of one content: a log-in form, "slow down" or captcha that a site shows for whatever is asked for, for a while.

Each such page differs from what its URL shows otherwise, so a true rule ends by it. It is told from what its URLs
always show by time: a row is a wall where

- its content was met nowhere before, under `ROW` URLs and more, a third and more of what came meanwhile showed it
  (around its edges pages mix that were asked for at once; `MIXED` at most), and then `GAP` pages in a row did not;
- pages of its kind have shown ever new contents before the row, and something else since. A kind is a folder or a path,
  whatever its numbers, with certain query names, or a folder with a value of a parameter. What always shows one page,
  as a family does or an exhausted calendar, is of a kind that does not.

Only its pages of such kinds are returned. A wall that comes again is one again, `TIMES` at most; any other content
that comes after its row is what the site shows.

Cost: some hashes a page, and a row's pages once more where it ends. Bounded by `KINDS`, `LONGEST` and `GAP` rows.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.urls import query_pair

#: URLs from which on a row may be a wall: more than are under way at once, as Scrapy is set.
ROW: Final = 17
#: Pages of other contents after which a row is over.
GAP: Final = 50
#: Most rows of one content that are walls.
TIMES: Final = 4
#: Share of the pages from the first of a row to its last that show its content, at least.
DENSE: Final = 1 / 3
#: Most pages of other contents from the first of a row to its last. Those that were under way at its edges do not grow
#: with its length: what goes on coming among others is what the site shows.
MIXED: Final = 64
#: URLs of the longest row that is told: what is longer is taken for what the site shows.
LONGEST: Final = 1_000
#: Most kinds of which it is known what they show; of more the oldest are forgotten, and no row of theirs is a wall.
KINDS: Final = 4_000
#: Contents of a kind before a row, at least; half of its pages were to show something else than as many before them. A
#: form may come in several wordings.
OTHERS: Final = 3
#: Most parameters of a URL whose values are looked at.
PAIRS: Final = 4
_NUMBER: Final = re.compile("[0-9]+")
#: Of a kind that is not known.
NOTHING: Final[tuple[int, int, tuple[int, ...]]] = (0, 0, ())


@dataclass(slots=True)
class _Row:
    """The pages of a content between which there are fewer than `GAP` others."""

    #: Whether the content was new with its first page, or is known to be a wall.
    is_new: bool
    #: Places of the first and the last page among all.
    first: int
    last: int
    #: How many there are, URLs that were fetched again included.
    pages: int = 0
    #: URL → its kinds; kind → whether it had shown ever new contents before the row.
    urls: dict[str, tuple[int, ...]] = field(default_factory=dict)
    varied: dict[int, bool] = field(default_factory=dict)

    @property
    def may_be_wall(self) -> bool:
        """Whether it is long and dense enough, and new."""
        span = self.last - self.first
        is_dense = len(self.urls) >= DENSE * span and span < self.pages + MIXED
        return self.is_new and ROW <= len(self.urls) <= LONGEST and is_dense


class Rows:
    """What one crawl has been shown of one host, or of one domain, page after page."""

    def __init__(self) -> None:
        #: Content → its row, that whose last page came longest ago first.
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        #: Kind → its pages, how many of them showed something else than those before, and what the latest showed, the
        #: last first: `OTHERS` contents.
        self._kinds: OrderedDict[int, tuple[int, int, tuple[int, ...]]] = OrderedDict()
        #: Content → how many walls it was.
        self._walls: dict[int, int] = {}
        self._seen = 0

    def add(self, url: str, content: int, is_new: bool) -> tuple[int, list[str]]:
        """Take a page, with whether its content was met nowhere before; return a wall and the URLs that showed it.

        As a rule these are none.
        """
        self._seen += 1
        row = self._rows.get(content)
        if row is None:
            row = self._rows[content] = _Row(is_new or 0 < self._walls.get(content, 0) < TIMES, self._seen, self._seen)
        self._rows.move_to_end(content)
        row.last = self._seen
        row.pages += 1
        kinds = _kinds(url)
        if row.is_new and len(row.urls) <= LONGEST:
            row.urls[url] = kinds
            for kind in kinds:
                if kind not in row.varied:
                    row.varied[kind] = self._is_varied(kind)
        for kind in kinds:
            self._show(kind, content)
        first, oldest = next(iter(self._rows.items()))
        if self._seen - oldest.last < GAP:
            return first, []
        del self._rows[first]
        return first, self._walled(first, oldest) if oldest.may_be_wall else []

    def may_be_wall(self, url: str, content: int) -> bool:
        """Whether a URL showed a content in a row that goes on, and may turn out to have shown a wall."""
        row = self._rows.get(content)
        return row is not None and row.may_be_wall and any(row.varied[kind] for kind in row.urls.get(url, ()))

    def _is_varied(self, kind: int) -> bool:
        pages, fresh, _ = self._kinds.get(kind, NOTHING)
        return fresh >= OTHERS and 2 * fresh >= pages

    def _show(self, kind: int, content: int) -> None:
        pages, fresh, shown = self._kinds.get(kind, NOTHING)
        if content not in shown:
            shown, fresh = (content, *shown[: OTHERS - 1]), fresh + 1
        elif shown[0] != content:
            shown = (content, *(other for other in shown if other != content))
        self._kinds[kind] = pages + 1, fresh, shown
        self._kinds.move_to_end(kind)
        if len(self._kinds) > KINDS:
            self._kinds.popitem(last=False)

    def _last(self, kind: int) -> int:
        _, _, shown = self._kinds.get(kind, NOTHING)
        return shown[0] if shown else 0

    def _walled(self, content: int, row: _Row) -> list[str]:
        """Return the URLs of a row whose kinds, as far as several of it are of them, show something else by now."""
        several = Counter(kind for kinds in row.urls.values() for kind in kinds)
        walled = {kind for kind, is_varied in row.varied.items() if is_varied and self._last(kind) not in {0, content}}
        found = []
        for url, kinds in row.urls.items():
            telling = {kind for kind in kinds if several[kind] > 1}
            if telling and telling <= walled:
                found.append(url)
        if len(found) < ROW:
            return []
        self._walls[content] = self._walls.get(content, 0) + 1
        return found


def _kinds(url: str) -> tuple[int, ...]:
    """Return hashes of the kinds of a URL."""
    path, _, query = url.partition("?")
    path = _NUMBER.sub("0", path)
    folder = path.rstrip("/").rpartition("/")[0]
    pairs = query.split("&") if query else []
    names = tuple(sorted({query_pair(pair)[0] for pair in pairs}))
    values = (hash((folder, pair)) for pair in pairs[:PAIRS])
    return tuple(dict.fromkeys((hash((folder, names)), hash((path, names)), *values)))
