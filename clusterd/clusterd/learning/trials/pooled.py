"""Parameters that do not matter, found together: campaign tags of which a URL bears some, and hardly two the same.

Where ten such parameters come and go, pages of one content mostly differ in several of them, in other ones each time:
no set is proposed often, and what one parameter does alone is hardly ever tried. So all that pages of one content
differ in are dropped at once, and those by which the pages that this brings together still differ are kept, the worst
first, until each of the others has a record of its own: what it tells apart once the others are dropped. (`contexts`
judges what is left as it does any edit, and `tried_together` lets through no combination that says less.)

Cost: a judgement of each parameter for each that is kept, of the pages that are brought together, `PAGES` at most.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from clusterd.learning.edits.edit import Drop
from clusterd.learning.evidence.columns import ColumnKey, Hashes, Rows, Snapshot
from clusterd.learning.trials.agreement import Outcome
from clusterd.learning.trials.tried_together import after_the_others

#: Fewest parameters of a pool (of two, what is proposed is enough), and most.
FEWEST: Final = 3
MOST: Final = 12
#: Fewest agreements of each.
RECORD: Final = 18
#: Most pages that are judged.
PAGES: Final = 20_000
#: Most of the pages brought together by which a parameter may differ that belongs to the pool.
DIFFER: Final = 0.01


def pooled(snapshot: Snapshot, differing: Counter[ColumnKey]) -> tuple[ColumnKey, ...]:
    """Return the parameters that together do not matter, of those that pages of one content differ in; () for none."""
    keys = sorted(key for key, _ in sorted(differing.items(), key=lambda item: (-item[1], item[0]))[:MOST])
    while len(keys) >= FEWEST:
        records = _records(snapshot, tuple(keys))
        worst = min(keys, key=lambda key: (records[key].share, records[key].agreed, key))
        if records[worst].differed > DIFFER * (records[worst].agreed + records[worst].differed):
            keys.remove(worst)
            continue
        enough = [key for key in keys if records[key].agreed >= RECORD]
        if len(enough) == len(keys):
            return tuple(keys)
        keys = enough
    return ()


def _records(snapshot: Snapshot, keys: tuple[ColumnKey, ...]) -> dict[ColumnKey, Outcome]:
    """Return what each parameter does once the others are dropped."""
    every = Drop(keys)
    rows = every.rows(snapshot)
    after = every.keys(snapshot, rows)
    return dict(after_the_others(snapshot, every, rows, after, _company(after)))


def _company(after: Hashes) -> Rows:
    """Return the rows that are not alone with their key; of very many those of some keys."""
    _, group, sizes = np.unique(after, return_inverse=True, return_counts=True)
    found = np.flatnonzero((sizes > 1)[group.ravel()])
    if len(found) > PAGES:
        # (Keys are hashes: the lowest of them are a sample.)
        limit = np.uint64(int(PAGES / len(found) * float(2**64)))
        found = found[after[found] < limit]
    return found
