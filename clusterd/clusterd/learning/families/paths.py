"""Families that answer with one page whatever their path: ``/login/NAME``, ``/posts/12/edit``, ``/page?do=login``.

What `one_page` is to a parameter, this is to the path: members share query and path but for

1. where there is a query, the whole path: ``do=login`` is one form for every page of a wiki. Where the first components
   are few, as folders are, each that was tried (`TOGETHER` times) may have a page of its own, as ``do=index`` has, and
   others are not of the family: they may hold other things;
2. one component of the path: ``/posts/*/edit``, ``/login/*/``;
3. several that take ever new values, each: ``/compare/add/*/from/*``. The others have the same values in all members.

The query is the same in all members, value by value (`walls` has those in which it is not), and so is the number of
components; of those that may have any value none is empty but the last.

Cost: a pass over the paths of the host, and one over those of pages that many others show for each of their components;
another of both where several of these take new values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.both import Both
from clusterd.learning.edits.edit import CandidateEdit, Drop, PathEdit
from clusterd.learning.evidence.arrays import Hashes, Rows, by_number, distinct, numbered
from clusterd.learning.evidence.shapes import ColumnKey, has_names
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.one_page import FAMILY, FAMILY_BOUND, bound_of, brings_new_values, one_page, said_of
from clusterd.learning.families.value_forms import FORMS
from clusterd.learning.trials.agreement import Outcome
from clusterd.learning.trials.attributes import one_of
from clusterd.learning.trials.contexts import Proposal
from clusterd.learning.trials.tried_together import TOGETHER

#: Most components of a path that is looked at.
DEPTH: Final = 12
#: Most pages of one content that propose families of one component, and most of these that are judged at a time.
PROPOSING: Final = 2000
CANDIDATES: Final = 64
#: Most forms of paths, so many components of which these take new values, that are looked for among all paths.
FORMS_OF_PATHS: Final = 8

#: The components that may have any value (from 0), and the path with `ANY` in the place of each.
Place = tuple[tuple[int, ...], str]
#: Stands for such a component (no canonical path holds the character).
ANY: Final = "\x00"


def path_families(snapshot: Snapshot) -> Iterator[Proposal]:
    """Yield the one-page families of the evidence whose paths differ."""
    counts = np.bincount(snapshot.content)
    if not (counts >= TOGETHER).any():
        return
    query = queries(snapshot)
    common = np.flatnonzero((counts >= TOGETHER)[snapshot.content])
    for rows, paths in of_any_path(snapshot, query, common, np.arange(len(snapshot))):
        members, outcome, free = of_folders(snapshot, rows, paths)
        yield from family(snapshot, members, outcome, free)
    large = [np.flatnonzero(snapshot.content == content) for content in np.flatnonzero(counts >= FAMILY).tolist()]
    for place, members in of_places(snapshot, query, large, snapshot.paths_present()):
        yield from family(snapshot, members, one_page(snapshot, members), list(place[0]))


def queries(snapshot: Snapshot) -> Hashes:
    """Return a number for each page's query: the same for one query, whatever edits of paths are accepted meanwhile."""
    query: Hashes = snapshot.key - snapshot.evidence.paths.table()[snapshot.path]
    return query


def of_any_path(
    snapshot: Snapshot, query: Hashes, proposing: Rows, among: Rows
) -> Iterator[tuple[Rows, list[list[str]]]]:
    """Yield the pages that may be a family of one query, of as many components each, with their components.

    ``proposing``: pages of common contents; ``among``: the pages that are looked at.
    """
    found, counts = np.unique(query[proposing], return_counts=True)
    common = found[counts >= FAMILY]
    order = among[np.argsort(query[among], kind="stable")] if len(common) else among[:0]
    starts, ends = (np.searchsorted(query[order], common, side) for side in ("left", "right"))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = order[start:end]
        if snapshot.shape_of(rows[0]) != ():
            yield from _of_one_depth(snapshot, rows)


def _of_one_depth(snapshot: Snapshot, rows: Rows, fewest: int = FAMILY) -> Iterator[tuple[Rows, list[list[str]]]]:
    """Yield those of the pages that have as many components, and end with a slash or not, with their components."""
    forms: dict[tuple[int, bool], list[tuple[int, list[str]]]] = defaultdict(list)
    for row, path in zip(rows.tolist(), snapshot.path[rows].tolist(), strict=True):
        parts = snapshot.evidence.paths.parts(path)
        if len(parts) <= DEPTH and all(parts[:-1]):
            forms[len(parts), not parts[-1]].append((row, parts))
    for _, found in sorted(forms.items()):
        if len(found) >= fewest:
            yield np.array([row for row, _ in found], np.int64), [parts for _, parts in found]


def of_folders(snapshot: Snapshot, members: Rows, paths: list[list[str]]) -> tuple[Rows, Outcome | None, list[int]]:
    """Return which of the pages are a family, what they say together, and which components may have any value."""
    free = [at for at, part in enumerate(paths[0]) if part or at < len(paths[0]) - 1]
    folders = by_number(numbered([parts[0] for parts in paths]), members)
    if len(folders) > FORMS:
        return members, one_page(snapshot, members), free
    return *by_folder(snapshot, folders), free[1:]


def by_folder(snapshot: Snapshot, folders: list[Rows]) -> tuple[Rows, Outcome | None]:
    """Judge the pages of each folder as one page; return the pages of those that are, and what they say together."""
    judged = ((members, one_page(snapshot, members, TOGETHER)) for members in folders)
    clean = [(members, found) for members, found in judged if found is not None and not found.differed]
    if not clean:
        return folders[0][:0], None
    outcomes = [found for _, found in clean]
    group = np.repeat(np.arange(len(clean)), [len(found.rows) for found in outcomes])
    agreed = sum(found.agreed for found in outcomes)
    rows, good, content = (
        np.concatenate([getattr(found, name) for found in outcomes]) for name in ("rows", "good", "content")
    )
    return np.concatenate([members for members, _ in clean]), Outcome(rows, good, group, content, agreed, 0)


def of_places(snapshot: Snapshot, query: Hashes, large: list[Rows], among: Rows) -> Iterator[tuple[Place, Rows]]:
    """Yield the places that most pages propose, with all pages of one query that stand there.

    ``large``: the pages of each content that proposes any; ``query``: a number for what queries have to have in common;
    ``among``: the paths that are looked at.
    """
    for proposed, paths_of in (
        (_of_one_component(snapshot, query, large), _by_place),
        (_of_several(snapshot, query, large), _by_form),
    ):
        best = sorted(proposed, key=lambda key: (-proposed[key], key))[:CANDIDATES]
        paths = paths_of(snapshot, [place for place, _ in best], among) if best else {}
        for place, one in best:
            members = np.flatnonzero(np.isin(snapshot.path, paths.get(place, [])) & (query == np.uint64(one)))
            if len(members) >= FAMILY:
                yield place, members


def stands_at(place: Place, parts: list[str]) -> bool:
    """Whether a path is one of a place."""
    return len(parts) == place[1].count("/") + 1 and _without(parts, place[0]) == place


def any_path(snapshot: Snapshot, row: int) -> Place:
    """Return the place in which all paths stand that have as many components as a page's."""
    parts = snapshot.evidence.paths.parts(int(snapshot.path[row]))
    return _without(parts, tuple(range(len(parts))))


def _of_one_component(snapshot: Snapshot, query: Hashes, large: list[Rows]) -> Counter[tuple[Place, int]]:
    """Return how many pages of common contents have one query, and one path but for a component."""
    proposed: Counter[tuple[Place, int]] = Counter()
    for rows in large:
        step = 1 + len(rows) // PROPOSING
        counted: Counter[tuple[Place, int]] = Counter()
        for path, one in zip(snapshot.path[rows[::step]].tolist(), query[rows[::step]].tolist(), strict=True):
            counted.update((place, one) for place in _places(snapshot.evidence.paths.parts(path)))
        proposed.update({key: count * step for key, count in counted.items() if count * step >= FAMILY})
    return proposed


def _places(parts: list[str]) -> Iterator[Place]:
    """Yield the components of a path that may have any value: not the only one, nor one that is not there.

    The last may be: what a folder shows, it may show for all that is in it.
    """
    if len(parts) > DEPTH:
        return
    for at, part in enumerate(parts):
        rest = [*parts[:at], *parts[at + 1 :]]
        if any(rest) and (part or at == len(parts) - 1):
            yield (at,), "/".join([*parts[:at], ANY, *parts[at + 1 :]])


def _by_place(snapshot: Snapshot, wanted: list[Place], among: Rows) -> dict[Place, list[int]]:
    """Return of these paths those of each of these places of one component."""
    asked = set(wanted)
    found: dict[Place, list[int]] = defaultdict(list)
    for path in among.tolist():
        for place in _places(snapshot.evidence.paths.parts(path)):
            if place in asked:
                found[place].append(path)
    return found


def _of_several(snapshot: Snapshot, query: Hashes, large: list[Rows]) -> Counter[tuple[Place, int]]:
    """Return how many pages of common contents have one query, and one path but for components that take new values."""
    proposed: Counter[tuple[Place, int]] = Counter()
    for rows in large:
        step = 1 + len(rows) // PROPOSING
        some = rows[::step]
        for alike in by_number(query[some], some):
            one = int(query[alike[0]])
            for _, paths in _of_one_depth(snapshot, alike, -(-FAMILY // step)):
                free = _new_valued(paths)
                if len(free) > 1:
                    counted = Counter((_without(parts, free), one) for parts in paths)
                    proposed.update({key: count * step for key, count in counted.items() if count * step >= FAMILY})
    return proposed


def _by_form(snapshot: Snapshot, wanted: list[Place], among: Rows) -> dict[Place, list[int]]:
    """Return of these paths those of each of these places, of the first `FORMS_OF_PATHS` forms."""
    forms = list(dict.fromkeys((path.count("/") + 1, free) for free, path in wanted))[:FORMS_OF_PATHS]
    asked = set(wanted)
    found: dict[Place, list[int]] = defaultdict(list)
    for path in among.tolist():
        parts = snapshot.evidence.paths.parts(path)
        for free in [free for depth, free in forms if depth == len(parts) and all(parts[:-1])]:
            place = _without(parts, free)
            if place in asked:
                found[place].append(path)
    return found


def _new_valued(paths: list[list[str]]) -> tuple[int, ...]:
    """Return the components that take a new value on nearly every page, where others are there that do not."""
    columns = map(numbered, zip(*paths, strict=True))
    free = tuple(at for at, values in enumerate(columns) if brings_new_values(values))
    return free if any(part for at, part in enumerate(paths[0]) if at not in free) else ()


def _without(parts: list[str], free: tuple[int, ...]) -> Place:
    return free, "/".join(ANY if at in free else part for at, part in enumerate(parts))


def family(
    snapshot: Snapshot, members: Rows, outcome: Outcome | None, free: list[int], dropped: tuple[ColumnKey, ...] = ()
) -> Iterator[Proposal]:
    """Yield the family of these pages, if it holds, in which these components and parameters have any value."""
    reached = bound_of(snapshot, outcome) if outcome is not None else 0.0
    if outcome is None or reached < FAMILY_BOUND:
        return
    query = _query_of(snapshot, int(members[0]), dropped)
    if query is None:
        return
    paths = [snapshot.evidence.paths.parts(path) for path in distinct(snapshot.path[members]).tolist()]
    depth = len(paths[0])
    fixed = [one_of(component(at), {parts[at] for parts in paths}) for at in range(depth) if at not in free]
    conditions = [*fixed, Condition(Key(), "depth", (str(depth),)), *query]
    yield Proposal(_any_value(free, depth, dropped), snapshot.flags(members), conditions, outcome, reached)


def _query_of(snapshot: Snapshot, row: int, dropped: tuple[ColumnKey, ...]) -> list[Condition] | None:
    """Return the conditions that say a page's query, value by value; None where they cannot be written."""
    shape = snapshot.shape_of(row)
    if not has_names(shape):
        return None
    said = said_of(snapshot, [(key, snapshot.values(key)[[row]]) for key in shape if key not in dropped])
    there = [Condition(Key(*key), "any") for key in dropped]
    only = Condition(Key(), "only", tuple(sorted({name for name, _ in shape})))
    return None if said is None else [*said, *there, only]


def _any_value(free: list[int], depth: int, dropped: tuple[ColumnKey, ...]) -> CandidateEdit:
    def change(parts: list[str]) -> list[str] | None:
        if len(parts) != depth:
            return None
        return ["*" if at in free else part for at, part in enumerate(parts)]

    keys = [Key(end=1) if at == depth - 1 else component(at) for at in free]
    path = PathEdit(tuple(Edit(key, "set", "*") for key in keys), change)
    if not dropped:
        return path
    return Both(path, Drop(dropped)) if free else Drop(dropped)
