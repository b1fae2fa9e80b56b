"""Which edited parameters were tried together: a context lets no other combination of them through.

That ``?id=N`` and ``?h=X&id=N`` show what the page without either shows says nothing about ``?h=X`` alone, though each
value of ``h`` and of ``id`` has its own clean record. A combination is the set of edited parameters that a URL has. Of
those with `TOGETHER` agreements and a clean record, the context takes in, the most tried first, as many as can be said
by "has to be there" and "must not be there", parameter by parameter, without letting through another one that the host
has. (One that it never links may pass: of ``asc`` and ``desc`` a listing has either, and no rule could say so.)

Nor may one parameter live on another's record: that ``?f=1&t=2&p=3`` shows what ``?f=1&t=2`` shows, for every ``p``,
says nothing about ``f``. So every parameter has a record of its own, of what it alone still tells apart once the others
are dropped (`by_parameter`).

Cost: a sort of the edited rows, and a pass over the host's combinations for each of `MANY`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Key

from clusterd.learning.edit_trials import Trials
from clusterd.learning.edits import Drop, DropUnordered
from clusterd.learning.evidence import ColumnKey, Flags, Rows, Snapshot
from clusterd.learning.trials import Outcome, judge

#: Fewest agreements of a combination.
TOGETHER: Final = 8
#: Most parameters that are told apart: a combination is a number of so many bits.
MOST: Final = 62
#: Most combinations that are looked at.
MANY: Final = 64


def restrict(snapshot: Snapshot, trials: Trials, conditions: list[Condition], differ: float) -> set[ColumnKey]:
    """Restrict a joint deletion to combinations that were tried; return the parameters that have to be there.

    Other edits are left as they are: what they do to a page that has none of the parameters is tried as well.
    """
    own = trials.edit.own
    if len(own) < 2 or type(trials.edit) is not Drop:
        return set()
    pattern = combinations(snapshot, own[:MOST])
    tried = clean(pattern, trials, differ) if len(own) <= MOST else []
    taken = chosen(tried, np.setdiff1d(pattern[trials.rows], [0, *tried]))
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


def clean(pattern: Rows, trials: Trials, differ: float) -> list[int]:
    """Return the combinations with a clean record, the `MANY` most tried first; the empty one left out."""
    outcome = trials.outcome
    edited = trials.rows[outcome.rows]
    good = outcome.good & edited
    agreed = np.unique(np.stack([pattern[outcome.rows[good]], trials.units[good]]), axis=1)[0]
    bad = pattern[outcome.rows[~outcome.good & edited]]
    numbers, right = np.unique(agreed, return_counts=True)
    wrong = np.array([np.count_nonzero(bad == number) for number in numbers], np.int64)
    stays = (numbers != 0) & (right >= TOGETHER) & (wrong <= differ * right)
    order = np.argsort(-right[stays], kind="stable")
    return [int(number) for number in numbers[stays][order][:MANY]]


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


def by_parameter(snapshot: Snapshot, trials: Trials) -> Iterator[tuple[ColumnKey, Outcome]]:
    """Yield, with each parameter of a joint deletion, what dropping it does once the others are dropped."""
    edit = trials.edit
    if not isinstance(edit, Drop) or type(edit) not in {Drop, DropUnordered} or len(edit.own) < 2:
        return
    after = edit.keys(snapshot, trials.rows)
    for key in edit.own:
        others = replace(edit, own=tuple(other for other in edit.own if other != key))
        before = others.keys(snapshot, trials.rows)
        yield key, judge(before, after, snapshot.content, trials.rows & (before != after))
