"""The worker: nothing dropped, nothing stopped by one bad page, replay of what a dead one had in hand."""

from __future__ import annotations

import json
import logging
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest
import redis
from clusterd_consumer.dead_letters import LONGEST, DeadLetters, counted
from clusterd_consumer.insisting import Insisting, StopFlag
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_consumer.transport.kafka_records import records
from clusterd_consumer.worker import Batch, Worker
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import Failure, File, Redirect, SkipReport, encode

from tests.consumer.worker_bench import Bench, page, work_until


def test_every_page_is_applied_and_handed_on(any_bench: Bench) -> None:
    any_bench.publish(*(encode(page(n)) for n in range(35)))
    worker = any_bench.worker()
    work_until(worker, lambda: len(any_bench.handed) >= 35)
    assert sorted(any_bench.ledger.pages) == sorted(f"http://h/{n}" for n in range(35))
    assert len(any_bench.handed) == 35
    assert worker.messages == 35
    worker.leave()


def test_what_is_no_page_is_handed_on_with_its_batch(bench: Bench) -> None:
    skip = SkipReport("http://h/a?s=1", "r1", "key", "http://h/a", 5)
    failure = Failure("http://h/b", 6, 404, "not found")
    redirect, file = Redirect("http://h/c", 7, "http://h/d"), File("http://h/e", 8, 9)
    bench.publish(*map(encode, (skip, page(1), failure, redirect, file)))
    work_until(bench.worker(), lambda: bool(bench.batches))
    batch = bench.batches[0]
    assert (batch.skips, batch.failures, batch.redirects, batch.files) == ([skip], [failure], [redirect], [file])


@pytest.mark.parametrize("bad", [b"", b"\xff\xfe", b'{"url": "http://h/"}', encode(page(1))[:-1], b"\xc1\x09rest"])
def test_what_cannot_be_decoded_becomes_a_dead_letter_with_its_bytes(bench: Bench, bad: bytes) -> None:
    bench.publish(encode(page(1)), bad, encode(page(2)))
    worker = bench.worker()
    work_until(worker, lambda: len(bench.handed) == 2)
    (letter,) = bench.dead_letters()
    said = json.loads(letter)
    assert (b64decode(said["key_b64"]), b64decode(said["value_b64"]), said["size"]) == (b"1", bad, len(bad))
    assert said["reason"]
    assert said["offset"]
    assert datetime.fromisoformat(said["at"]).tzinfo
    assert worker.dead_letters == counted(bench.client, bench.prefix) == 1


@pytest.mark.kafka
@pytest.mark.parametrize(("key", "value"), [(1, 2_000_000), (1_200_000, 850_000)])
def test_a_dead_letter_of_the_longest_message_is_taken(
    kafka_bench: Bench, kafka_bootstrap: str, prefix: str, key: int, value: int
) -> None:
    """In base64 it is a third longer than what the topic took, and would be dropped."""
    log = kafka_bench.transport()
    log.publish(topics.SKETCHES, b"k" * key, b"\xff" * value)
    log.flush(10)
    worker = kafka_bench.worker()
    work_until(worker, lambda: worker.dead_letters == 1)
    ((kept, letter),) = records(kafka_bootstrap, f"{prefix.rstrip(':')}-{topics.DEAD_LETTERS}")
    said = json.loads(letter)
    assert said["size"] == value
    assert (kept, b64decode(said["key_b64"])) == (b"k" * len(kept), kept)
    assert b64decode(said["value_b64"]) == b"\xff" * min(value, LONGEST)
    worker.leave()


def test_a_page_that_cannot_be_applied_is_buried_alone(bench: Bench) -> None:
    bench.ledger.refuses = "http://h/bad"
    bad = encode(page(99, "http://h/bad"))
    bench.publish(encode(page(1)), encode(page(2)), bad, encode(page(3)))
    work_until(bench.worker(), lambda: len(bench.handed) == 3)
    assert sorted(bench.ledger.pages) == ["http://h/1", "http://h/2", "http://h/3"]
    (letter,) = bench.dead_letters()
    assert b64decode(json.loads(letter)["value_b64"]) == bad
    assert "this page cannot be applied" in json.loads(letter)["reason"]


class AwayAtFirst:
    """A client of a store that does not answer its first commands."""

    def __init__(self, client: redis.Redis, times: int) -> None:
        self._client = client
        self._times = times

    def __getattr__(self, name: str) -> Callable[..., object]:
        def command(*arguments: object) -> object:
            if self._times:
                self._times -= 1
                raise redis.ConnectionError("the store is away")
            answer: object = getattr(self._client, name)(*arguments)
            return answer

        return command


def test_what_is_buried_while_the_store_is_away_is_published_and_counted_once(bench: Bench) -> None:
    bench.publish(b"\xff\xfe", encode(page(1)), b"\xff", b"\xfe")
    transport = bench.transport()
    away: Any = AwayAtFirst(bench.client, 3)
    worker = Worker(
        transport, bench.ledger, bench.note, DeadLetters(transport, away, bench.prefix), batch=10, poll_timeout=0.1
    )
    work_until(worker, lambda: len(bench.handed) == 1)
    assert len(bench.dead_letters()) == 3
    assert worker.dead_letters == counted(bench.client, bench.prefix) == 3


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


def test_however_long_a_store_is_away_it_is_asked_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a daemon would go on as long again after an outage as that took."""
    monkeypatch.setattr("clusterd_consumer.insisting.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("clusterd_consumer.insisting.LONGEST_PAUSE", 0.002)
    left = list(range(20))  # twice as seldom each time, the last would be asked after 17 minutes

    def ask() -> str:
        if left:
            raise Unreachable(f"the store is away {left.pop()} times more")
        return "it is back"

    assert Insisting(level=logging.DEBUG)(ask) == "it is back"


def test_patience_with_a_store_that_stays_away_ends() -> None:
    asked: list[float] = []

    def ask() -> None:
        asked.append(time.monotonic())
        raise Unreachable("the store is away")

    with pytest.raises(Unreachable, match="the store is away"):
        Insisting(patience=0.3)(ask)
    assert len(asked) > 2


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


def test_stopping_while_pages_are_applied_one_by_one_buries_none(bench: Bench) -> None:
    bench.ledger.refuses = "http://h/bad"
    bench.publish(encode(page(1)), encode(page(2)), encode(page(99, "http://h/bad")))
    asked = StopFlag()

    def go_away() -> None:
        """Once the batch as a whole was refused."""
        if bench.ledger.asked > 1:
            bench.ledger.fail_next = 1_000_000
            asked.set()

    bench.ledger.before_apply = go_away
    bench.worker(stopping=asked).run()
    assert bench.dead_letters() == []
    bench.ledger.fail_next, bench.ledger.before_apply = 0, lambda: None
    work_until(bench.worker(), lambda: len(bench.handed) == 2)
    assert len(bench.dead_letters()) == 1


def test_a_command_that_gives_up_while_pages_are_applied_one_by_one_buries_none(bench: Bench) -> None:
    bench.ledger.refuses = "http://h/bad"
    bench.publish(encode(page(1)), encode(page(2)), encode(page(99, "http://h/bad")))

    def go_away() -> None:
        """Once the batch as a whole was refused."""
        if bench.ledger.asked > 1:
            bench.ledger.fail_next = 1_000_000

    bench.ledger.before_apply = go_away
    worker = bench.worker(insist=Insisting(patience=0.1))
    with pytest.raises(Unreachable):
        work_until(worker, lambda: False)
    assert bench.dead_letters() == []


def test_the_batch_in_hand_is_finished_when_asked_to_stop(bench: Bench) -> None:
    bench.publish(*(encode(page(n)) for n in range(8)))
    asked = StopFlag()
    bench.ledger.before_apply = asked.set
    bench.worker(stopping=asked).run()
    assert len(bench.handed) == 8
    assert bench.transport().backlog() == 0


def test_who_stops_leaves_the_group_and_tells_the_store_how_far_it_came(any_bench: Bench) -> None:
    any_bench.publish(*(encode(page(n)) for n in range(8)))
    asked = StopFlag()
    worker = any_bench.worker(stopping=asked)
    transport = any_bench.opened[-1]
    worker.run(lambda: asked.set() if len(any_bench.handed) == 8 else None)
    assert not transport.assigned()
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
def test_a_group_that_changes_lets_no_batch_be_done_again(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(8)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.handed) == 8)
    assert sum(map(int, kafka_bench.ledger.held.values())) < 8  # of the last batch the store knows with the next one
    transport = kafka_bench.opened[-1]
    assert isinstance(transport, KafkaTransport)
    transport._consumer._coordinator.request_rejoin()
    kafka_bench.publish(encode(page(8)))
    work_until(worker, lambda: page(8).url in dict(kafka_bench.handed))
    assert len(kafka_bench.handed) == 9
    worker.leave()


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
    work_until(kafka_bench.worker(batch=3), lambda: len({url for url, _ in kafka_bench.handed}) == 30)
    assert applied <= {url for url, again in kafka_bench.handed if again}


@pytest.mark.kafka
def test_a_store_knows_from_the_first_page_on_that_its_log_is_outside_it(kafka_bench: Bench) -> None:
    """By that it tells, when it comes back without its latest state, whether the log brings anything again."""
    kafka_bench.publish(encode(page(1)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.handed) == 1)
    assert list(kafka_bench.ledger.held.values()) == ["0"]
    worker.leave()


@pytest.mark.kafka
def test_the_position_catches_up_when_nothing_arrives(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(6)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.handed) == 6)
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    worker.leave()
