"""The rule service: evidence in, rule sets out; rules that watched pages contradict."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from clusterd.learning.rulebook.recall import EARLY_SECONDS, LATE_MS
from clusterd.learning.rulebook.redis import RuleBook
from clusterd_crawler.clock import now_ms
from clusterd_crawler.rules import Key, RuleSet

from tests.clusterd.made_up_rules import (
    HOST,
    Log,
    Serve,
    SidLearner,
    contradiction,
    duplicates,
    offered_set,
    sid_rule,
    sketch,
)


def test_duplicates_become_a_published_rule(serve: Serve, book: RuleBook, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    learned = service.learn_due(now=100)
    assert [rules.version for rules in learned] == [100]
    assert log.sets == learned
    assert offered_set(book, HOST) == learned[0]
    [rule] = service.rules()
    assert (rule.id, rule.support, rule.state, rule.since) == (sid_rule().id, 3, "live", 100)
    assert service.learn_due(now=200) == []


def test_a_batch_delivered_again_changes_nothing(serve: Serve, log: Log) -> None:
    learners: list[SidLearner] = []

    def make(host: str) -> SidLearner:
        learners.append(SidLearner(host))
        return learners[-1]

    service = serve(make)
    for _ in range(3):
        service.observe(duplicates())
        service.learn_due(now=100)
    assert len(learners[0].pages) == 6
    assert len(log.sets) == 1


def test_figures_reach_the_book_without_a_new_version(serve: Serve, log: Log) -> None:
    service = serve()
    service.observe(duplicates(3))
    service.learn_due(now=1)
    service.observe(duplicates(5))
    service.learn_due(now=2)
    assert [rule.support for rule in service.rules()] == [5]
    assert len(log.sets) == 1


@pytest.mark.parametrize("status", [199, 302, 404, 500])
def test_an_error_page_is_no_evidence(serve: Serve, book: RuleBook, status: int) -> None:
    serve().observe([sketch(f"http://{HOST}/{n}", 5, status=status) for n in range(5)])
    assert book.changed() == {}


def test_what_is_no_url_is_passed_over(serve: Serve, book: RuleBook) -> None:
    serve().observe([sketch("nonsense", 1), sketch("http://", 1), sketch(f"http://{HOST}/", 1)])
    assert list(book.changed()) == [HOST]


@pytest.mark.parametrize("host", [f"me:secret@{HOST}", f"*.{HOST}", f"a*b.{HOST}"])
def test_of_a_host_of_which_no_rule_can_be_read_nothing_is_learned(serve: Serve, book: RuleBook, host: str) -> None:
    service = serve()
    service.observe([sketch(f"http://{host}/{n}", 5) for n in range(5)])
    assert book.changed() == {}
    service.observe(duplicates())
    service.learn_due(now=100)
    assert [rule.host for rule in service.rules()] == [HOST]


def test_an_older_version_that_comes_late_is_not_shown(serve: Serve, book: RuleBook) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    service.observe([sketch(f"http://{HOST}/0?sid=x0", 77, at=1)])
    service.learn_due(now=2)
    assert [rule.support for rule in service.rules()] == [3]


def test_a_rule_that_a_watched_page_contradicts_is_retired_by_itself(serve: Serve, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    service.observe([contradiction()])
    service.learn_due(now=2)
    assert log.sets[-1].rules == ()
    assert log.sets[-1].retired == ((sid_rule().id, "a watched page differed"),)
    turn = service.entry(sid_rule().id).last
    assert (turn.state, turn.by, turn.at) == ("retired", "learner", 2)


def test_a_watched_page_is_judged_though_no_page_of_its_host_follows(
    serve: Serve, book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, at = serve(), now_ms()
    service.observe(duplicates())
    service.learn_due(now=1)
    service.observe([replace(contradiction(at=at), instead_of=f"http://{HOST}/never")])
    service.learn_due(now=2)
    assert [rule.state for rule in service.rules()] == ["live"]
    later = time.monotonic() + 2 * EARLY_SECONDS
    monkeypatch.setattr("clusterd.learning.rulebook.recall.monotonic", lambda: later)
    service.learn_due(now=3)
    assert list(service.rules()) == []
    assert book.changed() == {}


def test_a_worker_that_begins_behind_a_pause_of_hours_retires_no_rule_before_it_has_read_on(serve: Serve) -> None:
    before, ago = serve(), now_ms() - 2 * LATE_MS
    before.observe(duplicates())
    before.learn_due(now=1)
    before.close()
    service, numbers = serve(), range(50, 53)
    known = [f"http://{HOST}/{number}" for number in numbers]
    shown = [sketch(url, number, ago, crawl="one") for url, number in zip(known, numbers, strict=True)]
    service.observe([replace(one, url=f"{one.url}?sid=z", explored=sid_rule().id, instead_of=one.url) for one in shown])
    service.learn_due(now=2, whole=False)
    service.observe(shown)
    service.learn_due(now=3)
    assert [turn.state for turn in service.entry(sid_rule().id).history] == ["live"]


def test_three_watched_pages_that_differ_retire_a_rule_that_the_learner_stands_by(serve: Serve, log: Log) -> None:
    class Stubborn(SidLearner):
        def learn(self, at: int) -> RuleSet | None:
            self.pages = [replace(page, explored="") for page in self.pages]
            return super().learn(at)

        def due(self) -> bool:
            return not self.live

    service = serve(Stubborn)
    service.observe(duplicates())
    service.learn_due(now=1)
    for number in range(3):
        assert [rule.state for rule in service.rules()] == ["live"]
        service.observe([contradiction(number)])
        service.learn_due(now=2 + number)
    assert log.sets[-1].retired == ((sid_rule().id, "3 of 3 watched pages differed"),)
    assert service.entry(sid_rule().id).last.by == "watch"
    # The learner would say it again; neither it nor one that is built anew brings it back.
    service.observe(duplicates(9, at=20))
    service.learn_due(now=9)
    service.close()
    again = serve(Stubborn)
    again.observe(duplicates(12, at=30))
    again.learn_due(now=10)
    assert list(again.rules()) == []
    assert len(log.sets) == 2


def test_many_watched_pages_that_agree_outweigh_a_few_that_differ(serve: Serve) -> None:
    service, ref = serve(), sid_rule(key=Key("ref"))
    service.import_rules([ref], at=1)
    service.observe([sketch(f"http://{HOST}/{n}", n + 1) for n in range(400)])
    watched = [
        sketch(f"http://{HOST}/{n}?ref=1", n + 1, 2, explored=ref.id, instead_of=f"http://{HOST}/{n}")
        for n in range(400)
    ]
    service.observe([*watched[3:], *(replace(page, main=replace(page.main, text=9_999)) for page in watched[:3])])
    service.learn_due(now=2)
    assert [rule.state for rule in service.rules()] == ["live"]


def test_what_the_evidence_no_longer_says_may_come_back(serve: Serve, log: Log) -> None:
    class Forgetful(SidLearner):
        def learn(self, at: int) -> RuleSet | None:
            return RuleSet(self.host, 1, ()) if at == 2 else super().learn(at)

    service = serve(Forgetful)
    for at in (1, 2, 3):
        service.observe(duplicates(2 + at))
        service.learn_due(now=at)
    assert [len(rules.rules) for rules in log.sets] == [1, 0, 1]
    assert [turn.by for turn in service.entry(sid_rule().id).history] == ["learner", "relearned", "learner"]


def test_a_crawl_is_not_sent_the_evidence(serve: Serve, log: Log) -> None:
    service = serve()
    service.import_rules([replace(sid_rule(), evidence=(("a", "b", True),))], at=1)
    assert [rule.evidence for rule in log.sets[0].rules] == [()]
    assert [rule.evidence for rule in service.rules()] == [(("a", "b", True),)]
