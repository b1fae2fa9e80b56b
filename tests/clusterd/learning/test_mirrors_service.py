"""Mirrors through the rule service: published under the domain, beside its host's own rules, watched and retired."""

from __future__ import annotations

import pytest
from clusterd.learning.rulebook.contract import Evidence
from clusterd.learning.rulebook.groups import Groups
from clusterd.learning.rulebook.recall import Recall
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Sketch, StreamSketch
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.clusterd.made_up_rules import offered_set

DOMAIN = "example.com"
WWW = f"http://www.{DOMAIN}"
BARE = f"http://{DOMAIN}"


def sketch(url: str, content: int, at: int, explored: str = "", instead_of: str = "", crawl: str = "") -> Sketch:
    stream = StreamSketch(b"", 0, 100, content)
    return Sketch(url, at, 1, content, stream, stream, content, explored=explored, instead_of=instead_of, crawl=crawl)


def pages(*sites: str, count: int = 60, query: str = "") -> list[Sketch]:
    return [sketch(f"{site}/docs/page{n}{query}", n, 1 + at) for at, site in enumerate(sites) for n in range(count)]


def spanning(service: RuleService) -> list[str]:
    """Return the ids of the rules in force that span hosts."""
    return [rule.id for rule in service.rules() if rule.spans]


def decider(book: RuleBook) -> KnownPages:
    """Return a crawl's decider with what the book offers to it."""
    known = KnownPages(explore=0)
    for host in (DOMAIN, f"www.{DOMAIN}"):
        offered = offered_set(book, host)
        known.load(RuleSet(host, 0, ()) if offered is None else rule_set_from_json(rule_set_to_json(offered)))
    return known


def test_a_mirror_is_published_under_the_domain_and_skips_its_pages(book: RuleBook) -> None:
    service = RuleService(book)
    service.observe(pages(BARE, WWW))

    learned = service.learn_due(now=100)

    assert [(rules.host, rules.version) for rules in learned] == [(DOMAIN, 100)]
    known = decider(book)
    known.fetched(f"{BARE}/docs/new", 1)
    skip = known.decide(f"{WWW}/docs/new", 2)
    assert skip is not None
    assert skip.rule == spanning(service)[0]
    service.close()


def test_the_domains_own_rules_and_its_mirrors_stand_side_by_side(book: RuleBook) -> None:
    service = RuleService(book)
    service.observe([*pages(BARE), *pages(BARE, query="?sid=1"), *pages(BARE, query="?sid=2")])
    service.learn_due(now=100)
    own = [rule.id for rule in service.rules()]
    assert own

    service.observe(pages(WWW))
    service.learn_due(now=200)
    service.observe([sketch(f"{BARE}/docs/page{n}?sid=3", n, 9) for n in range(60)])
    service.learn_due(now=300)

    assert spanning(service)
    assert [rule for rule in service.rules() if not rule.spans]
    known = decider(book)
    known.fetched(f"{BARE}/docs/new", 1)
    assert known.decide(f"{WWW}/docs/new", 2) is not None
    assert known.decide(f"{BARE}/docs/new?sid=1", 2) is not None
    service.close()


def test_pages_fetched_in_spite_of_a_mirror_retire_it(book: RuleBook) -> None:
    service = RuleService(book)
    service.observe(pages(BARE, WWW))
    service.learn_due(now=100)
    (rule,) = spanning(service)

    for n in range(3):
        new = f"/docs/parted{n}"
        service.observe([sketch(BARE + new, 700 + n, 10), sketch(WWW + new, 800 + n, 11, rule, BARE + new)])
    service.learn_due(now=200)

    assert spanning(service) == []
    known = decider(book)
    known.fetched(f"{BARE}/docs/new", 1)
    assert known.decide(f"{WWW}/docs/new", 2) is None
    service.close()


def test_a_mirror_stays_that_pages_of_the_bare_host_bear_out(book: RuleBook) -> None:
    """The bare host has the domain's name: its own learner, which sees no other host's pages, judges no mirror."""
    service = RuleService(book)
    service.observe(pages(WWW, BARE))
    service.learn_due(now=100)
    (rule,) = spanning(service)

    for n in range(3):
        new = f"/docs/new{n}"
        service.observe([sketch(WWW + new, 700 + n, 10), sketch(BARE + new, 700 + n, 11, rule, WWW + new)])
        service.learn_due(now=200 + n)

    assert spanning(service) == [rule]
    service.close()


def test_a_mirror_stays_that_agrees_with_the_known_page_of_an_earlier_crawl(book: RuleBook) -> None:
    """With ``CLUSTERD_SKIP_WITHIN`` a page fetched all the same may be the first of its content in its crawl."""
    service = RuleService(book)
    service.observe(pages(BARE, WWW))
    service.learn_due(now=100)
    (rule,) = spanning(service)

    for n in range(3):
        page = f"/docs/page{n}"
        service.observe([sketch(WWW + page, n, 10 + n, rule, BARE + page, "later")])
        service.learn_due(now=200 + n)

    assert spanning(service) == [rule]
    service.close()


def test_a_mirror_retired_by_hand_stays_so_when_another_worker_takes_over(book: RuleBook) -> None:
    first = RuleService(book)
    first.observe(pages(BARE, WWW))
    first.learn_due(now=100)
    first.retire(spanning(first)[0], 150)
    first.close()

    second = RuleService(book)
    second.observe(pages(BARE, WWW, count=90))
    second.learn_due(now=200)

    assert spanning(second) == []
    second.close()


def test_another_worker_goes_on_from_the_logs(book: RuleBook) -> None:
    first = RuleService(book)
    first.observe(pages(BARE))
    first.learn_due(now=100)
    first.close()

    second = RuleService(book)
    second.observe(pages(WWW))
    second.learn_due(now=200)

    assert len(spanning(second)) == 1
    second.close()


def test_mirrors_are_learned_by_one_worker_at_a_time(book: RuleBook) -> None:
    first, second = RuleService(book), RuleService(book)
    first.observe(pages(BARE, WWW, count=3))
    first.learn_due(now=100)
    second.observe(pages(f"http://a.{DOMAIN}", f"http://b.{DOMAIN}"))
    assert second.learn_due(now=200) == []
    first.observe(pages(BARE, count=4))
    (learned,) = first.learn_due(now=300)  # of what the second one has observed
    assert [rule.spans for rule in learned.rules] == [True]
    for service in (first, second):
        service.close()


def test_a_fault_in_learning_mirrors_keeps_no_host_from_learning(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caught_up = Groups.caught_up

    def broken(groups: Groups, group: str) -> Recall:
        caught_up(groups, group)
        raise ZeroDivisionError

    service = RuleService(book)
    monkeypatch.setattr(Groups, "caught_up", broken)
    service.observe([*pages(BARE, WWW), *pages(BARE, query="?sid=1"), *pages(BARE, query="?sid=2")])
    assert [rules.host for rules in service.learn_due(now=100)] == [DOMAIN]
    assert [rule.spans for rule in service.rules()] == [False]
    assert "the mirrors of example.com could not be learned" in caplog.text
    monkeypatch.undo()
    service.observe([sketch(f"{WWW}/docs/page99", 99, 150)])
    service.learn_due(now=200)
    assert len(spanning(service)) == 1
    service.close()


def test_a_host_that_copies_another_domain_changes_nothing_there(book: RuleBook) -> None:
    service = RuleService(book)
    service.observe(pages("http://victim.org", "http://evil.net", "http://victim.org.evil.net"))

    service.learn_due(now=100)

    known = KnownPages(explore=0)
    for host in ("victim.org", "evil.net", "victim.org.evil.net"):
        offered = offered_set(book, host)
        if offered is not None:
            known.load(offered)
    known.fetched("http://evil.net/docs/new", 1)
    known.fetched("http://victim.org.evil.net/docs/other", 1)
    assert known.decide("http://victim.org/docs/new", 2) is None
    assert known.decide("http://victim.org/docs/other", 2) is None
    service.close()


def test_a_group_reads_only_the_logs_that_have_grown(book: RuleBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a domain with 33 hosts each page had all logs read: 25 calls a page in a crawl of 10,000 hosts."""
    service = RuleService(book)
    sites = [f"http://h{number}.{DOMAIN}" for number in range(20)]
    service.observe(pages(*sites, count=3))
    service.learn_due(now=100)
    read: list[str] = []
    evidence = book.evidence

    def noting(host: str, after: str = "") -> Evidence:
        read.append(host)
        return evidence(host, after)

    monkeypatch.setattr(book, "evidence", noting)
    service.observe([sketch(f"{sites[7]}/docs/page9", 9, 200)])
    service.learn_due(now=300)

    assert read == [f"h7.{DOMAIN}"] * 2  # by the host's learner, and by the group's
    service.close()
