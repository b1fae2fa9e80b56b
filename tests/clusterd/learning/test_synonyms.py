"""Two names of one parameter: what is learned of them, and what forbids it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.clusterd.learning.one_host import learned, same


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


SIX_NAMES = """
from tests.clusterd.learning.one_host import learned
names = ("id", "ID", "pid", "item", "num", "page_id")
print([rule.id for rule in learned([(f"show?{name}={n}", n) for n in range(60) for name in names]).rules])
"""


def test_of_many_names_the_same_ones_are_found_whatever_the_seed_of_hashes() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", SIX_NAMES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "0123"
    }
    assert len(told) == 1
    assert told != {b"[]\n"}


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


def test_names_met_with_one_value_stay() -> None:
    # Given a mark from 0 to 8 that does not matter, and a switch that does on a tenth of the pages, none with mark 1.
    pages = [(f"view?id={n}{mark}", n) for n in range(360) for mark in ("", f"&mark={n % 9}")]
    rules = learned([*pages, *((f"view?id={n}&full=1", n if n % 10 or n % 9 == 1 else 1000 + n) for n in range(360))])
    # Then that both are 1 where they agree makes them no two names of one.
    assert same(rules, "view?id=901&mark=1", "view?id=901")
    assert not same(rules, "view?id=901&mark=1", "view?id=901&full=1")


def test_a_name_is_found_in_a_spelling_of_the_path_that_another_rule_changes() -> None:
    forms = ("View?id={}", "view?id={}", "View?ID={}")
    rules = learned([(form.format(n), n) for n in range(200) for form in forms])

    assert same(rules, "View?id=900", "view?id=900")
    assert same(rules, "View?id=900", "View?ID=900")
