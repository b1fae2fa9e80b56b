"""Walls that stand before any path and any value: ``/node/12/edit?destination=node/12``, ``/tasks/EditForm.aspx?ID=7``.

What `paths` is to queries that are the same value by value, this is to those of which parameters take ever new values,
as they say where to go on or which item is meant. As two things may have any value at once, more is asked of it:

- what the pages show is a wall: other pages show it, too, as the log-in page itself does. A text that says that there
  is nothing, of this kind of pages alone, is none;
- none of them shows anything else;
- twice as many paths were tried as make a family. Where there are fewer, each of them that was tried (`TOGETHER` times)
  is of it, if the pages are as many, and others are not: they may hold other things.

Cost: that of `paths` for each set of parameter names under which a common page stands with ever new values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from clusterd_crawler.urls import in_query

from clusterd.learning.evidence.arrays import Hashes, Rows, by_number, distinct
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.joint import ALONE
from clusterd.learning.families.one_page import new_valued, one_page
from clusterd.learning.families.paths import by_folder, family, of_places
from clusterd.learning.trials.contexts import Proposal

#: Fewest pages of a wall: where 1.5 % differ, so many clean ones in a row are luck in 4 % of orders, those of a family
#: in 20 %.
WALL: Final = 2 * ALONE + 1
#: Stands for the path among the parameters (none has the number).
PATH: Final = ("", 0)


def walls(snapshot: Snapshot) -> Iterator[Proposal]:
    """Yield the one-page families whose paths differ as well as parameters that take ever new values."""
    for content in np.flatnonzero(np.bincount(snapshot.content) >= WALL).tolist():
        rows = np.flatnonzero(snapshot.content == content)
        for alike in by_number(snapshot.shape[rows], rows):
            dropped = _dropped(snapshot, alike) if len(alike) >= WALL else ()
            if dropped:
                yield from _of_shape(snapshot, alike, dropped)


def _dropped(snapshot: Snapshot, rows: Rows) -> tuple[ColumnKey, ...]:
    """Return the parameters that take ever new values on pages of one shape, be it within each path."""
    shape = snapshot.shape_of(rows[0])
    if not all(in_query(name) for name, _ in shape):
        return ()
    values = {key: snapshot.values(key)[rows] for key in shape}
    return tuple(key for key in new_valued({**values, PATH: snapshot.path[rows]}) if key != PATH)


def _of_shape(snapshot: Snapshot, rows: Rows, dropped: tuple[ColumnKey, ...]) -> Iterator[Proposal]:
    shape, content = snapshot.shape[rows[0]], snapshot.content[rows[0]]
    for place, found in of_places(snapshot, _without(snapshot, int(shape), dropped), [rows]):
        members = found[snapshot.shape[found] == shape]  # less those of families that were accepted meanwhile
        if (snapshot.content[members] != content).any() or not _is_elsewhere(snapshot, members, content):
            continue
        if len(distinct(snapshot.path[members])) >= WALL:
            yield from family(snapshot, members, one_page(snapshot, members), list(place[0]), dropped)
        elif len(place[0]) == 1:
            members, outcome = by_folder(snapshot, by_number(snapshot.path[members], members))
            if len(members) >= WALL:
                yield from family(snapshot, members, outcome, [], dropped)


def _without(snapshot: Snapshot, shape: int, dropped: tuple[ColumnKey, ...]) -> Hashes:
    """Return a number for each page's query, less the values of parameters where it has this shape."""
    query: Hashes = snapshot.key - snapshot.evidence.paths.table()[snapshot.path]
    for key in dropped:
        column = snapshot.columns[key]
        chosen = column.alive & (snapshot.shape[column.rows] == shape)
        query[column.rows[chosen]] -= column.hashes[chosen]
    return query


def _is_elsewhere(snapshot: Snapshot, members: Rows, content: int) -> bool:
    """Whether other pages show the content, too."""
    return bool(np.count_nonzero(snapshot.content == content) > len(members))
