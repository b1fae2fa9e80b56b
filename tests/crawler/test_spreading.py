"""Trials spread over the values that URLs have besides: each category of a script is tried, and no identifier is."""

from __future__ import annotations

from dataclasses import replace

from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.spreading import SKIPS, VALUES, Spreading

HOST = "h.com"
CONTEXT = (
    Condition(Key(), "is", ("view.php",)),
    Condition(Key(name="wide"), "within", ("1",)),
    Condition(Key(), "only", ("cat", "id", "wide")),
)
DROP = (Edit(Key(name="wide"), "delete"),)
#: As many trials agreed that none is asked for by their number.
WIDE = Rule(rule_id(HOST, CONTEXT, DROP), HOST, CONTEXT, DROP, lower_bound=0.99)


def known_pages() -> KnownPages:
    known = KnownPages(explore=0.0001)
    known.load(RuleSet(HOST, 1, (WIDE,)))
    return known


def decided(known: KnownPages, category: int, number: int, differs: bool = False) -> bool:
    """Fetch a page of a category, ask for its other name; return whether that is explored, and differs if it may."""
    url = f"http://{HOST}/view.php?cat={category}&id={number}"
    known.fetched(url, 1, content=number + 1)
    skip = known.decide(f"{url}&wide=1", 2)
    assert skip is not None
    if skip.explore:
        known.fetched(skip.url, 3, content=-number - 1 if differs else number + 1)
    return skip.explore


def test_each_category_is_tried_once() -> None:
    known = known_pages()
    for category in range(20):
        decisions = [decided(known, category, 100 * category + number) for number in range(60)]
        assert [at for at, tried in enumerate(decisions) if tried] == [SKIPS]


def test_skips_on_a_category_count_on_when_the_rules_of_the_host_are_published_anew() -> None:
    known = known_pages()
    for version in range(2, 2 + SKIPS):
        assert not decided(known, 1, version)
        known.load(RuleSet(HOST, version, (WIDE,)))
    assert decided(known, 1, 2 + SKIPS)


def test_a_category_of_which_a_page_was_fetched_under_both_names_is_not_tried() -> None:
    known = known_pages()
    for url in (f"http://{HOST}/view.php?cat=1&id=1", f"http://{HOST}/view.php?cat=1&id=1&wide=1"):
        known.fetched(url, 1, content=2)
    assert not any(decided(known, 1, number) for number in range(2, 60))


def test_pages_that_are_nearly_the_same_agree_where_rules_go_by_that() -> None:
    known = KnownPages(explore=0.0001)
    known.load(RuleSet(HOST, 1, (replace(WIDE, identity="near"),)))
    assert sum(decided(known, 1, number, differs=True) for number in range(60)) == 1


def test_a_category_of_which_a_page_differs_is_tried_until_one_agrees() -> None:
    known = known_pages()
    decisions = [decided(known, 7, number, differs=number < 20) for number in range(60)]
    assert [at for at, tried in enumerate(decisions) if tried] == list(range(SKIPS, 21))


def test_each_folder_of_a_second_name_of_a_server_is_tried_once() -> None:
    # Given: a server of two names, one of which shows something else in one folder.
    host = Key(start=2)
    context = (Condition(host, "is", (f"www.{HOST}",)),)
    edits = (Edit(host, "set", value=HOST),)
    mirror = Rule(rule_id(HOST, context, edits), HOST, context, edits, spans=True, lower_bound=0.99)
    known = KnownPages(explore=0.0001)
    known.load(RuleSet(HOST, 1, (mirror,)))
    # When, then
    for folder in ("news", "shop"):
        decisions = []
        for number in range(60):
            known.fetched(f"http://{HOST}/{folder}/{number}", 1, content=hash((folder, number)))
            skip = known.decide(f"http://www.{HOST}/{folder}/{number}", 2)
            assert skip is not None
            decisions.append(skip.explore)
            if skip.explore:
                known.fetched(skip.url, 3, content=hash((folder, number)))
        assert [at for at, tried in enumerate(decisions) if tried] == [SKIPS]


def test_each_folder_below_one_that_is_left_out_is_tried_once() -> None:
    first = Key(start=3)
    context, edits = (Condition(first, "is", ("print",)),), (Edit(first, "delete"),)
    known = KnownPages(explore=0.0001)
    known.load(RuleSet(HOST, 1, (Rule(rule_id(HOST, context, edits), HOST, context, edits, support=10_000),)))
    tried = []
    for folder in ("news", "shop"):
        for number in range(60):
            known.fetched(f"http://{HOST}/{folder}/{number}", 1, content=hash((folder, number)))
            skip = known.decide(f"http://{HOST}/print/{folder}/{number}", 2)
            assert skip is not None
            if skip.explore:
                tried.append((folder, number))
                known.fetched(skip.url, 3, content=hash((folder, number)))
    assert tried == [("news", SKIPS), ("shop", SKIPS)]


def test_places_with_many_values_are_left_out() -> None:
    spreading = Spreading()
    spreading.load([], {"rule": ()})
    for number in range(VALUES):
        assert not spreading.asks("rule", f"http://h.com/{number}")
    assert not any(spreading.asks("rule", "http://h.com/another") for _ in range(2 * SKIPS))


def test_other_rules_are_left_alone() -> None:
    spreading = Spreading()
    spreading.load([], {"rule": ()})
    spreading.load(["rule"], {})
    assert not any(spreading.asks("rule", "http://h.com/a") for _ in range(2 * SKIPS))
