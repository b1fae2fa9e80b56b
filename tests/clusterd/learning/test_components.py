"""Path components that may have any value: what is learned of sessions and titles, and what forbids it."""

from __future__ import annotations

from collections import Counter

import pytest
from clusterd.learning.edits.components import Components, Place, _edit
from clusterd_crawler.skipping.exploring import Exploring

from tests.clusterd.learning.one_host import HOST, learned, same


def titles(pages: int) -> list[tuple[str, int]]:
    """Return pages each of which is linked under two titles."""
    return [(f"item/{page}/{word}-{page % 7}", page) for page in range(pages) for word in (f"a{page}", f"b{page}")]


def test_a_title_that_takes_any_value_does_not_matter() -> None:
    rules = learned(titles(150) + [(f"shop/{page}/x", 1000 + page) for page in range(50)])

    assert same(rules, "item/900/new", "item/900/newer")
    assert not same(rules, "item/900/new", "item/901/new")
    assert not same(rules, "shop/900/new", "shop/900/newer")
    assert not same(rules, "item/900/new/more", "item/900/newer/more")


def test_a_title_that_may_be_left_out_goes() -> None:
    rules = learned(titles(150) + [(f"item/{page}", page) for page in range(150)])

    assert same(rules, "item/900/new", "item/900")


def dated(numbers: range, date: str) -> list[tuple[str, int]]:
    """Return articles, each under its title and under that in the folders of its date."""
    form = {"month": "20{:02}/{:02}/title-{}", "day": "blog/20{:02}/{:02}/1{}/title-{}"}[date]
    folder = "blog/" if date == "day" else ""
    fields = [(n % 10, n // 10 % 12 + 1, *([n % 9] if date == "day" else []), n) for n in numbers]
    return [page for n in fields for page in ((form.format(*n), n[-1]), (f"{folder}title-{n[-1]}", n[-1]))]


@pytest.mark.parametrize("date", ["month", "day"])
def test_components_that_may_be_left_out_together_go_together(date: str) -> None:
    others = [(f"shop/{n % 40}/{n // 40}", 1000 + n) for n in range(200)]
    new, other, plain = (dated(range(n, n + 1), date) for n in (900, 901, 902))

    rules = learned(dated(range(150), date) + others)

    assert same(rules, new[0][0], new[1][0])
    assert not same(rules, new[0][0], other[0][0])
    assert not same(rules, f"x/{plain[0][0]}", plain[1][0])
    assert not same(rules, "shop/7/2", "2")
    assert not same(learned(dated(range(80), date)), new[0][0], new[1][0])


@pytest.mark.parametrize("start", [[], [("", 1000)]])
@pytest.mark.parametrize("seen", [0, 1, 3, 120])
@pytest.mark.parametrize("form", ["200{0}/{1:02}/", "cat-{2}/"])
def test_folders_stay_apart_unless_some_show_the_same(form: str, seen: int, start: list[tuple[str, int]]) -> None:
    """However many of them were fetched, what their pages say of titles says nothing of them.

    Nor does what the start shows: the archive of the latest month.
    """
    titled = form + "title-{3}"
    pages = [
        page
        for n in range(200)
        for page in ((titled.format(n % 10, n // 10 % 12 + 1, n % 40, n), n), (f"title-{n}", n))
    ]
    folders = {form.format(n % 10, n // 10 % 12 + 1, n % 40): 1000 + n for n in range(seen)}

    rules = learned([*pages, *folders.items(), *start])

    assert same(rules, titled.format(3, 4, 7, 900), "title-900")
    assert not same(rules, form.format(3, 4, 7), form.format(4, 5, 8))
    assert not same(rules, form.format(3, 4, 7), "")


def test_empty_folders_that_show_the_same_keep_no_titles_apart() -> None:
    pages = [(f"cat-{at % 40}/title-{n}", n) for n in range(200) for at in (n, 7 * n + 3)]
    pages += [(f"empty-{n}/", 999) for n in range(12)] + [(f"cat-{n}/", 1000 + n) for n in range(5)]

    rules = learned(pages)

    assert same(rules, "cat-5/title-900", "cat-7/title-900")
    assert not same(rules, "cat-1/", "cat-2/")


def test_of_a_site_that_ends_all_addresses_with_a_slash_the_titles_are_no_folders() -> None:
    pages = [(f"{path}/", content) for path, content in dated(range(150), "month")]

    assert same(learned(pages), "2003/04/title-900/", "title-900/")


def test_folders_in_which_a_session_stands_are_one() -> None:
    pages = [(f"(S(x{n}y{at}))/{name}", n) for n in range(150) for at in (1, 2) for name in (f"page{n}.aspx",)]
    pages += [(f"(S(z{n}))/", 1000) for n in range(150)]

    assert same(learned(pages), "(S(new))/", "(S(other))/")


def test_titles_of_which_each_month_has_its_own_stay_apart() -> None:
    pages = dated(range(300), "month") + [(f"20{n % 10:02}/06/index", 2000 + n) for n in range(10)]
    pages += [("index", 3000)]

    assert not same(learned(pages), "2003/06/index", "2004/06/index")


def test_a_session_goes_whatever_its_value_and_folders_of_that_depth_stay() -> None:
    pages = [(f"(S({page}q{visit}))/docs/page{page}.aspx", page) for page in range(150) for visit in range(2)]
    pages += [(f"docs/page{page}.aspx", page) for page in range(150)]
    pages += [(f"news{n}/docs/page{page}.aspx", 1000 + 10 * n + page) for n in range(40) for page in range(6)]

    rules = learned(pages)

    assert same(rules, "(S(new))/docs/page900.aspx", "docs/page900.aspx")
    assert not same(rules, "news41/docs/page1.aspx", "docs/page1.aspx")
    assert not same(rules, "news1/docs/page900.aspx", "news2/docs/page900.aspx")


def test_a_session_that_begins_like_the_others_takes_the_trials_of_a_parameter() -> None:
    """Of an application of 54 pages every session of each was fetched: any title takes twice as many trials."""
    sessions = [(f"shop/(S({page}q{visit}))/page{page}.aspx", page) for page in range(54) for visit in range(2)]

    assert same(learned(sessions), "shop/(S(new))/page9.aspx", "shop/(S(newer))/page9.aspx")
    assert not same(learned(sessions[:100]), "shop/(S(new))/page9.aspx", "shop/(S(newer))/page9.aspx")
    assert not same(learned(titles(54)), "item/900/new", "item/900/newer")


@pytest.mark.parametrize("share", [50, 20])
def test_a_component_that_is_mostly_a_title_stays(share: int) -> None:
    pages = titles(300) + [(f"item/{page}/reviews", 1000 + page) for page in range(0, 300, share)]

    assert not same(learned(pages), "item/900/new", "item/900/newer")


@pytest.mark.parametrize(
    ("long", "short", "place"),
    [
        (["a", "b", "t", "c"], ["a", "b", "c"], (1, 4, 2)),
        (["a", "t", "c"], ["a", "u", "c"], (0, 3, 1)),
        (["2020", "03", "title"], ["title"], (2, 3, 0)),
        (["a", "2020", "03", "12", "title"], ["a", "title"], (3, 5, 1)),
        (["a", "b", "c", "d", "title"], ["title"], None),
        (["a", "", "title"], ["title"], None),
        (["a", "t", "c"], ["b", "u", "c"], None),
        (["a", "t", "", "c"], ["a", "t", "c"], None),
        (["a", "t"], ["a", ""], None),
        (["a", "", "c"], ["a", "t", "c"], None),
        (["a", "t", "c", "d"], ["a", "b"], None),
    ],
)
def test_only_paths_that_differ_in_components_that_stand_together_say_something(
    long: list[str], short: list[str], place: Place | None
) -> None:
    components = Components()
    components.note(short, long)
    assert components._seen == ({place} if place else set())


def test_of_a_long_path_one_more_component_is_looked_at_but_not_the_one_that_goes() -> None:
    assert [_edit(1, depth, at, "", True).beyond for depth, at in ((3, 2), (5, 2), (5, 0))] == [0, 6, 5]
    assert [_edit(2, depth, at, "", True).beyond for depth, at in ((3, 0), (5, 2), (5, 1))] == [0, 0, 6]


def test_few_pages_say_nothing_of_any_value() -> None:
    assert not same(learned(titles(50)), "item/900/new", "item/900/newer")


def referred(pages: int, other: str) -> list[tuple[str, int]]:
    """Return pages that are linked from lists of two kinds, of one kind more often, and others at their depth."""
    kinds = ["ref=pd_bxgy_"] * 3 + ["ref=sr_"]
    found = [
        (f"dp/{page}/{kinds[(page + at) % 4]}{page % 50 + 7 * at}", page) for page in range(pages) for at in (0, 1, 4)
    ]
    return found + [
        (f"dp/{page}/{other}{page}{word}", 5000 + 10 * page + ord(word)) for page in range(pages) for word in "ab"
    ]


def test_of_values_that_begin_with_the_same_all_may_go() -> None:
    rules = learned(referred(300, "reviews"))

    assert same(rules, "dp/900/ref=pd_bxgy_1", "dp/900/ref=pd_bxgy_2")
    assert same(rules, "dp/900/ref=pd_bxgy_1", "dp/900/ref=sr_2")
    assert not same(rules, "dp/900/reviews1", "dp/900/reviews2")


def test_where_some_of_these_matter_the_commonest_go() -> None:
    rules = learned(referred(300, "ref=page_"))

    assert same(rules, "dp/900/ref=pd_bxgy_1", "dp/900/ref=pd_bxgy_2")
    assert not same(rules, "dp/900/ref=page_1", "dp/900/ref=page_2")


def test_an_empty_list_under_many_names_says_nothing() -> None:
    pages = [(f"user/{user}/{word}{user}", user if word == "a" else 9999) for user in range(300) for word in "abc"]

    assert not same(learned(pages), "user/900/b", "user/900/c")


def test_what_takes_any_value_is_explored_more_while_its_trials_are_few() -> None:
    rules = learned(titles(150))
    exploring = Exploring(0.005)
    exploring.load((), rules.rules, lambda url: (), Counter())
    plain = Exploring(0.005)

    def explored(one: Exploring) -> int:
        urls = [f"http://{HOST}/item/{page}/other" for page in range(4000)]
        return sum(one.explores(url, rules.rules[0].id, url, 0) for url in urls)

    assert explored(exploring) > 2 * explored(plain)
