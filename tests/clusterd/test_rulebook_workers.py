"""Workers over one rule book: that share, die, repeat, run out of memory, room or time."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import count
from weakref import WeakSet

import pytest
import redis
from clusterd.learning.rulebook import recall
from clusterd.learning.rulebook import service as rule_service
from clusterd.learning.rulebook.recall import LEAST_PAGES
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_consumer.redis_lines import Line
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Sketch

from tests.clusterd.made_up_rules import (
    HOST,
    Log,
    Once,
    Serve,
    SidLearner,
    contradiction,
    duplicates,
    offered_set,
    sid_rule,
    sketch,
)


def test_a_host_is_learned_by_one_worker_and_taken_over_from_one_that_leaves(serve: Serve) -> None:
    one, two = serve(), serve()
    one.observe(duplicates(2))
    one.learn_due(now=1)
    two.observe(duplicates(3))
    assert two.learn_due(now=2) == []
    one.close()
    assert [rules.version for rules in two.learn_due(now=3)] == [3]


def test_a_restart_rebuilds_the_learner_and_says_nothing_new(serve: Serve, log: Log) -> None:
    one = serve()
    one.observe(duplicates())
    one.learn_due(now=1)
    one.close()
    two = serve()
    two.observe([sketch(f"http://{HOST}/new", 55)])
    assert two.learn_due(now=2) == []
    assert len(log.sets) == 1
    assert [(rule.support, rule.since) for rule in two.rules()] == [(3, 1)]


def test_a_block_of_evidence_that_cannot_be_read_is_passed_over(
    serve: Serve, log: Log, redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a copy from before the first release, or damaged: its host learned nothing any more."""
    one = serve()
    one.observe(duplicates(2))
    one.learn_due(now=1)
    one.close()
    with redis.Redis.from_url(redis_url) as client:
        (key,) = client.keys(f"{prefix}rb:*:log")
        client.lpush(key, b"\x06of before", b"")
    two = serve()
    two.observe(duplicates(3))
    two.learn_due(now=2)
    assert [(rule.id, rule.support) for rule in two.rules()] == [(sid_rule().id, 3)]
    assert "could not be learned" not in caplog.text
    assert f"that {HOST} learns from is passed over: not a block of evidence of version 1" in caplog.text


def test_a_set_that_was_saved_but_not_announced_is_announced_by_the_next(serve: Serve, book: RuleBook) -> None:
    # Given a worker that dies between saving and publishing
    def die(topic: str, key: bytes, value: bytes) -> None:
        raise Unreachable("the log is gone")

    dying = RuleService(book, die, make_learner=SidLearner)
    offer, book.offer = book.offer, lambda rules: None  # type: ignore[method-assign]
    dying.observe(duplicates())
    with pytest.raises(Unreachable):
        dying.learn_due(now=1)
    book.offer = offer  # type: ignore[method-assign]
    dying.close()
    # When another goes on, then what was saved is published
    log = Log()
    RuleService(book, log.publish, make_learner=SidLearner).learn_due(now=2)
    assert [rules.version for rules in log.sets] == [1]
    offered = offered_set(book, HOST)
    assert offered is not None
    assert offered.version == 1


def test_a_set_that_did_not_arrive_is_published_again(book: RuleBook, log: Log) -> None:
    # Given a worker that dies after it has published a set, before that has arrived
    def die() -> None:
        raise Unreachable("the log has not taken it")

    dying = RuleService(book, lambda topic, key, value: None, flush=die, make_learner=SidLearner)
    dying.observe(duplicates())
    with pytest.raises(Unreachable):
        dying.learn_due(now=1)
    dying.close()
    # When another goes on, then it is published again, once
    following = RuleService(book, log.publish, make_learner=SidLearner)
    following.learn_due(now=2)
    following.observe([sketch(f"http://{HOST}/new", 55)])
    following.learn_due(now=3)
    assert [rules.version for rules in log.sets] == [1]


def test_the_log_ends_with_the_latest_version_whoever_is_slower(serve: Serve, book: RuleBook, log: Log) -> None:
    # Given a worker whose set arrives only after an operator's later one
    quick = serve()

    def slow(topic: str, key: bytes, value: bytes) -> None:
        if not log.sets:
            quick.pin(sid_rule().id, at=2)
        log.publish(topic, key, value)

    worker = RuleService(book, slow, make_learner=SidLearner)
    worker.observe(duplicates())
    worker.learn_due(now=1)
    # Then the later one is published once more behind it, and stays with those that read from the beginning
    assert [rules.version for rules in log.sets] == [2, 1, 2]
    assert (book.announced(HOST), book.version(HOST)) == (2, 2)
    worker.close()


def test_a_lesson_longer_than_its_lease_takes_off_no_page(book: RuleBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both took the pages of the lesson off the list, and with them pages that came since and that neither had seen."""
    another = RuleService(book, make_learner=SidLearner)
    monkeypatch.setattr(rule_service, "LEASE_SECONDS", 0.1)

    class Slow(SidLearner):
        def learn(self, at: int) -> RuleSet | None:
            time.sleep(0.2)
            another.learn_due(now=1)
            another.observe(duplicates(5))
            return super().learn(at)

    service = RuleService(book, make_learner=Slow)
    service.observe(duplicates(3))
    service.learn_due(now=2)
    assert book.changed()[HOST] >= len(duplicates(5))


def test_what_could_not_be_saved_is_learned_again(serve: Serve, book: RuleBook, log: Log) -> None:
    service = serve(Once)
    service.observe(duplicates())
    save, calls = book.save, []

    def unreachable(state: object, before: object) -> bool:
        calls.append(state)
        raise Unreachable("the store is away")

    book.save = unreachable  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        service.learn_due(now=1)
    book.save = save  # type: ignore[method-assign]
    assert [rules.version for rules in service.learn_due(now=2)] == [2]
    assert len(calls) == 1


def test_versions_rise_over_a_store_that_was_lost(serve: Serve, log: Log, another_book: RuleBook) -> None:
    service = serve()
    service.import_rules([sid_rule()], at=5)
    service.pin(sid_rule().id, at=5)
    assert [rules.version for rules in log.sets] == [5, 6]
    fresh = RuleService(another_book, log.publish, make_learner=SidLearner)
    fresh.import_rules([sid_rule()], at=9)
    assert log.sets[-1].version == 9


@pytest.mark.parametrize("differing", [0, 40])
def test_what_watched_pages_agreed_with_outlives_the_cut_of_the_log(book: RuleBook, differing: int) -> None:
    """Pages that had agreed with a rule spoke against it as soon as what they repeat was cut."""
    service, at = RuleService(book, evidence_limit=1_000), count(1)

    def both(numbers: range) -> list[Sketch]:
        shown = ((n, f"http://{HOST}/item?id={n}&ref={ref}") for n in numbers for ref in "ab")
        return [sketch(url, 100 + n, next(at), crawl="c") for n, url in shown]

    service.observe(both(range(100)))
    service.learn_due(now=1)
    (rule,) = service.rules()
    for start in range(100, 2_000, 100):
        pages = both(range(start, start + 100))
        known, others = pages[::2], pages[1:20:2]
        watched = zip(known, others, strict=False)
        service.observe(known)
        service.observe([replace(one, explored=rule.id, instead_of=page.url) for page, one in watched])
        service.learn_due(now=start)
    assert [one.id for one in service.rules()] == [rule.id]
    for n in range(differing):  # What differs retires it all the same.
        url = f"http://{HOST}/item?id={n}&ref=b"
        service.observe(
            [sketch(url, 9_000 + n, next(at), crawl="c", explored=rule.id, instead_of=url.replace("=b", "=a"))]
        )
    service.learn_due(now=3_000)
    assert [one.id for one in service.rules()] == ([] if differing else [rule.id])


@pytest.mark.parametrize("differing", [0, 40])
def test_what_was_cut_from_the_log_speaks_against_no_rule(book: RuleBook, differing: int) -> None:
    """A page that repeats one fetched long ago brought something new, as far as the log could tell.

    So did, to the learner, one that repeats such a page, which waited for what was cut.
    """
    at = count(now_ms() - 60_000)
    service = RuleService(book, evidence_limit=1_000)

    def fetched(n: int, ref: str, **explored: str) -> Sketch:
        return sketch(f"http://{HOST}/{n % 100}/item?id={n}&ref={ref}", 100 + n, next(at), crawl="c", **explored)

    def contradicted() -> list[str]:
        reasons = [entry.last.reason for entry in service.entries(every=True)]
        return [reason for reason in reasons if "differed" in reason or "contradicted" in reason]

    service.observe([fetched(n, ref) for n in range(100) for ref in "ab"])
    service.learn_due(now=1)
    rule = next(service.rules()).id
    for start in range(100, 4_000, 200):
        service.observe([fetched(n, "a") for n in range(start, start + 200)])
        if start > 2_000:
            old = [(n, fetched(n, "a").url) for n in range(start - 2_000, start - 1_900, 7)]
            watching = [fetched(n, "b", explored=rule, instead_of=known) for n, known in old]
            again = [fetched(n, "c", explored=rule, instead_of=f"{known[:-1]}b") for n, known in old]
            service.observe([*watching, *again])
        if start % 1_000 == 100:  # Another takes the host over, which knows no more than the log does.
            service.close()
            service = RuleService(book, evidence_limit=1_000)
        service.learn_due(now=start)
        rule = next(service.rules()).id  # It may have a value more by now.
        assert contradicted() == []
    for n in range(5_000, 5_000 + differing):  # What differs from a page that is in the log retires it all the same.
        known = fetched(n, "a")
        other = fetched(n, "b", explored=rule, instead_of=known.url)
        service.observe([known, replace(other, main=fetched(9_000 + n, "a").main)])
    service.learn_due(now=6_000)
    assert bool(contradicted()) == bool(differing)


def test_a_host_that_floods_its_log_keeps_its_counter_evidence_and_harms_no_other(serve: Serve, book: RuleBook) -> None:
    limit = 500
    service = serve(limit=limit)
    service.observe(duplicates(3, host="quiet.org"))
    differing = [sketch(f"http://{HOST}/p{n}?sid=1", 5_000 + n) for n in range(50)]
    service.observe([*differing, contradiction()])
    for start in range(0, 5_000, 100):
        service.observe([sketch(f"http://{HOST}/f?sid={start + n}", 7, at=3) for n in range(100)])
        service.learn_due(now=start)
        assert book.evidence(HOST).total <= limit * 1.25 + 100
    kept = {page.url for page in book.evidence(HOST).pages}
    assert {page.url for page in differing} <= kept
    assert contradiction().url in kept
    assert len(book.evidence("quiet.org").pages) == 6
    assert [rule.host for rule in service.rules()] == ["quiet.org"]


def test_a_slow_crawl_does_not_leave_a_block_a_page(
    serve: Serve, book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd.learning.rulebook.service.LOOSE_BLOCKS", 20)
    learners: list[SidLearner] = []

    def make(host: str) -> SidLearner:
        learners.append(SidLearner(host))
        return learners[-1]

    service = serve(make)
    for number in range(100):
        service.observe([sketch(f"http://{HOST}/{number}", number)])
        service.learn_due(now=number)
    assert book.evidence(HOST).blocks <= 22
    assert len(book.evidence(HOST).pages) == 100
    assert len(learners) == 1
    assert len(learners[0].pages) == 100


def test_one_host_that_cannot_be_learned_does_not_keep_the_others(
    serve: Serve, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    class Tripping(SidLearner):
        def learn(self, at: int) -> RuleSet | None:
            if self.host == HOST:
                raise ZeroDivisionError
            return super().learn(at)

    service = serve(Tripping)
    service.observe(duplicates() + duplicates(host="other.org"))
    service.learn_due(now=1)
    assert [rules.host for rules in log.sets] == ["other.org"]
    assert HOST in caplog.text


def test_what_does_not_fit_into_the_time_given_waits_for_the_next_call(serve: Serve) -> None:
    service = serve()
    hosts = [f"h{n}.org" for n in range(4)]
    service.observe([page for host in hosts for page in duplicates(host=host)])
    seen = set()
    for _ in range(2 * len(hosts)):  # every other call is for a host whose learner is in memory
        seen |= {rules.host for rules in service.learn_due(now=1, seconds=0)}
        service.observe(duplicates(4, host=hosts[0]))  # a busy host does not keep the others waiting
    assert seen == set(hosts)


def test_learners_that_do_not_fit_make_room_and_come_back(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(host: str) -> SidLearner:
        made.append(host)
        return SidLearner(host)

    service = serve(make)
    monkeypatch.setattr(recall, "PAGES_LIMIT", 100)
    other = serve()
    service.observe(duplicates(host="a.org") + duplicates(host="b.org") + duplicates(host="c.org"))
    service.learn_due(now=1)
    # The learner looked at longest ago went, and with it the lease; its rules are as they were.
    service.observe(duplicates(4, host="a.org"))
    assert other.learn_due(now=2) == []
    assert [rule.support for rule in service.rules("a.org")] == [4]
    service.observe(duplicates(5, host="c.org"))
    service.learn_due(now=3)
    assert [rule.support for rule in service.rules("c.org")] == [5]
    assert made == ["a.org", "b.org", "c.org"]


def test_a_command_that_learns_all_that_is_due_holds_few_learners(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: WeakSet[SidLearner] = WeakSet()
    most = 0

    def make(host: str) -> SidLearner:
        nonlocal most
        learner = SidLearner(host)
        alive.add(learner)
        most = max(most, len(alive))
        return learner

    monkeypatch.setattr(rule_service, "SHRINK_SECONDS", 0.0)
    service = RuleService(book, make_learner=make)
    monkeypatch.setattr(recall, "PAGES_LIMIT", 3 * LEAST_PAGES)
    service.observe([sketch(f"http://host{number}.example/", number, 1) for number in range(20)])
    service.learn_due(now=2, seconds=math.inf)
    assert most <= 4
    assert book.changed() == {}
    assert sum(book.lease(f"host{number}.example", "another", 1) for number in range(20)) == 17
    service.close()


def test_a_lesson_asks_the_store_little_of_hosts_of_few_pages(book: RuleBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a broad crawl has by the thousands: the lease, the evidence, the list of those changed, and now and then."""
    service = RuleService(book)
    sent = count()
    for way, name in ((redis.Connection, "send_packed_command"), (Line, "send")):
        send = getattr(way, name)
        monkeypatch.setattr(way, name, lambda *args, send=send, **kwargs: (next(sent), send(*args, **kwargs))[1])
    for fetched_at in (1, 2):  # the learners are made, and in memory
        service.observe([sketch(f"http://host{n}.example/{fetched_at}", n, fetched_at) for n in range(100)])
        before = next(sent)
        service.learn_due(now=2, seconds=math.inf)
        assert 300 < next(sent) - before < 320
    assert book.changed() == {}
    service.close()


def test_rules_of_mirrors_are_read_where_somebody_has_changed_them(
    book: RuleBook, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with each page that comes: to read hundreds of rules takes a tenth of a second."""
    loads, load, numbers = [], book.load, count()
    monkeypatch.setattr(book, "load", lambda host: (loads.append(host), load(host))[1])
    service, operator = RuleService(book, log.publish), RuleService(book)
    operator.import_rules([replace(sid_rule(), spans=True)], at=1)

    def learn() -> list[str]:
        service.observe([sketch(f"http://{www}{HOST}/", next(numbers), next(numbers)) for www in ("", "www.")])
        loads.clear()
        service.learn_due(now=3, seconds=math.inf)
        return loads

    assert learn()
    assert learn() == []
    # Given an operator whose command ended before it could tell anybody
    monkeypatch.setattr(operator.sets, "announce", lambda rules: None)
    operator.retire(sid_rule().id, at=2)
    assert learn()
    assert [rules.version for rules in log.sets] == [2]
    assert learn() == []
    service.close()
