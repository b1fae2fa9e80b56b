"""Parts of values that do not matter: titles behind identifiers, endings, what stands before them; what forbids it."""

from __future__ import annotations

import pytest

from tests.clusterd.learning.one_host import HOST, explored_more, key, learned

ENDINGS = ("htm", "html")


@pytest.mark.parametrize("delimiter", [":", "-"])
def test_a_title_behind_an_identifier_does_not_matter(delimiter: str) -> None:
    pages = [(f"a.php?id={n}{title}", n) for n in range(80) for title in ("", f"{delimiter}t{n}", f"{delimiter}u-{n}")]

    rules = learned(pages)

    assert key(rules, f"a.php?id=900{delimiter}new") == key(rules, "a.php?id=900")
    assert key(rules, f"a.php?id=900{delimiter}new") != key(rules, f"a.php?id=901{delimiter}new")
    assert key(rules, f"b.php?id=900{delimiter}new") != key(rules, "b.php?id=900")
    assert key(rules, key(rules, f"a.php?id=900{delimiter}x{delimiter}y").removeprefix(f"http://{HOST}/")) == key(
        rules, "a.php?id=900"
    )


def test_a_month_behind_a_year_matters() -> None:
    pages = [(f"d.php?d={year}-{month}", 100 * year + month) for year in range(60) for month in range(1, 13)]
    pages += [(f"d.php?d={year}", 100 * year + 1) for year in range(60)]

    rules = learned(pages)

    assert key(rules, "d.php?d=70-2") != key(rules, "d.php?d=70-3")


def test_few_titles_say_nothing() -> None:
    pages = [(f"a.php?id={n}{title}", n) for n in range(20) for title in ("", f":t{n}")]

    assert key(learned(pages), "a.php?id=900:new") != key(learned(pages), "a.php?id=900")


def test_an_ending_goes() -> None:
    pages = [(f"wiki/page{n}{ending}", n) for n in range(80) for ending in ("", ".html")]

    rules = learned(pages)

    assert key(rules, "wiki/new.html") == key(rules, "wiki/new")
    assert key(rules, "wiki/new.html.html") == key(rules, "wiki/new")
    assert key(rules, "other/new.html") != key(rules, "other/new")


def test_an_ending_that_says_something_elsewhere_stays_there() -> None:
    pages = [(f"wiki/page{n}{ending}", n) for n in range(80) for ending in ("", ".html")]
    pages += [(f"img/{n}.jpg{ending}", 1000 + 2 * n + bool(ending)) for n in range(80) for ending in ("", ".html")]

    rules = learned(pages)

    assert key(rules, "wiki/new.html") == key(rules, "wiki/new")
    assert key(rules, "img/new.jpg.html") != key(rules, "img/new.jpg")


def test_titles_of_which_a_few_matter_stay() -> None:
    pages = [(f"a.php?id={n}:{title}", 2 * n + (n % 40 == 0) * (title == "b")) for n in range(400) for title in "ab"]

    assert key(learned(pages), "a.php?id=900:x") != key(learned(pages), "a.php?id=900:y")


def test_what_is_cut_off_is_explored_more_while_its_trials_are_few() -> None:
    rules = learned((f"a.php?id={n}:{title}{n}", n) for n in range(150) for title in "ab")
    assert explored_more(rules, [f"a.php?id={n}:new" for n in range(4000)])


@pytest.mark.parametrize("word", ["_print", "-amp", ".mobile"])
def test_a_word_before_the_ending_goes(word: str) -> None:
    rules = learned([(f"a{n}{more}.html", n) for n in range(80) for more in ("", word)])

    assert key(rules, f"new{word}.html") == key(rules, "new.html")
    assert key(rules, "new_other.html") != key(rules, "new.html")
    assert key(rules, f"new{word}.pdf") != key(rules, "new.pdf")
    assert key(rules, f"new{word}s.html") != key(rules, "new.html")


def test_the_number_of_the_first_page_goes_and_no_other() -> None:
    rules = learned(
        [(f"list-{n}{page}.html", 10 * n + bool(page == "-2")) for n in range(80) for page in ("", "-1", "-2")]
    )

    assert key(rules, "list-900-1.html") == key(rules, "list-900.html")
    assert key(rules, "list-900-2.html") != key(rules, "list-900.html")
    assert key(rules, "list-900-11.html") != key(rules, "list-900.html")


@pytest.mark.parametrize("share", [25, 10])
def test_a_word_before_the_ending_that_matters_now_and_then_stays(share: int) -> None:
    pages = [
        (f"a{n}{more}.html", n + 1000 * (more != "" and n % share == 0)) for n in range(300) for more in ("", "_en")
    ]

    assert key(learned(pages), "new_en.html") != key(learned(pages), "new.html")


def test_of_two_endings_one_is_written_for_the_other() -> None:
    pages = [(f"docs/page{n}.{ending}", n) for n in range(80) for ending in ENDINGS]

    rules = learned(pages)

    assert key(rules, "docs/a.new.html") == key(rules, "docs/a.new.htm")
    assert key(rules, "docs/new.php") != key(rules, "docs/new.htm")
    assert key(rules, "docs/new.xhtml") != key(rules, "docs/new.htm")
    assert key(rules, "other/new.html") != key(rules, "other/new.htm")
    assert key(learned(pages[:80]), "docs/new.html") != key(learned(pages[:80]), "docs/new.htm")


@pytest.mark.parametrize("share", [10, 30])
def test_endings_that_show_something_else_now_and_then_stay(share: int) -> None:
    pages = [(f"docs/page{n}.{ending}", 2 * n) for n in range(80) for ending in ENDINGS]
    pages += [
        (f"docs/old{n}.{ending}", 900 + 2 * n + len(ending) % 2) for n in range(0, 80, share) for ending in ENDINGS
    ]

    rules = learned(pages)

    assert key(rules, "docs/new.html") != key(rules, "docs/new.htm")
