"""Rows of one content: a log-in form, "slow down" or captcha that a site shows for whatever is asked for, for a while.

Each such page differs from what its URL shows otherwise, so a true rule ends by it. It is told from what its URLs
always show by time: a row is a wall where

- its content was met nowhere before, under `ROW` URLs and more, a third and more of what came meanwhile showed it
  (around its edges pages mix that were asked for at once; `MIXED` at most), and then `GAP` pages in a row did not;
- a third and more of it is of kinds that showed ever new contents before the row, and something else since. A kind is
  a folder, a path, or a last component in any folder as deep, with certain query names, whatever their numbers; or a
  value of a parameter in a folder, or in any as deep. (Of a site of many folders each has too few pages to tell.) What
  always shows one page, as a family does or an exhausted calendar, is of a kind that does not.

Its pages are returned, but those of kinds that are known to show few contents. A wall that comes again is one again,
`TIMES` at most; any other content that comes after its row is what the site shows.

Cost: some hashes a page, and a row's pages once more where it ends. Bounded by `KINDS`, `LONGEST` and `GAP`.
"""

from __future__ import annotations

import re
import struct
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from clusterd_crawler.urls import query_pair

#: URLs from which on a row may be a wall: more than are under way at once, as Scrapy is set.
ROW: Final = 17
#: Pages of other contents after which a row is over.
GAP: Final = 50
#: Most rows of one content that are walls.
TIMES: Final = 4
#: Pages of a content among `GAP` that begin a row.
BEGINNING: Final = 3
#: Share of the pages from the first of a row to its last that show its content, at least, and of a wall's that are of
#: kinds which show that it is one.
DENSE: Final = 1 / 3
#: Most pages of other contents from the first of a row to its last. Those that were under way at its edges do not grow
#: with its length: what goes on coming among others is what the site shows.
MIXED: Final = 64
#: URLs of the longest row that is told: what is longer is taken for what the site shows.
LONGEST: Final = 500
#: Most kinds of which it is known what they show (.1 kB each); of more those that came last longest ago are forgotten,
#: and no row of theirs is a wall.
KINDS: Final = 1_000
#: Contents of a kind before a row, at least; half of its pages were to show something else than as many before them. A
#: form may come in several wordings.
OTHERS: Final = 3
#: Most parameters of a URL whose values are looked at.
PAIRS: Final = 4
_NUMBER: Final = re.compile("[0-9]+")
#: What is no value of many pages, with its name: an identifier.
_OF_FEW: Final = re.compile("[0-9]{4}|.{17}")
#: What a kind has shown: its pages, how many of them showed something else than those before (of 30,000 both count
#: half), and 16 bits of what the latest showed, the last first (`OTHERS`). Packed, since a crawl has millions.
_KIND: Final = struct.Struct("<5H")
_NOTHING: Final = _KIND.pack(0, 0, 0, 0, 0)
_MOST: Final = 30_000


#: A page: its URL, its content, whether that was met nowhere before.
Shown = tuple[str, int, bool]


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
    varied: dict[int, bool | None] = field(default_factory=dict)

    @property
    def may_be_wall(self) -> bool:
        """Whether it is long and dense enough, and new."""
        span = self.last - self.first
        is_dense = len(self.urls) >= DENSE * span and span < self.pages + MIXED
        return self.is_new and ROW <= len(self.urls) <= LONGEST and is_dense


class Rows:
    """What one crawl has been shown of one host, or of one domain, page after page."""

    def __init__(self) -> None:
        #: The latest pages: what shows `BEGINNING` times among them begins a row, with these.
        self._latest: deque[Shown] = deque(maxlen=GAP)
        #: Content → its row, that whose last page came longest ago first.
        self._rows: dict[int, _Row] = {}
        #: Kind → what it has shown (`_KIND`), that which came longest ago first.
        self._kinds: dict[int, bytes] = {}
        #: Content → how many walls it was.
        self._walls: dict[int, int] = {}
        self._seen = 0

    def add(self, url: str, content: int, is_new: bool) -> tuple[int, Sequence[str]]:
        """Take a page, with whether its content was met nowhere before; return a wall and the URLs that showed it.

        As a rule these are none.
        """
        self._seen += 1
        self._latest.append((url, content, is_new))
        kinds = _kinds(url)
        row = self._rows.pop(content, None)
        if row is not None:
            row.last = self._seen
            self._go_on(row, url, kinds)
        else:
            row = self._begun(content)
        if row is not None:
            self._rows[content] = row
        for kind in kinds:
            self._show(kind, content)
        return self._ended()

    def _begun(self, content: int) -> _Row | None:
        """Return the row that a content begins with the latest page, if it does."""
        pages = [place for place, page in enumerate(self._latest) if page[1] == content]
        if len(pages) < BEGINNING:
            return None
        first = self._seen - len(self._latest) + 1 + pages[0]
        is_new = self._latest[pages[0]][2] or 0 < self._walls.get(content, 0) < TIMES
        row = _Row(is_new, first, self._seen)
        for place in pages:
            url = self._latest[place][0]
            self._go_on(row, url, _kinds(url))
        return row

    def _go_on(self, row: _Row, url: str, kinds: tuple[int, ...]) -> None:
        row.pages += 1
        if not row.is_new or len(row.urls) > LONGEST:
            return
        row.urls[url] = kinds
        for kind in kinds:
            if kind not in row.varied:
                row.varied[kind] = self._is_varied(kind)

    def _ended(self) -> tuple[int, Sequence[str]]:
        """Return the content and the URLs of a wall whose row has ended."""
        for content, row in self._rows.items():
            if self._seen - row.last < GAP:
                break
            del self._rows[content]
            return content, self._walled(content, row) if row.may_be_wall else ()
        return 0, ()

    def may_be_wall(self, url: str, content: int) -> bool:
        """Whether a URL showed a content in a row that goes on, and may turn out to have shown a wall."""
        row = self._rows.get(content)
        return row is not None and row.may_be_wall and any(row.varied[kind] for kind in row.urls.get(url, ()))

    def _is_varied(self, kind: int) -> bool | None:
        """Whether a kind has shown ever new contents; None where too few of its pages came."""
        pages, fresh, *_ = _KIND.unpack(self._kinds.get(kind, _NOTHING))
        return bool(fresh >= OTHERS and 2 * fresh >= pages) if pages >= OTHERS else None

    def _show(self, kind: int, content: int) -> None:
        pages, fresh, *shown = _KIND.unpack(self._kinds.pop(kind, _NOTHING))
        if pages >= _MOST:
            pages, fresh = pages // 2, fresh // 2
        bits = _bits_of(content)
        if bits in shown:
            shown.remove(bits)
        else:
            fresh += 1
        self._kinds[kind] = _KIND.pack(pages + 1, fresh, bits, *shown[: OTHERS - 1])
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]

    def _shows_other(self, kind: int, content: int) -> bool:
        """Whether the latest page of a kind showed something else."""
        _, _, last, *_ = _KIND.unpack(self._kinds.get(kind, _NOTHING))
        return last not in (0, _bits_of(content))

    def _walled(self, content: int, row: _Row) -> Sequence[str]:
        """Return the URLs of a row, if it is a wall: those of kinds that are not known to have shown few contents."""
        several = Counter(kind for kinds in row.urls.values() for kind in kinds)
        walled = {kind for kind, is_varied in row.varied.items() if is_varied and self._shows_other(kind, content)}
        telling = {url: {kind for kind in kinds if several[kind] > 1} for url, kinds in row.urls.items()}
        sure = sum(bool(kinds) and kinds <= walled for kinds in telling.values())
        if sure < max(ROW, DENSE * len(row.urls)):
            return ()
        self._walls[content] = self._walls.get(content, 0) + 1
        return [url for url, kinds in telling.items() if all(row.varied[kind] is not False for kind in kinds)]


def _bits_of(content: int) -> int:
    """Return 16 bits of a content, never none."""
    return content % 65_521 + 1


def _kinds(url: str) -> tuple[int, ...]:
    """Return hashes of the kinds of a URL: in its folder, and in any folder as deep."""
    path, _, query = url.partition("?")
    path = _NUMBER.sub("0", path)
    folder = path.rstrip("/").rpartition("/")[0]
    pairs = query.split("&") if query else []
    names = tuple(sorted({query_pair(pair)[0] for pair in pairs}))
    depth, last = path.count("/"), path.rpartition("/")[2]
    values = [hash((place, pair)) for pair in pairs[:PAIRS] if not _OF_FEW.search(pair) for place in (folder, depth)]
    return tuple(dict.fromkeys((hash((folder, names)), hash((path, names)), hash((depth, last, names)), *values)))
