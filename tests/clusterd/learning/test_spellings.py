"""Spaces as ``+``, ``%20`` and ``_``, and capitals: which are one is learned for each parameter and component."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from clusterd.learning.edits.spellings import escapes_in_path, spaces, spelled
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.interchange.files import read_rules, write_rules
from clusterd_crawler.urls import parse

from tests.clusterd.learning.one_host import HOST, key, learned, same

SPACES = ("+", "%20", "_")


def pages(form: str, spaces: Iterable[str], number: int, first: int = 0) -> list[tuple[str, int]]:
    """Return pages of two words and a number, each content once with every kind of space."""
    return [(form.format(f"red{space}shoe{space}{n}"), n) for n in range(first, first + number) for space in spaces]


def test_spaces_of_a_search_are_one() -> None:
    rules = learned(pages("search?q={}", SPACES, 120))

    assert key(rules, "search?q=a+b_c") == key(rules, "search?q=a%20b_c") == key(rules, "search?q=a_b_c")
    assert key(rules, "search?q=a+b") != key(rules, "search?q=a-b")
    assert key(rules, "search?q=a%2Bb") != key(rules, "search?q=a+b")
    assert key(rules, "other?q=a+b") != key(rules, "other?q=a_b")
    assert key(rules, "search?p=a+b") != key(rules, "search?p=a_b")


@pytest.mark.parametrize("spellings", [("+", "%20"), (",", "%2C")])
@pytest.mark.parametrize("number", [4, 5, 16, 37])
def test_what_servers_read_alike_needs_few_trials_however_many_values_agree(
    spellings: tuple[str, str], number: int
) -> None:
    rules = learned([(f"search?q=red{sign}{at}", at) for at in range(number) for sign in spellings])

    assert same(rules, *(f"search?q=blue{sign}7000" for sign in spellings))


def test_what_forms_write_is_one_where_an_underscore_is_content() -> None:
    crawl = pages("search?q={}", ("+", "%20"), 60)
    crawl += pages("search?q={}", ("_",), 40, 1000)

    rules = learned(crawl)

    assert key(rules, "search?q=a+b") == key(rules, "search?q=a%20b")
    assert key(rules, "search?q=a+b") != key(rules, "search?q=a_b")
    assert [edit.value for rule in rules.rules for edit in rule.transformation] == ["%20"]


def test_later_edits_find_what_was_written_anew() -> None:
    evidence = Evidence()
    for number, space in enumerate(SPACES):
        url = f"http://{HOST}/search?q=a{space}b"
        evidence.add(url, number, parse(url))
    snapshot = Snapshot(evidence)
    edit = spaces(("q", 1), "_")

    edit.commit(snapshot, edit.rows(snapshot))

    live = snapshot.columns["q", 1]
    assert {live.column.text(int(number)) for number in live.values} == {"a_b"}
    assert len(set(snapshot.key.tolist())) == 1
    assert not edit.rows(snapshot).any()


def test_spaces_that_are_content_stay() -> None:
    crawl = [(f"search?q=red{space}shoe{n}", 10 * n + at) for n in range(120) for at, space in enumerate(SPACES)]
    crawl += [(f"tag/red{space}shoe{n}", 5000 + 10 * n + at) for n in range(120) for at, space in enumerate(SPACES)]

    assert learned(crawl).rules == ()


def test_an_underscore_that_is_content_now_and_then_stays() -> None:
    crawl = [(path, content if at % 30 else 9000 + at) for at, (path, content) in enumerate(pages("s?q={}", "+_", 150))]

    assert key(learned(crawl), "s?q=a+b") != key(learned(crawl), "s?q=a_b")


def test_titles_of_a_wiki_are_one_and_a_plus_in_them_stays() -> None:
    crawl = pages("wiki/{}", ("_", "%20"), 120)
    crawl += [(f"wiki/C{sign}{n}", 2000 + 10 * n + at) for n in range(20) for at, sign in enumerate("+_")]
    crawl += [(f"files/red_shoe_{n}.png", 5000 + n) for n in range(20)]

    rules = learned(crawl)

    assert key(rules, "wiki/Blue%20shoes") == key(rules, "wiki/Blue_shoes")
    assert key(rules, "wiki/C+7") != key(rules, "wiki/C_7")
    assert key(rules, "files/a%20b") != key(rules, "files/a_b")
    assert key(rules, key(rules, "wiki/a%20b").removeprefix(f"http://{HOST}/")) == key(rules, "wiki/a%20b")


def test_few_underscores_say_nothing() -> None:
    rules = learned(pages("search?q={}", ("_", "+"), 30))

    assert key(rules, "search?q=a+b") != key(rules, "search?q=a_b")


@pytest.mark.parametrize("form", ["s?q={}", "wiki/{}"])
@pytest.mark.parametrize("space", ["+", "%20"])
def test_what_is_judged_is_what_the_crawler_writes(form: str, space: str) -> None:
    """Values with escapes that are no UTF-8, with brackets and with escaped pluses among them."""
    values = ["caf%E9{}x", "[a]{}b", "C%2B%2B{}d", "a%2Fb{}c", "50%{}off", "%C3%A9{}|"]
    crawl = pages(form, ("_", space), 120)
    crawl += [(form.format(value.format(s)), 9000 + at) for at, value in enumerate(values) for s in ("_", space)]

    rules = learned(crawl)

    assert rules.rules
    for value in values:
        assert key(rules, form.format(value.format(space))).count("_") == 1
    assert len({key(rules, form.format(value.format(space))) for value in values}) == len(values)


def test_the_rules_go_through_files_and_the_discarder_says_that_it_cannot() -> None:
    rules = list(learned(pages("search?q={}", SPACES, 120)).rules)

    assert read_rules(write_rules(rules, "clusterd")[0], "clusterd").rules == rules
    assert "write spaces as '_' in ?q" in rules[0].text
    refused = write_rules(rules, "dud", loose=True)[1].refused
    assert "spaces" in refused[rules[0].id]


def test_what_spaces_are_written_as() -> None:
    assert spelled("a+b", "a_b") == "_"
    assert spelled("a+b", "a%20b") == "%20"
    assert spelled("a_b", "a_b") == spelled("a-b", "a_b") == spelled("a+b", "a+c") == ""


def test_capitals_of_a_parameter_are_one_where_they_do_not_matter() -> None:
    crawl = [(f"list?name={text}{n}", n) for n in range(120) for text in ("Red-", "red-", "RED-")]
    crawl += [(f"short?name={text}{n}", 1000 + 10 * n + at) for n in range(60) for at, text in enumerate(("Ab", "ab"))]

    rules = learned(crawl)

    assert key(rules, "list?name=Blue") == key(rules, "list?name=blue") == key(rules, "list?name=bLuE")
    assert key(rules, "short?name=Ab") != key(rules, "short?name=ab")
    assert key(rules, "list?other=Ab") != key(rules, "list?other=ab")


def test_capitals_that_matter_now_and_then_stay() -> None:
    crawl = [(f"list?name={text}{n}", n) for n in range(150) for text in ("Red", "red")]
    crawl += [
        (f"list?name={text}{n}", 1000 + 10 * n + at) for n in range(150, 160) for at, text in enumerate(("Red", "red"))
    ]

    assert key(learned(crawl), "list?name=Ab") != key(learned(crawl), "list?name=ab")


def escaped(numbers: Iterable[int], *, content: int = 0) -> list[tuple[str, int]]:
    """Return articles of a wiki, each with its signs as they stand and escaped; ``content``: each shows its own."""
    return [
        (f"wiki/{name.format(number)}", 2 * number + content * at)
        for number in numbers
        for at, name in enumerate(("{}_(film)", "{}_%28film%29"))
    ]


def test_escapes_in_a_path_that_need_not_be_there_take_few_trials() -> None:
    rules = learned(escaped(range(5)))

    assert same(rules, "wiki/New_(band),_the", "wiki/New_%28band%29%2C_the")
    assert same(rules, "wiki/New:Page", "wiki/New%3APage")
    assert not same(rules, "wiki/AC%2FDC", "wiki/AC/DC")
    assert not same(rules, "wiki/caf%E9", "wiki/caf%C3%A9")


def test_an_escaped_plus_in_a_path_is_no_space() -> None:
    """A site for which ``+`` is a space has pages of ``c++`` under ``c%2B%2B``."""
    crawl = escaped(range(5)) + [(f"wiki/a{space}{n}", 1000 + n) for n in range(150) for space in ("+", "%20")]

    rules = learned(crawl)

    assert same(rules, "wiki/c+_(language)", "wiki/c%20_%28language%29")
    assert not same(rules, "wiki/c+_(language)", "wiki/c%2B_(language)")


def test_escapes_that_are_content_stay() -> None:
    assert not same(learned(escaped(range(40), content=1)), "wiki/New_(band)", "wiki/New_%28band%29")


@pytest.mark.parametrize("name", ["a%28b%29", "a%20b%3Bc%3D%3F", "a%2Fb%23", "a%252Cb", "caf%E9%2C", "%"])
def test_what_is_judged_of_escapes_is_what_the_crawler_writes(name: str) -> None:
    rules = learned(escaped(range(5)))

    changed = escapes_in_path(4).change(["wiki", name])

    assert changed is None or key(rules, f"wiki/{name}") == f"http://{HOST}/{'/'.join(changed)}"
