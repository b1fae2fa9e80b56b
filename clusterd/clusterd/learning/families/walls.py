"""Walls that stand before any path and any value: ``/node/12/edit?destination=node/12``, ``/tasks/EditForm.aspx?ID=7``.

What `paths` is to queries that are the same value by value, this is to those of which parameters take ever new values,
as they say where to go on or which item is meant. Of the path a component may have any value, too, or all of them where
the query has a value that stays (``/page?do=login&sectok=NEW``). As two things may have any value at once, more is
asked of it:

- what the pages show is a wall: other pages show it, too, as the log-in page itself does. A text that says that there
  is nothing, of this kind of pages alone, with such parameters or without, is none;
- none of them shows anything else;
- twice as many paths were tried as make a family. Where there are fewer, each of them that was tried (`TOGETHER` times)
  is of it, if the pages are as many, and others are not: they may hold other things.

Cost: that of `paths` for each of `FORMS` sets of parameter names under which common pages stand with ever new values,
among the paths with such names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Hashes, Rows, as_array, by_number, distinct
from clusterd.learning.evidence.shapes import ColumnKey, has_names, without
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.joint import ALONE
from clusterd.learning.families.one_page import new_valued, one_page
from clusterd.learning.families.paths import (
    Place,
    any_path,
    by_folder,
    family,
    of_any_path,
    of_folders,
    of_places,
    queries,
    stands_at,
)
from clusterd.learning.trials.contexts import Proposal

#: Fewest pages of a wall: where 1.5 % differ, so many clean ones in a row are luck in 4 % of orders, those of a family
#: in 20 %.
WALL: Final = 2 * ALONE + 1
#: Most forms that are looked for, those first that first had enough pages: by size, one that a rule keeps out would be
#: overtaken by others, lose its rule, and grow again.
FORMS: Final = 64
#: The number of a shape, and its parameters that take ever new values.
Form = tuple[int, tuple[ColumnKey, ...]]
#: Stands for the path among the parameters (none has the number).
PATH: Final = ("", 0)


def walls(snapshot: Snapshot) -> Iterator[Proposal]:
    """Yield the one-page families whose paths differ as well as parameters that take ever new values."""
    forms: dict[Form, list[Rows]] = defaultdict(list)
    for content in np.flatnonzero(np.bincount(snapshot.content) >= WALL).tolist():
        rows = np.flatnonzero(snapshot.content == content)
        for alike in by_number(snapshot.shape[rows], rows):
            dropped = _dropped(snapshot, alike) if len(alike) >= WALL else ()
            if dropped:
                forms[int(snapshot.shape[alike[0]]), dropped].append(alike)
    query = queries(snapshot) if forms else np.zeros(0, np.uint64)
    for form in sorted(forms, key=lambda form: _enough_since(forms[form]))[:FORMS]:
        yield from _of_form(snapshot, query, form, forms[form])


def _enough_since(proposing: list[Rows]) -> int:
    """Return the page with which a form first had enough of one content."""
    return min(int(rows[WALL - 1]) for rows in proposing)


def _dropped(snapshot: Snapshot, rows: Rows) -> tuple[ColumnKey, ...]:
    """Return the parameters that take ever new values on pages of one shape, be it within each path."""
    shape = snapshot.shape_of(rows[0])
    if not has_names(shape):
        return ()
    values = {key: snapshot.values(key)[rows] for key in shape}
    return tuple(key for key in new_valued({**values, PATH: snapshot.path[rows]}) if key != PATH)


def _of_form(snapshot: Snapshot, query: Hashes, form: Form, proposing: list[Rows]) -> Iterator[Proposal]:
    shape, dropped = form
    less, rows = _less(snapshot, query, shape, dropped), np.flatnonzero(snapshot.shape == shape)
    if len(rows) and len(snapshot.shape_of(rows[0])) > len(dropped):
        for found, paths in of_any_path(snapshot, less, np.concatenate(proposing), rows):
            if not _is_wall(snapshot, found, any_path(snapshot, found[0]), dropped):
                continue
            members, outcome, free = of_folders(snapshot, found, paths)
            if len(distinct(snapshot.path[members])) >= WALL:
                yield from family(snapshot, members, outcome, free, dropped)
    for place, found in of_places(snapshot, less, proposing, distinct(snapshot.path[rows])):
        members = found[snapshot.shape[found] == shape]  # less those of families that were accepted meanwhile
        if len(members) < WALL or not _is_wall(snapshot, members, place, dropped):
            continue
        if len(distinct(snapshot.path[members])) >= WALL:
            yield from family(snapshot, members, one_page(snapshot, members), list(place[0]), dropped)
        elif len(place[0]) == 1:
            members, outcome = by_folder(snapshot, by_number(snapshot.path[members], members))
            if len(members) >= WALL:
                yield from family(snapshot, members, outcome, [], dropped)


def _is_wall(snapshot: Snapshot, members: Rows, place: Place, dropped: tuple[ColumnKey, ...]) -> bool:
    """Whether all of these pages show one content, and others show it, too, that are not the same less what is dropped.

    As they were fetched: these may be a family by now.
    """
    shown = distinct(snapshot.content[members])
    if len(shown) != 1:
        return False
    evidence = snapshot.evidence
    others = np.flatnonzero((snapshot.content == shown[0]) & ~snapshot.flags(members))
    bare = evidence.shapes.number(without(snapshot.shape_of(members[0]), dropped))
    is_bare = as_array(evidence.shape_numbers)[others] == bare
    if not is_bare.all():
        return True
    paths = distinct(as_array(evidence.path_numbers)[others])
    return any(not stands_at(place, evidence.paths.parts(path)) for path in paths.tolist())


def _less(snapshot: Snapshot, query: Hashes, shape: int, dropped: tuple[ColumnKey, ...]) -> Hashes:
    """Return the numbers of the pages' queries, less the values of parameters where they have this shape."""
    query = query.copy()
    for key in dropped:
        column = snapshot.columns[key]
        chosen = column.alive & (snapshot.shape[column.rows] == shape)
        query[column.rows[chosen]] -= column.hashes[chosen]
    return query
