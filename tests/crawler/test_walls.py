"""Log-in forms and "slow down" with status 200, shown in place of pages for a while: no skip rests on these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.crawling import REST, SELDOM, at, crawl, publish_rules, sid_rules
from tests.crawler.made_rules import DROP_SID, HOST, rule, rule_set
from tests.crawler.site import Site

WALL = 99


def walled(known: KnownPages, pages: int, torn: int) -> None:
    """Fetch pages that show the wall, and of some of them again what they show otherwise."""
    for number in range(pages):
        known.fetched(f"http://{HOST}/{number}?sid=1", 1, content=WALL)
    for number in range(torn):
        known.fetched(f"http://{HOST}/{number}?sid=2", 2, content=number + 1)


def back_rule() -> Rule:
    """Where the log-in form leads back to changes nothing of it."""
    back = Key(name="return")
    return rule([Condition(back, "any")], [Edit(back, "delete")])


def test_what_was_kept_out_for_a_page_that_showed_a_wall_is_fetched_before_the_crawl_ends(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    walls = [f"/page/{number}?sid=asked-too-often" for number in range(6)]
    skipped = [f"/page/{number}?sid=1" for number in range(6)]
    later = [{"url": f"/page/{number}?sid=2", "options": {"dont_filter": True}} for number in range(2)]
    done = crawl(tmp_path, at(site, [*walls, REST, *skipped, REST, *later]), settings | SELDOM)
    assert [path for path in skipped if not site.hits[path]] == []
    assert done.paths().index(skipped[5]) > done.paths().index("/page/1?sid=2")
    assert done.stat("explored") == 0


def test_a_content_that_tears_several_keys_justifies_nothing_under_others() -> None:
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID))
    walled(known, pages=4, torn=1)
    # One page may show another's content for its own reasons.
    assert known.decide(f"http://{HOST}/3?sid=3", 3) is not None
    assert known.doubted == 0
    walled(known, pages=4, torn=2)
    assert known.decide(f"http://{HOST}/3?sid=3", 3) is None
    assert known.doubted == 1
    # What was shown there afterwards does.
    known.fetched(f"http://{HOST}/5?sid=1", 4, content=50)
    assert known.decide(f"http://{HOST}/5?sid=2", 5) is not None
    # So it is when its pages were fetched before the rule was known.
    known.load(RuleSet(HOST, 2, (DROP_SID,)))
    assert known.decide(f"http://{HOST}/3?sid=3", 6) is None
    assert known.decide(f"http://{HOST}/5?sid=2", 6) is not None


def test_what_tore_one_key_has_torn_no_more_when_rules_are_published_anew() -> None:
    known = KnownPages(explore=0)
    for version in range(1, 4):
        known.load(RuleSet(HOST, version, (DROP_SID, back_rule())[: version % 2 + 1]))
        walled(known, pages=4, torn=int(version == 1))
    assert known.decide(f"http://{HOST}/3?sid=3", 3) is not None


def test_a_url_that_showed_another_crawl_a_wall_is_fetched_again() -> None:
    known = KnownPages(explore=0, within=1000)
    known.load(rule_set(DROP_SID))
    for number in range(4):
        known.fetched(f"http://{HOST}/{number}?sid=1", 1, content=WALL if number < 3 else 50, earlier=True)
    walled(known, pages=0, torn=2)
    assert known.decide(f"http://{HOST}/2?sid=1", 3) is None
    assert known.decide(f"http://{HOST}/3?sid=1", 3) is not None


def test_a_name_that_such_a_page_bears_justifies_nothing() -> None:
    post = Key(name="p")
    carrier = (Condition(Key(name="t"), "any"),)
    named = Rule("n", HOST, (Condition(post, "any"),), (), kind="name", name="anchor", carrier=carrier)
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID, named))
    known.fetched(f"http://{HOST}/t?t=1", 1, parse_names("anchor=p7"), content=WALL)
    assert known.decide(f"http://{HOST}/t?p=7", 3) is not None
    walled(known, pages=2, torn=2)
    assert known.decide(f"http://{HOST}/t?p=7", 3) is None


def test_a_family_that_always_shows_a_wall_is_skipped_all_the_same() -> None:
    edit = Key(name="edit")
    family = rule([Condition(edit, "any")], [Edit(Key(), "family")])
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID, family))
    known.fetched(f"http://{HOST}/?edit=1", 1, content=WALL)
    walled(known, pages=2, torn=2)
    assert known.decide(f"http://{HOST}/?edit=2", 3) is not None


def test_a_log_in_form_at_its_own_address_is_fetched_a_few_times_more() -> None:
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID, back_rule()))
    known.fetched(f"http://{HOST}/login?return=0", 1, content=WALL)
    walled(known, pages=4, torn=2)
    fetched = [number for number in range(1, 20) if known.decide(f"http://{HOST}/login?return={number}", 3) is None]
    assert fetched == [*range(1, 20)]
    for number in range(1, 9):
        assert known.decide(f"http://{HOST}/login?return=99", 3) is None
        for _ in range(2):  # asked for again it says no more
            known.fetched(f"http://{HOST}/login?return={number}", 3, content=WALL)
    assert known.decide(f"http://{HOST}/login?return=99", 4) is not None
    # It is shown in place of other pages all the same, and may be in place of this one.
    assert known.decide(f"http://{HOST}/3?sid=3", 4) is None
    known.fetched(f"http://{HOST}/login?return=100", 5, content=50)
    assert known.decide(f"http://{HOST}/login?return=99", 6) is None


def test_a_wall_among_other_pages_of_a_key_is_not_its_own() -> None:
    """Which its rule lets differ, as it was taught by near-duplicates."""
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID, replace(back_rule(), identity="near")))
    walled(known, pages=2, torn=2)
    for number in range(20):
        known.fetched(f"http://{HOST}/list?return={number}", 3, content=WALL if number % 2 else 50 + number)
    assert known.decide(f"http://{HOST}/list?return=99", 4) is None


def test_the_urls_of_a_log_in_form_count_once_when_rules_are_published_anew() -> None:
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID, back_rule()))
    walled(known, pages=4, torn=2)
    for number in range(6):
        known.fetched(f"http://{HOST}/login?return={number}", 3, content=WALL)
    for version in range(2, 4):
        known.load(RuleSet(HOST, version, (DROP_SID, replace(back_rule(), support=version))))
        assert known.decide(f"http://{HOST}/login?return=99", 4) is None


def tried(known: KnownPages, pages: int) -> list[int]:
    """Return which of the would-be skips on so many pages are fetched all the same, by number."""
    skips = [known.decide(f"http://{HOST}/{number}?sid=2", 2) for number in range(pages)]
    return [number for number, skip in enumerate(skips, 1) if skip is not None and skip.explore]


def test_what_was_shown_in_a_row_is_tried_ever_more_seldom() -> None:
    for explore, found in ((1e-9, [1, 2, 4, 8]), (0.0, [])):
        known = KnownPages(explore=explore)
        known.load(rule_set(replace(DROP_SID, support=100)))
        walled(known, pages=8, torn=0)
        assert tried(known, 8) == found
        # Another rule of the host begins it anew no more than it ends it.
        known.load(RuleSet(HOST, 2, (replace(DROP_SID, support=100),)))
        assert tried(known, 8) == ([8] if found else [])


def test_what_was_shown_by_fewer_pages_in_a_row_is_not_tried_further() -> None:
    known = KnownPages(explore=1e-9)
    known.load(rule_set(replace(DROP_SID, support=100)))
    walled(known, pages=7, torn=0)
    assert tried(known, 7) == []


def test_what_was_shown_by_as_many_pages_among_others_is_not_tried_further() -> None:
    known = KnownPages(explore=1e-9)
    known.load(rule_set(replace(DROP_SID, support=100)))
    for number in range(16):
        known.fetched(f"http://{HOST}/{number}?sid=1", 1, content=WALL if number % 8 else 1000 + number)
    assert tried(known, 16) == []


def test_a_page_under_many_urls_of_one_key_is_no_row() -> None:
    known = KnownPages(explore=1e-9)
    known.load(rule_set(replace(DROP_SID, support=100)))
    for number in range(20):
        known.fetched(f"http://{HOST}/0?sid=x{number}", 1, content=5)
    assert tried(known, 1) == []
