"""Parameters that say what another says already, and parameters in another order where one is missing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rules import Key, RuleSet

from tests.crawler.made_rules import key_under

HOST = "example.com"


def learned(pages: Iterable[tuple[str, int]]) -> RuleSet:
    """Return the rules that a learner makes of (URL behind the host, content), as crawls read them."""
    learner = Learner(HOST)
    learner.observe(Page(f"http://{HOST}/{url}", content) for url, content in pages)
    rules = learner.learn(1) or RuleSet(HOST, 0, ())
    return rule_set_from_json(rule_set_to_json(rules))


def key(rules: RuleSet, url: str) -> str:
    """Return a URL's key."""
    return key_under(rules, f"http://{HOST}/{url}")[0]


SPACES = ("alpha", "beta", "gamma")


def index_pages(count: int, off: int = 0) -> list[tuple[str, int]]:
    """Return, for wiki pages, the index by name, and under the page's own space and the other ones."""
    pages = []
    for n in range(count):
        own = SPACES[n % 3]
        pages.append((f"doku?id={own}:p{n}&do=index", 10 * n + (n < off)))
        pages += [
            (f"doku?id={own}:p{n}&idx={space}", 10 * n + 2 * (at + 1) * (space != own))
            for at, space in enumerate(SPACES)
        ]
    return pages


def test_a_parameter_that_repeats_a_part_of_another_is_known() -> None:
    rules = learned(index_pages(40))

    assert key(rules, "doku?id=delta:new&do=index") == key(rules, "doku?id=delta:new&idx=delta")
    assert key(rules, "doku?id=delta:new&do=index") != key(rules, "doku?id=delta:new&idx=alpha")
    assert key(rules, "doku?id=delta:new&do=edit") != key(rules, "doku?id=delta:new&idx=delta")
    assert key(rules, "doku?id=new&do=index") == f"http://{HOST}/doku?id=new&do=index"


def test_pages_that_differ_forbid_it() -> None:
    rules = learned(index_pages(40, off=8))

    assert key(rules, "doku?id=delta:new&do=index") != key(rules, "doku?id=delta:new&idx=delta")


@pytest.mark.parametrize("count", [3, 8])
def test_a_few_pages_are_not_enough(count: int) -> None:
    assert learned(index_pages(count)).rules == ()


def media_pages(count: int) -> list[tuple[str, int]]:
    """Return a media list by its two addresses, and two other tabs of it."""
    return [
        page
        for n in range(count)
        for page in (
            (f"doku?id=p{n}&do=media&ns=a", 10 * n),
            (f"doku?id=p{n}&ns=a&tab=files&do=media", 10 * n),
            (f"doku?id=p{n}&tab=upload&do=media&ns=a", 10 * n + 1),
            (f"doku?id=p{n}&tab=search&do=media&ns=a", 10 * n + 2),
        )
    ]


def test_a_parameter_is_dropped_where_the_others_stand_in_another_order() -> None:
    rules = learned(media_pages(40))

    assert key(rules, "doku?id=new&do=media&ns=a") == key(rules, "doku?id=new&ns=a&tab=files&do=media")
    assert key(rules, "doku?id=new&do=media&ns=a") != key(rules, "doku?id=new&tab=upload&do=media&ns=a")
    assert key(rules, "doku?id=new&do=media&ns=b") != key(rules, "doku?id=new&ns=b&tab=files&do=media")


@pytest.mark.parametrize("name", ["?sid", "?sid#2", "?sid#1.1", "?sid#2.3", "?sid#1.1.3", "k(3.1,1.3)", "?a.b#1.2"])
def test_a_key_reads_as_it_is_written(name: str) -> None:
    assert str(Key.parse(name)) == name
