"""Families that always answer with one page: a log-in form for every ``posting.php?…``, an error for every old ticket.

A rule of its own, because the evidence is of another kind: one content, many pages. The members of a family share path,
parameter names, and the values of the parameters that take few; the others take a new value on nearly every page and
are dropped. Pages of the family have to show the one content, but for one in a hundred that shows what other pages do,
and they have to be enough for the bound. What has a further parameter, or another value of one that takes few, is not
of the family. (`paths`: those whose paths differ.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Key

from clusterd.learning.edits.edit import Drop
from clusterd.learning.evidence.arrays import Flags, Rows, by_number, combined, distinct, firsts, paired
from clusterd.learning.evidence.crawls import seen_beside
from clusterd.learning.evidence.shapes import ColumnKey, Shape, has_names
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.joint import ALONE, EACH, TRIALS, joint
from clusterd.learning.families.value_forms import of_clean_forms
from clusterd.learning.trials.agreement import DIFFER, Outcome, lower_bound
from clusterd.learning.trials.attributes import one_of
from clusterd.learning.trials.contexts import Proposal

#: Fewest pages of a family. One page answers for all others, and what differs is found nowhere else: an empty list is
#: the answer for most values, until it is not.
FAMILY: Final = ALONE + 1
#: The lower bound of as many clean trials.
FAMILY_BOUND: Final = 0.974
#: A parameter takes a new value on nearly every page when this share of pages brings one.
NEW_VALUES: Final = 0.5
#: Most values of a parameter that takes few.
FEW_VALUES: Final = 64


def families(snapshot: Snapshot) -> Iterator[Proposal]:
    """Yield the one-page families of the evidence."""
    counts = np.bincount(snapshot.content)
    for rows in _forms(snapshot, counts >= EACH):
        yield from _families_of_form(snapshot, rows)


def _forms(snapshot: Snapshot, is_common: Flags) -> Iterator[Rows]:
    """Yield the rows of each (path, shape) in which a common content stands, where they may be enough together.

    Of a page that its crawl has taken back nothing is known: a captcha under a hundred URLs is no family.
    """
    form = paired(snapshot.path, snapshot.shape)
    known = np.ones(len(snapshot), np.bool_) if snapshot.seen is None else snapshot.seen > 0
    wanted = distinct(form[is_common[snapshot.content] & known])
    rows = np.flatnonzero(np.isin(form, wanted) & known)
    yield from (members for members in by_number(form[rows], rows) if len(members) > TRIALS)


def _families_of_form(snapshot: Snapshot, rows: Rows) -> Iterator[Proposal]:
    shape = snapshot.shape_of(rows[0])
    if not shape or not has_names(shape):
        return
    values = {key: snapshot.values(key)[rows] for key in shape}
    dropped = new_valued(values)
    if not dropped:
        return
    few = [key for key in shape if key not in dropped]
    path = snapshot.evidence.paths.items[int(snapshot.path[rows[0]])]
    single = np.zeros(len(snapshot), np.bool_)
    for fixed, every in by_values(few, values, rows):
        members = of_clean_forms(snapshot, every, dropped)
        outcome = one_page(snapshot, members)
        reached = bound_of(snapshot, outcome) if outcome is not None else 0.0
        said = said_of(snapshot, zip(few, fixed, strict=True))
        if outcome is None or reached < FAMILY_BOUND or said is None:
            continue
        flags = snapshot.flags(members)
        single |= flags
        yield Proposal(Drop(dropped), flags, _context(path, shape, said, dropped), outcome, reached)
    together = joint(snapshot, rows, few, values, dropped) if few else None
    if together is not None and not single[together.rows].all():
        said, outcome = said_of(snapshot, together.values), together.outcome
        if said is not None:
            context = _context(path, shape, said, dropped)
            yield Proposal(Drop(dropped), snapshot.flags(together.rows), context, outcome, bound_of(snapshot, outcome))


def said_of(snapshot: Snapshot, values: Iterable[tuple[ColumnKey, Rows]]) -> list[Condition] | None:
    """Return the conditions that parameters have one of these values each; None where one cannot be named."""
    found = []
    for key, numbers in values:
        named = [snapshot.columns[key].column.named(number) for number in numbers.tolist()]
        texts = [text for text in named if text is not None]
        if len(texts) < len(named):
            return None
        found.append(one_of(Key(*key), texts))
    return found


def _context(path: str, shape: Shape, said: list[Condition], dropped: tuple[ColumnKey, ...]) -> list[Condition]:
    there = [Condition(Key(*key), "any") for key in dropped]
    only = Condition(Key(), "only", tuple(sorted({name for name, _ in shape})))
    return [Condition(Key(), "is", (path,)), *said, *there, only]


def new_valued(values: dict[ColumnKey, Rows]) -> tuple[ColumnKey, ...]:
    """Return the parameters that take a new value on nearly every page, pages that differ in others counted apart.

    A page that is linked with three values of ``idx`` has its ``id`` three times; each ``idx`` has a new one on each.
    """
    counts = {key: len(distinct(numbers)) for key, numbers in values.items()}
    found = []
    for key, numbers in values.items():
        fewer = [values[other] for other in values if counts[other] < counts[key]]
        apart = np.unique(np.stack(fewer), axis=1).shape[1] if fewer else 1
        if counts[key] * apart >= NEW_VALUES * len(numbers) or counts[key] > FEW_VALUES:
            found.append(key)
    return tuple(found)


def brings_new_values(values: Rows) -> bool:
    """Whether a parameter takes a new value on nearly every page, or too many to list."""
    count = len(distinct(values))
    return count >= NEW_VALUES * len(values) or count > FEW_VALUES


def by_values(few: list[ColumnKey], values: dict[ColumnKey, Rows], rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Yield each combination of the values that are few, a value a row, with the rows that have it."""
    if not few:
        yield np.zeros((0, 1), np.int64), rows
        return
    combinations, which = combined([values[key] for key in few])
    for number, members in enumerate(by_number(which, rows)):
        yield combinations[:, [number]], members


def one_page(snapshot: Snapshot, members: Rows, fewest: int = FAMILY) -> Outcome | None:
    """Judge rows as one family: every key a trial; None where they are too few or already one key."""
    rows = members[firsts(snapshot.key[members])]
    if len(rows) < fewest:
        return None
    shown = snapshot.content[rows]
    contents, counts = np.unique(shown, return_counts=True)
    common = contents[int(np.argmax(counts))]
    good = shown == common
    if snapshot.seen is not None:
        beside = _beside(snapshot.seen[rows], good, fewest)
        rows, shown, good = rows[beside], shown[beside], good[beside]
        if len(rows) < fewest:
            return None
    agreed = int(good.sum())
    return Outcome(rows, good, np.zeros(len(rows), np.int64), shown, agreed - 1, len(rows) - agreed)


def _beside(seen: Rows, good: Flags, fewest: int) -> Flags:
    """Say which pages a crawl has seen beside one of the family: only these say anything.

    The latest such crawl decides where it has seen enough of them, else all of them do: where a rule keeps the family
    out, a crawl fetches one page of it and no more.
    """
    latest: Flags = (seen & seen[good].max()) != 0
    if np.count_nonzero(latest) >= fewest:
        return latest
    return seen_beside(seen, seen[good])


def bound_of(snapshot: Snapshot, outcome: Outcome) -> float:
    """Return the lower bound of a family's share of pages that agree; 0 where too many differ.

    Or where one shows what no page beside the family does: of a calendar that is empty for 397 months of 400, the other
    three are all that there is.
    """
    tried = outcome.agreed + outcome.differed
    if outcome.differed > DIFFER * tried or not _is_elsewhere(snapshot, outcome):
        return 0.0
    return lower_bound(outcome.agreed, tried)


def _is_elsewhere(snapshot: Snapshot, outcome: Outcome) -> bool:
    """Whether all that differs in a family is shown by pages beside it, too."""
    differing = outcome.content[~outcome.good]
    if not len(differing):
        return True
    beside = ~snapshot.flags(outcome.rows)
    return bool(np.isin(differing, snapshot.content[beside]).all())
