"""What a crawl remembers is nothing to the garbage collector, and little for each domain.

The collector goes through all that may be part of a ring each time, and the crawl's loop stands still meanwhile.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable

import pytest
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.sketch import Name
from clusterd_crawler.skipping.known_page import KnownPage, names_of, plain_names, plain_purpose
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.crawling import sid_rule

HOST = "h.example"
PAGES = 2000


def fetch_one_site(decisions: Decisions) -> None:
    """Fetch pages that bear names and lead on, each for a purpose that is made anew, a third of them twice."""
    for number in range(PAGES):
        names = [Name("canonical", number + 1), Name("anchor", number + 2)]
        purpose = Purpose(reader=7, session=number % 3)
        url = f"http://{HOST}/{number % (PAGES * 2 // 3)}?sid={number}"
        decisions.fetched(url, number, names, content=number + 1, purpose=purpose, via=f"http://{HOST}/{number // 2}")


def fetch_many_sites(decisions: Decisions) -> None:
    """Fetch a page of each."""
    for number in range(PAGES):
        decisions.fetched(f"http://h{number}.example/", number, content=number + 1)


def grown(make: Callable[[Decisions], None], has_rules: bool) -> int:
    """Return how many more objects the collector looks at once pages are known."""
    decisions = Decisions(KnownPages(explore=0), PAGES)
    if has_rules:
        decisions.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    decisions.fetched(f"http://{HOST}/", 1, content=PAGES + 1)  # reads the list of public suffixes
    for _ in range(3):
        gc.collect()
    before = len(gc.get_objects())
    make(decisions)
    for _ in range(3):  # a tuple in a tuple is let go of before the one around it
        gc.collect()
    return len(gc.get_objects()) - before


@pytest.mark.parametrize("has_rules", [False, True])
def test_the_collector_looks_at_no_known_page(has_rules: bool) -> None:
    assert grown(fetch_one_site, has_rules) < PAGES / 20


#: A dictionary of what is nothing to the collector is nothing to it either, up to Python 3.13.
DICTIONARIES = 3 if sys.version_info >= (3, 14) else 0


@pytest.mark.parametrize(("has_rules", "each"), [(False, 0), (True, 1 + DICTIONARIES)])
def test_the_collector_looks_at_one_object_of_a_domain_at_most(has_rules: bool, each: int) -> None:
    assert grown(fetch_many_sites, has_rules) < (each + 0.05) * PAGES


def test_a_domain_with_a_page_takes_less_than_two_kilobytes() -> None:
    decisions = Decisions(KnownPages(explore=0), PAGES)
    decisions.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    tracemalloc.start()
    try:
        fetch_many_sites(decisions)
        assert tracemalloc.get_traced_memory()[0] < 2000 * PAGES
    finally:
        tracemalloc.stop()


def test_a_page_is_the_same_again() -> None:
    names, purpose = [Name("shortlink", 2**63), Name("anchor", 5)], Purpose(1, 2, 3)
    page = KnownPage("http://h.example/", 7, 9, plain_names(names), True, ("r1",), plain_purpose(purpose))
    kept = page.plain()
    again = KnownPage(*kept)
    assert type(kept) is tuple
    assert (again, names_of(again.names), again.purpose) == (page, names, purpose)
    assert again.under(("r2",)).applied == ("r2",)
    for other in (purpose, Purpose(1, 2, 4), Purpose(1, 2, 2), Purpose(4, 2, 3), Purpose(1, 3, 3)):
        assert again.serves(other) == purpose.serves(other)


def test_of_what_is_forgotten_nothing_stays_in_memory() -> None:
    known = KnownPages(explore=0, limit=10)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    for number in range(1000):
        known.fetched(f"http://h{number % 100}.com/{number}?sid=1", number, content=number + 1)
    assert len(known) == 10
    assert len(known._hosts) == 10
    assert sum(len(held.contents) + len(held.keys) for held in known._hosts.values()) == 20


def test_of_domains_that_only_redirect_to_what_fails_nothing_stays_in_memory() -> None:
    known = KnownPages(explore=0)
    for number in range(10):
        known.redirected(f"http://h{number}.example/", f"http://www.h{number}.example/")
        known.fetched(f"http://www.h{number}.example/", number, good=False)
    assert not known._hosts


def test_no_more_paths_are_known_to_be_tried_than_pages() -> None:
    edits = (Edit(Key(start=3), "set", "en"),)
    context = (Condition(Key(start=3), "in", ("en", "fr")),)
    known = KnownPages(explore=0, limit=10)
    known.load(RuleSet(HOST, 1, (Rule(rule_id(HOST, context, edits), HOST, context, edits),)))
    for number in range(200):
        known.fetched(f"http://{HOST}/{('en', 'fr')[number % 2]}/{number // 2}", number, content=number // 2 + 1)
    (held,) = known._hosts.values()
    assert 0 < len(held.tried or ()) <= 11


def test_of_a_page_that_shows_something_else_each_time_no_more_is_known_than_of_pages() -> None:
    known = KnownPages(explore=0, limit=10)
    for number in range(1000):
        known.fetched(f"http://{HOST}/clock", number, content=number + 1)
    (held,) = known._hosts.values()
    assert len(held.contents) <= 10
