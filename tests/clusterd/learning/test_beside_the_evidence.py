"""URLs beside those that a rule was learned of: what no page has shown, a rule says nothing of."""

from __future__ import annotations

import json

import pytest
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json

from tests.clusterd.learning.one_host import key, learned, same

#: The URLs of one content by its number, and pairs of others that have to stay two.
BESIDE = {
    "values that begin with the delimiter": (("v?id={n}", "v?id={n}-a", "v?id={n}-b{n}"), ("v?id=-1", "v?id=-2")),
    "nothing before the ending": (("v/x{n}", "v/x{n}.html"), ("v/.html", "v/")),
    "nothing below the folder that goes": (("y{n}", "print/y{n}", "x/y{n}", "print/x/y{n}"), ("print", "")),
    "nothing before the last component": (("d{n}", "d{n}/print"), ("print", "")),
    "text that is escaped twice": (("s?q=a/{n}", "s?q=a%2F{n}"), ("s?q=%2541", "s?q=A")),
    "the folder above": (("w?title=T{n}", "w/T{n}"), ("w?title=..", "")),
    "the folder itself": (("w?title=T{n}", "w/T{n}"), ("w?title=.", "w/")),
    "parameters of a folder that goes": (("y{n}", "print/y{n}"), ("print;v=1/y7", "y7")),
    "parameters of a title that goes": (("z/{n}", "z/{n}/t{n}", "z/{n}/u{n}"), ("z/7/a;v=1", "z/7/b;v=2")),
    "a list in a value": (("o?id={n}&s={n}7", "o?id={n}"), ("o?s=1&id=7;s=2", "o?id=7")),
    "titles that are empty": (("q/{n}/a{n}", "q/{n}/b{n}"), ("q/7/", "q/7/a")),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_what_was_not_seen_stays_apart(beside: tuple[tuple[str, ...], tuple[str, str]]) -> None:
    forms, (one, other) = beside
    rules = learned([(form.format(n=n), n) for n in range(300) for form in forms])

    assert same(rules, forms[0].format(n=901), forms[1].format(n=901))
    assert not same(rules, one, other)


@pytest.mark.parametrize(
    ("forms", "page"),
    [
        (("j{n}", "j{n}/"), "j{n}//"),
        (("d{n}", "d{n}/index.html"), "d{n}/index.html/index.html"),
        (("y{n}", "print/y{n}"), "print/print/y{n}"),
    ],
)
def test_what_a_rule_makes_of_its_own_result_is_judged_too(forms: tuple[str, ...], page: str) -> None:
    # Given pages to which a rule is applied twice, and that show another thing.
    pages = [(form.format(n=n), n) for n in range(100) for form in forms]
    rules = learned([*pages, *((page.format(n=n), 1000 + n) for n in range(100))])

    assert not same(rules, page.format(n=7), forms[0].format(n=7))


def test_an_empty_component_counts_against_what_lets_any_go() -> None:
    pages = [(form.format(n=n), n) for n in range(300) for form in ("z/{n}", "z/{n}/t{n}", "z/{n}/u{n}")]
    rules = learned([*pages, *((f"z/{n}/", 1000 + n) for n in range(300))])

    assert not same(rules, "z/7/", "z/7")


def test_a_parameter_that_other_pages_have_twice_is_there_once() -> None:
    # Given a family, and its parameter twice on pages of their own: a context says which names, not how often.
    pages = [(f"wiki/{n}?do=login", 1) for n in range(200)]
    rules = learned([*pages, *((f"wiki/{n}?do=login&do=index", 1000 + n) for n in range(20))])

    assert same(rules, "wiki/900?do=login", "wiki/901?do=login")
    assert not same(rules, "wiki/900?do=login&do=index", "wiki/901?do=login&do=index")


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param(("v?a=1&amp;id={n}", "v?a=1&amp;id={n}&s=7", "v?a=1&id={n}"), id="a name with a semicolon"),
        pytest.param(("t/a{n}-{n:0120}", "t/b{n}-{n:0120}"), id="numbers of more than a hundred digits"),
    ],
)
def test_learned_rules_can_be_read(forms: tuple[str, ...]) -> None:
    rules = learned([(form.format(n=n), n) for n in range(200) for form in forms])

    assert rules.rules
    assert rule_set_from_json(json.loads(json.dumps(rule_set_to_json(rules)))).rules == rules.rules
    assert key(rules, forms[0].format(n=901)) == key(rules, forms[1].format(n=901))
