"""Kafka's own affairs: brokers that die, freeze and come back, groups that change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from clusterd_consumer.transport import kafka, kafka_group
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers import kafka_client
from kafka import KafkaAdminClient, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.errors import (
    KafkaConnectionError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)

from tests.conftest import needs_kafka
from tests.consumer.kafka_members import drain, transport
from tests.consumer.worker_bench import PATIENT
from tests.services import kafka_broker
from tests.services.kafka_broker import KafkaBroker
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_at_last")]
#: kafka-python 3.0.12 forgets to close the sockets of attempts to reconnect that were refused.
leaks_sockets = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def broker(own_broker: KafkaBroker) -> KafkaBroker:
    """A running broker of the test's own."""
    own_broker.start()
    return own_broker


def flush_at_last(member: KafkaTransport, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            member.flush(2)
            return
        except Unreachable:
            assert time.monotonic() < deadline


def test_no_broker_is_said_so() -> None:
    member = KafkaTransport(f"127.0.0.1:{free_port()}")
    with pytest.raises(Unreachable, match="no Kafka at"):
        member.poll(1, 0.1)
    with pytest.raises(Unreachable, match="no Kafka at"):
        member.publish(topics.ALERTS, b"k", b"v")
    member.close()


@leaks_sockets
def test_a_broker_that_dies_under_load_and_comes_back_has_every_message(broker: KafkaBroker) -> None:
    member = transport(broker.bootstrap, "dies")
    for n in range(2000):
        member.publish(topics.SKETCHES, b"%d" % (n % 50), b"%d" % n)
    broker.kill()
    for n in range(2000, 3000):
        member.publish(topics.SKETCHES, b"%d" % (n % 50), b"%d" % n)
    with pytest.raises(Unreachable):
        member.flush(1)
    broker.start()
    flush_at_last(member, 60)
    seen: set[int] = set()
    deadline = time.monotonic() + 60
    while len(seen) < 3000 and time.monotonic() < deadline:
        seen |= {int(record.value) for record in member.poll(500, 0.5)}
    assert seen == set(range(3000))
    member.close()


@leaks_sockets
def test_a_frozen_broker_is_waited_for(broker: KafkaBroker) -> None:
    member = transport(broker.bootstrap, "frozen")
    member.publish(topics.SKETCHES, b"k", b"before")
    member.flush(10)
    broker.signal(signal.SIGSTOP)
    member.publish(topics.SKETCHES, b"k", b"while")
    with pytest.raises(Unreachable):
        member.flush(2)
    broker.signal(signal.SIGCONT)
    flush_at_last(member, 60)
    values: set[bytes] = set()
    deadline = time.monotonic() + 60
    while len(values) < 2 and time.monotonic() < deadline:
        with suppress(Unreachable):  # a broker that was frozen may close a connection once more
            values |= {record.value for record in drain(member, 2, 5)}
    assert values == {b"before", b"while"}
    member.close()


def test_attempts_to_join_that_fail_leave_no_client_behind(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(consumer: object, topic: str) -> str:
        raise KafkaConnectionError("gone while we joined")

    member = transport(kafka_bootstrap, prefix.rstrip(":"))
    before = set(threading.enumerate())
    with monkeypatch.context() as outage:
        outage.setattr(kafka, "topic_id", away)
        for _ in range(3):
            with pytest.raises(Unreachable, match="gone while we joined"):
                member.poll(1, 0.1)
    assert set(threading.enumerate()) <= before
    member.publish(topics.SKETCHES, b"k", b"after")
    member.flush(10)
    assert [record.value for record in drain(member, 1)] == [b"after"]
    member.close()


@leaks_sockets
def test_a_silent_broker_is_told_and_not_asked_without_a_pause(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_group, "SILENCE", 1.0)
    monkeypatch.setattr(kafka_group, "SILENCE_ANSWER", 1.0)
    member = transport(broker.bootstrap, "silent")
    member.publish(topics.SKETCHES, b"k", b"before")
    member.flush(10)
    assert len(drain(member, 1)) == 1
    for _ in range(8):
        assert not member.poll(10, 0.2)  # silent, but there
    polls: list[float] = []
    once = member._consumer._poll_once

    def counted(*given: object, **named: object) -> object:
        polls.append(time.monotonic())
        return once(*given, **named)

    monkeypatch.setattr(member._consumer, "_poll_once", counted)
    broker.signal(signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable, match="does not answer"):
            drain(member, 1, seconds=10)
        assert len(polls) < 60 * (polls[-1] - polls[0]) + 10
    finally:
        broker.signal(signal.SIGCONT)
    member.publish(topics.SKETCHES, b"k", b"after")
    flush_at_last(member, 60)
    values: list[bytes] = []
    while b"after" not in values:  # a group that formed anew meanwhile is given the first one once more
        values += [record.value for record in drain(member, 1)]
    assert values in ([b"after"], [b"before", b"after"])
    member.close()


def test_what_the_client_leaves_open_is_collected_when_kafka_does_not_answer() -> None:
    class Left:
        def __init__(self) -> None:
            self.itself = self

    member = KafkaTransport(f"127.0.0.1:{free_port()}")
    left = weakref.ref(Left())
    with pytest.raises(Unreachable, match=r"compressed in a way unknown here .*no lz4.*install"), member._translated():
        raise UnsupportedCodecError("no lz4")
    assert left() is None


def test_an_error_that_quotes_a_broker_s_whole_answer_is_one_short_line() -> None:
    """A broker that starts again names no brokers for a while, and the client's error its topics, each with its all."""
    quoting = MetadataEmptyBrokerList(f"brokers=[],\n topics=[{'MetadataResponsePartition(error_code=5), ' * 200}]")
    member = KafkaTransport(f"127.0.0.1:{free_port()}")
    for translating in (member._translated, kafka_client.translated):
        with (
            pytest.raises(Unreachable, match=r"EmptyBrokerList: brokers=\[\], topics=.* …$") as told,
            translating(),
        ):
            raise quoting
        assert len(str(told.value)) < 400


def test_what_kafka_refuses_at_once_is_told_and_not_sent_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused:
        is_done = True
        exception = TopicAuthorizationFailedError("alerts")

        def succeeded(self) -> bool:
            return False

    class Producer:
        sent = 0

        def send(self, topic: str, key: bytes | None, value: bytes) -> Refused:
            self.sent += 1
            return Refused()

        def flush(self, timeout: float) -> None:
            pass

    member, producer = KafkaTransport(f"127.0.0.1:{free_port()}"), Producer()
    monkeypatch.setattr(member, "_producing", lambda: producer)
    member.publish(topics.ALERTS, b"k", b"v")
    for attempt in (1, 2):
        with pytest.raises(Unreachable, match="our user needs Write on the topic alerts"):
            member.flush(2)
        assert producer.sent == 1 + attempt  # and waits for the next flush


def test_a_consumer_that_was_killed_is_replaced(kafka_bootstrap: str, prefix: str, tmp_path: Path) -> None:
    name = prefix.rstrip(":")
    publisher = transport(kafka_bootstrap, name)
    for n in range(20):
        publisher.publish(topics.SKETCHES, b"%d" % n, b"%d" % n)
    publisher.flush(10)
    code = (
        "import sys, time; from clusterd_consumer.transport.kafka import KafkaTransport\n"
        "t = KafkaTransport(sys.argv[1], group=sys.argv[2], prefix=sys.argv[2] + '-', session_timeout=2)\n"
        "n = 0\n"
        "while n < 20: n += len(t.poll(50, 1))\n"
        "print('read', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, kafka_bootstrap, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "read\n"
        doomed.kill()
    assert {int(record.value) for record in drain(publisher, 20)} == set(range(20))
    publisher.close()


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_partitions({topic: partitions})
    finally:
        admin.close()


def test_a_join_that_ends_between_two_polls_is_taken_up(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.rstrip(":")
    topic = f"{name}-{topics.SKETCHES}"
    member = transport(kafka_bootstrap, name)
    member.publish(topics.SKETCHES, b"a", b"1")
    member.flush(10)
    assert len(drain(member, 1)) == 1
    grow(kafka_bootstrap, topic, 3)
    cluster = member._consumer._client.cluster
    deadline = time.monotonic() + 20
    while len(cluster.partitions_for_topic(topic)) < 3 and time.monotonic() < deadline:
        cluster.request_update()
        time.sleep(0.1)  # no poll in between: it would join within its time
    member.poll(10, 0.001)  # begins to join
    time.sleep(1)  # the join ends
    member.publish(topics.SKETCHES, b"b", b"2")
    member.flush(10)
    assert b"2" in {record.value for record in drain(member, 2)}
    assert len(member.assigned()) == 3
    member.close()


def generation(member: KafkaTransport) -> int:
    return int(member._consumer._coordinator._generation.generation_id)


def test_a_join_that_ends_between_two_polls_is_not_asked_for_again(kafka_bootstrap: str, prefix: str) -> None:
    """The member that leads the group would make all the others join once more."""
    member = transport(kafka_bootstrap, prefix.rstrip(":"), session_timeout=PATIENT)
    member.publish(topics.SKETCHES, b"a", b"1")
    member.flush(10)
    assert len(drain(member, 1)) == 1
    before = generation(member)
    coordinator = member._consumer._coordinator
    coordinator.request_rejoin()
    member.poll(10, 0.001)  # begins to join
    if coordinator._join_task is not None:  # else it was that fast
        wait_until(lambda: coordinator._join_task.is_done)
    member.publish(topics.SKETCHES, b"b", b"2")
    member.flush(10)
    assert b"2" in {record.value for record in drain(member, 2)}
    assert generation(member) == before + 1
    member.close()


def test_nothing_is_a_member_s_while_it_waits_for_the_others_to_join(kafka_bootstrap: str, prefix: str) -> None:
    """They may have what was its own before it hears of that, and it would tell the store an older position."""
    name = prefix.rstrip(":")
    one, other = (transport(kafka_bootstrap, name, session_timeout=PATIENT) for _ in range(2))

    def shared() -> bool:
        for member in (one, other):
            member.poll(10, 0.1)
        return len(one.assigned()) == len(other.assigned()) == 1

    wait_until(shared)
    assert not one.changing()
    one._consumer._coordinator.request_rejoin()
    assert one.changing()
    assert len(one.assigned()) == 1  # until the next poll
    for _ in range(2):
        one.poll(10, 0.1)  # the other one has yet to come
        assert not one.assigned()
    wait_until(shared)


def test_a_member_that_stood_still_beyond_its_session_reads_nothing_of_what_is_another_s(
    kafka_bootstrap: str, prefix: str
) -> None:
    """Its client has records at hand, and has not heard yet that the group counts it out."""
    name = prefix.rstrip(":")
    other = transport(kafka_bootstrap, name)
    for n in range(40):
        other.publish(topics.SKETCHES, b"%d" % n, b"%d" % n)
    other.flush(10)
    program = (
        "import os, signal, sys; from clusterd_consumer.transport.kafka import KafkaTransport;"
        "member = KafkaTransport(sys.argv[1], group=sys.argv[2], prefix=sys.argv[2] + '-', session_timeout=2)\n"
        "while not member.poll(1, 0.2): pass\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
        "print(member.changing(), len(member.poll(100, 0)), len(member.assigned()), flush=True); os._exit(0)"
    )
    arguments = [sys.executable, "-c", program, kafka_bootstrap, name]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as still:
        os.waitpid(still.pid, os.WUNTRACED)
        assert len(drain(other, 40)) == 40
        still.send_signal(signal.SIGCONT)
        said, _ = still.communicate(timeout=60)
    assert said.split() == ["True", "0", "0"]


def test_a_member_whose_join_ended_a_session_ago_reads_nothing_of_what_is_another_s(
    kafka_bootstrap: str, prefix: str
) -> None:
    """A join that no poll has taken up sends no heartbeats: the group counts the member out, which does not know."""
    name = prefix.rstrip(":")
    busy, other = (transport(kafka_bootstrap, name) for _ in range(2))
    for n in range(40):
        busy.publish(topics.SKETCHES, b"%d" % n, b"%d" % n)
    busy.flush(10)
    wait_until(lambda: bool(busy.poll(1, 0.2)))
    coordinator = busy._consumer._coordinator

    def came() -> bool:
        other.poll(1, 0.1)
        return bool(busy.changing())

    wait_until(came)
    busy.poll(1, 0.001)  # begins to join

    def ended() -> bool:
        other.poll(1, 0.1)
        return coordinator._join_task is None or coordinator._join_task.is_done

    wait_until(ended)

    def has_all() -> bool:
        other.poll(1, 0.1)
        return len(other.assigned()) == 2

    wait_until(has_all)
    assert busy._membership.joining
    while busy._membership.joining:
        assert not busy.poll(100, 0.01)
    assert busy.changing()
    assert not busy.poll(100, 0)
    assert not busy.assigned()


def test_a_member_joins_once_however_late_its_topic_s_metadata_come(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh = ClusterMetadata.refresh_metadata

    async def late(cluster: ClusterMetadata, node_id: object = None) -> None:
        await cluster._manager._net.sleep(0.5)  # a slow broker's answer: longer than a join
        await refresh(cluster, node_id)

    monkeypatch.setattr(ClusterMetadata, "refresh_metadata", late)
    member = transport(kafka_bootstrap, prefix.rstrip(":"), session_timeout=PATIENT)
    member.publish(topics.SKETCHES, b"a", b"1")
    member.flush(10)
    assert len(drain(member, 1)) == 1
    cluster = member._consumer._client.cluster
    member._consumer._net.run(cluster.request_update)  # what is on its way has come
    member.poll(10, 0.5)
    assert member._membership.turn == 2  # nothing was taken away, something was given
    member.close()


def test_without_java_the_kafka_tests_skip_and_in_ci_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_broker, "missing", lambda: "no Java here")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Java here"):
        needs_kafka()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Java here"):
        needs_kafka()


def test_a_partition_that_no_broker_has_is_an_outage() -> None:
    def end_offsets(partitions: Sequence[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        """Answer as the client's own method does (`Fetcher.beginning_or_end_offset`): nothing is known of it."""
        known: dict[TopicPartition, int] = {}
        return {partition: known[partition] for partition in partitions}

    with pytest.raises(LeaderNotAvailableError, match="no broker has partition 3 of sketches"):
        kafka_group.edges(end_offsets, [TopicPartition(topics.SKETCHES, 3)], 1)
