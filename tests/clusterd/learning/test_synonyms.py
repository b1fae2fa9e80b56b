"""Two names of one parameter: what is learned of them, and what forbids it."""

from __future__ import annotations

import pytest
from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.one_host import key, learned


def same(rules: RuleSet, first: str, second: str) -> bool:
    """Say whether two paths have one key."""
    return key(rules, first) == key(rules, second)


@pytest.mark.parametrize(("one", "other"), [("id", "ID"), ("p", "page_id"), ("article", "a")])
def test_two_names_of_an_identifier_are_one(one: str, other: str) -> None:
    rules = learned([(f"view?{name}={n}", n) for n in range(120) for name in (one, other)])

    assert same(rules, f"view?{one}=900", f"view?{other}=900")
    assert not same(rules, f"view?{one}=900", f"view?{other}=901")
    assert not same(rules, f"other?{one}=900", f"other?{other}=900")
    assert not same(rules, f"view?{one}=1&{other}=2", f"view?{one}=1&{other}=3")


def test_a_name_stays_in_its_place_among_others() -> None:
    rules = learned([(f"view?v=1&{name}={n}&w={n % 3}", n) for n in range(120) for name in ("id", "ID")])

    assert same(rules, "view?v=1&id=900&w=2", "view?v=1&ID=900&w=2")
    assert not same(rules, "view?v=1&id=900&w=2", "view?v=1&ID=900&w=1")


def test_three_names_are_one() -> None:
    rules = learned([(f"view?{name}={n}", n) for n in range(120) for name in ("id", "ID", "Id")])

    assert same(rules, "view?id=900", "view?Id=900")
    assert same(rules, "view?ID=900", "view?Id=900")


def test_names_that_mean_two_things_stay() -> None:
    pages = [(f"view?{name}={n}", n + 1000 * at) for n in range(120) for at, name in enumerate(("id", "user"))]

    assert not same(learned(pages), "view?id=900", "view?user=900")


@pytest.mark.parametrize("share", [25, 10])
def test_names_that_mean_two_things_now_and_then_stay(share: int) -> None:
    pages = [
        (f"view?{name}={n}", n + 1000 * at * (n % share == 0))
        for n in range(300)
        for at, name in enumerate(("id", "ID"))
    ]

    assert not same(learned(pages), "view?id=900", "view?ID=900")
