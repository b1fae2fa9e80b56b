"""One host's fetched pages in columns, so that what a rule would merge is found by sorting one array.

A page's key is a sum of 64-bit hashes modulo 2^64: of its path, of its query names in order (its *shape*), and of each
(name, value) pair. Dropping a parameter subtracts its hashes and exchanges the shape's; a path edit exchanges the
path's. Pages of equal sums are pages of equal keys, whatever edits came before.

Layout: per page one content number, one path number, one shape number (4 bytes each) and its key (8 bytes); per
parameter name the rows that have it, with a value number and a hash (24 bytes a pair), and each distinct value once.

Cost: one parse a page when it is observed; a candidate rule costs one sort of the rows that it concerns. Pages with
more than `PAIRS` pairs, or that bring more names than `NAMES`, are left out of the evidence.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np
from clusterd_crawler.urls import Url, hash_of

from clusterd.learning.evidence.arrays import Hashes, Rows, as_array
from clusterd.learning.evidence.crawls import CRAWLS, Crawls
from clusterd.learning.evidence.moves import Remembered
from clusterd.learning.evidence.path_tables import PathTables
from clusterd.learning.evidence.shapes import ColumnKey, Shapes

#: Most query pairs of a page that serves as evidence.
PAIRS: Final = 32
#: Most parameter names of a host that are looked at.
NAMES: Final = 512
#: Most components of a path that is compared with others: that takes the square of their number, in time and memory.
DEEPEST: Final = 64
#: Stands for the value of a key without ``=`` (no canonical URL holds the character).
VALUELESS: Final = "\x00"
#: Stands for the crawl of a page that its crawl has taken back (no crawl's name holds the character).
TAKEN_BACK: Final = "\x00"


@dataclass(slots=True)
class Column:
    """The rows that have a query key, with its values."""

    name: str
    occurrence: int
    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[int] = field(default_factory=lambda: array("q"))
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    numbers: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=lambda: [""])

    def add(self, row: int, value: str) -> None:
        """Note that a row has this key with a value."""
        self.rows.append(row)
        self.values.append(self.number(value))
        self.hashes.append(value_hash((self.name, self.occurrence), value))

    def number(self, value: str) -> int:
        """Return a value's number, a new one where it is new."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.numbers) + 1
            self.texts.append(value)
        return number

    def text(self, number: int) -> str:
        """Return a value's text."""
        return self.texts[number]

    def named(self, number: int) -> str | None:
        """Return a value as a condition names it, or None where that would name another value of the host too.

        A key without ``=`` (``?print``) is to a condition what it is with nothing after it.
        """
        text = self.texts[number]
        if text not in {VALUELESS, ""}:
            return text
        return None if {VALUELESS, ""} <= self.numbers.keys() else ""


def value_hash(key: ColumnKey, value: str) -> int:
    """Return what a query key with a value adds to the hash of a page's key."""
    return hash_of(f"{key[0]}\x01{key[1]}\x01{value}")


def path_hash(path: str) -> int:
    """Return what a path adds to the hash of a page's key."""
    return hash_of(f"\x02{path!r}")


class Paths:
    """Paths numbered in the order in which they came, with a hash each."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.items: list[str] = []
        self.hashes = array("Q")

    def number(self, path: str) -> int:
        """Return the path's number, a new one where it is new."""
        number = self.numbers.get(path)
        if number is None:
            number = self.numbers[path] = len(self.items)
            self.items.append(path)
            self.hashes.append(path_hash(path))
        return number

    def parts(self, number: int) -> list[str]:
        """Return the components of a path."""
        return self.items[number].split("/")

    def table(self) -> Hashes:
        """Return the hashes by number."""
        return np.array(self.hashes, dtype=np.uint64)


class Novelty:
    """Which contents the latest crawls have brought: in the next crawl each is new once more.

    Of `CRAWLS` it is known: of fewer than go on at a time, every content would be new each time.
    """

    def __init__(self) -> None:
        self._crawls: OrderedDict[str, set[int]] = OrderedDict()
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def add(self, crawl: str, content: int) -> bool:
        """Note a content; return whether the crawl had not brought it before."""
        known = self._crawls.setdefault(crawl, set())
        self._crawls.move_to_end(crawl)
        if len(self._crawls) > CRAWLS:
            self._held -= len(self._crawls.popitem(last=False)[1])
        before = len(known)
        known.add(content)
        self._held += len(known) - before
        return len(known) > before

    def knows(self, crawl: str, content: int) -> bool:
        """Return whether the crawl has brought a content."""
        return content in self._crawls.get(crawl, ())

    def has_met(self, content: int) -> bool:
        """Return whether some crawl has brought a content."""
        return any(content in known for known in self._crawls.values())


class Evidence:
    """What has been fetched from one host."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.row_of: dict[str, int] = {}
        self.contents = array("q")
        #: Of each row the crawl that fetched it last, and the place of that fetch among all.
        self.crawls: list[str] = []
        self.fetches = array("q")
        self.fetched = 0
        self.seen_by = Crawls()
        #: Identity of a content → its number, and back.
        self.content_numbers: dict[int, int] = {}
        self.identities: list[int] = []
        self.paths = Paths()
        self.path_tables = PathTables()
        self.path_moves = Remembered()
        self.shapes = Shapes()
        self.path_numbers = array("q")
        self.shape_numbers = array("q")
        self.columns: dict[ColumnKey, Column] = {}

    def __len__(self) -> int:
        return len(self.urls)

    def add(self, url: str, content: int, taken: Url, crawl: str = "") -> int:
        """Take a page (its URL canonical, and taken apart); return its row, -1 where it is left out."""
        self.fetched += 1
        number = self.content_numbers.get(content)
        if number is None:
            number = self.content_numbers[content] = len(self.content_numbers)
            self.identities.append(content)
        row = self.row_of.get(url)
        bit = self.seen_by.begin(crawl, self.contents)
        if row is not None:
            self.seen_by.again(row, bit, self.contents[row], number)
            self.contents[row], self.crawls[row], self.fetches[row] = number, crawl, self.fetched
            return row
        pairs = _pairs(taken)
        if len(pairs) > PAIRS or not self._room_for(pairs):
            return -1
        row = self.row_of[url] = len(self.urls)
        self.seen_by.first(bit)
        self.urls.append(url)
        self.contents.append(number)
        self.crawls.append(crawl)
        self.fetches.append(self.fetched)
        self.path_numbers.append(self.paths.number("/".join(taken.path)))
        self.shape_numbers.append(self.shapes.number(tuple(key for key, _ in pairs)))
        for key, value in pairs:
            column = self.columns.get(key)
            if column is None:
                column = self.columns[key] = Column(*key)
            column.add(row, value)
        return row

    def take_back(self, url: str, crawl: str) -> None:
        """Let a page (its URL canonical) say nothing more, if this crawl was the last to fetch it."""
        row = self.row_of.get(url)
        if row is not None and self.crawls[row] == crawl:
            self.seen_by.take_back(row)
            self.crawls[row] = TAKEN_BACK

    def of_crawl(self, crawl: str) -> Rows:
        """Return the rows that a crawl fetched last, in the order in which it did."""
        rows = np.flatnonzero([known == crawl for known in self.crawls])
        return rows[np.argsort(as_array(self.fetches)[rows], kind="stable")]

    def _room_for(self, pairs: Sequence[tuple[ColumnKey, str]]) -> bool:
        return len(self.columns) + len(pairs) <= NAMES or all(key in self.columns for key, _ in pairs)


def _pairs(url: Url) -> list[tuple[ColumnKey, str]]:
    """Return the query pairs and path parameters of a URL, repeated names counted."""
    found: list[tuple[ColumnKey, str]] = []
    counts: dict[str, int] = {}
    for name, value in chain(url.query, ((name, value) for _, name, value in url.matrix or ())):
        counts[name] = counts.get(name, 0) + 1
        found.append(((name, counts[name]), VALUELESS if value is None else value))
    return found
