"""Which edits are worth judging: what pages of one content differ in.

Each page is compared with the page before it in the order of their keys and with the plainest page of its content, so
that the work is linear in the size of a cluster. A difference counts once a content: a log-in page under a thousand
URLs proposes no more than an article under two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.aliases import aliases, renamed, without_part
from clusterd.learning.edits.deep import cuts, ending_of, infix_of, without_ending, without_infix
from clusterd.learning.edits.edit import Blank, Both, CandidateEdit, Drop, DropUnordered, PathEdit, Replace
from clusterd.learning.edits.fixed_values import TOGETHER, FixedPairs, fixed_edits
from clusterd.learning.edits.item_orders import item_orders, item_orders_in_paths
from clusterd.learning.edits.path_fields import path_fields
from clusterd.learning.edits.path_pairs import path_pairs
from clusterd.learning.edits.path_references import path_references
from clusterd.learning.edits.path_titles import path_titles
from clusterd.learning.edits.path_values import path_values
from clusterd.learning.edits.proposing import ValuePair
from clusterd.learning.edits.references import Plans, compared, references
from clusterd.learning.edits.spellings import (
    cases,
    decoded,
    form_spaces,
    spaces_in_path,
    spaces_of_components,
    wiki_spaces,
)
from clusterd.learning.edits.synonyms import synonyms
from clusterd.learning.evidence.columns import VALUELESS, Rows, Snapshot, by_number
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.trials.pooled import pools

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
#: Most candidates judged at a time.
CANDIDATES: Final = 80
#: Candidates besides, of the kinds that have the fewest among these.
ADDED: Final = 16
#: Clean trials that a kind of edit brings along: that order and spelling do not matter is what RFC 3986 and every
#: framework's query parser suggest; dropping something has to earn all of it.
PRIORS: Final = {"order": 17, "decode": 14, "form": 14, "index": 5, "slash": 5}

Difference = tuple[str, tuple[object, ...]]


def duplicates(snapshot: Snapshot) -> Iterator[Rows]:
    """Yield, for each content with several pages, its rows in the order of arrival; of very many contents a sample."""
    order = np.argsort(snapshot.content, kind="stable")
    content = snapshot.content[order]
    starts = np.flatnonzero(np.append(True, content[1:] != content[:-1])) if len(content) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(content))
    several = np.flatnonzero(ends - starts > 1)
    several = several[:: 1 + len(several) // CONTENTS]
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        yield order[start:end]


def differences(snapshot: Snapshot, clusters: Iterable[Rows]) -> Counter[Difference]:
    """Count, once a content, in what pages of one content differ."""
    found: Counter[Difference] = Counter()
    for taken in _pages_of(snapshot, clusters):
        seen: dict[Difference, int] = {}
        for at in range(1, len(taken)):
            for other in {0, at - 1}:
                for kind in _difference(taken[other], taken[at]):
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
    start = 0
    while start < len(short) and long[start] == short[start]:
        start += 1
    end = 0
    while end < len(short) - start and long[len(long) - 1 - end] == short[len(short) - 1 - end]:
        end += 1
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
        for text, space in spaces_of_components(a, b):
            yield "spaces", (start + 3, text, space)
        longer, shorter = sorted((a, b), key=len, reverse=True)
        if end == 0 and (ending := ending_of(longer, shorter)):
            yield "ending", (ending,)
        elif end == 0 and (infix := infix_of(longer, shorter)):
            yield "infix", infix


#: A candidate edit, with the clean trials that its kind brings along.
Candidate = tuple[CandidateEdit, int]


def proposals(snapshot: Snapshot) -> tuple[list[Candidate], list[Candidate]]:
    """Return the deletions of all parameters that together do not matter, and the others, the best supported first."""
    clusters = list(duplicates(snapshot))
    counted = differences(snapshot, clusters)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], repr(item[0])))
    found: list[Candidate] = []
    names: list[tuple[ColumnKey, ...]] = []
    for (kind, what), support in ranked:
        if kind != "order" and support < (2 if kind in PRIORS else PROPOSED):
            continue
        if kind == "query":
            names.append(what)  # type: ignore[arg-type]
        if kind == "value":
            found += [(edit, 0) for edit in _replacements(snapshot, *what)]  # type: ignore[arg-type]
        elif kind in EDITS:
            found.append((EDITS[kind](*what), PRIORS.get(kind, 0)))
    elsewhere = [rows for rows in clusters if (snapshot.path[rows] != snapshot.path[rows[0]]).any()]
    plans = Plans(snapshot)
    compared_pages = [list(compared(snapshot, rows, plans)) for rows in clusters]
    values: list[ValuePair] = [(*what, count) for (kind, what), count in counted.items() if kind == "value"]  # type: ignore[misc]
    edits: Iterable[CandidateEdit] = chain(
        map(Drop, joint(names)),
        _fixed(snapshot, counted),
        aliases(snapshot, elsewhere),
        references(snapshot, compared_pages),
        path_references(snapshot, clusters),
        path_values(snapshot, elsewhere),
        synonyms(snapshot, compared_pages),
        path_titles(snapshot, elsewhere),
        path_pairs(snapshot, elsewhere),
        path_fields(snapshot, elsewhere),
        item_orders_in_paths(snapshot, elsewhere),
        item_orders(snapshot, values),
        cases(snapshot, values),
        wiki_spaces(snapshot, values),
    )
    found += [(edit, 0) for edit in edits]
    found += [(spelling, PRIORS["form"]) for spelling in form_spaces(snapshot)]
    found += [(decoded(key), PRIORS["decode"]) for key in _escaped(snapshot)]
    found += [(cut, 0) for cut in cuts(snapshot, values)]
    pooled = _pools(snapshot, counted)
    return pooled, fairly([offer for offer in found if offer not in pooled], CANDIDATES - len(pooled))


def fairly(offers: list[Candidate], room: int) -> list[Candidate]:
    """Return the first offers, and of those that there is no room for the best of each kind of edit in turn."""
    kinds: Counter[type] = Counter()
    ranks: list[tuple[int, int]] = []
    for place, (edit, _) in enumerate(offers):
        ranks.append((kinds[type(edit)], place))
        kinds[type(edit)] += 1
    added = sorted(place for _, place in sorted(ranks[room:])[:ADDED])
    return offers[:room] + [offers[place] for place in added]


def _pools(snapshot: Snapshot, counted: Counter[Difference]) -> list[Candidate]:
    """Return the deletions of all parameters that together do not matter, where there are several."""
    differing: Counter[ColumnKey] = Counter()
    unordered = False
    for (kind, what), support in counted.items():
        if kind in {"query", "unordered"}:
            unordered |= kind == "unordered"
            for key in what:
                differing[key] += support  # type: ignore[index]
    found = pools(snapshot, Counter({key: count for key, count in differing.items() if count >= PROPOSED}))
    return [(DropUnordered(keys) if unordered else Drop(keys), 0) for keys in found]


def _replacements(snapshot: Snapshot, key: ColumnKey, first: int, second: int) -> list[CandidateEdit]:
    """Return the edit that writes one of two values as the other: always in one direction, so that rules stay."""
    texts = snapshot.columns[key].column
    first, second = sorted((first, second), key=texts.text)
    kept, gone = texts.text(first), texts.text(second)
    if VALUELESS in {kept, gone}:
        return []
    return [Replace((key,), second, gone, kept)]


def joint(names: list[tuple[ColumnKey, ...]]) -> list[tuple[ColumnKey, ...]]:
    """Return sets of parameters to drop together that were not seen so: unions of those seen, where they overlap."""
    found: dict[tuple[ColumnKey, ...], None] = {}
    for first in names[:12]:
        for second in names[:12]:
            union = tuple(sorted({*first, *second}))
            if len(union) <= 6 and set(first) & set(second) and union not in names:
                found[union] = None
    return list(found)


def _fixed(snapshot: Snapshot, counted: Counter[Difference]) -> Iterator[CandidateEdit]:
    """Yield the edits of parameters at stated values."""
    fixed: Counter[tuple[str, FixedPairs]] = Counter()
    for (kind, what), support in counted.items():
        if kind == "fixed":
            fixed[what] = support  # type: ignore[index]
    index = {name: _index(name) for name, _ in fixed if name}
    return fixed_edits(snapshot, fixed, index, PROPOSED)


def _escaped(snapshot: Snapshot) -> list[ColumnKey]:
    return [
        key
        for key, column in snapshot.columns.items()
        if len(column.column.numbers) <= COMPARED * 10
        and not key[0].startswith(";")
        and any("%" in text for text in column.column.numbers)
    ]


def _without_slash(parts: list[str]) -> list[str] | None:
    return parts[:-1] if len(parts) > 1 and parts[-1] == "" else None


def _index(name: str) -> PathEdit:
    return PathEdit(
        (Edit(Key(end=1), "set", ""),),
        lambda parts: [*parts[:-1], ""] if parts[-1] == name else None,
        (Condition(Key(end=1), "is", (name,)),),
    )


def _last(name: str) -> PathEdit:
    """``/about/index.html`` is ``/about``, where a server knows folders without their slash."""
    return PathEdit(
        (Edit(Key(end=1), "delete"),),
        lambda parts: parts[:-1] if len(parts) > 1 and parts[-1] == name else None,
        (Condition(Key(end=1), "is", (name,)),),
    )


def _lower() -> PathEdit:
    return PathEdit((Edit(Key(), "lower"),), lambda parts: [part.lower() for part in parts])


def _slash() -> PathEdit:
    return PathEdit((Edit(Key(end=1), "delete"),), _without_slash, (Condition(Key(end=1), "is", ("",)),))


#: By the kind of a difference the edit that takes it away, made of what differs.
EDITS: Final[dict[str, Callable[..., CandidateEdit]]] = {
    "order": lambda: DropUnordered(()),
    "query": lambda *names: Drop(names),
    "unordered": lambda *names: DropUnordered(names),
    "index and query": lambda name, *names: Both(_index(name), Drop(names)),
    "values": lambda *names: Blank(names),
    "case": _lower,
    "slash": _slash,
    "index": _index,
    "last": _last,
    "part": without_part,
    "ending": without_ending,
    "infix": without_infix,
    "spaces": spaces_in_path,
    "swap": lambda kept, gone: renamed(gone, kept),
}
