"""Titles behind an identifier in the path: ``/p/12-any-title`` is ``/p/12``, whatever the title says.

Koppula et al. 2010, sections 3.1.2 and 3.3: of a component's deep tokens only the first matters. Pages of one content
and one query whose paths differ in what follows an identifier, or in whether anything does, propose that it goes from
paths of that depth. But the rule would leave ``my`` of ``/blog/my-trip``: where a component there begins with a word,
it is proposed for those prefixes alone behind which none does.

Cost: linear in the pages of a content, of which at most `COMPARED` are compared, and in the paths of the host where
anything is proposed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.components import AnyComponent
from clusterd.learning.edits.deep import IDENTIFIER
from clusterd.learning.evidence.columns import Rows, Snapshot

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 20
EDITS: Final = 4
#: Most pages of one content that are compared.
COMPARED: Final = 100

#: How many components a path has, which of them begins with the identifier (from 0), and the delimiter.
Place = tuple[int, int, str]
Prefix = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathTitle(AnyComponent):
    """A title of any words that does not matter."""


def path_titles(snapshot: Snapshot, clusters: Iterable[Rows]) -> list[PathTitle]:
    """Return the edits that are worth judging, those of most contents first."""
    counts: Counter[tuple[Place, Prefix]] = Counter()
    for rows in clusters:
        differing = chain.from_iterable(map(_among, snapshot.paths_by_query(rows[:COMPARED])))
        counts.update(dict.fromkeys(differing, 1))
    anywhere: Counter[Place] = Counter()
    for (place, _), count in counts.items():
        anywhere[place] += count
    places = {place for place, count in anywhere.items() if count >= PROPOSED}
    spoken = _spoken(snapshot, places)
    found: list[tuple[int, Place, Prefix]]
    found = [(count, place, ()) for place, count in anywhere.items() if place in places and not spoken[place]]
    found += [
        (count, place, prefix)
        for (place, prefix), count in counts.items()
        if count >= PROPOSED and prefix and spoken[place] and prefix not in spoken[place]
    ]
    return [_edit(place, prefix) for _, place, prefix in sorted(found, key=lambda one: (-one[0], one[1:]))[:EDITS]]


def _among(paths: list[list[str]]) -> set[tuple[Place, Prefix]]:
    """Return where paths differ in nothing but what follows an identifier, or in whether anything does."""
    titled: dict[tuple[Place, str, Prefix], set[str]] = defaultdict(set)
    bare: set[tuple[int, str, Prefix]] = set()
    for parts in paths:
        for at, text in enumerate(parts):
            found = IDENTIFIER.match(text)
            if found:
                titled[(len(parts), at, found[2]), found[1], _others(parts, at)].add(text)
            elif text.isdecimal():
                bare.add((at, text, _others(parts, at)))
    return {
        (place, others[: place[1]])
        for (place, identifier, others), texts in titled.items()
        if len(texts) + ((place[1], identifier, others) in bare) > 1
    }


def _others(parts: list[str], at: int) -> Prefix:
    return (*parts[:at], *parts[at + 1 :])


def _spoken(snapshot: Snapshot, places: set[Place]) -> dict[Place, set[Prefix]]:
    """Return the prefixes behind which a component has the delimiter and begins with anything but an identifier."""
    found: dict[Place, set[Prefix]] = {place: set() for place in places}
    items = snapshot.evidence.paths.items
    for number in snapshot.paths_present().tolist() if places else ():
        parts = str(items[number]).split("/")
        for place, prefixes in found.items():
            depth, at, delimiter = place
            if len(parts) == depth and delimiter in parts[at] and not parts[at].partition(delimiter)[0].isdecimal():
                prefixes.add(tuple(parts[:at]))
    return found


def _edit(place: Place, prefix: Prefix) -> PathTitle:
    depth, at, delimiter = place

    def change(parts: list[str]) -> list[str] | None:
        if len(parts) != depth or tuple(parts[: len(prefix)]) != prefix:
            return None
        identifier, there, _ = parts[at].partition(delimiter)
        return [*parts[:at], identifier, *parts[at + 1 :]] if there else None

    key = Key(start=3 + at)
    needs = [Condition(Key(), "depth", (str(depth),)), Condition(key, "like", (f"*{delimiter}*",))]
    needs += [Condition(Key(start=3 + place), "is", (text,)) for place, text in enumerate(prefix)]
    return PathTitle((Edit(key, "copy", source=Key(start=3 + at, deep=1)),), change, tuple(needs))
