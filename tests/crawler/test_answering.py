"""Of several rules applied to a URL, the least proven that makes it one with the known page answers for the skip."""

from __future__ import annotations

import pytest
from clusterd_crawler.rules import Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.known_pages import KnownPages

HOST = "example.com"


def rule(support: int, *edits: Edit) -> Rule:
    return Rule(rule_id(HOST, (), edits), HOST, (), edits, support=support)


def drops(support: int, *names: str) -> Rule:
    return rule(support, *(Edit(Key(name, 1), "delete") for name in names))


LIMIT = drops(20, "limit")
TAGS = drops(3000, "sid", "ref")
SORT = rule(9000, Edit(Key(), "sort"))
INDEX = rule(5000, Edit(Key(end=1), "set", ""))
MATRIX = drops(5000, ";v")
ITEMS = rule(30, Edit(Key("colour", 1), "items", ","))
LISTED = rule(4000, Edit(Key("f[0]"), "items", "&"))
KEPT = rule(20, Edit(Key(), "keep", names=("a", "sid")))


@pytest.mark.parametrize(
    ("known", "linked", "answers"),
    [
        ("list/?a=1", "list/?a=1&limit=20", LIMIT),
        ("list/?a=1", "list/?a=1&sid=7", TAGS),
        ("list/?a=1&ref=2", "list/?a=1&sid=7&limit=20", LIMIT),
        # Both have the same page size: nothing is said of it.
        ("list/?a=1&limit=20", "list/?a=1&limit=20&sid=7", TAGS),
        ("list/?a=1&b=2&limit=20", "list/?b=2&a=1&limit=20", SORT),
        ("list/?a=1&b=2", "list/?b=2&sid=1&a=1", TAGS),
        ("list/?a=1&sid=2", "list/index.html?a=1&sid=2", INDEX),
        ("list/?a=1&sid=2", "list;v=1/?a=1&sid=2", MATRIX),
        ("list/?colour=a,b&sid=1", "list/?colour=b,a&sid=2", ITEMS),
        # Both list their items in one order.
        ("list/?colour=b,a&sid=1", "list/?colour=b,a&sid=2", TAGS),
        ("list/?f[0]=a&f[1]=b&f[2]=c&sid=1", "list/?f[0]=a&f[1]=c&f[2]=b&sid=1", LISTED),
        # They differ in order, and the values are in order of their numbers in both.
        ("list/?f[0]=b&f[1]=a", "list/?f[1]=a&f[0]=b", SORT),
        # What was linked is its own key: the known page's rule decided.
        ("list/?a=1&limit=20", "list/?a=1", LIMIT),
    ],
)
def test_the_rule_that_answers(known: str, linked: str, answers: Rule) -> None:
    pages = KnownPages(explore=0.0)
    pages.load(RuleSet(HOST, 1, (LIMIT, TAGS, SORT, INDEX, MATRIX, ITEMS, LISTED)))
    pages.fetched(f"http://{HOST}/{known}", 1, content=5)
    skip = pages.decide(f"http://{HOST}/{linked}", 2)
    assert skip is not None
    assert skip.rule == answers.id


def test_a_rule_that_keeps_some_parameters_answers_for_whatever_differs() -> None:
    pages = KnownPages(explore=0.0)
    pages.load(RuleSet(HOST, 1, (TAGS, KEPT)))
    pages.fetched(f"http://{HOST}/list/?a=1", 1, content=5)
    skip = pages.decide(f"http://{HOST}/list/?a=1&sid=3&page=2", 2)
    assert skip is not None
    assert skip.rule == KEPT.id


def test_rules_that_went_answer_for_nothing() -> None:
    pages = KnownPages(explore=0.0)
    pages.load(RuleSet(HOST, 1, (LIMIT, TAGS)))
    pages.load(RuleSet(HOST, 2, (TAGS,)))
    pages.fetched(f"http://{HOST}/list/?a=1", 1, content=5)
    assert pages.decide(f"http://{HOST}/list/?a=1&limit=20&sid=3", 2) is None
    skip = pages.decide(f"http://{HOST}/list/?a=1&sid=3", 2)
    assert skip is not None
    assert skip.rule == TAGS.id
