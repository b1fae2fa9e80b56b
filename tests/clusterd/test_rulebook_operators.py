"""What operators do to rules: retire, pin, import, exempt; all of it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from clusterd.learning.rulebook.contract import UNSKIP_LIMIT
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.errors import NotFound, Unreachable, WrongInput
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Condition, Key, Rule

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


def test_retired_by_hand_it_is_published_at_once_and_does_not_come_back(serve: Serve, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    gone = service.retire(sid_rule().id, at=2)
    assert gone.state == "retired"
    assert log.sets[-1].retired == ((sid_rule().id, "by hand"),)
    service.observe(duplicates(6))
    service.learn_due(now=3)
    service.close()
    again = serve()
    again.observe(duplicates(9))
    again.learn_due(now=4)
    assert list(again.rules()) == []
    assert [rule.state for rule in again.rules(every=True)] == ["retired"]
    assert len(log.sets) == 2


def test_a_pinned_rule_stays_whatever_the_watch_says(serve: Serve, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    assert service.pin(sid_rule().id, at=2).state == "pinned"
    for number in range(4):
        service.observe([contradiction(number)])
        service.learn_due(now=3)
    assert [rule.state for rule in log.sets[-1].rules] == [rule.state for rule in service.rules()] == ["pinned"]
    service.retire(sid_rule().id, at=4)
    assert log.sets[-1].rules == ()


def test_what_a_log_that_is_away_keeps_from_being_told_is_said_and_told_later(serve: Serve, log: Log) -> None:
    service, rule = serve(), sid_rule().id
    service.observe(duplicates())
    service.learn_due(now=1)

    def away() -> None:
        raise Unreachable("no Kafka at h:9092")

    cut_off = RuleService(service.book, log.publish, flush=away)
    with pytest.raises(Unreachable, match=f"^{rule} is retired in the store, but nobody was told: no Kafka at h:9092"):
        cut_off.retire(rule, at=2)
    assert [known.state for known in service.rules(every=True)] == ["retired"]
    told = len(log.sets)
    service.observe([sketch(f"http://{HOST}/new", 99)])
    service.learn_due(now=3)
    assert log.sets[told:][0].retired == ((rule, "by hand"),)
    cut_off.close()


def test_what_is_not_there_is_not_found(serve: Serve) -> None:
    service = serve()
    for change in (lambda: service.retire("none", 1), lambda: service.pin("none", 1), lambda: service.entry("none")):
        with pytest.raises(NotFound, match="none"):
            change()
    with pytest.raises(NotFound):
        service.unskip(rule="none")


def test_an_imported_rule_stays_though_the_learner_does_not_know_it(serve: Serve, log: Log) -> None:
    service, ref = serve(), sid_rule(key=Key("ref"))
    service.import_rules([ref, sid_rule("other.org")], at=1)
    service.observe(duplicates())
    service.learn_due(now=2)
    assert {rule.id for rule in service.rules(HOST)} == {ref.id, sid_rule().id}
    assert [rule.host for rule in service.rules("other.org")] == ["other.org"]


def test_an_imported_rule_is_retired_by_three_pages_that_differ(serve: Serve, log: Log) -> None:
    service, ref = serve(), sid_rule(key=Key("ref"))
    service.import_rules([ref], at=1)
    service.observe([sketch(f"http://{HOST}/{n}", n + 1) for n in range(3)])
    for number in range(3):
        assert [rule.state for rule in service.rules()] == ["live"]
        known = f"http://{HOST}/{number}"
        service.observe([sketch(f"{known}?ref=1", 900 + number, 5, explored=ref.id, instead_of=known)])
        service.learn_due(now=10 + number)
    assert service.entry(ref.id).last.by == "watch"
    assert "3 of 3" in log.sets[-1].retired[0][1]


def test_a_url_is_exempted_whether_it_was_skipped_or_not(serve: Serve, log: Log) -> None:
    service, url = serve(), f"http://{HOST}/a?sid=1"
    report = SkipReport(url, "r", f"http://{HOST}/a", f"http://{HOST}/a", 5)
    assert service.record_skips([report, report]) == 1
    assert service.unskip(url) == [report]
    assert log.sets[-1].unskip == (url,)
    assert service.unskip("HTTP://Example.com/b")[0].url == f"http://{HOST}/b"
    assert log.sets[-1].unskip == (url, f"http://{HOST}/b")
    service.unskip(url)
    assert len(log.sets) == 2
    with pytest.raises(WrongInput):
        service.unskip("nonsense")


def test_all_skips_of_a_rule_are_undone(serve: Serve, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    reports = [SkipReport(f"http://{HOST}/{n}?sid=9", sid_rule().id, f"http://{HOST}/{n}", "k", n) for n in range(4)]
    service.record_skips([*reports, replace(reports[0], rule="another", url=f"http://{HOST}/z")])
    assert service.unskip(rule=sid_rule().id) == reports
    assert log.sets[-1].unskip == tuple(report.url for report in reports)
    assert [rule.id for rule in log.sets[-1].rules] == [sid_rule().id]


def test_more_exemptions_than_fit_are_refused(serve: Serve) -> None:
    service = serve()
    service.import_rules([sid_rule()], at=1)
    many = [SkipReport(f"http://{HOST}/{n}", sid_rule().id, "k", "k", n) for n in range(UNSKIP_LIMIT + 1)]
    service.record_skips(many)
    with pytest.raises(WrongInput, match="rules retire"):
        service.unskip(rule=sid_rule().id)


def test_more_than_crawls_can_be_sent_is_refused_whole(serve: Serve, log: Log) -> None:
    service = serve()
    service.import_rules([sid_rule()], at=1)
    query = "&".join(f"parameter{number}=value" for number in range(12))
    long = [SkipReport(f"http://{HOST}/{n}?{query}", sid_rule().id, "k", "k", n) for n in range(UNSKIP_LIMIT)]
    service.record_skips(long)
    with pytest.raises(WrongInput, match="of 1500000 that crawls can be sent; retire the rule"):
        service.unskip(rule=sid_rule().id)
    many = [sid_rule(key=Key(f"{'k' * 200}{number}")) for number in range(2_500)]
    with pytest.raises(WrongInput, match="import fewer"):
        service.import_rules([sid_rule("other.org"), *many], at=2)
    assert [rule.id for rule in service.rules()] == [sid_rule().id]
    assert len(log.sets) == 1
    assert service.retire(sid_rule().id, at=3).state == "retired"


def test_changes_at_the_same_time_are_all_kept(prefix: str, redis_url: str) -> None:
    rules = [sid_rule(key=Key(f"k{n}")) for n in range(8)]
    log = Log()

    @contextmanager
    def worker() -> Iterator[RuleService]:
        client = connect(redis_url)
        yield RuleService(RuleBook(client, prefix), log.publish, make_learner=SidLearner)
        client.close()

    def pin(rule: Rule) -> None:
        with worker() as service:
            service.pin(rule.id, at=2)

    with worker() as service:
        service.import_rules(rules, at=1)
        threads = [threading.Thread(target=pin, args=(rule,)) for rule in rules]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {rule.state for rule in service.rules()} == {"pinned"}
        assert service.book.version(HOST) == 1 + len(rules)
        offered = offered_set(service.book, HOST)
    assert offered is not None
    assert offered.version == 1 + len(rules)
    # Each was published, some once more behind one that came late, and the log ends with the latest.
    assert {rules.version for rules in log.sets} == set(range(1, 2 + len(rules)))
    assert log.sets[-1].version == 1 + len(rules)


def strike(service: RuleService, rule: Rule, number: int, at: int) -> None:
    """Show the worker a page that was fetched in spite of a rule, and shows something else."""
    known = f"http://{HOST}/{number}"
    service.observe([sketch(f"{known}?ref=1", 900 + number, at, explored=rule.id, instead_of=known)])
    service.learn_due(now=at + 1)


def imported(serve: Serve, strikes: int) -> tuple[RuleService, Rule]:
    """Return who keeps a rule that was imported, and the rule; so many pages have been shown against it."""
    service, ref = serve(), sid_rule(key=Key("ref"))
    service.import_rules([ref], at=1)
    service.observe([sketch(f"http://{HOST}/{number}", number + 1) for number in range(8)])
    for number in range(strikes):
        strike(service, ref, number, 10 + number)
    return service, ref


def test_a_rule_that_is_imported_again_is_watched_anew(serve: Serve) -> None:
    service, ref = imported(serve, strikes=3)
    assert service.entry(ref.id).last.by == "watch"
    service.import_rules([ref], at=100)
    for number in range(3, 5):
        strike(service, ref, number, 100 + number)
    service.close()
    restarted = serve()  # what led to its retirement before is no trial for it either
    restarted.learn_due(now=110)
    assert [rule.state for rule in restarted.rules()] == ["live"]
    strike(restarted, ref, 5, 120)
    assert restarted.entry(ref.id).last.by == "watch"
    assert "3 of 3" in restarted.entry(ref.id).last.reason


def test_a_rule_in_force_that_is_imported_keeps_its_past_and_its_trials(serve: Serve) -> None:
    service, ref = imported(serve, strikes=2)
    service.pin(ref.id, at=50)
    service.import_rules([ref], at=100)
    assert [turn.by for turn in service.entry(ref.id).history] == ["import", "hand", "import"]
    assert service.entry(ref.id).rule.state == "live"
    strike(service, ref, 2, 110)
    assert service.entry(ref.id).last.by == "watch"
    assert "3 of 3" in service.entry(ref.id).last.reason


def test_what_is_retired_by_a_file_does_not_come_back(serve: Serve) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    service.import_rules([replace(sid_rule(), state="retired")], at=2)
    service.observe(duplicates(9))
    service.learn_due(now=3)
    assert list(service.rules()) == []


def test_a_rule_changed_in_its_file_takes_the_place_of_what_it_was_made_from(serve: Serve, log: Log) -> None:
    service, rule = serve(), sid_rule()
    service.import_rules([rule], at=1)
    changed = replace(rule, context=(Condition(Key("sid"), "is", ("7",)),))
    (entered,) = service.import_rules([changed], at=2)
    assert entered.id == changed.made_id != rule.id
    assert [live.context for live in log.sets[-1].rules] == [changed.context]
    assert log.sets[-1].retired == ((rule.id, f"replaced by {entered.id}"),)
    assert service.import_rules([changed], at=3) == [entered]
    assert len(log.sets) == 2
    # The file is changed once more, and back: of what it said before nothing stays.
    again = replace(rule, context=(Condition(Key("sid"), "is", ("8",)),))
    service.import_rules([again], at=4)
    assert [live.context for live in log.sets[-1].rules] == [again.context]
    service.import_rules([rule], at=5)
    assert [(live.id, live.context) for live in log.sets[-1].rules] == [(rule.id, rule.context)]
    service.import_rules([changed], at=6)
    assert [live.id for live in log.sets[-1].rules] == [entered.id]


def test_a_rule_copied_to_another_host_leaves_that_of_the_first(serve: Serve) -> None:
    service, rule = serve(), sid_rule()
    service.import_rules([rule], at=1)
    (copied,) = service.import_rules([replace(rule, host="other.org")], at=2)
    assert {known.id: known.host for known in service.rules()} == {rule.id: HOST, copied.id: "other.org"}
    service.retire(rule.id, at=3)
    assert [known.host for known in service.rules()] == ["other.org"]


def test_a_file_imported_twice_changes_nothing(serve: Serve, log: Log) -> None:
    service, rule = serve(), sid_rule()
    assert service.import_rules([rule], at=1) == service.import_rules([rule], at=2)
    assert len(service.entry(rule.id).history) == 1
    assert len(log.sets) == 1


@pytest.mark.parametrize("change", ["retire", "pin", "unskip", "import"])
def test_who_tries_again_after_the_log_was_away_tells_the_crawls(serve: Serve, log: Log, change: str) -> None:
    service, rule = serve(), sid_rule()
    service.import_rules([rule], at=1)
    ref = sid_rule(key=Key("ref"))
    changes = {
        "retire": lambda worker: worker.retire(rule.id, 2),
        "pin": lambda worker: worker.pin(rule.id, 2),
        "unskip": lambda worker: worker.unskip(f"http://{HOST}/1", at=2),
        "import": lambda worker: worker.import_rules([ref], at=2),
    }

    def away() -> None:
        raise Unreachable("no Kafka at h:9092")

    cut_off = RuleService(service.book, lambda topic, key, value: None, flush=away)
    with pytest.raises(Unreachable):
        changes[change](cut_off)
    told = len(log.sets)
    changes[change](service)
    assert len(log.sets) == told + 1
    assert log.sets[-1] == service.book.load(HOST).rules
