"""Families that answer with one page for each combination of a few values: ``do=media&ns=…``, whatever the ``id``.

Each combination would be a family of its own (`one_page`) once it has enough pages; on a small site none ever has. What
they say together is that the parameter with ever new values does not matter for this form: the clean pages of all
combinations are counted as the trials of one rule, for the values seen.

Combinations that show several pages are left out with all that share their value of one parameter, and then a value
stays only where its own record is too long to be luck under the record of the whole form (`contexts`). Every
combination of the values that stay has to have been seen, each with `EACH` pages and more.

Nor may a few contents make most of the trials, as lists do that are empty for nearly all values, each tab with a text
of its own: of each content no more than `OF_ONE` are counted, so that several contents speak. More is asked of what one
page answers alone (`ALONE`), unless it is a wall: what a page without the parameter, or of another path, shows too is a
log-in form or an error. A wall lends the others no trials: that whatever is put on a wish list shows the log-in form
does not tell which articles have reviews.

Pages are compared that one crawl was the last to see (`evidence.crawls`): what a combination shows may change from one
crawl to the next, of which the page of before is not fetched again.

Cost: a sort of the form's rows, and a pass over its combinations for each of its few-valued parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Rows, combined, distinct, firsts, paired
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import Outcome
from clusterd.learning.trials.contexts import LUCK

#: Fewest pages of a combination.
EACH: Final = 3
#: Fewest clean trials of all combinations together: a lower bound of .9.
TRIALS: Final = 25
#: Most trials of one content among these, and as many of one as are enough by themselves: 104 clean ones in a row
#: are luck in .5 % of orders where one in twenty differs (52, which `OPEN_BOUND` asks of a parameter that takes any
#: value, in 7 %). `one_page.FAMILY` goes by it, so that a parameter of one value (``sort=new``) makes no difference.
OF_ONE: Final = 5
ALONE: Final = 104


@dataclass(frozen=True, slots=True)
class Joint:
    """The rows of a form for which some parameters do not matter, and the values of the others that they have."""

    rows: Rows
    values: tuple[tuple[ColumnKey, Rows], ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Combinations:
    """The combinations of few-valued parameters in a form."""

    #: One column for each combination: its value of each parameter.
    values: Rows
    pages: Rows
    #: Trials that agree and that do not.
    agreed: Rows
    differed: Rows


def joint(
    snapshot: Snapshot,
    rows: Rows,
    few: list[ColumnKey],
    values: dict[ColumnKey, Rows],
    dropped: tuple[ColumnKey, ...],
) -> Joint | None:
    """Return the part of a form in which every combination of the few values is one page, None where none is.

    ``dropped``: the other parameters, of which the values do not matter then.
    """
    different = firsts(snapshot.key[rows])
    combinations, which = combined([values[key][different] for key in few])
    group = _of_one_crawl(snapshot, rows[different], which)
    shown = snapshot.content[rows[different]]
    found = _judged(combinations, which, group, shown)
    chosen = _clean(found)
    if chosen is None:
        return None
    doubted = ~_believed(shown, group, chosen[which], _walls(snapshot, rows, shown, few, dropped))
    if doubted.any():
        chosen = _closed(found, chosen & (np.bincount(which[doubted], minlength=len(chosen)) == 0))
    if chosen is None or int(found.agreed[chosen].sum()) < TRIALS:
        return None
    stays = chosen[which]
    group = np.unique(group[stays], return_inverse=True)[1]
    kept, agreed = rows[different[stays]], int(found.agreed[chosen].sum())
    outcome = Outcome(kept, np.ones(len(kept), np.bool_), group, shown[stays], agreed, 0)
    allowed = tuple((key, distinct(combinations[at][chosen])) for at, key in enumerate(few))
    inside = np.ones(len(rows), np.bool_)
    for key, texts in allowed:
        inside &= np.isin(values[key], texts)
    return Joint(rows[inside], allowed, outcome)


def _believed(shown: Rows, group: Rows, chosen: Flags, walls: Flags) -> Flags:
    """Say which pages show what is believed: walls, and the rest where that is enough without them."""
    rest = chosen & ~walls[shown]
    contents, _ = np.unique(np.stack([shown, group])[:, rest], axis=1)
    trials = np.bincount(shown[rest]) - np.bincount(contents)
    several = int(np.minimum(trials, OF_ONE).sum()) >= TRIALS
    return walls[shown] | ~chosen | several | np.isin(shown, np.flatnonzero(trials >= ALONE))


def _walls(snapshot: Snapshot, rows: Rows, shown: Rows, few: list[ColumnKey], dropped: tuple[ColumnKey, ...]) -> Flags:
    """Say of each content whether a page shows it too that has none of the parameters, or another path.

    One is enough: the log-in page itself. But not one that is asked for the same by all of the few values: that an
    article has no reviews is said in the words in which a report has none (``?tab=reviews``).
    """
    without = np.ones(len(snapshot), np.bool_)
    for key in dropped:
        without &= snapshot.values(key) == 0
    without |= snapshot.path != snapshot.path[rows[0]]
    asked = np.ones(len(snapshot), np.bool_)
    for key in few:
        asked &= np.isin(snapshot.values(key), distinct(snapshot.values(key)[rows]))
    without &= ~asked
    elsewhere: Flags = np.bincount(snapshot.content[without], minlength=int(shown.max()) + 1) > 0
    return elsewhere


def _of_one_crawl(snapshot: Snapshot, rows: Rows, which: Rows) -> Rows:
    """Return for each of these rows a number for its combination, and the crawl that was the last to see it."""
    if snapshot.seen is None:
        return which
    crawls = np.array([number.bit_length() for number in snapshot.seen[rows].tolist()], np.int64)
    return np.unique(paired(which, crawls), return_inverse=True)[1]


def _judged(combinations: Rows, which: Rows, group: Rows, shown: Rows) -> _Combinations:
    """Judge every combination: its pages of one group agree with the content that most of them show."""
    size = int(shown.max()) + 1
    pairs, counts = np.unique(group * size + shown, return_counts=True)
    pages = np.bincount(group)
    most = np.zeros(len(pages), np.int64)
    np.maximum.at(most, pairs // size, counts)
    of = np.zeros(len(pages), np.int64)
    of[group] = which
    agreed, differed = (np.bincount(of, weights=trials).astype(np.int64) for trials in (most - 1, pages - most))
    return _Combinations(combinations, np.bincount(which), agreed, differed)


def _clean(found: _Combinations) -> Flags | None:
    """Return which combinations stay: clean ones, all that the values that stay can form."""
    clean = found.differed == 0
    if clean.all():
        return _closed(found, found.pages >= EACH)
    tried = int(found.agreed.sum() + found.differed.sum())
    share = min(0.999, max(0.001, int(found.agreed.sum()) / tried))
    need = max(EACH, ceil(log(LUCK) / log(share)))
    best: Flags | None = None
    for numbers in found.values:
        size = int(numbers.max()) + 1
        agreed = np.bincount(numbers, weights=found.agreed, minlength=size)
        differed = np.bincount(numbers, weights=found.differed, minlength=size)
        stays = (differed == 0) & (agreed >= need)
        closed = _closed(found, stays[numbers] & (found.pages >= EACH))
        if closed is not None and (best is None or found.agreed[closed].sum() > found.agreed[best].sum()):
            best = closed
    return best


def _closed(found: _Combinations, wanted: Flags) -> Flags | None:
    """Return the combinations where they are all that their values can form, else those of the fullest values."""
    if not wanted.any():
        return None
    sizes = [len(distinct(numbers[wanted])) for numbers in found.values]
    possible = int(np.prod(sizes))
    if possible == np.count_nonzero(wanted):
        return wanted
    # Leave out the values that form fewer combinations than they could: the others form all of theirs.
    for numbers, own in zip(found.values, sizes, strict=True):
        formed = np.bincount(numbers[wanted], minlength=int(numbers.max()) + 1)
        full: Flags = wanted & (formed == possible // own)[numbers]
        if full.any():
            return full
    return None
