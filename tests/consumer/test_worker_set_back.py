"""A worker whose store comes back without its latest state, empty, or ahead of it: it reads the log again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.transport.contract import Position, Record
from clusterd_consumer.worker import Worker
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import encode

from tests.consumer.worker_bench import Bench, Ledger, page, work_until


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
def test_a_store_that_comes_back_from_the_past_is_caught_up_by_replay(
    kafka_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) >= 20)
    past = kafka_bench.ledger.snapshot()
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 40)
    assert not kafka_bench.set_backs
    kafka_bench.ledger.restore(past)
    work_until(worker, lambda: len(kafka_bench.ledger.pages) == 40)
    assert kafka_bench.set_backs == 1
    assert "the store may have lost its latest state; reading again from" in caplog.text
    worker.leave()


@pytest.mark.kafka
def test_who_dies_while_it_catches_a_store_up_leaves_the_rest_to_the_next(kafka_bench: Bench) -> None:
    """The store is told how far it was caught up, not how far the worker had been before."""
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    worker, ledger = kafka_bench.worker(batch=4), kafka_bench.ledger
    transport = kafka_bench.opened[-1]
    work_until(worker, lambda: len(ledger.pages) >= 20)
    past = ledger.snapshot()
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    ledger.restore(past)
    work_until(worker, lambda: kafka_bench.set_backs == 1)
    while not worker.step():
        pass
    transport.close()
    work_until(kafka_bench.worker(), lambda: len(ledger.pages) == 40)


@pytest.mark.kafka
@pytest.mark.parametrize("away", [2, 0], ids=["while it is away", "between the look and the write"])
def test_a_store_that_is_set_back_in_the_midst_of_it_is_not_told_a_later_position(
    kafka_bench: Bench, away: int
) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    ledger = kafka_bench.ledger
    worker = kafka_bench.worker()
    work_until(worker, lambda: len(ledger.pages) >= 20)
    past = ledger.snapshot()
    work_until(worker, lambda: len(ledger.pages) >= 30)

    def crash_once() -> None:
        ledger.before_apply = lambda: None
        ledger.fail_next = away
        ledger.restore(past)

    ledger.before_apply = crash_once
    work_until(worker, lambda: len(ledger.pages) == 40)
    assert kafka_bench.set_backs == 1
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
def test_a_worker_without_a_partition_says_that_the_store_went_back(kafka_bench: Bench) -> None:
    """It learns rules all the same, from evidence that may have been lost."""
    workers = [kafka_bench.worker() for _ in range(3)]  # two partitions
    members = kafka_bench.opened[-3:]

    def shared() -> bool:
        for worker in workers:
            worker.step()
        return sorted(len(member.assigned()) for member in members) == [0, 1, 1]

    work_until(workers[0], shared)
    idle = next(worker for worker, member in zip(workers, members, strict=True) if not member.assigned())
    kafka_bench.ledger.gone_back = True
    idle.step()
    assert kafka_bench.set_backs == 1
    for worker in workers:
        worker.leave()


@pytest.mark.kafka
@pytest.mark.parametrize("gone_back", [False, True], ids=["", "of a store that went back before"])
def test_a_worker_whose_partitions_others_took_says_so_and_goes_on_where_they_are(
    kafka_bench: Bench, caplog: pytest.LogCaptureFixture, gone_back: bool
) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(10)))
    worker, ledger = kafka_bench.worker(), kafka_bench.ledger
    work_until(worker, lambda: len(ledger.pages) == 10)
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    told = dict(ledger.held)
    ledger.held.update({partition: str(int(offset) + 3) for partition, offset in told.items()})
    ledger.gone_back = gone_back
    worker.step()
    assert ("others have worked on these partitions meanwhile" in caplog.text) is not gone_back
    assert kafka_bench.set_backs == gone_back
    kafka_bench.publish(*(encode(page(n)) for n in range(10, 30)))
    work_until(worker, lambda: len(ledger.pages) >= 30 - 3 * len(told))
    assert all(int(ledger.held[partition]) >= int(offset) + 3 for partition, offset in told.items())
    worker.leave()


@pytest.mark.kafka
def test_a_worker_that_gave_a_partition_to_another_speaks_of_its_own_alone(
    kafka_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would find that the other one goes on there, say so, and read its own anew."""
    kafka_bench.publish(*(encode(page(n)) for n in range(20)))
    first = kafka_bench.worker()
    members, sought = [kafka_bench.opened[-1]], list[Position]()
    work_until(first, lambda: kafka_bench.transport().backlog() == 0)
    seek = members[0].seek
    monkeypatch.setattr(members[0], "seek", lambda position: (sought.append(position), seek(position))[1])
    second = kafka_bench.worker()
    members.append(kafka_bench.opened[-1])

    def shared() -> bool:
        second.step()
        return [len(member.assigned()) for member in members] == [1, 1]

    work_until(first, shared)
    kafka_bench.publish(*(encode(page(n)) for n in range(20, 40)))
    (theirs,) = members[1].assigned()
    told = kafka_bench.ledger.held[theirs]
    work_until(second, lambda: kafka_bench.ledger.held[theirs] != told)
    work_until(first, lambda: len(kafka_bench.handed) + second.step() >= 40)
    work_until(first, lambda: kafka_bench.transport().backlog() + second.step() == 0)
    assert sought == []
    assert len(kafka_bench.handed) == 40
    first.leave()
    second.leave()


@pytest.mark.kafka
def test_a_position_that_others_move_while_a_worker_takes_a_partition_over_is_not_put_back(
    kafka_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Who read it before may tell the store late, after the partition was placed and before the first batch is done."""
    kafka_bench.publish(*(encode(page(n)) for n in range(20)))
    worker, ledger = kafka_bench.worker(batch=3), kafka_bench.ledger
    transport = kafka_bench.opened[-1]
    poll = transport.poll

    def polled(max_records: int, timeout: float) -> Sequence[Record]:
        records = poll(max_records, timeout)
        if not ledger.held:
            ledger.held.update({record.partition: "5" for record in records})
        return records

    transport.poll = polled  # type: ignore[method-assign]
    work_until(worker, lambda: bool(ledger.held))
    (moved,) = ledger.held
    assert ledger.held[moved] == "5"
    assert not kafka_bench.handed
    assert not kafka_bench.set_backs
    assert "others have worked on these partitions meanwhile" in caplog.text
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    done = [
        int(record.offset) for batch in kafka_bench.batches for record in batch.records if record.partition == moved
    ]
    assert done == list(range(5, int(ledger.held[moved])))
    worker.leave()


@pytest.mark.kafka
def test_a_store_whose_answer_is_lost_is_known_to_hold_what_it_was_told(
    kafka_bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """It froze for longer than it is waited for, and has moved the position: nobody else has."""
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    worker, ledger = kafka_bench.worker(batch=4), kafka_bench.ledger
    work_until(worker, lambda: len(ledger.pages) >= 20)
    ledger.mute_next = True
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    assert not ledger.mute_next
    assert "others have worked" not in caplog.text
    assert not kafka_bench.set_backs
    assert len(kafka_bench.handed) == len(set(kafka_bench.handed)) == 40
    worker.leave()


@pytest.mark.kafka
def test_a_store_that_was_not_reached_is_not_taken_for_one_that_has_lost_something(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(40)))
    worker, ledger = kafka_bench.worker(batch=4), kafka_bench.ledger
    work_until(worker, lambda: len(ledger.pages) >= 20)
    ledger.fail_next = 2
    work_until(worker, lambda: kafka_bench.transport().backlog() == 0)
    assert not kafka_bench.set_backs
    assert len(kafka_bench.handed) == len(set(kafka_bench.handed)) == 40
    worker.leave()


@pytest.mark.kafka
def test_an_empty_store_reads_the_whole_log_whatever_the_group_committed(kafka_bench: Bench) -> None:
    kafka_bench.publish(*(encode(page(n)) for n in range(10)))
    first = kafka_bench.worker()
    work_until(first, lambda: len(kafka_bench.ledger.pages) == 10)
    first.leave()
    kafka_bench.ledger.restore(Ledger())
    work_until(kafka_bench.worker(), lambda: len(kafka_bench.ledger.pages) == 10)


def test_a_store_that_goes_back_with_its_log_is_told_of_and_read_on(bench: Bench) -> None:
    """Redis Streams lie in the store: nothing is read again, but learners hold what the store has lost."""
    bench.publish(*(encode(page(n)) for n in range(10)))
    worker = bench.worker()
    work_until(worker, lambda: len(bench.ledger.pages) == 10)
    assert not bench.set_backs
    bench.ledger.gone_back = True
    work_until(worker, lambda: worker.step() == 0)
    assert bench.set_backs == 1
    bench.publish(*(encode(page(n)) for n in range(10, 20)))
    work_until(worker, lambda: len(bench.ledger.pages) == 20)
    assert bench.set_backs == 1
    worker.leave()
