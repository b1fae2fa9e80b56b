"""Rules and known pages are taken in a thread that lets the crawl's loop have its turns, and its decisions."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages

HOST = "h.com"
PAGES = 10_000
SID = Key(name="sid")
RULE = Rule("r1", HOST, (Condition(SID, "any"),), (Edit(SID, "delete"),))


@pytest.fixture(autouse=True)
def turns_are_given() -> Iterator[None]:
    """The interpreter takes no thread's turn away: there are as many as are given, however busy the machine is."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def decisions() -> Decisions:
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (RULE,)))
    for number in range(PAGES):
        known.fetched(f"http://{HOST}/{number}?sid=0", number)
    made = Decisions(known, limit=PAGES)
    made.load(RuleSet(HOST, 2, (RULE,)))
    return made


def skips_meanwhile(decisions: Decisions, work: Callable[[], None]) -> list[bool]:
    """Have work done in another thread; return of each of our turns whether a known page was skipped in it."""
    thread = threading.Thread(target=work)
    skipped = []
    thread.start()
    while thread.is_alive():
        skipped.append(decisions.decide(f"http://{HOST}/7?sid=1", PAGES) is not None)
        time.sleep(0)
    return skipped


def test_the_loop_has_its_turns_while_a_rule_set_is_put_to_use(decisions: Decisions) -> None:
    other = Rule("r2", HOST, RULE.context, RULE.transformation)
    assert len(skips_meanwhile(decisions, lambda: decisions.load(RuleSet(HOST, 3, (other,))))) > PAGES / 500


def test_a_crawl_skips_while_it_learns_of_pages_that_others_fetched(decisions: Decisions) -> None:
    others = [(Fetch(f"http://{HOST}/others/{number}?sid=2", number), False) for number in range(PAGES)]
    skipped = skips_meanwhile(decisions, lambda: decisions.learn_of(others))
    assert sum(skipped) > PAGES / 500
