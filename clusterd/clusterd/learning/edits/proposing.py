"""What is proposed most: of paths that differ on pages of one content, of pages with a query beside pages without, and
of values of a parameter that differ.

Cost: linear in the pages of a content, of which at most `COMPARED` are compared, and in the pairs of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from clusterd_crawler.urls import in_query

from clusterd.learning.evidence.arrays import Rows
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: Most pages of one content that are compared.
COMPARED: Final = 100
#: The same, of pages with a query and pages without; and most parameters of the ones, most components of the others.
BESIDE: Final = 20
PARTS: Final = 6

Place = TypeVar("Place", bound=tuple[object, ...])
Made = TypeVar("Made", bound=Hashable)
#: A page, or its path, as it is compared.
Page = TypeVar("Page")
#: Path and parameters of a page, and the components of one of its content that has no query.
Beside = tuple[str, dict[ColumnKey, str], list[str]]
#: Of a content the paths of its pages, in components, those of one query together.
PathsByQuery = list[list[list[str]]]
#: A parameter, the numbers of two of its values, and how many contents show a page with either.
ValuePair = tuple[ColumnKey, int, int, int]


def differing_paths(snapshot: Snapshot, clusters: Iterable[Rows]) -> list[PathsByQuery]:
    """Return of each content the paths that differ on pages of one query."""
    found = (list(snapshot.paths_by_query(rows[:COMPARED])) for rows in clusters)
    return [of_content for of_content in found if of_content]


def by_paths(
    contents: Iterable[PathsByQuery], among: Callable[[list[list[str]]], Iterable[Place]], fewest: int, most: int
) -> list[Place]:
    """Return what ``among`` says most often of paths of one content and one query: ``fewest`` times, and ``most``."""
    counts: Counter[Place] = Counter()
    for of_content in contents:
        for paths in of_content:
            counts.update(set(among(paths)))
    return list(ranked(counts, fewest))[:most]


def by_plain_pages(
    snapshot: Snapshot,
    clusters: Iterable[Rows],
    between: Callable[[str, dict[ColumnKey, str], list[str]], Iterable[Made]],
    fewest: int,
    most: int,
) -> list[Made]:
    """Return what ``between`` says of the most contents, of so many or more: of a page with plain parameters (path,
    parameters) and one of its content without a query (components).
    """
    counts: Counter[Made] = Counter()
    for rows in clusters:
        beside = _beside_plain(snapshot, rows[:BESIDE])
        counts.update(dict.fromkeys(chain.from_iterable(between(*pages) for pages in beside), 1))
    return [found for found, count in counts.most_common(most) if count >= fewest]


def _beside_plain(snapshot: Snapshot, rows: Rows) -> Iterator[Beside]:
    items = snapshot.evidence.paths.items
    shapes = [snapshot.shape_of(row) for row in rows.tolist()]
    paths = [items[path] for path in snapshot.path[rows].tolist()]
    written = dict.fromkeys(path for path, shape in zip(paths, shapes, strict=True) if shape == ())
    plain = [parts for parts in (path.split("/") for path in written) if len(parts) <= PARTS]
    for row, path, shape in zip(rows.tolist(), paths, shapes, strict=True) if plain else ():
        if shape and len(shape) <= PARTS and all(is_plain(key) for key in shape):
            pairs = {key: snapshot.text(key, row) for key in shape}
            yield from ((path, pairs, parts) for parts in plain)


def in_pairs(pages: Sequence[Page]) -> Iterator[tuple[Page, Page]]:
    """Yield what pages are compared: each but the first with the first, and with the one before it.

    >>> list(in_pairs("abcd"))
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'd'), ('c', 'd')]
    """
    for at, page in enumerate(pages[1:]):
        yield pages[0], page
        if at:
            yield pages[at], page


def begun_alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many components two paths, or characters two texts, begin with in common.

    >>> begun_alike(["a", "b", "c"], ["a", "b"]), begun_alike("red-shoe", "red-hat"), begun_alike("a", "b")
    (2, 4, 0)
    """
    differing = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def is_plain(key: ColumnKey) -> bool:
    """Whether a parameter stands in the query, and is the first of its name there."""
    return in_query(key[0]) and key[1] == 1


def by_values(
    snapshot: Snapshot, pairs: Iterable[ValuePair], alike: Callable[[str, str], Iterable[str]], fewest: int
) -> Iterator[tuple[ColumnKey, str]]:
    """Yield (parameter, way) of the ways in which ``alike`` says two values are one, for so many contents or more."""
    counts: Counter[tuple[ColumnKey, str]] = Counter()
    for key, first, second, count in pairs:
        text = snapshot.columns[key].column.text
        for way in alike(text(first), text(second)):
            counts[key, way] += count
    return ranked(counts, fewest)


def ranked(counts: Counter[Place], fewest: int) -> Iterator[Place]:
    """Yield what was counted so often or more, the most frequent first."""
    for what, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count >= fewest:
            yield what
