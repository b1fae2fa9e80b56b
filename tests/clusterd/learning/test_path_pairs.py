"""Parameters in the path, a name and its value: what is learned of them, and what forbids it."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import learned, same

#: What stands behind the path of a page, and the part of its content that it shows.
Rest = list[tuple[str, object]]


def pages(count: int, rests: Rest, path: str = "item/{}") -> list[tuple[str, int]]:
    """Return pages under several paths each."""
    return [(f"{path.format(n)}{rest}", hash((n, part))) for n in range(count) for rest, part in rests]


def test_the_first_of_several_pages_is_the_whole() -> None:
    rules = learned(pages(120, [("", 1), ("/page/1", 1), ("/page/2", 2)]))

    assert same(rules, "item/900/page/1", "item/900")
    assert not same(rules, "item/900/page/2", "item/900")
    assert not same(rules, "item/900/page/3", "item/900")
    assert not same(rules, "other/900/page/1", "other/900")


def test_so_it_is_where_paths_end_in_a_slash() -> None:
    rules = learned(pages(120, [("", 1), ("page/1/", 1), ("page/2/", 2)], "2020/item-{}/"))

    assert same(rules, "2020/item-900/page/1/", "2020/item-900/")
    assert not same(rules, "2020/item-900/page/2/", "2020/item-900/")


def test_any_value_of_a_session_goes() -> None:
    rules = learned([(f"item/{n}{rest}", n) for n in range(120) for rest in ("", f"/sid/x{n}")])

    assert same(rules, "item/900/sid/new", "item/900")
    assert not same(rules, "item/900/tab/new", "item/900")


def test_of_several_each_goes_by_itself() -> None:
    rules = learned(pages(120, [("", 1), ("/sort/price", 1), ("/dir/asc", 1), ("/dir/asc/sort/price", 1)]))

    assert same(rules, "item/900/dir/asc/sort/price", "item/900")
    assert same(rules, "item/900/sort/price/dir/asc", "item/900")


def test_in_the_middle_of_paths_it_goes_too() -> None:
    rules = learned([(f"{lang}item/{n}", n) for n in range(120) for lang in ("", "lang/en/")])

    assert same(rules, "lang/en/item/900", "item/900")
    assert not same(rules, "lang/de/item/900", "item/900")


@pytest.mark.parametrize("share", [30, 12])
def test_one_that_matters_now_and_then_stays(share: int) -> None:
    found = pages(240, [("", 1), ("/view/full", 1)])
    found += [(f"item/{n}/view/full", hash((n, 2))) for n in range(300, 540, share)]
    found += [(f"item/{n}", hash((n, 1))) for n in range(300, 540, share)]

    assert not same(learned(found), "item/900/view/full", "item/900")


def test_any_value_needs_more_pages_than_one_value() -> None:
    values = learned([(f"item/{n}{rest}", n) for n in range(80) for rest in ("", f"/sid/x{n}")])
    value = learned([(f"item/{n}{rest}", n) for n in range(80) for rest in ("", "/sid/x")])

    assert not same(values, "item/900/sid/new", "item/900")
    assert same(value, "item/900/sid/x", "item/900")


def test_few_pages_say_nothing() -> None:
    assert not same(learned(pages(40, [("", 1), ("/view/full", 1)])), "item/900/view/full", "item/900")


def test_folders_with_numbers_for_names_are_no_parameters() -> None:
    found = [(f"{year}/{month}/a{n}", n) for n in range(120) for year, month in ((2020, n % 12),)]
    found += [(f"a{n}", n) for n in range(120)]

    assert not same(learned(found), "2021/5/a900", "a900")
