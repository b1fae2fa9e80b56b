"""What is proposed most: of paths that differ on pages of one content, and of values of a parameter that do.

Cost: linear in the pages of a content, of which at most `COMPARED` are compared, and in the pairs of values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from clusterd.learning.evidence.columns import Rows, Snapshot
from clusterd.learning.evidence.shapes import ColumnKey

#: Most pages of one content that are compared.
COMPARED: Final = 100

Place = TypeVar("Place", bound=tuple[object, ...])
#: A parameter, the numbers of two of its values, and how many contents show a page with either.
ValuePair = tuple[ColumnKey, int, int, int]


def by_paths(
    snapshot: Snapshot,
    clusters: Iterable[Rows],
    among: Callable[[list[list[str]]], Iterable[Place]],
    fewest: int,
    most: int,
) -> list[Place]:
    """Return what ``among`` says most often of paths of one content and one query: ``fewest`` times, and ``most``."""
    counts: Counter[Place] = Counter()
    for rows in clusters:
        for paths in snapshot.paths_by_query(rows[:COMPARED]):
            counts.update(set(among(paths)))
    return list(ranked(counts, fewest))[:most]


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
