"""Which edited parameters were tried together: a context lets no other combination of them through.

That ``?id=N`` and ``?h=X&id=N`` show what the page without either shows says nothing about ``?h=X`` alone, though
each value of ``h`` and of ``id`` has its own clean record. A combination is the set of edited parameters that a URL
has. Of those with `TOGETHER` agreements and a clean record, the context takes in, the most tried first, as many as
can be said by "has to be there" and "must not be there", parameter by parameter, without letting through another one
that the host has. (One that it never links may pass: of ``asc`` and ``desc`` a listing has either, and no rule could
say so.) Where very many combinations were tried, and nearly all are clean, the next is expected to be: of ten
campaign tags a URL bears any, a thousand combinations, of which none is tried often. What all of them have, or none,
is asked for all the same.

Nor may one parameter live on another's record: that ``?f=1&t=2&p=3`` shows what ``?f=1&t=2`` shows, for every ``p``,
says nothing about ``f``. So every parameter has a record of its own, of what it alone still tells apart once the others
are dropped (`by_parameter`).

Cost: a sort of the edited rows, and a pass over the host's combinations for each of `MANY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Key

from clusterd.learning.edits.edit import Drop, DropUnordered
from clusterd.learning.evidence.arrays import Flags, Rows
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import DIFFER, OPEN, Outcome, judge, lower_bound
from clusterd.learning.trials.narrowing import Trials, settled_keys

#: Fewest agreements of a combination.
TOGETHER: Final = 8
#: Most parameters that are told apart: a combination is a number of so many bits.
MOST: Final = 62
#: Most combinations that are looked at.
MANY: Final = 64


def restrict(trials: Trials, conditions: list[Condition]) -> set[ColumnKey]:
    """Restrict a joint deletion to combinations that were tried; return the parameters that have to be there.

    Other edits are left as they are: what they do to a page that has none of the parameters is tried as well.
    """
    snapshot, own = trials.snapshot, trials.edit.own
    if len(own) < 2 or type(trials.edit) is not Drop:
        return set()
    pattern = combinations(snapshot, own[:MOST])
    taken = Records.of(pattern, trials).together(pattern[trials.rows]) if len(own) <= MOST else []
    trials.narrow(lets_through(taken, pattern) if taken else np.zeros(len(snapshot), np.bool_))
    if not taken:
        return set()
    always = {key for at, key in enumerate(own) if all(one >> at & 1 for one in taken)}
    never = [key for at, key in enumerate(own) if not any(one >> at & 1 for one in taken)]
    conditions += [Condition(Key(*key), "any") for key in own if key in always]
    conditions += [Condition(Key(*key), "absent") for key in never]
    return always


def combinations(snapshot: Snapshot, own: tuple[ColumnKey, ...]) -> Rows:
    """Return for each row which of the parameters it has: bit i for the i-th."""
    found = np.zeros(len(snapshot), np.int64)
    for at, key in enumerate(own):
        found |= (snapshot.values(key) > 0).astype(np.int64) << at
    return found


@dataclass(frozen=True, slots=True)
class Records:
    """What is known of each combination that was tried: how many pages agreed and differed, and whether it is clean."""

    numbers: Rows
    right: Rows
    clean: Flags

    @classmethod
    def of(cls, pattern: Rows, trials: Trials) -> Records:
        """Return the records of combinations (the empty one left out), the most tried first."""
        outcome = trials.outcome
        edited = trials.rows[outcome.rows]
        good, bad = outcome.good & edited, ~outcome.good & edited
        agreed = np.unique(np.stack([pattern[outcome.rows[good]], trials.units[good]]), axis=1)[0]
        every = np.concatenate([agreed, pattern[outcome.rows[bad]]])
        numbers, which = np.unique(every, return_inverse=True)
        right = np.bincount(which[: len(agreed)], minlength=len(numbers))
        wrong = np.bincount(which[len(agreed) :], minlength=len(numbers))
        order = np.argsort(-right, kind="stable")
        order = order[numbers[order] != 0]
        numbers, right, wrong = numbers[order], right[order], wrong[order]
        return cls(numbers, right, (right > 0) & (wrong <= DIFFER * right))

    def together(self, host: Rows) -> list[int]:
        """Return the combinations that a context takes in, of those that the host has."""
        if lower_bound(int(np.count_nonzero(self.clean)), len(self.numbers)) >= OPEN:
            every: list[int] = self.numbers[self.clean].tolist()
            return every
        often: list[int] = self.numbers[self.clean & (self.right >= TOGETHER)][:MANY].tolist()
        return chosen(often, np.setdiff1d(host, [0, *often]))


def chosen(tried: list[int], untried: Rows) -> list[int]:
    """Return the combinations that can be let through together, the first ones first, without an untried one."""
    taken: list[int] = []
    for one in tried:
        if not lets_through([*taken, one], untried).any():
            taken.append(one)
    return taken


def lets_through(taken: list[int], patterns: Rows) -> Flags:
    """Say which combinations are let through by conditions on each parameter by itself that let some through."""
    every = np.bitwise_or.reduce(np.array(taken, np.int64))
    common = np.bitwise_and.reduce(np.array(taken, np.int64))
    passed: Flags = (patterns & common == common) & (patterns & ~every == 0)
    return passed


def by_parameter(trials: Trials) -> Iterator[tuple[ColumnKey, Outcome]]:
    """Yield, with each parameter of a joint deletion, what dropping it does once the others are dropped."""
    snapshot, edit = trials.snapshot, trials.edit
    if isinstance(edit, Drop) and type(edit) in {Drop, DropUnordered} and len(edit.own) > 1:
        rows, after = trials.rows, settled_keys(snapshot, edit, trials.rows)
        for key in edit.own:
            others = replace(edit, own=tuple(other for other in edit.own if other != key))
            before = settled_keys(snapshot, others, rows)
            yield key, judge(before, after, snapshot.content, rows & (before != after), seen=snapshot.seen)
