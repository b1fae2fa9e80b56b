"""What a crawl skips: by keys, by names, by what a known page shows; what never justifies a skip; bounded memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterd_crawler import urls
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.rule_language import keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.settings import Settings
from clusterd_crawler.skipping import host_pages, known_pages
from clusterd_crawler.skipping.bearers import NameTable, parse_names, witnessed
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.traps import RUN
from clusterd_crawler.urls import canonical

HOST = "h.com"
SID = Key(name="sid")
CONTEXT, EDITS = (Condition(SID, "any"),), (Edit(SID, "delete"),)
DROP_SID = Rule(rule_id(HOST, CONTEXT, EDITS), HOST, CONTEXT, EDITS)


def rule_set(*rules: Rule, version: int = 1, host: str = HOST, unskip: tuple[str, ...] = ()) -> RuleSet:
    return RuleSet(host, version, rules, unskip=unskip)


@pytest.fixture
def known() -> KnownPages:
    return KnownPages(explore=0)


def test_a_page_with_the_key_of_a_fetched_one_is_skipped_and_says_why(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com:80/a?sid=1&x=2", 1)
    skip = known.decide("http://H.com/a?x=2&sid=9", 2)
    assert skip is not None
    assert (skip.rule, skip.key, skip.known_url) == (DROP_SID.id, "http://h.com/a?x=2", "http://h.com/a?sid=1&x=2")
    assert not skip.explore


def test_keys_of_pages_fetched_before_the_rule_came_are_filled_in(known: KnownPages) -> None:
    known.fetched("http://h.com/a?sid=1", 1)
    assert known.decide("http://h.com/a?sid=2", 2) is None
    known.load(rule_set(DROP_SID))
    assert known.decide("http://h.com/a?sid=2", 2) is not None
    assert known.decide("http://h.com/a", 2) is not None


def test_what_was_never_fetched_is_never_skipped(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    assert known.decide("http://h.com/a?sid=1", 1) is None
    assert known.decide("http://other.com/a?sid=1", 1) is None
    assert known.decide("no url", 1) is None


def test_a_page_of_which_nobody_knows_what_it_shows_hides_none_that_differs(known: KnownPages) -> None:
    """As one of Scrapy's HTTP cache."""
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1, content=5)
    known.fetched("http://h.com/a?sid=2", 2)
    assert known.decide("http://h.com/a?sid=4", 3) is not None
    known.fetched("http://h.com/a?sid=3", 3, content=6)
    assert known.decide("http://h.com/a?sid=4", 4) is None
    known.fetched("http://h.com/b?sid=1", 5, content=5)
    known.fetched("http://h.com/b?sid=2", 6)
    known.fetched("http://h.com/b?sid=1", 7, good=False)
    assert known.decide("http://h.com/b?sid=3", 8) is None


def test_a_page_that_failed_justifies_nothing(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1, good=False)
    assert known.decide("http://h.com/a?sid=2", 2) is None
    known.fetched("http://h.com/a?sid=3", 3)
    known.fetched("http://h.com/a?sid=3", 4, good=False)
    assert known.decide("http://h.com/a?sid=2", 5) is None


def test_the_same_url_again_is_the_scheduler_s_business(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1)
    assert known.decide("http://h.com/a?sid=1", 2) is None
    known.fetched("http://h.com/a?sid=1", 1, told=True)  # as what this crawler has published comes back
    known.fetched("http://h.com/a?sid=2", 3)
    assert known.decide("http://h.com/a?sid=1", 4) is None


def test_pages_of_a_key_that_differ_justify_nothing(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1, content=7)
    known.fetched("http://h.com/a?sid=2", 2, content=8)
    assert known.decide("http://h.com/a?sid=3", 3) is None
    assert known.resting_key("http://h.com/a?sid=3") == ("", ())
    known.load(rule_set(DROP_SID, version=2))
    assert known.decide("http://h.com/a?sid=3", 3) is None


def test_a_page_is_told_before_it_counts_from_another_of_its_key_that_shows_something_else(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1, content=7)
    assert known.differs("http://h.com:80/a?sid=2", 8)
    same = [("a?sid=2", 7), ("a?sid=1", 8), ("b?sid=2", 8)]
    assert not any(known.differs(f"http://h.com/{path}", content) for path, content in same)
    assert not known.differs("no url", 8)


def test_pages_of_a_key_may_differ_where_near_duplicates_taught_it(known: KnownPages) -> None:
    known.load(rule_set(replace(DROP_SID, identity="near")))
    known.fetched("http://h.com/a?sid=1", 1, content=7)
    known.fetched("http://h.com/a?sid=2", 2, content=8)
    assert known.decide("http://h.com/a?sid=3", 3) is not None
    known.fetched("http://h.com/a", 3, content=9)  # is its own key: no rule is applied to it
    assert known.decide("http://h.com/a?sid=4", 4) is not None
    known.load(rule_set(DROP_SID, version=2))
    assert known.decide("http://h.com/a?sid=4", 4) is None


def test_a_known_page_that_is_too_old_or_far_ahead_justifies_nothing() -> None:
    known = KnownPages.from_settings(Settings(skip_within="60", explore=0))
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 1_000)
    assert [known.decide("http://h.com/a?sid=2", at) is None for at in (61_000, 61_001)] == [False, True]
    known.fetched("http://h.com/a?sid=1", 86_400_000, earlier=True)  # of a clock that was a day ahead
    assert known.decide("http://h.com/a?sid=2", 61_001) is None


def test_an_operator_s_urls_are_fetched(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID, unskip=("http://h.com/a?sid=2",)))
    known.fetched("http://h.com/a?sid=1", 1)
    assert known.decide("http://h.com/a?sid=2", 2) is None
    assert known.decide("http://h.com/a?sid=3", 2) is not None


def test_a_retired_rule_skips_no_more_and_an_older_set_does_not_come_back(known: KnownPages) -> None:
    known.fetched("http://h.com/a?sid=1", 1)
    known.load(rule_set(DROP_SID, version=2))
    known.load(rule_set(version=3))
    assert not any(known.decide(f"http://h.com/a{query}", 2) for query in ("?sid=2", ""))
    known.load(rule_set(DROP_SID, version=2))
    assert known.decide("http://h.com/a?sid=2", 2) is None


def test_memory_is_bounded_and_the_oldest_page_is_forgotten() -> None:
    known = KnownPages(explore=0, limit=100)
    known.load(rule_set(DROP_SID))
    for number in range(150):
        known.fetched(f"http://h.com/{number}", number)
    assert len(known) == 100
    assert known.decide("http://h.com/49?sid=1", 200) is None
    assert known.decide("http://h.com/50?sid=1", 200) is not None


def test_one_host_s_rules_never_skip_another_s_pages(known: KnownPages) -> None:
    hostile = replace(DROP_SID, id="evil", host="evil.org", spans=True)
    known.load(rule_set(hostile, host="evil.org"))
    known.fetched("http://h.com/a?sid=1", 1)
    known.fetched("http://evil.org/a?sid=1", 1)
    assert known.decide("http://h.com/a?sid=2", 2) is None
    assert known.decide("http://evil.org/a?sid=2", 2) is not None


def name_rule(kind: str, *context: Condition, carrier: tuple[Condition, ...] = ()) -> Rule:
    return Rule(rule_id(HOST, context, (), name=kind), HOST, context, (), kind="name", name=kind, carrier=carrier)


def test_a_page_that_bears_the_anchor_answers_for_the_parameter_that_points_to_it(known: KnownPages) -> None:
    rule = name_rule("anchor", Condition(Key(name="p"), "any"), carrier=(Condition(Key(name="t"), "any"),))
    known.load(rule_set(rule))
    known.fetched("http://h.com/v?t=1", 1, parse_names("anchor=post12 anchor=post13"))
    known.fetched("http://h.com/other", 1, parse_names("anchor=post14"))
    skip = known.decide("http://h.com/v?p=12", 2)
    assert skip is not None
    assert (skip.rule, skip.known_url) == (rule.id, "http://h.com/v?t=1")
    assert known.decide("http://h.com/v?p=14", 2) is None
    assert known.decide("http://h.com/v?p=99", 2) is None
    assert known.decide("http://h.com/v?q=12", 2) is None


def test_a_page_that_calls_itself_by_a_url_answers_for_it(known: KnownPages) -> None:
    known.fetched("http://h.com/slug", 1, parse_names("shortlink=http://h.com/?p=5 og=http://h.com/slug"))
    known.load(rule_set(name_rule("shortlink", Condition(Key(name="p"), "any"))))
    assert known.decide("http://h.com/?p=5", 2) is not None
    assert known.decide("http://h.com/?p=6", 2) is None


def test_a_page_that_says_it_is_two_others_is_no_witness(known: KnownPages) -> None:
    names = parse_names("canonical=http://h.com/checkout shortlink=http://h.com/?p=5 anchor=a1")
    assert [name.kind for name in witnessed("http://h.com/cart", names)] == ["anchor"]
    known.load(rule_set(name_rule("shortlink", Condition(Key(name="p"), "any"))))
    known.fetched("http://h.com/cart", 1, names)
    assert known.decide("http://h.com/?p=5", 2) is None


def test_names_of_a_page_that_is_gone_answer_for_nothing(known: KnownPages) -> None:
    known.load(rule_set(name_rule("shortlink", Condition(Key(name="p"), "any"))))
    known.fetched("http://h.com/slug", 1, parse_names("shortlink=http://h.com/?p=5"))
    known.fetched("http://h.com/slug", 2, good=False)
    assert known.decide("http://h.com/?p=5", 3) is None


def test_a_rule_may_ask_what_the_known_page_shows(known: KnownPages) -> None:
    sort = Key(name="sort")
    edits = (Edit(sort, "delete"),)
    asking = Rule(rule_id(HOST, (), edits, shows=77), HOST, (), edits, shows=77)
    known.fetched("http://h.com/list?user=1&sort=a", 1, content=77)
    known.fetched("http://h.com/list?user=2&sort=a", 1, content=5)
    known.fetched("http://h.com/list?user=3", 1, content=5)
    known.load(rule_set(asking))
    assert known.decide("http://h.com/list?user=1", 2) is not None
    known.fetched("http://h.com/list?user=1", 2)  # of which nobody knows what it shows
    skip = known.decide("http://h.com/list?user=1&sort=b", 2)
    assert skip is not None
    assert (skip.rule, skip.known_url) == (asking.id, "http://h.com/list?user=1&sort=a")
    assert not any(known.decide(f"http://h.com/list?user={more}", 2) for more in ("2&sort=b", "2", "3&sort=b"))


def test_what_a_page_showed_once_justifies_nothing_when_it_failed_or_changed(known: KnownPages) -> None:
    edits = (Edit(Key(name="sort"), "delete"),)
    asking = Rule(rule_id(HOST, (), edits, shows=77), HOST, (), edits, shows=77)
    known.load(rule_set(asking))
    for good, content in ((False, 0), (True, 5)):
        known.fetched("http://h.com/list?sort=a", 1, content=77)
        assert known.decide("http://h.com/list?sort=b", 2) is not None
        known.fetched("http://h.com/list?sort=a", 3, good=good, content=content)
        assert known.decide("http://h.com/list?sort=b", 4) is None


def test_what_one_page_of_a_family_shows_says_nothing_of_the_others(known: KnownPages) -> None:
    # Given: the days of a calendar bring nothing new any more, and an empty day is empty in print.
    view, day = Key(name="view"), Key(name="day")
    whole = (Edit(Key(), "family"),)
    context = (Condition(day, "any"), Condition(view, "is", ("day",)))
    family = Rule(rule_id(HOST, context, whole), HOST, context, whole)
    printed = (Condition(view, "is", ("print",)),)
    edits = (Edit(view, "set", "day"),)
    asking = Rule(rule_id(HOST, printed, edits, shows=77), HOST, printed, edits, shows=77)
    known.load(rule_set(family, asking))
    known.fetched("http://h.com/?day=1&view=day", 1, content=77)
    # When, then: the empty first of the month says nothing about how the second looks in print.
    assert known.decide("http://h.com/?day=2&view=day", 2) is not None
    assert known.decide("http://h.com/?day=2&view=print", 2) is None
    known.redirected("http://h.com/?day=3&view=day", "http://h.com/?day=1&view=day")
    assert known.decide("http://h.com/?day=2&view=print", 2) is None


def test_a_page_that_failed_here_is_not_known_by_an_older_fetch_of_others(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    decisions = Decisions(known, 100)
    decisions.load(rule_set(DROP_SID))
    decisions.fetched("http://H.com/a?x=1&sid=1", 9, good=False)
    decisions.learn_of([(Fetch(canonical("http://h.com/a?x=1&sid=1"), 5), False)])
    assert decisions.decide("http://h.com/a?sid=2&x=1", 10) is None
    decisions.learn_of([(Fetch(canonical("http://h.com/a?x=1&sid=1"), 11), False)])
    assert decisions.decide("http://h.com/a?sid=2&x=1", 12) is not None
    assert not decisions.withdrawn()
    # Nor is one that failed for others, whatever they tell of it later that was before.
    decisions.learn_of([(Fetch(canonical("http://h.com/a?x=1&sid=1"), 14, good=False), False)])
    assert decisions.withdrawn()
    assert not decisions.withdrawn()
    decisions.learn_of([(Fetch(canonical("http://h.com/a?x=1&sid=1"), at), False) for at in (13, 14)])
    assert decisions.decide("http://h.com/a?sid=2&x=1", 15) is None
    decisions.learn_of([(Fetch("http://h.com/never-known", 16, good=False), False)])
    assert not decisions.withdrawn()


def test_before_there_are_rules_traps_are_noticed_and_pages_kept_for_the_rules() -> None:
    decisions = Decisions(KnownPages(explore=0), 1000)
    for number in range(RUN + 1):
        decisions.fetched(f"http://h.com/calendar/{number}?x=1", number, content=7)
    assert [trap.family for trap in decisions.traps()] == ["h.com/calendar/N?x"]
    assert decisions.decide("http://h.com/calendar/3?sid=1&x=1", 999) is None
    decisions.load(rule_set(DROP_SID))
    found = decisions.decide("http://h.com/calendar/3?sid=1&x=1", 999)
    assert found is not None
    assert found.known_url == "http://h.com/calendar/3?x=1"
    assert decisions.traps() == []
    decisions.fetched("http://h.com/a/a/a/a", 1000, content=8)
    assert [trap.family for trap in decisions.traps()] == ["h.com/a/a/a/a"]


def test_before_there_are_rules_no_more_contents_are_remembered_than_pages_may_be() -> None:
    decisions = Decisions(KnownPages(explore=0), 10)
    for number in range(1000):
        decisions.fetched(f"http://h{number % 100}.com/{number}", number, content=number + 1)
    assert len(decisions._contents) <= 10


@pytest.mark.parametrize("retired", [False, True])
def test_of_what_pages_showed_and_were_called_nothing_stays_in_memory(retired: bool) -> None:
    edits = (Edit(Key(name="sort"), "delete"),)
    asking = Rule(rule_id(HOST, (), edits, shows=77), HOST, (), edits, shows=77)
    known = KnownPages(explore=0, limit=10)
    known.load(rule_set(asking, ANCHOR))
    for number in range(100):
        known.fetched(f"http://h.com/{number}?t=1&sort=a", number, parse_names(f"anchor=p{number}"), content=77)
    if retired:
        known.load(rule_set(version=2))
    (held,) = known._hosts.values()
    assert (len(held.shown or ()), len(held.names or ())) == ((0, 0) if retired else (10, 10))


ANCHOR = name_rule("anchor", Condition(Key(name="p"), "any"), carrier=(Condition(Key(name="t"), "any"),))


def test_names_are_bounded_and_go_with_their_page() -> None:
    table = NameTable([ANCHOR], limit=2)
    for number in (1, 2, 3):
        table.note(f"http://h.com/viewtopic.php?t={number}", parse_names(f"anchor=p{number}"))
    assert len(table) == 2
    assert [table.find(f"http://h.com/viewtopic.php?p={n}") is not None for n in (1, 2, 3)] == [True, True, False]
    table.note("http://h.com/viewtopic.php?t=4", parse_names("anchor=p2"))  # a name that is known moves to its new page
    table.forget("http://h.com/viewtopic.php?t=2", parse_names("anchor=p2"))
    table.forget("http://h.com/viewtopic.php?t=1", parse_names("anchor=p1"))
    assert len(table) == 1
    assert table.find("http://h.com/viewtopic.php?p=2") == (ANCHOR.id, "http://h.com/viewtopic.php?t=4")


def test_a_page_fetched_again_answers_only_for_the_names_that_it_bears_now(known: KnownPages) -> None:
    known.load(rule_set(ANCHOR))
    known.fetched("http://h.com/viewtopic.php?t=1", 1, parse_names("anchor=p7"))
    known.fetched("http://h.com/viewtopic.php?t=1", 2, parse_names("anchor=p8"))
    assert known.decide("http://h.com/viewtopic.php?p=7", 3) is None
    assert known.decide("http://h.com/viewtopic.php?p=8", 3) is not None


def test_a_host_with_too_many_keys_that_differ_skips_nothing_by_key(
    known: KnownPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_pages, "TORN_LIMIT", 3)
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/good?sid=1", 1, content=1)
    for number in range(4):
        assert (known.decide("http://h.com/good?sid=2", 2) is None) is (number == 3)
        known.fetched(f"http://h.com/{number}?sid=1", 1, content=10 + number)
        known.fetched(f"http://h.com/{number}?sid=2", 1, content=20 + number)
    assert all(known.decide(f"http://h.com/{number}?sid=3", 2) is None for number in range(4))
    known.load(rule_set(DROP_SID, version=2))
    assert known.decide("http://h.com/good?sid=2", 2) is None  # what its rules make of all pages is still too much


def test_an_older_failure_does_not_undo_a_later_fetch(known: KnownPages) -> None:
    known.load(rule_set(DROP_SID))
    known.fetched("http://h.com/a?sid=1", 5)
    known.fetched("http://h.com/a?sid=1", 4, good=False)
    assert known.decide("http://h.com/a?sid=2", 6) is not None
    known.fetched("http://h.com/a?sid=1", 6, good=False)
    assert known.decide("http://h.com/a?sid=2", 7) is None


def test_a_family_s_pages_may_differ_and_are_explored_more(known: KnownPages) -> None:
    context = (Condition(Key(name="view"), "any"),)
    family = Rule(rule_id(HOST, context, (Edit(Key(), "family"),)), HOST, context, (Edit(Key(), "family"),))
    known.load(rule_set(family))
    known.fetched("http://h.com/?view=1", 1, content=1)
    known.fetched("http://h.com/?view=2", 2, content=2)
    assert known.decide("http://h.com/?view=3", 3) is not None
    assert not known.differs("http://h.com/?view=3", 3)
    exploring = KnownPages(explore=0.1)
    exploring.load(rule_set(family))
    exploring.fetched("http://h.com/?view=x", 1)
    skips = [exploring.decide(f"http://h.com/?view={n}", 2) for n in range(1000)]
    assert 200 < sum(skip.explore for skip in skips if skip) < 300


def test_a_host_costs_the_same_however_many_others_have_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def counting(host: str) -> str:
        looked_up.append(host)
        return urls.registrable(host)

    for module in (known_pages, keys):
        monkeypatch.setattr(module, "registrable", counting)
    known = KnownPages(explore=0)
    costs = []
    for number in range(500):
        host = f"site{number}.example"
        before = len(looked_up)
        known.load(rule_set(replace(DROP_SID, host=host), host=host))
        known.fetched(f"http://{host}/page?sid=1", 1, content=1)
        assert known.decide(f"http://{host}/page?sid=2", 2) is not None
        costs.append(len(looked_up) - before)
    assert costs[-1] == costs[0]
