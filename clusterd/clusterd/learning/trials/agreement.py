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

from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, begins

#: Most units of one content.
REPEATED: Final = 2
#: Bits of a key by which it is told that a row has none of some keys.
BITS: Final = 16
#: Most units of a live rule that may differ, of those tried, when there are many (of few: `bounds.ONE_DIFFERS`).
DIFFER: Final = 0.01
#: Any value of a key is accepted when its values themselves, each a trial, pass this lower bound: 15 clean ones.
OPEN: Final = 0.84
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


def is_open(good: Rows, bad: Rows, prior: int = 0) -> bool:
    """Whether the next value may be expected to agree too: of the values seen, nearly all did, and they are many."""
    clean = int(np.count_nonzero((good[1:] > 0) & (bad[1:] <= DIFFER * good[1:])))
    return lower_bound(clean + prior, int(np.count_nonzero(good[1:] + bad[1:])) + prior) >= OPEN


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows that an edit brings together with others, and whether each agrees with its group."""

    rows: Rows
    good: Flags
    group: Rows
    content: Rows
    #: Units that agree; contents beyond each group's own, over all groups.
    agreed: int
    differed: int

    @property
    def share(self) -> float:
        """Share of units that agree."""
        return self.agreed / max(1, self.agreed + self.differed)


_NOTHING: Final = np.zeros(0, np.int64)
NO_OUTCOME: Final = Outcome(_NOTHING, np.zeros(0, np.bool_), _NOTHING, _NOTHING, 0, 0)


def judge(
    before: Hashes, after: Hashes, content: Rows, changed: Flags, *, by_group: bool = False, seen: Rows | None = None
) -> Outcome:
    """Judge an edit by the keys before and after it; ``changed`` marks the rows that it edits.

    ``by_group``: the unit of agreement is a group, for a question that is about one content. ``seen``: the crawls that
    have seen each row (`crawls`), where that is not one for all.
    """
    rows = _brought_together(after, changed)
    by = None if seen is None else seen[rows]
    found = grouped(rows, after[rows], before[rows], content[rows], changed[rows], by) if len(rows) else None
    if found is None:
        return NO_OUTCOME
    agreeing = found.agreeing
    contents = found.wanted[agreeing]
    agreed = len(contents) if by_group else int(_units(contents, found.pages[agreeing])[1].sum())
    differed = int(found.differed.sum())
    return Outcome(found.rows, found.good, found.group, found.shown, agreed, differed)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of groups: each one's content, how many rows show it, and how many other contents there are."""

    wanted: Rows
    pages: Rows
    differed: Rows

    @property
    def agreeing(self) -> Flags:
        """Groups in which a page agrees with another: one that agrees with nobody but itself is no agreement."""
        found: Flags = self.pages > 1
        return found


@dataclass(frozen=True, slots=True)
class Groups(Figures):
    """Rows of one key after an edit that had several before: one row for each key before, and figures by group."""

    rows: Rows
    group: Rows
    shown: Rows
    good: Flags
    #: Where each group's first row stood among the rows given.
    first: Rows


def grouped(
    rows: Rows, after: Hashes, before: Hashes, content: Rows, changed: Flags, seen: Rows | None = None
) -> Groups | None:
    """Return the groups of several keys before and one after; None where there is none.

    ``seen``: of each row the crawls that have seen it; those stay that one has seen which saw their group's content.
    """
    # 1. One row for each key before: what earlier rules merged is one page here (the one that a later crawl has seen).
    order = np.lexsort((rows, before, after) if seen is None else (rows, -seen, before, after))
    given = after, before
    after, before = after[order], before[order]
    new_group = begins(after)
    first = new_group | begins(before)
    group = (np.cumsum(new_group) - 1)[first]
    # 2. Groups of one key before are not brought together by this edit.
    several = np.bincount(group) > 1
    kept = several[group]
    at = order[first][kept]
    if not len(at):
        return None
    group = (np.cumsum(several) - 1)[group[kept]]
    shown = content[at]
    # 3. Each group's contents, in runs.
    size = int(shown.max()) + 1
    ordered = np.sort(group * size + shown)
    starts = np.flatnonzero(begins(ordered))
    runs = ordered[starts]
    run_group = runs // size
    run_shown = runs - run_group * size
    lengths = np.diff(starts, append=len(ordered))
    wanted = _reference(run_group, run_shown, lengths, group, shown, changed[at])
    good = shown == wanted[group]
    if seen is not None and not (beside := _beside(seen[at], group, good)).all():
        stay = at[beside]
        found = grouped(rows[stay], given[0][stay], given[1][stay], content[stay], changed[stay])
        return found and replace(found, first=stay[found.first])
    pages = np.bincount(group[good], minlength=len(wanted))
    good &= (pages > 1)[group]
    firsts = np.flatnonzero(begins(group))
    return Groups(wanted, pages, np.bincount(run_group) - 1, rows[at], group, shown, good, at[firsts])


def _beside(seen: Rows, group: Rows, shows: Flags) -> Flags:
    """Say which rows a crawl has seen that has seen the row of their group which shows its content, the latest one.

    Where that row is the only one of its group that this crawl has seen, it says nothing: the others were skipped, as
    a rule says. What earlier crawls have seen still holds there.
    """
    crawls = np.zeros(int(group[-1]) + 1, np.int64)
    np.maximum.at(crawls, group[shows], seen[shows])
    found: Flags = (seen & crawls[group]) != 0
    alone = (np.bincount(group[found], minlength=len(crawls)) < 2)[group]
    if alone.any():
        found[alone] = _met(seen[alone], group[alone])
    return found


def _met(seen: Rows, group: Rows) -> Flags:
    """Say which rows the latest crawl has seen that saw two of their group, or were seen beside such a row."""
    met = np.zeros(int(group[-1]) + 1, np.int64)
    for number in range(int(seen.max(initial=0)).bit_length()):
        of_crawl = np.flatnonzero((seen >> number) & 1)
        met[np.bincount(group[of_crawl], minlength=len(met)) > 1] = 1 << number
    crawls = np.zeros_like(met)
    saw = (seen & met[group]) != 0
    np.maximum.at(crawls, group[saw], seen[saw])
    found: Flags = (seen & crawls[group]) != 0
    return found


def _brought_together(after: Hashes, changed: Flags) -> Rows:
    """Return the rows whose key after the edit is shared, in groups that hold a changed row."""
    # Most edits change few of a host's pages: only rows that may have a key of these are sorted. (Keys are hashes.)
    low = after & np.uint64((1 << BITS) - 1)
    wanted = np.zeros(1 << BITS, np.bool_)
    wanted[low[changed]] = True
    near = np.flatnonzero(wanted[low])
    order = near[np.argsort(after[near], kind="stable")]
    ordered = after[order]
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(order), np.bool_)
    shared[1:] |= same
    shared[:-1] |= same
    if not shared.any():
        return _NOTHING
    rows = order[shared]
    number = np.cumsum(begins(after[rows])) - 1
    touched = np.bincount(number, weights=changed[rows]) > 0
    found: Rows = rows[touched[number]]
    return found


def _reference(run_group: Rows, run_shown: Rows, lengths: Rows, group: Rows, shown: Rows, changed: Flags) -> Rows:
    """Return each group's content: that of a page not edited, where there is one, else the one shown most."""
    wanted = np.zeros(int(group[-1]) + 1, np.int64)
    by_length = np.argsort(lengths, kind="stable")
    wanted[run_group[by_length]] = run_shown[by_length]
    still = np.flatnonzero(~changed)[::-1]
    wanted[group[still]] = shown[still]
    return wanted


def _units(contents: Rows, pages: Rows) -> tuple[Rows, Rows]:
    """Count agreements of each content, by its groups and their pages: up to `REPEATED`; one where the groups are more.

    Returns the contents and the counts.
    """
    distinct, which = np.unique(contents, return_inverse=True)
    groups = np.bincount(which, minlength=len(distinct))
    shown = np.bincount(which, weights=pages, minlength=len(distinct)).astype(np.int64)
    return distinct, counted(groups, shown)


def counted(groups: Rows, pages: Rows) -> Rows:
    """Return how many units contents count that stand in so many groups, on so many pages."""
    return np.where(groups <= REPEATED, np.minimum(pages - groups, REPEATED), 1)
