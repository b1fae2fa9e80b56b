"""How often would-be skips are fetched all the same: the more, the less is known of their rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.skipping.exploring import Exploring
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.crawling import (
    ONE_BY_ONE,
    REST,
    SELDOM,
    at,
    crawl,
    publish_rules,
    published,
    sid_rule,
    sid_rules,
)
from tests.crawler.site import Site

HOST = "h.com"
SID = Key(name="sid")
CONTEXT, EDITS = (Condition(SID, "any"),), (Edit(SID, "delete"),)
DROP_SID = Rule(rule_id(HOST, CONTEXT, EDITS), HOST, CONTEXT, EDITS)


def rule_set(*rules: Rule) -> RuleSet:
    return RuleSet(HOST, 1, rules)


def test_a_share_is_explored_and_always_the_same() -> None:
    decisions = []
    for _ in range(2):
        known = KnownPages(explore=0.1)
        known.load(rule_set(DROP_SID))
        known.fetched("http://h.com/a", 1)
        skips = [known.decide(f"http://h.com/a?sid={n}", 2) for n in range(2000)]
        decisions.append([skip.explore for skip in skips if skip])
    assert decisions[0] == decisions[1]
    assert 140 < sum(decisions[0]) < 260


def test_each_crawl_explores_other_pages() -> None:
    """Else a page that is left out wrongly and not looked at would be left out of every crawl."""
    explored = []
    for crawl_id in ("one", "other", "one"):
        known = KnownPages.from_settings(Settings(explore=0.1), crawl_id)
        known.load(rule_set(DROP_SID))
        known.fetched("http://h.com/a", 1)
        skips = [known.decide(f"http://h.com/a?sid={n}", 2) for n in range(2000)]
        explored.append({skip.url for skip in skips if skip and skip.explore})
    assert explored[0] == explored[2]
    assert all(140 < len(urls) < 260 for urls in explored)
    assert len(explored[0] & explored[1]) < 50


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    ("names", "values", "support", "share"),
    [
        (("id", "tab"), ("a", "b", "c"), 20, 0.1),
        (("id", "tab"), ("a", "b", "c"), 150, 0.03),
        (("id", "tab"), ("a", "b"), 20, 0.03),
        (("tab",), ("a", "b", "c"), 20, 0.03),
    ],
    ids=("few trials", "many trials", "few values", "known pages"),
)
def test_what_goes_from_any_page_is_explored_more_while_trials_are_few(
    names: tuple[str, ...], values: tuple[str, ...], support: int, share: float, in_order: bool
) -> None:
    edits = (Edit(Key(name="tab"), "delete"), *((Edit(Key(), "sort"),) if in_order else ()))
    context = (
        Condition(Key(), "is", ("record",)),
        Condition(Key(name="tab"), "within", values),
        Condition(Key(), "only", names),
    )
    if "id" not in names:
        context = (*context[1:], Condition(Key(), "in", tuple(f"{n}" for n in range(400))))
    rule = Rule(rule_id(HOST, context, edits), HOST, context, edits, support=support)
    known = KnownPages(explore=0.03)
    known.load(rule_set(rule))
    skips = []
    for n in range(400):
        page = f"http://h.com/record?id={n}&" if "id" in names else f"http://h.com/{n}?"
        known.fetched(page[:-1], 1)
        skips.append(known.decide(f"{page}tab=b", 2))
    first = [skip.explore for skip in skips[:200] if skip is not None]
    assert len(first) == 200
    assert abs(sum(first) / 200 - share) < 0.04  # 3/n of the next, for 20 trials and more, or what all rules get


ANY_RECORD = (
    (Condition(Key(), "is", ("record",)), Condition(Key(), "only", ("id", "tab"))),
    (Edit(Key(name="tab"), "delete"),),
)


@pytest.mark.parametrize(("share", "at_last"), [(0.0, 0.0), (0.03, 0.03)])
def test_what_goes_from_any_page_is_explored_the_less_the_more_of_it_has_been(share: float, at_last: float) -> None:
    known = KnownPages(explore=share)
    known.load(rule_set(Rule(rule_id(HOST, *ANY_RECORD), HOST, *ANY_RECORD, support=20)))
    skips = []
    for n in range(2000):
        known.fetched(f"http://h.com/record?id={n}", 1)
        skips.append(known.decide(f"http://h.com/record?id={n}&tab=b", 2))
    last = [skip.explore for skip in skips[1000:] if skip is not None]
    assert len(last) == 1000
    assert abs(sum(last) / 1000 - at_last) < 0.015  # 3/n of the next fall to what all rules get


FOLDER, TITLE = Key(start=3), Key(name="t")
DEPTH = Condition(Key(), "depth", ("2",))
NAMED = (Condition(FOLDER, "is", ("page",)), Condition(Key(start=4), "any"))
PAIR = (Edit(Key(start=4), "delete"), Edit(FOLDER, "delete"))


@pytest.mark.parametrize(
    ("context", "edits", "share"),
    [
        ((DEPTH,), (Edit(FOLDER, "delete"),), 0.15),
        ((DEPTH,), (Edit(FOLDER, "set", "*"),), 0.15),
        ((DEPTH,), (Edit(FOLDER, "set", "a"),), 0.03),
        ((DEPTH, Condition(FOLDER, "in", ("a", "b"))), (Edit(FOLDER, "delete"),), 0.03),
        ((), (Edit(FOLDER, "delete"),), 0.03),
        ((DEPTH,), (Edit(FOLDER, "delete"), Edit(Key(start=4), "lower")), 0.03),
        ((Condition(TITLE, "like", ("*-*",)),), (Edit(TITLE, "copy", source=replace(TITLE, deep=1)),), 0.15),
        ((Condition(TITLE, "any"),), (Edit(TITLE, "lower"),), 0.03),
        (NAMED, PAIR, 0.15),
        ((Condition(Key(), "depth", ("4",)),), (*(Edit(Key(start=at), "delete") for at in (5, 4, 3)),), 0.15),
        ((*NAMED, Condition(Key(start=4), "in", ("a", "b", "c"))), PAIR, 0.15),
        ((Condition(TITLE, "any"),), (Edit(TITLE, "items", ","),), 0.15),
        ((Condition(TITLE, "in", ("a,b", "b,a")),), (Edit(TITLE, "items", ","),), 0.03),
        ((DEPTH,), (Edit(FOLDER, "items", "+"),), 0.15),
        ((Condition(TITLE, "any"),), (), 0.03),
    ],
    ids=(
        *("folder", "any folder", "a folder", "few folders", "any depth", "two", "title", "case", "pair", "three"),
        *("pair of several values", "items", "few items", "items in a path", "name"),
    ),
)
def test_of_what_may_be_any_text_more_is_explored(
    context: tuple[Condition, ...], edits: tuple[Edit, ...], share: float
) -> None:
    exploring = Exploring(0.03)
    exploring.load((), [Rule("r", HOST, context, edits, support=20)], lambda url: (), Counter())
    explored = sum(exploring.explores(f"http://h.com/{n}", "r", "key", 0) for n in range(4000))
    assert abs(explored / 4000 - share) < 0.015


def test_another_spelling_is_explored_less() -> None:
    edits = (Edit(Key(), "sort"),)
    known = KnownPages(explore=0.4)
    known.load(rule_set(Rule(rule_id(HOST, (), edits), HOST, (), edits)))
    explored = 0
    for number in range(1000):
        known.fetched(f"http://h.com/?a={number}&b=1", 1)
        skip = known.decide(f"http://h.com/?b=1&a={number}", 2)
        assert skip is not None
        explored += skip.explore
    assert 60 < explored < 140


def test_a_trial_goes_before_what_waits_in_the_queue(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (replace(DROP_SID, host=site.host),)))
    # The rule is known when the first page has come; then all are queued while the second is on its way.
    steps = ["/page/1", {"pause": 1.0}, *[f"/page/{number}" for number in range(2, 9)], "/page/1?sid=7", "/page/9"]
    in_order = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue", "DOWNLOAD_DELAY": 0.3}
    done = crawl(tmp_path, at(site, steps), settings | ONE_BY_ONE | in_order | {"CLUSTERD_EXPLORE": 1})
    assert done.stat("explored") == 1
    assert "/page/1?sid=7" in done.paths()[2:4]
    assert done.paths()[-1] == "/page/9"
    assert {page["priority"] for page in done.seen} == {0}  # which what the spider makes of them inherits


def test_of_many_trials_few_go_before_what_waits_in_the_queue(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A page may have many links that a rule is tried on: of a crawl that is cut short half was trials."""
    young = replace(DROP_SID, host=site.host, context=(*CONTEXT, Condition(Key(), "only", ("sid",))), support=1)
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (young,)))
    trials = [f"/page/1?sid={number}" for number in range(3)]
    steps = ["/page/1", {"pause": 1.0}, *[f"/page/{number}" for number in range(2, 9)], *trials, "/page/9"]
    in_order = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue", "DOWNLOAD_DELAY": 0.3}
    done = crawl(tmp_path, at(site, steps), settings | ONE_BY_ONE | in_order | {"CLUSTERD_EXPLORE": 0.2})
    assert done.stat("explored") == 3
    assert trials[0] in done.paths()[2:4]
    assert done.paths()[-3:] == [*trials[1:], "/page/9"]


def test_a_small_share_is_explored_and_says_so(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    done = crawl(tmp_path, at(site, ["/page/1", REST, "/page/1?sid=a"]), settings | {"CLUSTERD_EXPLORE": 1})
    assert done.paths() == ["/page/1", "/page/1?sid=a"]
    assert (done.stat("explored"), done.stat("skipped")) == (1, 0)
    explored = [page for page in published(redis_url, prefix) if isinstance(page, Sketch) and page.explored]
    assert [(page.url, page.explored, page.instead_of) for page in explored] == [
        (f"{site.url}/page/1?sid=a", "r1", f"{site.url}/page/1")
    ]


def test_a_skipped_page_is_not_tried_for_being_linked_often(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Six skips may rest on each of 18 trials (`resting`): this is one, whatever leads to it."""
    young = replace(sid_rule(site.host), lower_bound=0.8693)
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (young,)))
    steps = ["/page/1", REST, *["/page/1?sid=a"] * 150]
    done = crawl(tmp_path, at(site, steps), settings | SELDOM)
    assert done.paths() == ["/page/1"]
    assert (done.stat("explored"), done.stat("skipped")) == (0, 1)
