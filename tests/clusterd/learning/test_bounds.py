"""How many trials an edit needs, and how many of them may differ, as ``docs/rules.md`` says."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from clusterd.learning.trials import bounds
from clusterd.learning.trials.agreement import NO_OUTCOME


def holds(agreed: int, differed: int, bound: float = bounds.BOUND, prior: int = 0) -> bool:
    return bounds.holds(replace(NO_OUTCOME, agreed=agreed, differed=differed), bound, prior)


@pytest.mark.parametrize(
    ("bound", "trials"),
    [
        (bounds.BOUND, 18),
        (bounds.NARROWED_BOUND, 31),
        (bounds.MANY_BOUND, 31),
        (bounds.OPEN_BOUND, 52),
        (bounds.ANY_BOUND, 102),
    ],
)
def test_so_many_clean_trials_are_asked_for(bound: float, trials: int) -> None:
    assert next(agreed for agreed in count() if holds(agreed, 0, bound)) == trials
    assert next(agreed for agreed in count() if bounds.enough(agreed, bound, 0)) == trials


def test_of_few_trials_none_may_differ_of_42_one_of_many_one_in_a_hundred() -> None:
    fewest = [
        next(tried for tried in count(differed + 1) if holds(tried - differed, differed)) for differed in range(4)
    ]
    assert fewest == [18, 42, 200, 300]


def test_what_a_kind_of_edit_brings_along_counts_as_trials_that_agreed() -> None:
    for prior in (5, 12):
        for differed, fewest in enumerate((18, 42, 200, 300)):
            assert holds(fewest - differed - prior, differed, prior=prior)
            assert not holds(fewest - differed - prior - 1, differed, prior=prior)


def test_what_no_page_agreed_with_holds_nowhere() -> None:
    assert holds(1, 0, prior=30)
    assert not holds(0, 0, prior=30)
    assert not bounds.could_hold(NO_OUTCOME, bounds.BOUND, 30)
