"""What pages of one content differ in, counted.

Each page is compared with the page before it in the order of their keys and with the plainest page of its content, so
that the work is linear in the size of a cluster. A difference counts once a content: a log-in page under a thousand
URLs proposes no more than an article under two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from clusterd.learning.edits.deep import ending_of, exchanged, infix_of
from clusterd.learning.edits.fixed_values import TOGETHER
from clusterd.learning.edits.proposing import begun_alike, in_pairs
from clusterd.learning.edits.spellings import escaped, spaces_of_components
from clusterd.learning.evidence.arrays import Rows, begins, by_number
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose an edit before it is judged.
PROPOSED: Final = 4
#: A difference that comes so often within one content is proposed on its account: empty lists under many URLs.
OFTEN: Final = 20
#: Most contents whose pages are compared: what is frequent enough to matter is among them.
CONTENTS: Final = 4000
#: Most pages of one content that are compared.
COMPARED: Final = 400
#: Pages that are read back at a time.
READ: Final = 4096

#: Kinds of differences of paths that are looked at where parameters differ, too: other names, with the place of the
#: component that has them, and what one has more.
RENAMED: Final = {"swap": 0, "page": -1}
LONGER: Final = frozenset({"slash", "index", "last", "part", "ending", "infix"})

#: Its kind (`candidates.EDITS`), and what differs.
Difference = tuple[str, tuple[Any, ...]]


def duplicates(snapshot: Snapshot) -> Iterator[Rows]:
    """Yield, for each content with several pages, its rows in the order of arrival; of very many contents a sample."""
    order = np.argsort(snapshot.content, kind="stable")
    starts = np.flatnonzero(begins(snapshot.content[order]))
    ends = np.append(starts[1:], len(order))
    several = np.flatnonzero(ends - starts > 1)
    several = several[:: 1 + len(several) // CONTENTS]
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        yield order[start:end]


def differences(snapshot: Snapshot, clusters: Iterable[Rows]) -> Counter[Difference]:
    """Count, once a content, in what pages of one content differ."""
    found: Counter[Difference] = Counter()
    for taken in _pages_of(snapshot, clusters):
        seen: dict[Difference, int] = {}
        for plain, page in in_pairs(taken):
            for kind in _difference(plain, page):
                seen[kind] = seen.get(kind, 0) + 1
        for kind in seen:
            found[kind] += 1
        for kind, pairs in seen.items():
            if pairs >= OFTEN:
                found[kind] += PROPOSED
    return found


class ReadPage(NamedTuple):
    """A page as it is compared: its path, and its query keys with the hash and the number of their value."""

    path: str
    query: tuple[tuple[ColumnKey, tuple[int, int]], ...]


def _pages_of(snapshot: Snapshot, clusters: Iterable[Rows]) -> Iterator[list[ReadPage]]:
    """Yield the pages of each cluster that are compared, the plainest first; those of one key are one page."""
    waiting: list[list[int]] = []
    count = 0
    for rows in clusters:
        chosen = rows[:COMPARED]
        # The first row of each key.
        firsts = dict(zip(snapshot.key[chosen][::-1].tolist(), chosen[::-1].tolist(), strict=True))
        if len(firsts) > 1:
            waiting.append(sorted(firsts.values()))
            count += len(firsts)
        if count >= READ:
            yield from _read_pages(snapshot, waiting)
            waiting, count = [], 0
    yield from _read_pages(snapshot, waiting)


def _read_pages(snapshot: Snapshot, clusters: list[list[int]]) -> Iterator[list[ReadPage]]:
    pages = _read(snapshot, np.array([row for rows in clusters for row in rows], np.int64))
    for rows in clusters:
        yield _plainest_first([pages[row] for row in rows])


def _read(snapshot: Snapshot, rows: Rows) -> dict[int, ReadPage]:
    """Read rows back as they are after the accepted edits, those of one shape at once."""
    found: dict[int, ReadPage] = {}
    for group in by_number(snapshot.shape[rows], rows) if len(rows) else ():
        shape = snapshot.shape_of(group[0])
        paths = [snapshot.evidence.paths.items[number] for number in snapshot.path[group].tolist()]
        cells: list[list[tuple[ColumnKey, tuple[int, int]]]] = []
        for key in shape:
            column = snapshot.columns[key]
            at = np.searchsorted(column.rows, group)
            values = zip(column.hashes[at].tolist(), column.values[at].tolist(), strict=True)
            cells.append([(key, value) for value in values])
        queries = zip(*cells, strict=True) if cells else [()] * len(group)
        found.update(zip(group.tolist(), map(ReadPage, paths, queries), strict=True))
    return found


def _plainest_first(pages: list[ReadPage]) -> list[ReadPage]:
    lengths = [(len(page.query), len(page.path), page.path) for page in pages]
    if len(set(lengths)) == len(pages):
        return [page for _, page in sorted(zip(lengths, pages, strict=True))]
    return sorted(pages, key=_plainness)


def _plainness(page: ReadPage) -> tuple[object, ...]:
    return len(page.query), len(page.path), page.path, [(key, number) for key, (_, number) in page.query]


def _difference(plain: ReadPage, page: ReadPage) -> Iterator[Difference]:
    if plain.path == page.path:
        yield from _query_difference(plain, page)
    elif plain.query == page.query:
        yield from _path_difference(plain.path.split("/"), page.path.split("/"))
    elif not plain.query:
        folder, _, last = plain.path.rpartition("/")
        if last and page.path == (folder and folder + "/"):
            yield "index and query", (last, *sorted(key for key, _ in page.query))
            if len(page.query) <= TOGETHER:
                yield "fixed", (last, tuple(sorted((key, number) for key, (_, number) in page.query)))
    if plain.path != page.path and plain.query != page.query:
        yield from _both_differ(plain, page)


def _both_differ(plain: ReadPage, page: ReadPage) -> Iterator[Difference]:
    """Yield what the path of a page with further parameters has more than the plain one, or another name for."""
    before, after = dict(plain.query), dict(page.query)
    names = tuple(sorted(after.keys() - before.keys()))
    if not 0 < len(names) <= TOGETHER or any(after.get(key, [None])[0] != value[0] for key, value in plain.query):
        return
    parts, others = plain.path.split("/"), page.path.split("/")
    for kind, what in _path_difference(parts, others):
        if kind in RENAMED:
            yield "both", (kind, (parts[RENAMED[kind]], others[RENAMED[kind]]), names)
        elif kind in LONGER and len(page.path) > len(plain.path):
            yield "both", (kind, what, names)


def _query_difference(plain: ReadPage, page: ReadPage) -> Iterator[Difference]:
    before, after = dict(plain.query), dict(page.query)
    differing = [key for key, (hashed, _) in plain.query if key not in after or after[key][0] != hashed]
    names = tuple(sorted([*differing, *(key for key in after if key not in before)]))
    if any(not name for name, _ in names):
        return  # ``x?`` and ``x``: no edit names a key without a name
    if names and [key for key in before if key in after] != [key for key in after if key in before]:
        yield "unordered", names
    elif names:
        yield "query", names
        if 1 < len(names) <= TOGETHER and not before.keys() & set(names):
            yield "fixed", ("", tuple((key, after[key][1]) for key in names))
        if all(key in before and key in after and not key[0].startswith(";") for key in names):
            yield "values", names
            if len(names) == 1:
                yield "value", (names[0], *sorted((before[names[0]][1], after[names[0]][1])))
    elif plain.query != page.query:
        yield "order", ()


def _path_difference(plain: list[str], page: list[str]) -> Iterator[Difference]:
    if [part.lower() for part in plain] == [part.lower() for part in page]:
        yield "case", ()
        return
    long, short = (page, plain) if len(page) >= len(plain) else (plain, page)
    start = begun_alike(short, long)
    end = begun_alike(short[start:][::-1], long[start:][::-1])
    middle_long, middle_short = long[start : len(long) - end], short[start : len(short) - end]
    if len(middle_long) == 1 and not middle_short:
        yield ("slash", ()) if middle_long == [""] else ("part", (start + 3, middle_long[0]))
        if end == 0 and middle_long != [""]:
            yield "last", (middle_long[0],)
    elif len(middle_long) == 1 and len(middle_short) == 1:
        a, b = sorted((middle_long[0], middle_short[0]))
        if end == 0 and a == "":
            yield "index", (b,)
        elif start == 0:
            yield "swap", (a, b)
        elif end == 0:
            yield "page", (a, b)
        for text, space in spaces_of_components(a, b):
            yield "spaces", (start + 3, text, space)
        if escaped(a, b):
            yield "escapes", (start + 3,)
        longer, shorter = sorted((a, b), key=len, reverse=True)
        if end == 0 and (ending := ending_of(longer, shorter)):
            yield "ending", (ending,)
        elif end == 0 and (infix := infix_of(longer, shorter)):
            yield "infix", infix
        elif end == 0 and (endings := exchanged(a, b)):
            yield "other ending", endings
