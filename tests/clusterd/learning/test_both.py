"""Edits of the path and the query that hold only together, and scripts under two names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clusterd.learning.one_host import key, learned, same


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        (lambda n: f"d{n}/", lambda n: f"d{n}/index.php?print=1"),
        (lambda n: f"docs/p{n}", lambda n: f"amp/docs/p{n}?output=amp"),
        (lambda n: f"docs/p{n}/", lambda n: f"docs/p{n}/amp/?o={n % 3}"),
        (lambda n: f"docs/p{n}.html", lambda n: f"docs/p{n}_print.html?pop=1"),
        (lambda n: f"docs/p{n}", lambda n: f"docs/p{n}.html?pop=1"),
        (lambda n: f"docs/p{n}", lambda n: f"docs/p{n}/?pop=1"),
        (lambda n: f"index.php?id={n}", lambda n: f"index2.php?id={n}&pop=1&page=0"),
        (lambda n: f"forum/show.php?t={n}", lambda n: f"forum/print.php?t={n}&pp=40"),
    ],
)
def test_a_path_and_parameters_that_always_change_together(
    plain: Callable[[int], str], other: Callable[[int], str]
) -> None:
    rules = learned((of(n), n) for n in range(120) for of in (plain, other))
    assert same(rules, plain(801), other(801))
    assert not same(rules, plain(801), plain(802))
    assert not same(rules, other(801), other(802))


@pytest.mark.parametrize(
    "differs", [lambda n: n % 10 == 0, lambda n: n % 40 == 0], ids=["one in ten differs", "one in forty differs"]
)
def test_a_view_that_differs_now_and_then_is_no_other_name(differs: Callable[[int], bool]) -> None:
    pages = [(f"docs/p{n}", n) for n in range(240)]
    pages += [(f"docs/p{n}/comments?all=1", 1000 + n if differs(n) else n) for n in range(240)]
    assert not same(learned(pages), "docs/p801", "docs/p801/comments?all=1")


@pytest.mark.parametrize(("clean", "is_same"), [(60, False), (240, True)])
def test_the_luckiest_of_several_folders_is_no_other_name_with_a_parameter_either(clean: int, is_same: bool) -> None:
    """Of eight translations with three pages in 60 that differ one is not, for luck."""
    pages = [(f"docs/p{n}", n) for n in range(clean)]
    pages += [(f"de/docs/p{n}?l=de", n) for n in range(clean)]
    for at, tongue in enumerate(("fr", "es", "it", "nl", "pl", "pt", "sv"), 1):
        pages += [(f"{tongue}/docs/p{n}?l={tongue}", n if n % 20 else 1000 * at + n) for n in range(60)]
    assert same(learned(pages), "docs/p801", "de/docs/p801?l=de") is is_same


def test_a_name_that_stands_in_the_path_twice_is_exchanged_where_it_differs() -> None:
    rules = learned((of, n) for n in range(120) for of in (f"news/docs/p{n}", f"docs/docs/p{n}?output=amp"))
    assert same(rules, "news/docs/p801", "docs/docs/p801?output=amp")


def test_the_parameters_alone_and_the_path_alone_stay_as_they_are() -> None:
    pages = [(of, n) for n in range(120) for of in (f"docs/p{n}", f"amp/docs/p{n}?output=amp")]
    pages += [(f"amp/docs/p{n}", 1000 + n) for n in range(120)]
    pages += [(f"docs/p{n}?output=amp", 2000 + n) for n in range(120)]
    rules = learned(pages)
    assert same(rules, "docs/p801", "amp/docs/p801?output=amp")
    assert len({key(rules, path) for path in ("docs/p801", "amp/docs/p801", "docs/p801?output=amp")}) == 3


def test_too_few_pages_say_nothing_of_both() -> None:
    rules = learned((of, n) for n in range(40) for of in (f"d{n}/", f"d{n}/index.php?print=1"))
    assert not same(rules, "d801/", "d801/index.php?print=1")


def test_a_script_in_a_folder_has_two_names() -> None:
    rules = learned((f"forum/{name}.php?t={n}", n) for n in range(120) for name in ("showthread", "printthread"))
    assert same(rules, "forum/showthread.php?t=801", "forum/printthread.php?t=801")
    assert not same(rules, "forum/showthread.php?t=801", "forum/printthread.php?t=802")
    assert not same(rules, "forum/showthread.php?t=801&page=2", "forum/printthread.php?t=801&page=2")


def test_scripts_of_which_one_page_in_ten_differs_are_two() -> None:
    pages = [(f"forum/show.php?t={n}", n) for n in range(300)]
    pages += [(f"forum/print.php?t={n}", n if n % 10 else 1000 + n) for n in range(300)]
    rules = learned(pages)
    assert not same(rules, "forum/show.php?t=801", "forum/print.php?t=801")
