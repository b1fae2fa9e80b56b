"""Families that bring nothing new any more: every further page of theirs shows what other pages have shown.

``viewtopic.php?t=N&view=next`` is always some topic, ``Special:UserLogin&returnto=…`` always one of six log-in pages.
No key says which, but once `RUN` fetched members in a row brought no new content of the host, the next will hardly
either (95 %: less than 3 / `RUN`); where all members together show only `FEW` contents, each of them several times,
`FEW_RUN` are enough, since there is little more to come (what one member alone shows says that there is: Good, *The
Population Frequencies of Species*, 1953). The rule names the family only for values of its few-valued parameters that
the run holds `EACH` times, unless they are so many that the next may be expected to bring nothing new either; a larger
share of it is explored than of other rules (`clusterd_crawler.skipping`), and the first member that does bring
something new ends the run, and the rule with it.

A member of a key that an earlier page has brings nothing new by the other rules, and counts for nothing: those that a
rule had kept out come in a row when it is withdrawn, and say nothing of what has not been linked yet.

All of this is counted within one crawl, the latest, and the rule holds in that crawl only: the next one finds every
content of the host again, so that whatever it fetches has been shown before, and must not be kept from it.

Only URLs with parameters, in the query or the path: paths without are mostly the content itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, by_number, firsts, paired
from clusterd.learning.evidence.shapes import ColumnKey, Shape, has_names
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.one_page import brings_new_values, by_values, new_valued, said_of
from clusterd.learning.trials.agreement import DIFFER, OPEN, Outcome, lower_bound
from clusterd.learning.trials.contexts import Proposal

#: Members in a row that brought nothing new.
RUN: Final = 100
FEW_RUN: Final = 60
#: Contents that are few for a family.
FEW: Final = 6
#: Contents of a host on which a run outlives one exception: a page in a hundred skipped is no more than .1 % of them.
MANY: Final = 10_000
#: Most probability that the run of a part is luck, at the rate at which the other parts bring something new.
LUCK_OF_PARTS: Final = 0.01
#: Fewest members of the run with a value, for that value to be of the family.
EACH: Final = 20


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Every URL of the context is as good as fetched."""

    crawl: str
    own: tuple[ColumnKey, ...] = ()
    needs: tuple[Condition, ...] = ()

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """One edit: the family."""
        return (Edit(Key(), "family"),)

    def rows(self, snapshot: Snapshot) -> Flags:
        """Return no rows: a family is not found by what it would change."""
        return np.zeros(len(snapshot), np.bool_)

    def keys(self, snapshot: Snapshot, rows: Flags) -> Hashes:
        """Return the keys as they are: which page answers is not known."""
        return snapshot.key

    def commit(self, snapshot: Snapshot, rows: Flags) -> None:
        """Leave the pages as evidence for rules that say more."""


def exhausted(snapshot: Snapshot, crawl: str) -> Iterator[Proposal]:
    """Yield the families that have brought this crawl nothing new for `RUN` members; none where it has no name."""
    rows = snapshot.evidence.of_crawl(crawl) if crawl else np.zeros(0, np.int64)
    if not len(rows):
        return
    novel = snapshot.flags(rows[firsts(snapshot.content[rows])])
    rows = rows[novel[rows] | snapshot.flags(rows[firsts(snapshot.key[rows])])[rows]]
    for members in by_number(paired(snapshot.path[rows], snapshot.shape[rows]), rows):
        if len(members) < FEW_RUN:
            continue
        whole = _of_members(snapshot, members, novel, crawl)
        if whole is not None:
            yield whole
            continue
        for part, parts in _parts(snapshot, members):
            proposal = _of_members(snapshot, part, novel, crawl)
            if proposal is not None and _beyond_luck(members, part, proposal.outcome.rows, novel, parts):
                yield proposal


def _beyond_luck(members: Rows, part: Rows, run: Rows, novel: Flags, parts: int) -> bool:
    """Whether a part of a form that brings nothing new is more than the luckiest of its parts.

    Where the others go on bringing new contents while it runs, its run has to be too long for luck at their rate: of
    three views of a calendar of mostly empty days, one is empty 60 times in a row before long.
    """
    others = np.setdiff1d(members[np.flatnonzero(members == run[0])[0] :], part)
    share = np.count_nonzero(novel[others]) / max(1, len(others))
    return bool(share <= DIFFER or parts * (1 - share) ** len(run) <= LUCK_OF_PARTS)


def _of_members(snapshot: Snapshot, members: Rows, novel: Flags, crawl: str) -> Proposal | None:
    pages = np.unique(snapshot.content[members], return_counts=True)[1]
    needed = FEW_RUN if len(pages) <= FEW and pages.min() > 1 else RUN
    run = members[_begin(np.flatnonzero(novel[members]), len(members), needed, int(novel.sum())) :]
    if len(run) < needed:
        return None
    return _proposal(snapshot, members, run, snapshot.shape_of(members[0]), needed, novel, crawl)


def _begin(fresh: Rows, count: int, needed: int, contents: int) -> int:
    """Return where the run begins: after the last member that brought something new, or where it may, the one before.

    One exception after a clean run does not end it where it is next to nothing among the contents of the host.
    """
    last = int(fresh[-1]) if len(fresh) else -1
    before = int(fresh[-2]) if len(fresh) > 1 else -1
    if count - 1 - last < needed <= last - before - 1 and contents >= MANY:
        return before + 1
    return last + 1


def _parts(snapshot: Snapshot, members: Rows) -> Iterator[tuple[Rows, int]]:
    """Yield the members of each combination of the values that are few, and how many combinations there are.

    ``do=edit`` has new pages, ``do=index`` not.
    """
    shape = snapshot.shape_of(members[0])
    values = {key: snapshot.values(key)[members] for key in shape}
    new = new_valued(values)
    few = [key for key in shape if key not in new]
    if not new or not few:
        return
    parts = [part for _, part in by_values(few, values, members)]
    yield from ((part, len(parts)) for part in parts if len(part) >= FEW_RUN)


def _is_open(values: Rows) -> bool:
    """Whether a value never seen may be expected to bring nothing new either: all of many did not (`OPEN`)."""
    return bool(values[0] > 0) and lower_bound(len(values), len(values)) >= OPEN


def _proposal(
    snapshot: Snapshot, members: Rows, run: Rows, shape: Shape, needed: int, novel: Flags, crawl: str
) -> Proposal | None:
    if not shape or not has_names(shape):
        return None
    path = snapshot.evidence.paths.items[int(snapshot.path[run[0]])]
    conditions = [Condition(Key(), "is", (path,)), Condition(Key(), "only", tuple(sorted({key[0] for key in shape})))]
    kept = run
    takes_new = False
    for key in shape:
        values = snapshot.values(key)[kept]
        numbers, counts = np.unique(values, return_counts=True)
        if brings_new_values(values) or _is_open(numbers):
            takes_new |= brings_new_values(values)
            conditions.append(Condition(Key(*key), "any"))
            continue
        numbers = numbers[(counts >= EACH) & (numbers > 0)]
        said = said_of(snapshot, [(key, numbers)]) if len(numbers) else None
        if said is None:
            return None
        conditions += said
        kept = kept[np.isin(values, numbers)]
    if not takes_new or len(kept) < needed:
        return None
    shown = snapshot.content[kept]
    good = ~novel[kept]
    agreed = int(good.sum())
    # In groups of one content: the pairs that the rule shows are pages that show the same.
    outcome = Outcome(kept, good, shown.astype(np.int64), shown, agreed, len(kept) - agreed)
    return Proposal(Exhausted(crawl), snapshot.flags(members), conditions, outcome, lower_bound(agreed, len(kept)))
