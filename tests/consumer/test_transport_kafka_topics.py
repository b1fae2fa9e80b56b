"""Kafka's topics: with which settings they are made, and what happens where they are made anew or have lost records."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from clusterd_consumer.transport import kafka_connection
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_consumer.transport.kafka_records import records
from clusterd_consumer.transport.kafka_topics import DAY, TOPICS, ensure, main
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.consumer.kafka_members import drain, transport
from tests.consumer.worker_bench import PATIENT
from tests.services.kafka_broker import ROOT
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_at_last")]


def test_topics_have_partitions_retention_and_compaction(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.replace(":", "-")
    assert len(ensure(kafka_bootstrap, name, partitions=3)) == len(TOPICS)
    assert ensure(kafka_bootstrap, name, partitions=3) == []
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    try:
        described = {topic["name"]: topic for topic in admin.describe_topics([name + topic for topic in TOPICS])}
        wanted = [ConfigResource(ConfigResourceType.TOPIC, name + topic) for topic in TOPICS]
        said = str(admin.describe_configs(wanted))
    finally:
        admin.close()
    assert len(described[name + topics.SKETCHES]["partitions"]) == 3
    assert len(described[name + topics.RULES]["partitions"]) == 1
    assert "compact" in said
    assert str(7 * DAY) in said


def test_daemons_that_begin_at_once_make_the_topics_together(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.replace(":", "-")
    with ThreadPoolExecutor(4) as daemons:
        made = list(daemons.map(lambda _: ensure(kafka_bootstrap, name, partitions=1), range(4)))
    assert {topic for one in made for topic in one} == {name + topic for topic in TOPICS}


def test_what_the_producer_takes_every_topic_takes(
    kafka_bootstrap: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    member = transport(kafka_bootstrap, prefix.rstrip(":"))
    for topic in TOPICS:
        member.publish(topic, b"k", bytes(1_900_000))
    member.flush(20)
    member.close()
    assert "is dropped" not in caplog.text


def test_messages_are_dated_by_the_broker_whatever_the_clock_of_a_crawl_says(kafka_bootstrap: str, prefix: str) -> None:
    """Of a crawl three days ahead no page arrived: 315 of 315 went to the spool, for good."""
    name = prefix.replace(":", "-")
    ensure(kafka_bootstrap, name, partitions=1)
    now = time.time_ns() // 1_000_000
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap, enable_idempotence=False, acks="all")
    try:
        for topic in TOPICS:
            for at in (now + 3 * DAY, now - 300 * DAY):
                taken = producer.send(name + topic, key=b"k", value=b"v", timestamp_ms=at).get(20)
                assert abs(taken.timestamp - now) < DAY
    finally:
        producer.close()


def test_the_topics_script_runs_from_the_command_line(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.replace(":", "-")
    command = [
        sys.executable,
        str(ROOT / "deploy/kafka/create_topics.py"),
        "--kafka",
        kafka_bootstrap,
        "--prefix",
        name,
    ]
    first = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert all(name + topic in first.stdout for topic in TOPICS)
    assert (
        "all topics are there" in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--partitions", "0"), "0 is not accepted; it takes a whole number, 1 or more"),
        (("--partitions", "-1"), "-1 is not accepted; it takes a whole number, 1 or more"),
        (("--partitions", "1.5"), "1.5 is not accepted; it takes a whole number, 1 or more"),
        (("--replication", "0"), "0 is not accepted; it takes a whole number, 1 or more"),
        (("--prefix", "a b"), "'a b' is not accepted; it takes letters, digits, . _ and -, 200 at most"),
    ],
)
def test_what_no_broker_would_do_is_wrong_input(
    option: tuple[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--kafka", "127.0.0.1:1", *option])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_an_address_with_a_password_need_not_stand_on_the_command_line(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERD_KAFKA", kafka_bootstrap)
    monkeypatch.setenv("CLUSTERD_KAFKA_PREFIX", prefix.replace(":", "-"))
    assert main([]) == 0
    assert f"made {prefix.replace(':', '-')}sketches" in capsys.readouterr().out


def test_what_the_broker_will_not_do_is_said_by_its_setting(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.rstrip(":")
    with pytest.raises(Unreachable, match=f"no topic {name}-sketches of 3 replicas .*CLUSTERD_KAFKA_REPLICATION"):
        ensure(kafka_bootstrap, f"{name}-", replication=3)
    for seconds in (0.9, 3600):
        member = KafkaTransport(kafka_bootstrap, group=name, prefix=f"{name}-", session_timeout=seconds, partitions=1)
        with pytest.raises(Unreachable, match=r"takes group\.min\.session\.timeout\.ms .* to group\.max\.session"):
            drain(member, 1, 10)
        member.close()


def test_a_topic_made_anew_is_read_from_its_beginning(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.rstrip(":")
    held: dict[str, str] = {}
    first = transport(kafka_bootstrap, name, held)
    for n in range(10):
        first.publish(topics.SKETCHES, b"k", b"old %d" % n)
    first.flush(10)
    held.update({record.partition: record.next for record in drain(first, 10)})
    first.close()
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.delete_topics([f"{name}-{topics.SKETCHES}"])
    admin.close()
    second = transport(kafka_bootstrap, name, held)
    for n in range(20):
        second.publish(topics.SKETCHES, b"k", b"new %d" % n)
    second.flush(10)
    assert [record.value for record in drain(second, 20)] == [b"new %d" % n for n in range(20)]
    second.close()


def test_a_topic_that_is_made_anew_under_its_reader_is_read_from_its_beginning(
    kafka_bootstrap: str, prefix: str
) -> None:
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name, session_timeout=PATIENT)
    for n in range(10):
        member.publish(topics.SKETCHES, b"k", b"old %d" % n)
    member.flush(10)
    (old,) = {record.partition for record in drain(member, 10)}
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.delete_topics([f"{name}-{topics.SKETCHES}"])
    admin.close()
    second = transport(kafka_bootstrap, name)  # makes it anew
    for n in range(30):
        second.publish(topics.SKETCHES, b"k", b"new %d" % n)
    second.flush(10)
    anew: list[bytes] = []

    def read() -> bool:
        # Before its metadata say so, the reader may take the new topic for the old one, and go on at the old offset.
        anew.extend(record.value for record in drain(member, 1, 0.5) if record.partition != old)
        return len(anew) >= 30

    wait_until(read)
    assert anew == [b"new %d" % n for n in range(30)]
    assert old not in member.assigned()
    second.close()
    member.close()


def test_partitions_that_are_added_are_read_and_counted(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_connection, "METADATA_AGE", 1_000)
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name)
    member.publish(topics.SKETCHES, b"k", b"first")
    member.flush(10)
    assert member.backlog() == len(drain(member, 1)) == 1
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.create_partitions({f"{name}-{topics.SKETCHES}": 12})
    admin.close()
    wider = transport(kafka_bootstrap, name)  # who sends from now on knows them all
    for n in range(100):
        wider.publish(topics.SKETCHES, b"%d" % n, b"%d" % n)
    wider.flush(10)
    wait_until(lambda: member.backlog() == 101)
    assert len({record.partition for record in drain(member, 100)}) == 12


def test_topics_that_are_deleted_under_their_reader_are_made_anew(
    kafka_bootstrap: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name)
    member.publish(topics.SKETCHES, b"k", b"old")
    member.flush(10)
    drain(member, 1)
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.delete_topics([f"{name}-{topic}" for topic in TOPICS])
    member._consumer._client.cluster.request_update()  # as every so often, and when the broker says so
    until = time.monotonic() + 30
    # Right after the deletion a broker may still list the topic.
    while "made anew" not in caplog.text or f"{name}-{topics.SKETCHES}" not in admin.list_topics():
        assert time.monotonic() < until
        with suppress(Unreachable):
            member.poll(10, 0.5)
    admin.close()
    second = transport(kafka_bootstrap, name)
    for n in range(10):
        second.publish(topics.SKETCHES, b"k", b"new %d" % n)
    second.flush(10)
    assert [record.value for record in drain(member, 10)] == [b"new %d" % n for n in range(10)]
    second.close()
    member.close()


def test_a_topic_that_is_deleted_under_who_writes_to_it_is_made_anew(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody here reads: alerts, say."""
    monkeypatch.setattr("clusterd_consumer.transport.kafka_publishing.ANSWER_TIMEOUT", 1.0)
    monkeypatch.setattr("clusterd_consumer.transport.kafka_publishing.DELIVERY_TIMEOUT", 1000)
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name)
    member.publish(topics.ALERTS, b"k", b"old")
    member.flush(10)
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.delete_topics([f"{name}-{topics.ALERTS}"])
    wait_until(lambda: f"{name}-{topics.ALERTS}" not in admin.list_topics())
    admin.close()

    def published() -> bool:
        with suppress(Unreachable):
            member.publish(topics.ALERTS, b"k", b"new")
            member.flush(10)
            return True
        return False

    wait_until(published)
    assert {value for _, value in records(kafka_bootstrap, f"{name}-{topics.ALERTS}")} == {b"new"}
    member.close()


def test_a_position_older_than_what_kafka_kept_goes_on_at_the_oldest_record(
    kafka_bootstrap: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = prefix.rstrip(":")
    held: dict[str, str] = {}
    first = transport(kafka_bootstrap, name, held)
    for n in range(10):
        first.publish(topics.SKETCHES, b"k", b"%d" % n)
    first.flush(10)
    (partition,) = {record.partition for record in drain(first, 10)}
    first.close()
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.delete_records({TopicPartition(f"{name}-{topics.SKETCHES}", int(partition.split(":")[1])): 6})
    admin.close()
    held[partition] = "2"
    assert transport(kafka_bootstrap, name, {partition: "8"}).backlog() == 2  # of who has joined no group
    second = transport(kafka_bootstrap, name, held)
    assert second.backlog() == 4
    assert [record.value for record in drain(second, 4)] == [b"6", b"7", b"8", b"9"]
    assert second.assigned()[partition] == "2"
    assert second.missed == 4
    second.seek(held)
    assert len(drain(second, 4)) == 4
    assert second.missed == 4  # the same ones
    second.seek({})
    assert len(drain(second, 4)) == 4
    held[partition] = "99"  # of a log that came back without its end
    assert second.backlog() == 0
    assert "Kafka lost its end" not in caplog.text  # it was read again
    assert f"4 messages of {partition} from 2 on were deleted by Kafka before they were read" in caplog.text
    second.close()
