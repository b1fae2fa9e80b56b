"""The pages that an edit brings together, and what becomes of them when its context is narrowed.

Narrowing only takes edited pages out of groups, so what the first judgement found is all that later ones need.
Cost: one judgement of the rows that the edit touches; each narrowing judges those of its groups again.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Final

import numpy as np

from clusterd.learning.edits.edit import CandidateEdit
from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, distinct
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import Outcome, judge
from clusterd.learning.trials.attributes import Attribute
from clusterd.learning.trials.parts import Parts, judge_each

#: Most values of an edited key that are judged one by one, the most common ones.
ALONE: Final = 64
#: Most rows that are judged together: what one value after the other would be, without the memory for all.
AT_ONCE: Final = 1 << 20

#: Fewest values without a trial of their own that are judged by what they say together.
SEVERAL: Final = 5


def settled_keys(snapshot: Snapshot, edit: CandidateEdit, rows: Flags) -> Hashes:
    """Return all keys after the edit of the given rows, and after what accepted edits make of that."""
    after = edit.keys(snapshot, rows)
    after[rows] = snapshot.settled.follow(after[rows])
    return after


class Trials:
    """An edit's pages under the context so far, what their groups say of it, and the record of every value."""

    def __init__(self, snapshot: Snapshot, edit: CandidateEdit, rows: Flags) -> None:
        self.snapshot = snapshot
        self.edit = edit
        #: Rows of the snapshot that the edit changes, under the context so far.
        self.rows = rows
        after = settled_keys(snapshot, edit, rows) if rows.any() else snapshot.key
        self.outcome = judge(snapshot.key, after, snapshot.content, rows, seen=snapshot.seen)
        self._at = np.sort(self.outcome.rows)
        self._before = snapshot.key[self._at]
        self._after = after[self._at]
        self._content = snapshot.content[self._at]
        self._seen = None if snapshot.seen is None else snapshot.seen[self._at]
        self._by_group = False
        #: Column or place of a key → its values' records, until the context is narrowed.
        self._known: dict[object, tuple[Rows, Rows]] = {}

    @property
    def units(self) -> Rows:
        """Of each row of the outcome, what it is an agreement of."""
        return self.outcome.group if self._by_group else self.outcome.content

    @property
    def agreeing(self) -> Rows:
        """The rows edited that agree."""
        rows = self.outcome.rows
        return rows[self.outcome.good & self.rows[rows]]

    def _judged(self, changed: Flags) -> Outcome:
        after = np.where(changed, self._after, self._before)
        found = judge(self._before, after, self._content, changed, by_group=self._by_group, seen=self._seen)
        return replace(found, rows=self._at[found.rows])

    def showing(self, content: int) -> Trials:
        """Return the trials of the groups in which a page shows a content."""
        meant = np.isin(self._after, self._after[self._content == content])
        chosen = copy(self)
        chosen._by_group = True
        chosen._known = {}
        chosen._at, chosen._before, chosen._after = self._at[meant], self._before[meant], self._after[meant]
        chosen._content = self._content[meant]
        chosen._seen = None if self._seen is None else self._seen[meant]
        chosen.outcome = chosen._judged(chosen.rows[chosen._at])
        return chosen

    def common(self, fewest: int) -> list[int]:
        """Return the contents that stand in so many groups, the most common first."""
        size = int(self.outcome.group.max(initial=0)) + 1
        pairs = distinct(self.outcome.content * size + self.outcome.group)
        contents, groups = np.unique(pairs // size, return_counts=True)
        order = np.argsort(-groups, kind="stable")
        return [int(contents[at]) for at in order if groups[at] >= fewest]

    def narrow(self, wanted: Flags) -> None:
        """Leave only these rows edited."""
        before = self.rows[self._at]
        self.rows = self.rows & wanted
        after = self.rows[self._at]
        if not np.array_equal(before, after):
            self._known = {}
            self.outcome = self._judged(after)

    def preview(self, wanted: Flags) -> Outcome:
        """Return the outcome that narrowing would have."""
        return self._judged((self.rows & wanted)[self._at])

    def records(self, attribute: Attribute) -> tuple[Rows, Rows]:
        """Return, for every value of a key, its agreeing contents and what differs, of the rows edited."""
        which = self._which(attribute)
        if which not in self._known:
            self.judge_alone([attribute])
        if which not in self._known:
            self._known[which] = self._records(attribute)
        return self._known[which]

    def _records(self, attribute: Attribute) -> tuple[Rows, Rows]:
        size = int(attribute.values.max(initial=0)) + 1
        values = attribute.values[self.outcome.rows]
        edited = self.rows[self.outcome.rows]
        good = self.outcome.good & edited
        contents = int(self.outcome.content.max(initial=0)) + 1
        pairs = distinct(values[good] * contents + self.outcome.content[good])
        bad = ~self.outcome.good & edited
        return np.bincount(pairs // contents, minlength=size), np.bincount(values[bad], minlength=size)

    def judge_alone(self, attributes: Iterable[Attribute]) -> None:
        """Judge the values of edited keys, each by itself (`parts`); of a key with more than `ALONE` the common ones.

        Of two that differ under one key it is not plain which is another page: what many pages bear is not blamed for
        what is beside it.
        """
        edited = self.rows[self._at]
        asked = [one for one in attributes if self._is_edited(one) and self._which(one) not in self._known]
        columns = [one.values[self._at] for one in asked]
        present = [common(values[edited]) for values in columns]
        self.snapshot.judged += len(columns) * int(np.count_nonzero(edited))
        some = [at for at in range(len(asked)) if len(present[at])]
        step = max(1, AT_ONCE // max(1, ALONE * len(edited)))
        for start in range(0, len(some), step):
            some_now = some[start : start + step]
            parts = Parts([columns[at] for at in some_now], edited, [present[at] for at in some_now], self._seen)
            good, bad = judge_each(self._before, self._after, self._content, parts, by_group=self._by_group)
            first = 0
            for at in some_now:
                last = first + len(present[at])
                self._known[self._which(asked[at])] = self._with_joint(
                    asked[at], present[at], good[first:last], bad[first:last]
                )
                first = last

    def _with_joint(self, attribute: Attribute, alone: Rows, good: Rows, bad: Rows) -> tuple[Rows, Rows]:
        """Return the records of all values: those judged alone have their own, the rest what all together say of them.

        So have several that by themselves meet no other page: of a parameter that nearly every link bears there is no
        page without it to compare with. (That one of few values is another is what `Replace` says.)
        """
        size = int(attribute.values.max(initial=0)) + 1
        untried = (good + bad == 0) & (alone > 0)
        every = len(alone) == len(distinct(attribute.values[self._at][self.rows[self._at]]))
        if every and np.count_nonzero(untried) < SEVERAL:
            found = np.zeros(size, np.int64), np.zeros(size, np.int64)
            own = np.ones(len(alone), np.bool_)
        else:
            found = self._records(attribute)
            own = ~(untried & (found[0][alone] + found[1][alone] > 0))
            own |= np.count_nonzero(~own) < SEVERAL
        found[0][alone[own]], found[1][alone[own]] = good[own], bad[own]
        return found

    def _which(self, attribute: Attribute) -> object:
        return attribute.column or attribute.name

    def _is_edited(self, attribute: Attribute) -> bool:
        return attribute.column in self.edit.own or (not self.edit.own and attribute.column is None)


def common(values: Rows) -> Rows:
    """Return the distinct values; of more than `ALONE` those that `SEVERAL` rows and more have, the most common."""
    numbers, counts = np.unique(values, return_counts=True)
    if len(numbers) <= ALONE:
        return numbers
    most = np.argsort(-counts, kind="stable")[:ALONE]
    return np.sort(numbers[most[counts[most] >= SEVERAL]])
