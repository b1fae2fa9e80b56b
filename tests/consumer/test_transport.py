"""One contract for every transport: at least once, in order within a partition, from where the state says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.transport.contract import Position, Record, Transport
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_consumer.transport.redis_streams import RedisStreamTransport
from clusterd_crawler import topics

from tests.consumer.worker_bench import DEAD_AFTER, PATIENT

WAIT = 60.0


@dataclass
class World:
    """Makes the members of one group; ``remembered`` plays the store's position."""

    make: Callable[[World], Transport]
    remembered: dict[str, str] = field(default_factory=dict)
    members: list[Transport] = field(default_factory=list)

    def member(self) -> Transport:
        transport = self.make(self)
        self.members.append(transport)
        return transport


@pytest.fixture(
    params=[
        "redis",
        pytest.param("cluster", marks=pytest.mark.cluster),
        pytest.param("kafka", marks=pytest.mark.kafka),
    ]
)
def world(request: pytest.FixtureRequest, prefix: str) -> Iterator[World]:
    clients: list[Client] = []
    if request.param == "kafka":
        bootstrap = request.getfixturevalue("kafka_bootstrap")

        def make(world: World) -> Transport:
            return KafkaTransport(
                bootstrap,
                prefix=prefix.replace(":", "-"),
                group=prefix.rstrip(":"),
                session_timeout=PATIENT,
                partitions=4,
                remembered=lambda: world.remembered,
            )
    else:
        client = connect(request.getfixturevalue("redis_url" if request.param == "redis" else "redis_cluster_url"))
        clients.append(client)

        def make(world: World) -> Transport:
            return RedisStreamTransport(client, prefix=prefix, claim_after=DEAD_AFTER)

    world = World(make)
    yield world
    for member in world.members:
        member.close()
    for client in clients:
        client.close()


def publish(transport: Transport, count: int, start: int = 0) -> None:
    for n in range(start, start + count):
        transport.publish(topics.SKETCHES, f"key{n % 7}".encode(), str(n).encode())
    transport.flush(10)


def read(members: Sequence[Transport], wanted: int, commit: bool = True) -> list[Record]:
    """Poll the members in turn until so many different records have come; commit each poll."""
    records: list[Record] = []
    deadline = time.monotonic() + WAIT
    while len({(r.partition, r.offset) for r in records}) < wanted and time.monotonic() < deadline:
        for member in members:
            got = member.poll(10, 0.1)
            records += got
            if commit:
                member.commit(position_after(got))
    return records


def position_after(records: Sequence[Record]) -> Position:
    return {record.partition: record.next for record in records}


def values(records: Sequence[Record]) -> list[int]:
    return sorted({int(record.value) for record in records})


def test_all_that_is_published_arrives_in_order_of_its_key(world: World) -> None:
    member = world.member()
    publish(member, 100)
    records = read([member], 100)
    assert values(records) == list(range(100))
    for key in {record.key for record in records}:
        of_key = [int(record.value) for record in records if record.key == key]
        assert of_key == sorted(of_key)


def test_what_was_published_before_closing_arrives(world: World) -> None:
    sending = world.member()
    sending.publish(topics.SKETCHES, b"k", b"1")
    sending.close()
    assert values(read([world.member()], 1)) == [1]


def test_records_carry_where_to_go_on(world: World) -> None:
    member = world.member()
    publish(member, 20)
    first = read([member], 20)
    middle = {r.partition: r.next for r in first if int(r.value) < 10}
    world.remembered.update(middle)
    member.seek(middle)
    again = read([member], 10)
    assert set(range(10, 20)) <= set(values(again))
    assert all(int(r.value) >= 10 for r in again if r.partition in middle)


def test_a_later_member_goes_on_where_the_first_stopped(world: World) -> None:
    first = world.member()
    publish(first, 30)
    seen = read([first], 30)
    world.remembered.update(position_after(seen))
    first.close()
    second = world.member()
    publish(second, 5, start=30)
    assert values(read([second], 5)) == [30, 31, 32, 33, 34]


def test_what_a_dead_member_did_not_commit_comes_again(world: World) -> None:
    first = world.member()
    publish(first, 40)
    uncommitted = read([first], 40, commit=False)
    assert values(uncommitted) == list(range(40))
    first.close()
    second = world.member()
    again = read([second], 40)
    assert values(again) == list(range(40))
    assert again[0].again


def test_two_members_share_the_work(world: World) -> None:
    first, second = world.member(), world.member()
    deadline = time.monotonic() + WAIT
    while not (first.assigned() and second.assigned()) and time.monotonic() < deadline:
        first.poll(1, 0.1)
        second.poll(1, 0.1)
    publish(first, 400)
    mine: list[Record] = []
    theirs: list[Record] = []
    while len(values(mine + theirs)) < 400 and time.monotonic() < deadline:
        for member, got in ((first, mine), (second, theirs)):
            records = member.poll(50, 0.1)
            got += records
            member.commit(position_after(records))
            world.remembered.update(position_after(records))
    assert values(mine + theirs) == list(range(400))
    assert mine
    assert theirs


def test_backlog_counts_what_is_unread_or_not_worked_on(world: World) -> None:
    member = world.member()
    publish(member, 50)
    records = read([member], 50, commit=False)
    assert member.backlog() == 50
    member.commit(position_after(records))
    world.remembered.update(position_after(records))
    assert member.backlog() == 0
    publish(member, 3, start=50)
    assert member.backlog() == 3


def test_backlog_takes_nothing_from_the_group(world: World) -> None:
    member, asking = world.member(), world.member()
    publish(member, 12)
    assert asking.backlog() == 12
    assert not asking.assigned()
    assert values(read([member], 12)) == list(range(12))


def test_an_empty_poll_returns_in_time(world: World) -> None:
    member = world.member()
    member.poll(1, 0.1)
    started = time.monotonic()
    assert list(member.poll(10, 0.2)) == []
    assert time.monotonic() - started < 3


def test_other_topics_are_not_polled(world: World) -> None:
    member = world.member()
    for topic in (topics.ALERTS, topics.RULES, topics.VERDICTS, topics.DEAD_LETTERS):
        member.publish(topic, b"k", b"not a sketch")
    publish(member, 1)
    assert [record.value for record in read([member], 1)] == [b"0"]


def test_any_bytes_travel(world: World) -> None:
    member = world.member()
    strange = [bytes(range(256)), b"\x00", b"x" * 600_000]
    for value in strange:
        member.publish(topics.SKETCHES, "ключ\U0001f600".encode(), value)
    member.flush(10)
    records = read([member], 3)
    assert [record.value for record in records] == strange
    assert records[0].key.decode() == "ключ\U0001f600"
