"""Groups that change: members that come late, stand still, are killed, and whose joins no poll has taken up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from clusterd_consumer.transport import kafka_group
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from kafka import KafkaAdminClient, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.errors import LeaderNotAvailableError

from tests.consumer.kafka_members import drain, transport
from tests.consumer.worker_bench import PATIENT
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("closed_at_last")]


def publish_numbers(member: KafkaTransport, count: int) -> None:
    for n in range(count):
        member.publish(topics.SKETCHES, b"%d" % n, b"%d" % n)
    member.flush(10)


def apart(code: str, bootstrap: str, group: str) -> subprocess.Popen[str]:
    """Run a member of a group, with a session of two seconds, in a process of its own; ``code`` calls it ``member``."""
    program = (
        "import os, signal, sys, time; from clusterd_consumer.transport.kafka import KafkaTransport\n"
        "member = KafkaTransport(sys.argv[1], group=sys.argv[2], prefix=sys.argv[2] + '-', session_timeout=2)\n"
    )
    command = [sys.executable, "-c", program + code, bootstrap, group]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_lag_tools_see_how_far_a_member_comes(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.rstrip(":")
    member = transport(kafka_bootstrap, name)
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)

    def work_on(count: int) -> None:
        for n in range(count):
            member.publish(topics.SKETCHES, b"%d" % n, b"v")
        member.flush(10)
        drain(member, count)

    def committed() -> int:
        return sum(place.offset for place in admin.list_group_offsets(name)[name].values())

    work_on(20)
    wait_until(lambda: member.poll(1, 0.1) or committed() == 20)
    work_on(5)
    member.close()
    assert committed() == 25
    admin.close()


def test_a_consumer_that_was_killed_is_replaced(kafka_bootstrap: str, prefix: str) -> None:
    name = prefix.rstrip(":")
    publisher = transport(kafka_bootstrap, name)
    publish_numbers(publisher, 20)
    code = "n = 0\nwhile n < 20: n += len(member.poll(50, 1))\nprint('read', flush=True); time.sleep(60)"
    with apart(code, kafka_bootstrap, name) as doomed:
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
        one.seek({})  # as where the store was set back
        assert not one.assigned()
    wait_until(shared)


#: After a stop: the monotonic clock has stood still, too, as Linux's does while the machine is suspended.
RESUMED = "slept, real = time.monotonic() - stopped, time.monotonic\ntime.monotonic = lambda: real() - slept\n"


@pytest.mark.parametrize("resumed", ["", RESUMED], ids=["stopped", "suspended"])
def test_a_member_that_stood_still_beyond_its_session_reads_nothing_of_what_is_another_s(
    kafka_bootstrap: str, prefix: str, resumed: str
) -> None:
    """Its client has records at hand, and has not heard yet that the group counts it out."""
    name = prefix.rstrip(":")
    other = transport(kafka_bootstrap, name)
    publish_numbers(other, 40)
    code = (
        "while not member.poll(1, 0.2): pass\n"
        "stopped = time.monotonic()\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
        f"{resumed}"
        "print(member.changing(), len(member.poll(100, 0)), len(member.assigned()), flush=True); os._exit(0)"
    )
    with apart(code, kafka_bootstrap, name) as still:
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
    publish_numbers(busy, 40)
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


def test_a_member_that_lives_and_polls_no_more_holds_nobody_up(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that alone cannot reach Redis: its heartbeats go on. The group waited five minutes for it."""
    monkeypatch.setattr(kafka_group.Membership, "STUCK", 3_000)
    name = prefix.rstrip(":")
    stuck, other = (transport(kafka_bootstrap, name) for _ in range(2))
    publish_numbers(stuck, 40)
    wait_until(lambda: bool(stuck.poll(1, 0.2)))
    assert len(drain(other, 40)) == 40
    assert len(other.assigned()) == 2
    assert not stuck.poll(100, 0)

    def shared() -> bool:
        for member in (stuck, other):
            member.poll(10, 0.1)
        return len(stuck.assigned()) == len(other.assigned()) == 1

    wait_until(shared)


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


def test_of_a_client_that_tells_no_heartbeats_nobody_waits_for_one() -> None:
    """A later one may have none under this name: its partitions count as its own until it hears of a change."""
    membership = kafka_group.Membership(session=0.0)
    membership.follow(SimpleNamespace(_coordinator=SimpleNamespace()))
    membership.on_partitions_assigned([])
    time.sleep(0.01)
    assert not membership.lapsed()


def test_a_partition_that_no_broker_has_is_an_outage() -> None:
    def end_offsets(partitions: Sequence[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        """Answer as the client's own method does (`Fetcher.beginning_or_end_offset`): nothing is known of it."""
        known: dict[TopicPartition, int] = {}
        return {partition: known[partition] for partition in partitions}

    with pytest.raises(LeaderNotAvailableError, match="no broker has partition 3 of sketches"):
        kafka_group.edges(end_offsets, [TopicPartition(topics.SKETCHES, 3)], 1)
