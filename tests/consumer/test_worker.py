"""The worker: nothing dropped, nothing stopped by one bad page, replay from what the store remembers."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
import redis
from clusterd_consumer.dead_letters import DeadLetters, counted, revive
from clusterd_consumer.insisting import StopFlag
from clusterd_consumer.transport.contract import Position, Transport
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_consumer.transport.redis_streams import RedisStreamTransport
from clusterd_consumer.worker import Batch, Worker
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import Failure, SkipReport, encode
from clusterd_crawler.sketch import Sketch, StreamSketch

DEAD_AFTER = 1.0
STREAM = StreamSketch(values=(5).to_bytes(8, "little"), shingles=1, tokens=3, text=7)


def page(n: int, url: str = "") -> Sketch:
    return Sketch(url or f"http://h/{n}", 1000 + n, 1, n, STREAM, STREAM, n)


@dataclass
class Ledger:
    """A store that keeps what it was told, and can fail, forget and refuse as real ones do."""

    pages: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    refuses: str = "no such page"
    fail_next: int = 0
    applied: int = 0
    before_apply: Callable[[], None] = lambda: None

    def apply(self, sketches: Sequence[Sketch], position: Position | None = None) -> list[bool]:
        self.before_apply()
        if self.fail_next:
            self.fail_next -= 1
            raise Unreachable("the ledger is away")
        if any(sketch.url == self.refuses for sketch in sketches):
            raise ValueError("this page cannot be applied")
        outcomes = [self.pages.get(sketch.url) != sketch.fetched_at for sketch in sketches]
        self.pages.update({sketch.url: sketch.fetched_at for sketch in sketches})
        self.held.update(position or {})
        self.applied += len(sketches)
        return outcomes

    def position(self) -> dict[str, str]:
        return dict(self.held)

    def went_back(self) -> bool:
        return False

    def snapshot(self) -> Ledger:
        return copy.deepcopy(self)

    def restore(self, before: Ledger) -> None:
        self.pages, self.held = dict(before.pages), dict(before.held)


@dataclass
class Bench:
    """One transport's log with a ledger, and the workers between them."""

    connect: Callable[[Ledger], Transport]
    client: redis.Redis
    prefix: str
    ledger: Ledger = field(default_factory=Ledger)
    handed: list[tuple[str, bool]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    opened: list[Transport] = field(default_factory=list)

    def transport(self) -> Transport:
        self.opened.append(self.connect(self.ledger))
        return self.opened[-1]

    def worker(self, hand_on: Callable[[Batch, Sequence[bool]], None] | None = None, batch: int = 10) -> Worker[bool]:
        transport = self.transport()
        dead = DeadLetters(transport, self.client, self.prefix)
        return Worker(transport, self.ledger, hand_on or self.note, dead, batch=batch, poll_timeout=0.1)

    def note(self, batch: Batch, outcomes: Sequence[bool]) -> None:
        assert len(outcomes) == len(batch.sketches) == len(batch.records)
        self.handed += [
            (sketch.url, record.again) for sketch, record in zip(batch.sketches, batch.records, strict=True)
        ]
        self.batches.append(batch)

    def publish(self, *messages: bytes) -> None:
        transport = self.transport()
        for n, message in enumerate(messages):
            transport.publish(topics.SKETCHES, str(n).encode(), message)
        transport.flush(10)

    def dead_letters(self) -> list[bytes]:
        entries = self.client.xrange(topics.stream(self.prefix, topics.DEAD_LETTERS))
        return [fields[b"v"] for _, fields in entries]


def bench_on_redis(redis_url: str, prefix: str) -> Bench:
    client = redis.Redis.from_url(redis_url)
    return Bench(lambda _: RedisStreamTransport(client, prefix=prefix, claim_after=DEAD_AFTER), client, prefix)


@pytest.fixture
def bench(redis_url: str, prefix: str) -> Iterator[Bench]:
    made = bench_on_redis(redis_url, prefix)
    yield made
    made.client.close()


@pytest.fixture
def kafka_bench(kafka_bootstrap: str, redis_url: str, prefix: str) -> Iterator[Bench]:
    name = prefix.rstrip(":")

    def connect(ledger: Ledger) -> Transport:
        return KafkaTransport(
            kafka_bootstrap,
            prefix=f"{name}-",
            group=name,
            session_timeout=DEAD_AFTER,
            partitions=2,
            remembered=ledger.position,
        )

    with redis.Redis.from_url(redis_url) as client:
        made = Bench(connect, client, prefix)
        yield made
        for transport in made.opened:
            transport.close()


@pytest.fixture(params=["bench", pytest.param("kafka_bench", marks=pytest.mark.kafka)])
def any_bench(request: pytest.FixtureRequest) -> Bench:
    bench: Bench = request.getfixturevalue(request.param)
    return bench


def work_until(worker: Worker[bool], done: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        worker.step()
    assert done()


def test_every_page_is_applied_and_handed_on(any_bench: Bench) -> None:
    any_bench.publish(*(encode(page(n)) for n in range(35)))
    worker = any_bench.worker()
    work_until(worker, lambda: len(any_bench.handed) >= 35)
    assert sorted(any_bench.ledger.pages) == sorted(f"http://h/{n}" for n in range(35))
    assert len(any_bench.handed) == 35
    assert worker.messages == 35
    worker.leave()


def test_skips_and_failures_are_handed_on_with_their_batch(bench: Bench) -> None:
    skip = SkipReport("http://h/a?s=1", "r1", "key", "http://h/a", 5)
    failure = Failure("http://h/b", 6, 404, "not found")
    bench.publish(encode(skip), encode(page(1)), encode(failure))
    work_until(bench.worker(), lambda: bool(bench.batches))
    assert bench.batches[0].skips == [skip]
    assert bench.batches[0].failures == [failure]


@pytest.mark.parametrize("bad", [b"", b"\xff\xfe", b'{"url": "http://h/"}', encode(page(1))[:-1], b"\xc1\x09rest"])
def test_what_cannot_be_decoded_becomes_a_dead_letter_with_its_bytes(bench: Bench, bad: bytes) -> None:
    bench.publish(encode(page(1)), bad, encode(page(2)))
    worker = bench.worker()
    work_until(worker, lambda: len(bench.handed) == 2)
    (letter,) = bench.dead_letters()
    key, value, reason = revive(letter)
    assert (key, value) == (b"1", bad)
    assert reason
    assert json.loads(letter)["offset"]
    assert worker.dead_letters == counted(bench.client, bench.prefix) == 1


def test_a_page_that_cannot_be_applied_is_buried_alone(bench: Bench) -> None:
    bench.ledger.refuses = "http://h/bad"
    bad = encode(page(99, "http://h/bad"))
    bench.publish(encode(page(1)), encode(page(2)), bad, encode(page(3)))
    work_until(bench.worker(), lambda: len(bench.handed) == 3)
    assert sorted(bench.ledger.pages) == ["http://h/1", "http://h/2", "http://h/3"]
    (letter,) = bench.dead_letters()
    assert revive(letter)[1] == bad
    assert "this page cannot be applied" in revive(letter)[2]


def test_a_store_that_is_away_is_asked_until_it_is_back(bench: Bench) -> None:
    troubles: list[str] = []
    bench.publish(*(encode(page(n)) for n in range(5)))
    bench.ledger.fail_next = 4
    transport = bench.transport()
    worker = Worker(
        transport, bench.ledger, bench.note, DeadLetters(transport), poll_timeout=0.1, on_trouble=troubles.append
    )
    work_until(worker, lambda: len(bench.handed) == 5)
    assert troubles == ["the ledger is away"] * 4 + [""]
    assert bench.dead_letters() == []


def test_pages_that_a_lost_store_may_have_applied_are_handed_on_as_such(bench: Bench) -> None:
    worker = bench.worker()
    bench.publish(encode(page(1)))
    worker.step()
    bench.ledger.fail_next = 1
    bench.publish(encode(page(2)))
    work_until(worker, lambda: len(bench.handed) == 2)
    assert bench.handed == [(page(1).url, False), (page(2).url, True)]


def test_stopping_ends_the_wait_for_a_store_and_loses_nothing(bench: Bench) -> None:
    bench.publish(*(encode(page(n)) for n in range(5)))
    bench.ledger.fail_next = 1_000_000
    asked = StopFlag()
    transport = bench.transport()
    worker = Worker(transport, bench.ledger, bench.note, DeadLetters(transport), poll_timeout=0.1, stopping=asked)
    thread = threading.Thread(target=worker.run)
    thread.start()
    time.sleep(0.5)
    asked.set()
    thread.join(5)
    assert not thread.is_alive()
    bench.ledger.fail_next = 0
    work_until(bench.worker(), lambda: len(bench.handed) == 5)


def test_the_batch_in_hand_is_finished_when_asked_to_stop(bench: Bench) -> None:
    bench.publish(*(encode(page(n)) for n in range(8)))
    worker = bench.worker()
    bench.ledger.before_apply = worker.stop
    worker.run()
    assert len(bench.handed) == 8
    assert bench.transport().backlog() == 0


def test_who_stops_leaves_the_group_and_tells_the_store_how_far_it_came(any_bench: Bench) -> None:
    any_bench.publish(*(encode(page(n)) for n in range(8)))
    worker = any_bench.worker()
    transport = any_bench.opened[-1]
    worker.run(lambda: worker.stop() if len(any_bench.handed) == 8 else None)
    assert transport.assigned() == []
    if transport.outlives_store:
        assert sum(map(int, any_bench.ledger.held.values())) == 8


def test_what_was_applied_but_not_handed_on_is_handed_on_after_a_crash(any_bench: Bench) -> None:
    class Crash(Exception):
        pass

    def crash(batch: Batch, outcomes: Sequence[bool]) -> None:
        raise Crash

    any_bench.publish(*(encode(page(n)) for n in range(3)))
    first = any_bench.worker(crash, batch=10)
    with pytest.raises(Crash):
        work_until(first, lambda: False)
    assert any_bench.ledger.pages
    any_bench.opened[-1].close()
    work_until(any_bench.worker(), lambda: len(any_bench.handed) >= 3)
    assert {url for url, _ in any_bench.handed} == {"http://h/0", "http://h/1", "http://h/2"}
    assert any(again for _, again in any_bench.handed)


@pytest.mark.kafka
def test_all_that_a_dead_worker_had_in_hand_is_handed_on_as_such_in_however_many_polls(kafka_bench: Bench) -> None:
    def crash(batch: Batch, outcomes: Sequence[bool]) -> None:
        raise KeyboardInterrupt

    kafka_bench.publish(*(encode(page(n)) for n in range(30)))
    first = kafka_bench.worker(crash, batch=30)
    with pytest.raises(KeyboardInterrupt):
        work_until(first, lambda: False)
    applied = set(kafka_bench.ledger.pages)
    assert len(applied) > 3
    kafka_bench.opened[-1].close()
    work_until(kafka_bench.worker(batch=3), lambda: len(kafka_bench.handed) >= 30)
    assert applied <= {url for url, again in kafka_bench.handed if again}


@pytest.mark.kafka
def test_a_store_that_is_back_without_its_latest_state_is_no_trouble_any_more(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(10)))
    troubles: list[str] = []
    transport = kafka_bench.transport()
    dead = DeadLetters(transport, kafka_bench.client, kafka_bench.prefix)
    worker = Worker(transport, kafka_bench.ledger, kafka_bench.note, dead, poll_timeout=0.1, on_trouble=troubles.append)
    past = kafka_bench.ledger.snapshot()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 10)
    work_until(worker, lambda: worker.step() == 0)
    asked: list[int] = []

    def position() -> dict[str, str]:
        asked.append(1)
        if len(asked) < 3:
            raise Unreachable("the ledger is away")
        return dict(kafka_bench.ledger.held)

    kafka_bench.ledger.position = position  # type: ignore[method-assign]
    kafka_bench.ledger.restore(past)
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 10)
    assert troubles[0] == "the ledger is away"
    assert troubles[-1] == ""
    worker.leave()


@pytest.mark.kafka
def test_a_store_that_comes_back_from_the_past_is_caught_up_by_replay(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) >= 20)
    past = kafka_bench.ledger.snapshot()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 40)
    kafka_bench.ledger.restore(past)
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 40)
    worker.leave()


@pytest.mark.kafka
def test_a_store_that_is_set_back_while_it_is_away_is_not_told_a_later_position(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    ledger = kafka_bench.ledger
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(ledger.pages) >= 20)
    past = ledger.snapshot()
    work_until(worker, lambda: len(ledger.pages) >= 30)

    def crash_once() -> None:
        ledger.before_apply = lambda: None
        ledger.fail_next = 2
        ledger.restore(past)

    ledger.before_apply = crash_once
    work_until(worker, lambda: len(ledger.pages) == 40)
    worker.leave()


@pytest.mark.kafka
def test_a_store_that_is_set_back_while_nothing_arrives_is_caught_up(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(20)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) >= 10)
    past = kafka_bench.ledger.snapshot()
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    kafka_bench.ledger.restore(past)
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 20)
    worker.leave()


@pytest.mark.kafka
def test_a_store_that_is_set_back_before_a_new_worker_has_told_it_anything_is_caught_up(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(20)))
    before = kafka_bench.worker()
    work_until(before, lambda: len(kafka_bench.ledger.pages) >= 10)
    past = kafka_bench.ledger.snapshot()
    work_until(before, lambda: kafka_bench.transport().backlog() == 0)
    before.leave()
    worker = kafka_bench.worker()
    transport = kafka_bench.opened[-1]
    work_until(worker, lambda: len(transport.assigned()) == 2)
    for _ in range(10):  # the group has settled, nothing is unread
        assert worker.step() == 0
    kafka_bench.ledger.restore(past)
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 20)
    worker.leave()


@pytest.mark.kafka
def test_a_worker_whose_partitions_others_took_says_so_and_goes_on_where_they_are(
    kafka_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(10)))
    worker, ledger = kafka_bench.worker(), kafka_bench.ledger
    work_until(worker, lambda: len(ledger.pages) == 10)
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    told = dict(ledger.held)
    ledger.held.update({partition: str(int(offset) + 3) for partition, offset in told.items()})
    worker.step()
    assert "others have worked on these partitions meanwhile" in caplog.text
    assert "came back" not in caplog.text
    kafka_bench.publish(*(encode(page(n)) for n in range(10, 30)))
    work_until(worker, lambda: len(ledger.pages) >= 30 - 3 * len(told))
    assert all(int(ledger.held[partition]) >= int(offset) + 3 for partition, offset in told.items())
    worker.leave()


@pytest.mark.kafka
def test_an_empty_store_reads_the_whole_log_whatever_the_group_committed(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(10)))
    first = kafka_bench.worker()
    work_until(first, lambda: len(kafka_bench.ledger.pages) == 10)
    first.leave()
    kafka_bench.ledger.restore(Ledger())
    work_until(kafka_bench.worker(), lambda: len(kafka_bench.ledger.pages) == 10)


@pytest.mark.kafka
def test_the_position_catches_up_when_nothing_arrives(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(6)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.handed) == 6)
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    worker.leave()
