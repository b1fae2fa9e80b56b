"""What the evidence says about an edit: of the pages that it would bring under one key, which show the same content.

Pages that differ count like pages that agree, and every page takes part, singletons included. A group of pages that an
edit brings together is judged against the content of a page that holds the key already, or else against the content
that most of its pages show; a page of another content disagrees.

The unit of agreement is a *content*, not a page: an error or log-in page under a thousand unrelated URLs is one unit,
so it says next to nothing about their parameters. A content that stands in few groups is no such page, and counts up to
`REPEATED` times. Disagreements are counted in every group.

Cost: a sort of the rows in question.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from clusterd.learning.evidence import Flags, Hashes, Rows

#: Most units of one content.
REPEATED: Final = 3
#: One-sided 95 % quantile of the normal distribution.
Z: Final = 1.645


def lower_bound(agreed: float, tried: float) -> float:
    """Return the one-sided 95 % lower bound of a share (Wilson's score): 11, 18, 25, 52 clean trials give .8 to .95."""
    if tried <= 0:
        return 0.0
    share, z2 = agreed / tried, Z * Z
    centre = share + z2 / (2 * tried)
    spread = Z * sqrt(share * (1 - share) / tried + z2 / (4 * tried * tried))
    return max(0.0, (centre - spread) / (1 + z2 / tried))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows that an edit brings together with others, and whether each agrees with its group."""

    rows: Rows
    good: Flags
    group: Rows
    content: Rows
    #: Distinct contents that agree; contents too many, over all groups; agreeing pages beside each group's first.
    agreed: int
    differed: int
    pages: int

    @property
    def bound(self) -> float:
        """Lower bound of the share of units that agree."""
        return lower_bound(self.agreed, self.agreed + self.differed)

    @property
    def share(self) -> float:
        """Share of units that agree."""
        return self.agreed / max(1, self.agreed + self.differed)


_NOTHING: Final = np.zeros(0, np.int64)
NO_OUTCOME: Final = Outcome(_NOTHING, np.zeros(0, np.bool_), _NOTHING, _NOTHING, 0, 0, 0)


def judge(before: Hashes, after: Hashes, content: Rows, changed: Flags, *, by_group: bool = False) -> Outcome:
    """Judge an edit by the keys before and after it; ``changed`` marks the rows that it edits.

    ``by_group``: the unit of agreement is a group, for a question that is about one content.
    """
    rows = _brought_together(after, changed)
    if not len(rows):
        return NO_OUTCOME
    # 1. One row for each key before: what earlier rules merged is one page here.
    order = np.lexsort((rows, before[rows], after[rows]))
    rows = rows[order]
    new_group = np.ones(len(rows), np.bool_)
    new_group[1:] = after[rows[1:]] != after[rows[:-1]]
    first = new_group.copy()
    first[1:] |= before[rows[1:]] != before[rows[:-1]]
    group = np.cumsum(new_group)[first] - 1
    rows = rows[first]
    # 2. Groups of one key before are not brought together by this edit.
    sizes = np.bincount(group)
    kept = sizes[group] > 1
    rows, group = rows[kept], group[kept]
    if not len(rows):
        return NO_OUTCOME
    group = np.unique(group, return_inverse=True)[1]
    shown = content[rows]
    wanted = _reference(group, shown, changed[rows])
    good = shown == wanted[group]
    # 3. A page that agrees with nobody but itself is no agreement.
    pairs = np.bincount(group, weights=good).astype(np.int64)
    good &= (pairs > 1)[group]
    distinct = _distinct_contents(group, shown)
    agreed = len(np.unique(group[good])) if by_group else _units(group, shown, good)
    return Outcome(rows, good, group, shown, agreed, int((distinct - 1).sum()), int(np.maximum(pairs - 1, 0).sum()))


def _brought_together(after: Hashes, changed: Flags) -> Rows:
    """Return the rows whose key after the edit is shared, in groups that hold a changed row."""
    order = np.argsort(after, kind="stable")
    ordered = after[order]
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(after), np.bool_)
    shared[1:] |= same
    shared[:-1] |= same
    if not shared.any():
        return _NOTHING
    rows = order[shared]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = after[rows[1:]] != after[rows[:-1]]
    number = np.cumsum(starts) - 1
    touched = np.bincount(number, weights=changed[rows]) > 0
    found: Rows = rows[touched[number]]
    return found


def _reference(group: Rows, shown: Rows, changed: Flags) -> Rows:
    """Return each group's content: that of a page not edited, where there is one, else the one shown most."""
    order = np.lexsort((shown, group))
    ordered_group, ordered_shown = group[order], shown[order]
    run_starts = np.ones(len(order), np.bool_)
    run_starts[1:] = (ordered_group[1:] != ordered_group[:-1]) | (ordered_shown[1:] != ordered_shown[:-1])
    starts = np.flatnonzero(run_starts)
    lengths = np.diff(np.append(starts, len(order)))
    run_group, run_shown = ordered_group[starts], ordered_shown[starts]
    wanted = np.zeros(int(group[-1]) + 1 if len(group) else 0, np.int64)
    by_length = np.argsort(lengths, kind="stable")
    wanted[run_group[by_length]] = run_shown[by_length]
    still = np.flatnonzero(~changed)[::-1]
    wanted[group[still]] = shown[still]
    return wanted


def _units(group: Rows, shown: Rows, good: Flags) -> int:
    """Count agreements: those of a content up to `REPEATED`; as one where it stands in more groups than that."""
    if not good.any():
        return 0
    stands = np.unique(np.stack([shown[good], group[good]]), axis=1)[0]
    _, groups = np.unique(stands, return_counts=True)
    pages = np.unique(shown[good], return_counts=True)[1]
    return int(np.where(groups <= REPEATED, np.minimum(pages - groups, REPEATED), 1).sum())


def _distinct_contents(group: Rows, shown: Rows) -> Rows:
    order = np.lexsort((shown, group))
    ordered_group, ordered_shown = group[order], shown[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered_group[1:] != ordered_group[:-1]) | (ordered_shown[1:] != ordered_shown[:-1])
    return np.bincount(ordered_group[new])
