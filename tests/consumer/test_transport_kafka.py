"""Kafka's own affairs: brokers that die, freeze and come back, groups that change."""

from __future__ import annotations

import signal
import struct
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

import pytest
from clusterd_consumer.transport import kafka, kafka_group, kafka_publishing
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from clusterd_crawler.errors import Forbidden, Unreachable
from clusterd_crawler.servers import kafka_client
from kafka import KafkaAdminClient, TopicPartition, codec
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    CorruptRecordError,
    KafkaConnectionError,
    KafkaError,
    MetadataEmptyBrokerList,
    NotEnoughReplicasError,
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


def flush_at_last(member: KafkaTransport) -> None:
    deadline = time.monotonic() + 60
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
    flush_at_last(member)
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
    flush_at_last(member)
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
    flush_at_last(member)
    values: list[bytes] = []
    while b"after" not in values:  # a group that formed anew meanwhile is given the first one once more
        values += [record.value for record in drain(member, 1)]
    assert values in ([b"after"], [b"before", b"after"])
    member.close()


def test_what_a_dead_member_may_have_had_in_hand_comes_again_and_no_more_of_it(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a page that comes again the alerts are told again."""
    monkeypatch.setattr(kafka, "IN_HAND", 3)
    member, again = transport(kafka_bootstrap, prefix.rstrip(":"), session_timeout=PATIENT), list[bool]()
    for n in range(6):
        member.publish(topics.SKETCHES, b"k", b"%d" % n)
    member.flush(10)
    while len(again) < 6:
        again += (record.again for record in member.poll(2, 0.2))
    assert again == [True] * 3 + [False] * 3
    member.close()


def test_what_is_on_its_way_is_bounded(kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client keeps in memory whatever it is given, as long as a broker is silent."""
    monkeypatch.setattr(kafka_publishing, "IN_FLIGHT", 5)
    member = transport(kafka_bootstrap, prefix.rstrip(":"))
    longest = 0
    for n in range(30):
        member.publish(topics.ALERTS, b"k", b"%d" % n)
        longest = max(longest, len(member._publishing._unacknowledged))
    assert longest == 5


def test_what_cannot_be_decompressed_is_said_each_time_and_read_when_it_can(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the broker compresses anew (compression.type), and the library for that is not installed."""
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name, session_timeout=PATIENT)
    member.flush(10)
    member.poll(1, 0.1)
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    topic = ConfigResource(ConfigResourceType.TOPIC, f"{name}-{topics.SKETCHES}", {"compression.type": "gzip"})
    admin.alter_configs([topic])
    admin.close()
    with monkeypatch.context() as lacking:
        lacking.setattr(codec, "has_gzip", lambda: False)
        for n in range(20):
            member.publish(topics.SKETCHES, b"k", b"%d" % n)
        member.flush(10)
        for _ in range(3):
            with pytest.raises(Unreachable, match=r"compressed in a way unknown here .* install that library"):
                drain(member, 1)
    assert [record.value for record in drain(member, 20)] == [b"%d" % n for n in range(20)]


def batch_with(segment: Path, value: bytes) -> tuple[int, int, int]:
    """Return partition and first offset of the batch in which a value lies, and the offset behind it."""
    data, at = segment.read_bytes(), 0
    while True:
        first, length = struct.unpack_from(">qi", data, at)
        if value in data[at : at + 12 + length]:
            last = first + struct.unpack_from(">i", data, at + 23)[0]
            return int(segment.parent.name.rpartition("-")[2]), first, last + 1
        at += 12 + length


@pytest.mark.slow
def test_a_damaged_record_is_said_keeps_nothing_else_back_and_can_be_deleted(own_broker: KafkaBroker) -> None:
    """As after a fault of the broker's disk."""
    own_broker.start()
    member = transport(own_broker.bootstrap, "g")
    for n in range(40):
        member.publish(topics.SKETCHES, b"%d" % n, b"message %02d" % n)
        if n % 4 == 3:  # several batches
            member.flush(10)
    member.close()
    own_broker.end()
    (damaged,) = (log for log in own_broker.folder.glob("log/g-sketches-*/*.log") if b"message 07" in log.read_bytes())
    damaged.write_bytes(damaged.read_bytes().replace(b"message 07", b"massage 07"))
    own_broker.start()
    member = transport(own_broker.bootstrap, "g", session_timeout=PATIENT)
    read: set[bytes] = set()
    told: list[str] = []

    def look() -> bool:
        try:
            read.update(record.value for record in member.poll(100, 0.2))
        except Unreachable as error:
            told.append(str(error))
        return len(told) > 2 and len(read) > 10

    wait_until(look)
    (partition, first, behind) = batch_with(damaged, b"massage 07")
    assert f"topic='g-sketches', partition={partition}) at offset {first} " in told[0]
    assert all("damaged records" in one and "docs/operations.md" in one for one in told)
    admin = KafkaAdminClient(bootstrap_servers=own_broker.bootstrap)
    admin.delete_records({TopicPartition("g-sketches", partition): behind})
    admin.close()
    member.publish(topics.SKETCHES, b"7", b"and on")  # to where the damaged one lay
    member.flush(10)
    wait_until(lambda: look() and b"and on" in read)
    assert len(read) + member.missed == 41
    assert member.missed == behind - first
    with pytest.raises(Forbidden, match="damaged records"), kafka_client.translated():
        raise CorruptRecordError("at offset 7")  # in a crawl, which speaks of no outages, and of this


def test_what_the_client_leaves_open_is_collected_when_kafka_does_not_answer() -> None:
    class Left:
        def __init__(self) -> None:
            self.itself = self

    member = KafkaTransport(f"127.0.0.1:{free_port()}")
    left = weakref.ref(Left())
    with (
        pytest.raises(Unreachable, match=r"compressed in a way unknown here .*no lz4.*install"),
        member._connection.translated(),
    ):
        raise UnsupportedCodecError("no lz4")
    assert left() is None


def test_an_error_that_quotes_a_broker_s_whole_answer_is_one_short_line() -> None:
    """A broker that starts again names no brokers for a while, and the client's error its topics, each with its all."""
    quoting = MetadataEmptyBrokerList(f"brokers=[],\n topics=[{'MetadataResponsePartition(error_code=5), ' * 200}]")
    member = KafkaTransport(f"127.0.0.1:{free_port()}")
    for translating in (member._connection.translated, kafka_client.translated):
        with (
            pytest.raises(Unreachable, match=r"EmptyBrokerList: brokers=\[\], topics=.* …$") as told,
            translating(),
        ):
            raise quoting
        assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    ("refusal", "said", "again"),
    [
        (TopicAuthorizationFailedError("alerts"), "our user needs Write on the topic alerts", 1),
        (NotEnoughReplicasError(), "does not answer", 2),  # it may have been for a moment
    ],
)
def test_what_kafka_refuses_at_once_is_told_and_not_sent_without_a_pause(
    monkeypatch: pytest.MonkeyPatch, refusal: KafkaError, said: str, again: int
) -> None:
    class Refused:
        is_done = True
        exception = refusal

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
    monkeypatch.setattr(member._publishing, "_producing", lambda: producer)
    member.publish(topics.ALERTS, b"k", b"v")
    for attempt in (1, 2):
        with pytest.raises(Unreachable, match=said):
            member.flush(2)
        assert producer.sent == 1 + again * attempt  # and waits for the next flush


def test_without_java_the_kafka_tests_skip_and_in_ci_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_broker, "missing", lambda: "no Java here")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Java here"):
        needs_kafka()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Java here"):
        needs_kafka()
