"""Numbers in a component: which of them do not matter, and what forbids that they go."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import learned, same


def threads(count: int, form: str = "thread-{}-{}-{}.html") -> list[tuple[str, int]]:
    """Return threads of two pages each, linked from two pages of their list."""
    return [
        (form.format(n, page, 1 + n % 5 + back), 10 * n + page)
        for n in range(count)
        for page in (1, 2)
        for back in (0, 1)
    ]


@pytest.mark.parametrize("form", ["thread-{}-{}-{}.html", "f/t{}p{}from{}", "{}_{}_{}/print"])
def test_a_number_that_does_not_matter_goes(form: str) -> None:
    rules = learned(threads(120, form))

    assert same(rules, form.format(900, 1, 7), form.format(900, 1, 8))
    assert not same(rules, form.format(900, 1, 7), form.format(900, 2, 7))
    assert not same(rules, form.format(900, 1, 7), form.format(901, 1, 7))
    assert not same(rules, "list-900-1-7.html", "list-900-1-8.html")
    assert not same(rules, f"g/{form.format(900, 1, 7)}", f"g/{form.format(900, 1, 8)}")


def test_the_first_number_may_be_the_one() -> None:
    rules = learned([(f"c{shop}p{n}.html", n) for n in range(150) for shop in (n % 7, 7 + n % 5)])

    assert same(rules, "c1p900.html", "c2p900.html")
    assert not same(rules, "c1p900.html", "c1p901.html")


@pytest.mark.parametrize("share", [25, 10])
def test_one_that_matters_now_and_then_stays(share: int) -> None:
    found = [*threads(300), *((f"thread-{n}-1-9.html", 10**6 + n) for n in range(0, 300, share))]

    assert not same(learned(found), "thread-900-1-7.html", "thread-900-1-8.html")


def test_dates_are_no_such_numbers() -> None:
    found = [
        (f"d/{year}-{month}-{day}", 400 * year + 31 * month + day)
        for year in (1, 2, 3)
        for month in range(12)
        for day in range(28)
    ]
    found += [(f"d/{year}-{month}-0", 400 * year + 31 * month + 1) for year in (1, 2, 3) for month in range(12)]

    assert not same(learned(found), "d/4-1-1", "d/4-1-2")


def test_words_are_no_numbers() -> None:
    rules = learned(threads(120, "{}_{}_{}"))

    assert same(rules, "900_1_7", "900_1_8")
    assert not same(rules, "blue_suede_shoes", "blue_suede_boots")
    assert not same(rules, "900_1_a", "900_1_b")


def test_two_numbers_of_a_component_may_both_go() -> None:
    found = [(f"t{n}from{n % 7 + back}by{n % 5 + by}", n) for n in range(150) for back in (0, 1) for by in (0, 1)]
    rules = learned(found)

    assert same(rules, "t900from1by2", "t900from3by4")
    assert not same(rules, "t900from1by2", "t901from1by2")


def test_few_pages_say_nothing() -> None:
    assert not same(learned(threads(40)), "thread-900-1-7.html", "thread-900-1-8.html")
