"""The rule service: evidence in, rule sets out; workers that share, die, repeat; operators that interfere."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from clusterd.learning.contract import HostLearner, Page
from clusterd.learning.rulebook.contract import UNSKIP_LIMIT, RuleBook
from clusterd.learning.rulebook.memory import MemoryRuleBook
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_consumer.redis_connection import connect
from clusterd_crawler import topics
from clusterd_crawler.errors import NotFound, Unreachable, WrongInput
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.sketch import Sketch, StreamSketch

HOST = "example.com"
SID = Key("sid")


def sid_rule(host: str = HOST, key: Key = SID) -> Rule:
    context, edits = (Condition(key, "any"),), (Edit(key, "delete"),)
    return Rule(rule_id(host, context, edits), host, context, edits)


class SidLearner:
    """The least learner that is one: drops ``sid`` once three pages agree, until a watched page differs."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.pages: list[Page] = []
        self.live = False
        self.said: bool | None = False
        self.barred: set[str] = set()

    def observe(self, pages: Iterable[Page]) -> None:
        self.pages += pages

    def due(self) -> bool:
        return bool(self.pages)

    def learn(self, at: int) -> RuleSet | None:
        content = {page.url: page.content for page in self.pages}
        bare = [(page.url.partition("?sid=")[0], page.content) for page in self.pages if "sid=" in page.url]
        agreed = sum(content.get(url) == seen for url, seen in bare)
        failed = any(content.get(page.instead_of) != page.content for page in self.pages if page.explored)
        rule = replace(sid_rule(self.host), support=agreed)
        before, self.live = self.live, agreed >= 3 and not failed and rule.id not in self.barred
        gone = ((rule.id, "a watched page differed"),) if before and not self.live else ()
        return RuleSet(self.host, 1, (rule,) if self.live else (), gone)

    def retire(self, rule: str, reason: str, at: int) -> RuleSet:
        if not self.live:
            raise NotFound(rule)
        self.barred.add(rule)
        self.live = False
        return RuleSet(self.host, 1, ())

    def pin(self, rule: str, at: int) -> RuleSet:
        return RuleSet(self.host, 1, (replace(sid_rule(self.host), state="pinned"),))


class Log:
    """Where rule sets are published to."""

    def __init__(self) -> None:
        self.sets: list[RuleSet] = []

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        rules = RuleSet.from_json(json.loads(value))
        assert topic == topics.RULES
        assert key == rules.host.encode()
        self.sets.append(rules)


def sketch(url: str, text: int, at: int = 1, **changes: object) -> Sketch:
    stream = StreamSketch(b"", 0, 100, text)
    made = Sketch(url, at, 1, text, stream, stream, text)
    return replace(made, **changes)  # type: ignore[arg-type]


def duplicates(count: int = 3, host: str = HOST, at: int = 1) -> list[Sketch]:
    pages = []
    for number in range(count):
        pages.append(sketch(f"http://{host}/{number}", 10 + number, at))
        pages.append(sketch(f"http://{host}/{number}?sid=x{number}", 10 + number, at + 1))
    return pages


def contradiction(number: int = 0, at: int = 9) -> Sketch:
    known, rule = f"http://{HOST}/{number}", sid_rule().id
    return sketch(f"{known}?sid=other", 999, at, explored=rule, instead_of=known)


@pytest.fixture(params=["memory", "redis"])
def book(request: pytest.FixtureRequest, prefix: str) -> Iterator[RuleBook]:
    if request.param == "memory":
        yield MemoryRuleBook()
        return
    client = connect(request.getfixturevalue("redis_url"))
    yield RedisRuleBook(client, prefix)
    client.close()


@pytest.fixture
def log() -> Log:
    return Log()


Serve = Callable[..., RuleService]


@pytest.fixture
def serve(book: RuleBook, log: Log) -> Iterator[Serve]:
    """Return a maker of workers over one book."""
    workers: list[RuleService] = []

    def make(make_learner: Callable[[str], HostLearner] = SidLearner, limit: int = 1000) -> RuleService:
        workers.append(RuleService(book, log.publish, make_learner=make_learner, evidence_limit=limit))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


def test_duplicates_become_a_published_rule(serve: Serve, book: RuleBook, log: Log) -> None:
    service = serve()
    service.observe(duplicates())
    learned = service.learn_due(now=100)
    assert [rules.version for rules in learned] == [100]
    assert log.sets == learned
    assert book.offered(HOST) == learned[0]
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


def test_an_older_version_that_comes_late_is_not_shown(serve: Serve, book: RuleBook) -> None:
    service = serve()
    service.observe(duplicates())
    service.learn_due(now=1)
    service.observe([sketch(f"http://{HOST}/0?sid=x0", 77, at=1)])
    service.learn_due(now=2)
    assert [rule.support for rule in service.rules()] == [3]


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
    offered = book.offered(HOST)
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
    service.observe([contradiction()])
    service.learn_due(now=3)
    assert [rule.state for rule in log.sets[-1].rules] == ["pinned"]
    service.retire(sid_rule().id, at=4)
    assert log.sets[-1].rules == ()


def test_what_could_not_be_saved_is_learned_again(serve: Serve, book: RuleBook, log: Log) -> None:
    service = serve()
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


def test_versions_rise_over_a_store_that_was_lost(serve: Serve, log: Log) -> None:
    service = serve()
    service.import_rules([sid_rule()], at=5)
    service.pin(sid_rule().id, at=5)
    assert [rules.version for rules in log.sets] == [5, 6]
    fresh = RuleService(MemoryRuleBook(), log.publish, make_learner=SidLearner)
    fresh.import_rules([sid_rule()], at=9)
    assert log.sets[-1].version == 9


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
    seen = []
    for _ in hosts:
        seen += [rules.host for rules in service.learn_due(now=1, seconds=0)]
        service.observe(duplicates(4, host=hosts[0]))  # a busy host does not keep the others waiting
    assert sorted(seen) == hosts


def test_learners_that_do_not_fit_make_room_and_come_back(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(host: str) -> SidLearner:
        made.append(host)
        return SidLearner(host)

    service = serve(make)
    monkeypatch.setattr(service._recalls, "_limit", 100)
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


def test_a_crawl_is_not_sent_the_evidence(serve: Serve, log: Log) -> None:
    service = serve()
    service.import_rules([replace(sid_rule(), evidence=(("a", "b", True),))], at=1)
    assert [rule.evidence for rule in log.sets[0].rules] == [()]
    assert [rule.evidence for rule in service.rules()] == [(("a", "b", True),)]


def test_changes_at_the_same_time_are_all_kept(prefix: str, redis_url: str) -> None:
    rules = [sid_rule(key=Key(f"k{n}")) for n in range(8)]
    log = Log()

    @contextmanager
    def worker() -> Iterator[RuleService]:
        client = connect(redis_url)
        yield RuleService(RedisRuleBook(client, prefix), log.publish, make_learner=SidLearner)
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
        offered = service.book.offered(HOST)
    assert offered is not None
    assert offered.version == 1 + len(rules)
    assert sorted(rules.version for rules in log.sets) == list(range(1, 2 + len(rules)))
