"""Titles beside an identifier in the path, behind it or before it: what is learned of them, and what forbids it."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import explored_more, learned, same


def titles(pages: int, folder: str = "p/", delimiter: str = "-", rest: str = "") -> list[tuple[str, int]]:
    """Return pages each of which is linked under two titles."""
    return [(f"{folder}{n}{delimiter}{title}-{n % 7}{rest}", n) for n in range(pages) for title in (f"a{n}", "the-b")]


def threads(pages: int, folder: str = "t/", before: str = "-", rest: str = "") -> list[tuple[str, int]]:
    """Return pages each of which is linked under two titles that stand before its number."""
    return [(f"{folder}{title}{before}{n}{rest}", n) for n in range(pages) for title in (f"a{n % 7}", f"the-{n}-b")]


@pytest.mark.parametrize("delimiter", ["-", "_", "."])
def test_a_title_does_not_matter(delimiter: str) -> None:
    rules = learned(titles(150, delimiter=delimiter))

    assert same(rules, f"p/900{delimiter}new", f"p/900{delimiter}quite-new")
    assert not same(rules, f"p/900{delimiter}new", f"p/901{delimiter}new")
    assert not same(rules, f"q/900{delimiter}new", f"q/900{delimiter}newer")
    assert not same(rules, f"p/900{delimiter}new/more", f"p/900{delimiter}newer/more")


def test_a_page_without_its_title_is_the_same() -> None:
    rules = learned([(f"p/{n}{title}", n) for n in range(150) for title in ("", f"-a{n}")])

    assert same(rules, "p/900-new", "p/900")


def test_a_title_in_the_middle_does_not_matter() -> None:
    rules = learned(titles(150, "shop/", rest="/reviews"))

    assert same(rules, "shop/900-new/reviews", "shop/900-newer/reviews")
    assert not same(rules, "shop/900-new/reviews", "shop/900-newer/pictures")


def test_a_title_of_each_of_several_folders_does_not_matter() -> None:
    pages = [(f"c{page % 5}/{path}", page) for path, page in titles(400, "")]

    assert same(learned(pages), "c1/901-new", "c1/901-newer")


def test_words_of_that_place_stay_and_forbid_nothing_elsewhere() -> None:
    rules = learned([*titles(150), *((f"blog/my-{n}", 1000 + n) for n in range(30))])

    assert same(rules, "p/900-new", "p/900-newer")
    assert not same(rules, "blog/my-a", "blog/my-b")


def test_words_among_the_identifiers_forbid_it() -> None:
    assert not same(learned([*titles(150), ("p/our-shop", 1000)]), "p/900-new", "p/900-newer")


def test_words_that_come_after_the_identifiers_are_left_whole() -> None:
    rules = learned([(path.removeprefix("p/"), content) for path, content in titles(150)])

    assert same(rules, "900-new", "900-newer")
    assert not same(rules, "our-shop", "our-team")
    assert not same(rules, "p2-new", "p2-newer")


def test_a_month_behind_a_year_matters() -> None:
    pages = [(f"d/{year}-{month}", 100 * year + month) for year in range(60) for month in range(1, 13)]
    pages += [(f"d/{year}", 100 * year + 1) for year in range(60)]

    assert not same(learned(pages), "d/70-2", "d/70-3")


@pytest.mark.parametrize("share", [50, 20])
def test_titles_of_which_some_matter_stay(share: int) -> None:
    pages = [*titles(300), *((f"p/{n}-reviews", 1000 + n) for n in range(0, 300, share))]

    assert not same(learned(pages), "p/900-new", "p/900-newer")


def test_few_titles_say_nothing() -> None:
    assert not same(learned(titles(50)), "p/900-new", "p/900-newer")


def test_what_is_cut_off_is_explored_more_while_its_trials_are_few() -> None:
    rules = learned(titles(150))
    assert explored_more(rules, [f"p/{n}-new" for n in range(4000)])


@pytest.mark.parametrize("before", ["-", ".", "-t"])
@pytest.mark.parametrize("rest", ["", ".html", "/"])
def test_a_title_before_the_number_does_not_matter(before: str, rest: str) -> None:
    rules = learned(threads(150, before=before, rest=rest))

    assert same(rules, f"t/new{before}900{rest}", f"t/quite-new-7{before}900{rest}")
    assert not same(rules, f"t/new{before}900{rest}", f"t/new{before}901{rest}")
    assert not same(rules, f"u/new{before}900{rest}", f"u/newer{before}900{rest}")
    assert not same(rules, f"t/new{before}900.pdf", f"t/newer{before}900.pdf")
    assert not same(rules, f"t/new{rest}", f"t/newer{rest}")


def test_the_number_alone_is_the_same() -> None:
    rules = learned([(f"t/{title}{n}/", n) for n in range(150) for title in ("", f"a{n % 7}.")])

    assert same(rules, "t/new.900/", "t/900/")


def test_numbers_shorter_than_those_that_were_tried_say_which_page_it_is() -> None:
    found = [(f"a{title}-{number}", number) for number in range(10_000, 10_150) for title in "xyz"]
    few = [(f"a{title}-{number}", number) for number in range(100, 105) for title in "xyz"]
    rules, seldom, often = learned(found), learned([*few, *found]), learned([*found, *few, *threads(150, before="-")])

    assert same(rules, "new-title-12345", "newer-12345")
    assert same(rules, "new-title-123456", "newer-123456")
    assert not same(rules, "red-shoes-2", "blue-shoes-2")
    assert not same(rules, "red-shoes-2000", "blue-shoes-2000")
    assert not same(seldom, "red-shoes-200", "blue-shoes-200")
    assert same(often, "t/red-900", "t/blue-900")


def test_words_without_a_number_forbid_no_title_before_one() -> None:
    rules = learned([*threads(150), *((f"t/our-{word}", 1000 + ord(word)) for word in "abcdefgh")])

    assert same(rules, "t/new-900", "t/newer-900")
    assert not same(rules, "t/our-shop", "t/our-team")


def test_what_stands_before_the_number_of_a_page_of_several_stays() -> None:
    pages = [(f"a/{name}-{n}", 10 * at + n) for at, name in enumerate(map(str, range(300))) for n in (1, 2)]

    assert not same(learned([*threads(150, "b/"), *pages]), "a/x-2", "a/y-2")


@pytest.mark.parametrize("share", [50, 20])
def test_titles_before_numbers_of_which_some_matter_stay(share: int) -> None:
    pages = [*threads(300), *((f"t/reviews-{n}", 1000 + n) for n in range(0, 300, share))]

    assert not same(learned(pages), "t/new-900", "t/newer-900")


def test_a_hundred_parameters_elsewhere_do_not_keep_titles_from_being_judged() -> None:
    pages = threads(150)
    for folder in range(100):
        pages += [(f"x{folder}?{tag}id={n}", 1000 + 10 * folder + n) for n in range(6) for tag in ("", f"a{folder}=1&")]

    assert same(learned(pages), "t/new-900", "t/newer-900")
