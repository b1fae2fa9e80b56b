"""What the evidence says about an edit, and that judging its parts together is judging them one after the other."""

from __future__ import annotations

import numpy as np
from clusterd.learning.trials.agreement import REPEATED, judge
from clusterd.learning.trials.parts import Parts, judge_each
from hypothesis import given, settings
from hypothesis import strategies as st

#: Before, after (where edited), content, edited, values of two keys, crawls that have seen it.
ROWS = st.lists(
    st.tuples(
        *(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4), st.booleans()),
        *(st.integers(0, 4), st.integers(0, 3), st.sampled_from((1, 1, 2, 3, 4, 0))),
    ),
    min_size=1,
    max_size=40,
)


def keys(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.uint64) * np.uint64(0x123456789ABCDEF1)


@given(ROWS, st.booleans(), st.booleans())
@settings(deadline=None, max_examples=300)
def test_parts_judged_together_are_judged_as_alone(
    rows: list[tuple[int, int, int, bool, int, int, int]], by_group: bool, several_crawls: bool
) -> None:
    before, to = keys([row[0] for row in rows]), keys([row[1] for row in rows])
    content = np.array([row[2] for row in rows], np.int64)
    edited = np.array([row[3] for row in rows], np.bool_)
    columns = [np.array([row[at] for row in rows], np.int64) for at in (4, 5)]
    after = np.where(edited, to, before)
    present = [np.unique(values[edited]) for values in columns]
    seen = np.array([row[6] for row in rows], np.int64) if several_crawls else None
    agreed, differed = judge_each(before, after, content, Parts(columns, edited, present, seen), by_group=by_group)
    number = 0
    for values, some in zip(columns, present, strict=True):
        for value in some.tolist():
            part = edited & ((values == value) | (values == 0))
            alone = judge(before, np.where(part, after, before), content, part, by_group=by_group, seen=seen)
            assert (agreed[number], differed[number]) == (alone.agreed, alone.differed)
            number += 1
    assert number == len(agreed) == len(differed)


def test_pages_that_agree_and_differ_are_counted_by_content() -> None:
    # Given three pages that a rule brings under the keys of others: two show what these show, one does not.
    before, after = keys([1, 2, 3, 11, 12, 13]), keys([1, 2, 3, 1, 2, 3])
    content = np.array([0, 1, 2, 0, 1, 9])
    found = judge(before, after, content, np.array([False] * 3 + [True] * 3))
    assert (found.agreed, found.differed) == (2, 1)
    # A page agrees with nobody but itself in the third group.
    assert found.good.tolist() == [True, True, True, True, False, False]


def test_a_content_under_many_keys_counts_once_and_in_few_groups_a_few_times() -> None:
    many = 20
    before = keys(list(range(2 * many)))
    after = keys(list(range(many)) * 2)
    edited = np.arange(2 * many) >= many
    everywhere = judge(before, after, np.zeros(2 * many, np.int64), edited)
    assert (everywhere.agreed, everywhere.differed) == (1, 0)
    one_key = judge(before, keys([0] * 2 * many), np.zeros(2 * many, np.int64), edited)
    assert (one_key.agreed, one_key.differed) == (REPEATED, 0)


def test_pages_are_compared_that_one_crawl_has_seen() -> None:
    # Given a page that both crawls saw, with one that the first saw and one that the second saw, under one key …
    before, after = keys([1, 2, 3]), keys([1, 1, 1])
    edited = np.array([False, True, True])
    both = judge(before, after, np.array([0, 9, 0]), edited, seen=np.array([3, 1, 2]))
    assert (both.agreed, both.differed) == (1, 1)
    # … and without it: what differs and what agrees is not known of either.
    for content in (np.array([0, 9]), np.array([0, 0])):
        alone = judge(before[1:], after[1:], content, edited[1:], seen=np.array([1, 2]))
        assert (alone.agreed, alone.differed, len(alone.rows)) == (0, 0, 0)
