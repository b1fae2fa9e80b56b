"""Values of one parameter beside each other: what may be luck, and what is beyond it."""

from __future__ import annotations

from itertools import combinations, count
from math import comb
from random import Random

import pytest
from clusterd.learning.trials.agreement import NO_OUTCOME, Outcome
from clusterd.learning.trials.siblings import luck
from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.one_host import key, learned


def record(agreed: int, differed: int) -> Outcome:
    return Outcome(NO_OUTCOME.rows, NO_OUTCOME.good, NO_OUTCOME.group, NO_OUTCOME.content, agreed, differed)


@pytest.mark.parametrize(("agreed", "differed"), [(1, 0), (38, 0), (48, 1), (300, 3)])
def test_luck_is_the_lower_tail_of_the_binomial_distribution(agreed: int, differed: int) -> None:
    units, share = agreed + differed, 0.875
    exact = sum(comb(units, bad) * (1 - share) ** bad * share ** (units - bad) for bad in range(differed + 1))
    assert luck(record(agreed, differed), share) == pytest.approx(exact)


@pytest.mark.parametrize(("agreed", "differed", "probable"), [(1, 0, 0.0), (5, 1, 0.0), (0, 1, 1.0)])
def test_where_no_other_value_ever_agrees_a_record_that_agrees_is_no_luck(
    agreed: int, differed: int, probable: float
) -> None:
    assert luck(record(agreed, differed), 0.0) == probable


def test_long_records_are_beyond_luck_and_cost_little() -> None:
    assert luck(record(1_000_000, 5_000), 0.9) < 1e-9
    assert luck(record(30, 1_000_000), 0.9) == pytest.approx(0.9**30)


def revisions(agreeing: dict[str, int], differing: dict[str, int]) -> RuleSet:
    """Learn from records with two of the values of ``v`` each: so many that agree, and so many that differ."""
    number, pages = count(), []
    for pair in agreeing:
        for at in range(agreeing[pair] + differing[pair]):
            record_number = next(number)
            for place, value in enumerate(pair):
                other = 100_000 * place if at < differing[pair] else 0
                pages.append((f"rec?id={record_number}&v={value}", record_number + other))
    return learned(pages)


@pytest.mark.parametrize(("agreed", "same"), [(40, False), (60, True)])
def test_a_value_is_another_of_ever_new_records_by_as_many_trials_as_its_deletion(agreed: int, same: bool) -> None:
    """Of a catalogue's records a few differ by what is shown of them, and they may come late."""
    rules = revisions({"ab": agreed, "cd": 0}, {"ab": 0, "cd": 30})
    assert (key(rules, "rec?id=7000&v=a") == key(rules, "rec?id=7000&v=b")) is same


def test_the_luckiest_of_several_pairs_of_values_is_no_rule_though_one_record_differs() -> None:
    # Given four values of which each two show the same for seven records in eight, two of them by luck for 48 in 49.
    pairs = ["".join(pair) for pair in combinations("abcd", 2)]
    agreeing, differing = dict.fromkeys(pairs, 35), dict.fromkeys(pairs, 5)
    agreeing["ad"], differing["ad"] = 48, 1
    rules = revisions(agreeing, differing)
    assert key(rules, "rec?id=7000&v=a") != key(rules, "rec?id=7000&v=d")
    # A record that is too long for luck makes one.
    agreeing["ad"] = 90
    rules = revisions(agreeing, differing)
    assert key(rules, "rec?id=7000&v=a") == key(rules, "rec?id=7000&v=d")


def test_pairs_of_values_of_one_parameter_say_nothing_of_those_of_another() -> None:
    # Given revisions of which each two show the same for 38 records in 40, under which 60 clean trials would be luck.
    pages, number = [], count()
    for pair in combinations("abcde", 2):
        for at in range(40):
            record_number = next(number)
            other = 10_000 if at < 2 or "e" in pair else 0  # but for the last, which is another than each
            pages += [
                (f"rec?id={record_number}&v={value}", record_number + other * (value == pair[1])) for value in pair
            ]
    # And views of notes, of which the first two show the same, and the others do not.
    for at in range(90):
        for place, view in enumerate("xy" if at < 60 else "zw"):
            pages.append((f"note?n={at}&w={view}", 50_000 + at + 10_000 * (at >= 60) * place))
    rules = learned(pages)
    assert key(rules, "note?n=7000&w=x") == key(rules, "note?n=7000&w=y")
    assert key(rules, "rec?id=7000&v=a") != key(rules, "rec?id=7000&v=b")


def catalogue(every: int) -> RuleSet:
    """Learn from items in three of nine pairs of a colour and a size; one in so many is another in each.

    Of the latter red and s was not seen.
    """
    chosen, pages = Random(3), []
    pairs = [(colour, size) for colour in ("red", "blue", "green") for size in "sml"]
    for item in range(120):
        differs = item % every == 0
        pages.append((f"item?id={item}", item * 10))
        for at, (colour, size) in enumerate(chosen.sample(pairs[differs:], 3), 1):
            pages.append((f"item?id={item}&c={colour}&s={size}", item * 10 + at * differs))
    return learned(pages)


@pytest.mark.parametrize(("every", "goes"), [(30, False), (3, True)])
def test_a_pair_of_values_goes_where_its_record_is_no_luck_under_that_of_all_pairs(every: int, goes: bool) -> None:
    rules = catalogue(every)
    assert (key(rules, "item?id=7000&c=red&s=s") == key(rules, "item?id=7000")) is goes


def colours(differing: int) -> RuleSet:
    """Learn from 54 items that show the same in red and blue, and so many in which red is another, not seen in blue."""
    pages = [(f"item?id={at}{way}", at) for at in range(54) for way in ("&c=red", "&c=blue")]
    pages += [(f"item?id={at}", at) for at in range(0, 54, 3)]
    for at in range(54, 54 + differing):
        pages += [(f"item?id={at}", at), (f"item?id={at}&c=red", 1000 + at)]
    return learned(pages)


@pytest.mark.parametrize(("differing", "same"), [(3, False), (30, True)])
def test_a_value_is_another_where_that_is_no_luck_under_the_record_of_the_parameter(differing: int, same: bool) -> None:
    rules = colours(differing)
    assert (key(rules, "item?id=7000&c=red") == key(rules, "item?id=7000&c=blue")) is same
