"""Parameters that do not matter, found together: campaign tags of which a URL bears some, and hardly two the same.

Where ten such parameters come and go, pages of one content mostly differ in several of them, in other ones each time:
no set is proposed often, and what one parameter does alone is hardly ever tried. So all that pages of one content
differ in are dropped at once, and those by which the pages that this brings together still differ are kept, the worst
first, until each of the others has a record of its own: what it tells apart once the others are dropped. (`contexts`
judges what is left as it does any edit, and `tried_together` lets through no combination that says less.)

A filter matters to a list and not to an article: what holds on one part of a site is found from that part's pages.

Cost: a judgement of each parameter for each that is kept, of the pages that all of them bring together (`PAGES` at
most); the same for each part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Hashes, Rows
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import Outcome, judge
from clusterd.learning.trials.attributes import path_attributes

#: Fewest parameters of a pool (of two, what is proposed is enough), and most.
FEWEST: Final = 3
MOST: Final = 40
#: Fewest agreements of each.
RECORD: Final = 18
#: Most pages that are judged.
PAGES: Final = 20_000
#: Most of the pages brought together by which a parameter may differ that belongs to the pool.
DIFFER: Final = 0.01
#: What differs for this share of the pages of the worst is kept with it.
AS_BAD: Final = 0.9
#: Parts of a site that are looked at by themselves: values of each of the first two components, the most common ones.
PARTS: Final = 4


def pools(snapshot: Snapshot, differing: Counter[ColumnKey]) -> list[tuple[ColumnKey, ...]]:
    """Return sets of parameters that together do not matter, of those that pages of one content differ in.

    Of the whole site and of its parts, the largest first.
    """
    keys = sorted(key for key, _ in sorted(differing.items(), key=lambda item: (-item[1], item[0]))[:MOST])
    if len(keys) < FEWEST:
        return []
    hashes = {key: _hashes(snapshot, key) for key in keys}
    left = snapshot.key - snapshot.evidence.shapes.hashes()[snapshot.shape]
    for dropped in hashes.values():
        left -= dropped
    every = np.arange(len(snapshot))
    found = [_pooled(_Pages(snapshot, left, hashes, rows)) for rows in (every, *_parts(snapshot, keys))]
    return sorted(dict.fromkeys(pool for pool in found if pool), key=len, reverse=True)


def _hashes(snapshot: Snapshot, key: ColumnKey) -> Hashes:
    """Return for every row what a parameter adds to the hash of its key."""
    dense = np.zeros(len(snapshot), np.uint64)
    column = snapshot.columns.get(key)
    if column is not None:
        dense[column.rows[column.alive]] = column.hashes[column.alive]
    return dense


def _parts(snapshot: Snapshot, keys: list[ColumnKey]) -> Iterator[Rows]:
    """Yield the rows of the parts of the site in which most pages bear one of the parameters."""
    bearing = np.zeros(len(snapshot), np.bool_)
    for key in keys:
        bearing |= snapshot.values(key) > 0
    every = np.count_nonzero(bearing)
    for attribute in path_attributes(snapshot):
        if attribute.name not in {"first", "second"}:
            continue
        pages = np.bincount(attribute.values[bearing])
        pages[:1] = 0
        for value in np.argsort(-pages, kind="stable")[:PARTS].tolist():
            if RECORD * FEWEST < pages[value] < every:
                yield np.flatnonzero(attribute.values == value)


class _Pages:
    """Pages by what is left of their keys, whatever order it stands in, when parameters are dropped."""

    def __init__(self, snapshot: Snapshot, left: Hashes, hashes: dict[ColumnKey, Hashes], rows: Rows) -> None:
        """Take of the given rows those that come together when all parameters are dropped."""
        rows = rows[_company(left[rows])]
        self._left = left[rows]
        self._content = snapshot.content[rows]
        self._seen = None if snapshot.seen is None else snapshot.seen[rows]
        self._hashes = {key: of_all[rows] for key, of_all in hashes.items()}
        self.dropped = set(hashes)

    def keep(self, key: ColumnKey) -> None:
        """Drop a parameter no longer."""
        self._left = self._left + self._hashes[key]
        self.dropped.remove(key)

    def drop(self, key: ColumnKey) -> None:
        """Drop one that was kept."""
        self._left = self._left - self._hashes[key]
        self.dropped.add(key)

    def record(self, key: ColumnKey) -> Outcome:
        """Return what a parameter tells apart once the others that are dropped are."""
        hashes = self._hashes[key]
        after = self._left if key in self.dropped else self._left - hashes
        return judge(after + hashes, after, self._content, hashes != 0, seen=self._seen)


def _pooled(pages: _Pages) -> tuple[ColumnKey, ...]:
    """Return the parameters that together do not matter; () for none."""
    kept: list[ColumnKey] = []
    while pages.dropped:
        records = {key: pages.record(key) for key in sorted(pages.dropped)}
        unclean = sorted((record.share, record.agreed, key) for key, record in records.items() if not _is_clean(record))
        # The worst, and what is nearly as bad: of a few that are kept at a time the others' records get better.
        worst = [key for share, _, key in unclean if 1 - share >= AS_BAD * (1 - unclean[0][0])]
        worst = worst or [key for key, record in records.items() if record.agreed < RECORD]
        if not worst:
            break
        for key in worst:
            pages.keep(key)
        kept += worst
    _drop_the_innocent(pages, kept)
    return tuple(sorted(pages.dropped)) if len(pages.dropped) >= FEWEST else ()


def _drop_the_innocent(pages: _Pages, kept: list[ColumnKey]) -> None:
    """Drop also what was kept for differences that were others': a session differs wherever a filter does."""
    for key in reversed(kept):
        record = pages.record(key)
        if record.agreed >= RECORD and not record.differed:
            pages.drop(key)


def _is_clean(record: Outcome) -> bool:
    return record.differed <= DIFFER * (record.agreed + record.differed)


def _company(after: Hashes) -> Rows:
    """Return which are not alone with their key; of very many those of some keys."""
    _, group, sizes = np.unique(after, return_inverse=True, return_counts=True)
    found = np.flatnonzero((sizes > 1)[group])
    if len(found) > PAGES:
        # (Keys are hashes: the lowest of them are a sample.)
        limit = np.uint64(int(PAGES / len(found) * float(2**64)))
        found = found[after[found] < limit]
    return found
