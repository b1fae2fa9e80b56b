"""Parameters in the path: ``/list/sort/price`` is ``/list``, ``/article/page/1`` is ``/article``.

Many frameworks write a parameter as two components, its name and its value. Koppula et al. 2010, definition 1 and
section 3.2: a component is a key with a position, irrelevant where pages of one content differ in it. Pages of one
content and one query of which one has two components more propose that these go wherever the first of them stands in
that place, counted from the start or from the end. Its values are judged as those of a parameter are (`contexts`):
that ``page/1`` may go says nothing about ``page/2``.

Cost: linear in the pages of a content, of which at most `proposing.COMPARED` are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.edit import PathEdit
from clusterd.learning.edits.proposing import PathsByQuery, begun_alike, by_paths, in_pairs

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 10
EDITS: Final = 8
#: Longest name.
LONGEST: Final = 40


class Place(NamedTuple):
    """A name and where it stands: components before it, or -2 where it is the last but one."""

    at: int
    name: str


#: The last but one.
LAST: Final = -2


@dataclass(frozen=True, slots=True)
class PathPair(PathEdit):
    """A name and its value in the path that go."""

    @property
    def value(self) -> Key:
        """The component that is the value."""
        return self.needs[1].key


def path_pairs(contents: Iterable[PathsByQuery]) -> list[PathPair]:
    """Return the edits that are worth judging, those of most contents first."""
    return [_edit(place) for place in by_paths(contents, _among, PROPOSED, EDITS)]


def _among(paths: list[list[str]]) -> Iterator[Place]:
    """Yield where a path has a name and a value more than a shorter one."""
    for short, long in in_pairs(sorted(paths, key=len)):
        if len(long) != len(short) + 2:
            continue
        at = begun_alike(short, long)
        name = long[at]
        if short[at:] == long[at + 2 :] and name.strip("0123456789") and len(name) <= LONGEST:
            yield Place(at, name)
            if at == len(long) + LAST:
                yield Place(LAST, name)


def _edit(place: Place) -> PathPair:
    at, name = place

    def change(parts: list[str]) -> list[str] | None:
        before = len(parts)
        while len(parts) >= (at + 2 if at >= 0 else -at) and parts[at] == name:
            parts = [*parts[:at], *parts[at:][2:]]
        return (parts or [""]) if len(parts) < before else None

    first, second = (component(at), component(at + 1)) if at >= 0 else (Key(end=2), Key(end=1))
    gone = (second, first) if at >= 0 else (second, second)  # what stood before it is the last now
    needs = (Condition(first, "is", (name,)), Condition(second, "any"))
    return PathPair(tuple(Edit(key, "delete") for key in gone), change, needs, beyond=second.start)
