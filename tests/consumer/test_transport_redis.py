"""Redis Streams' own affairs: room is given back, and pending pages are nobody's loss."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import redis
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.transport import redis_streams
from clusterd_consumer.transport.redis_streams import RedisStreamTransport
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable

from tests.consumer.redis_members import member, publish, work_off
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until


def test_what_everybody_has_read_is_trimmed(
    client: redis.Redis, prefix: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_streams, "TRIM_INTERVAL", 0.0)
    worker = member(client, prefix)
    longest = 0
    for _ in range(10):
        publish(worker, 500)
        work_off(worker, 500)
        longest = max(longest, client.xlen(stream))
    assert longest < 200
    worker.close()


def test_what_one_group_has_not_read_stays(client: redis.Redis, prefix: str, stream: str) -> None:
    quick, slow = member(client, prefix, "quick"), member(client, prefix, "slow")
    slow.poll(1, 0.01)
    publish(quick, 1000)
    work_off(quick, 1000)
    quick.trim()
    assert client.xlen(stream) == 1000
    work_off(slow, 1000)
    slow.trim()
    assert client.xlen(stream) < 200


def test_a_guest_founds_no_group_beside_another(client: redis.Redis, prefix: str, stream: str) -> None:
    """A question of another group's name left one behind for which the stream filled up, though nobody read it."""
    host = member(client, prefix, "a name of its own")
    publish(host, 500)
    work_off(host, 400)
    guest = RedisStreamTransport(client, prefix=prefix, guest=True)
    assert guest.backlog() == host.backlog() == 100
    work_off(guest, 100)
    guest.close()
    assert [group["name"] for group in client.xinfo_groups(stream)] == [b"a name of its own"]
    guest.trim()
    assert client.xlen(stream) < 200
    assert host.backlog() == 0


def test_of_several_groups_a_guest_is_of_the_one_that_has_come_furthest(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    """What a former group has not read is nobody's any more; a daemon of a group to come has all before it."""
    former, host = member(client, prefix, "a former name"), member(client, prefix, "the name now")
    for one in (former, host):
        one.poll(1, 0.01)
    publish(host, 400)
    work_off(former, 200)
    work_off(host, 400)
    publish(host, 10)
    guest = RedisStreamTransport(client, prefix=prefix, guest=True)
    counted = [one.backlog() for one in (former, host, guest, member(client, prefix, "a name to come"))]
    assert counted == [210, 10, 10, client.xlen(stream)]


def test_what_is_unread_is_counted_where_redis_does_not_tell(client: redis.Redis, prefix: str, stream: str) -> None:
    worker = member(client, prefix)
    publish(worker, 10)
    worker.commit({stream: worker.poll(3, 0.1)[-1].next})
    client.xdel(stream, client.xrange(stream)[5][0])
    assert client.xinfo_groups(stream)[0]["lag"] is None
    assert worker.backlog() == 6


def test_a_guest_founds_the_first_group(client: redis.Redis, prefix: str, stream: str) -> None:
    guest = RedisStreamTransport(client, prefix=prefix, group="g", guest=True)
    publish(guest, 10)
    assert guest.backlog() == 10
    work_off(guest, 10)
    assert [group["name"] for group in client.xinfo_groups(stream)] == [b"g"]


def test_a_daemon_says_for_which_other_group_the_stream_fills_up(
    client: redis.Redis, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    member(client, prefix, "former").poll(1, 0.01)
    assert not caplog.text
    member(client, prefix).poll(1, 0.01)
    assert "beside g there is group former: what it has not read stays for it" in caplog.text


def test_what_somebody_else_trims_while_it_is_pending_is_counted_and_said(
    client: redis.Redis, prefix: str, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    dead, other = member(client, prefix), member(client, prefix)
    publish(other, 10)
    assert len(dead.poll(6, 0.1)) == 6
    client.xtrim(stream, maxlen=8, approximate=False)
    work_off(other, 4 + 4)
    assert other.missed == 2
    assert other.backlog() == 0
    assert f"2 messages of {stream} were removed from it before they were worked on" in caplog.text


def test_what_a_member_has_in_hand_is_not_missed_though_somebody_else_trims_it(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    slow = member(client, prefix)
    publish(slow, 6)
    assert len(slow.poll(6, 0.1)) == 6
    client.xtrim(stream, maxlen=0, approximate=False)
    wait_until(lambda: not slow.poll(6, 0.1) and slow.backlog() == 0)
    assert slow.missed == 0


def test_what_is_pending_stays(client: redis.Redis, prefix: str, stream: str) -> None:
    slow, quick = member(client, prefix), member(client, prefix)
    publish(quick, 600)
    first = slow.poll(1, 0.1)
    work_off(quick, 599)
    quick.trim()
    assert client.xrange(stream, count=1)[0][0].decode() == first[0].offset


def test_alerts_and_rules_are_bounded(client: redis.Redis, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(redis_streams.KEPT, topics.VERDICTS, 100)  # type: ignore[misc]
    transport = member(client, prefix)
    for n in range(3000):
        transport.publish(topics.VERDICTS, b"c", b"%d" % n)
    transport.flush(5)
    assert 100 <= client.xlen(topics.stream(prefix, topics.VERDICTS)) < 400


def test_all_that_is_done_is_trimmed_however_much_and_also_by_who_has_nothing_more_to_do(
    client: redis.Redis, prefix: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = member(client, prefix)
    monkeypatch.setattr(redis_streams, "TRIM_INTERVAL", 0.2)
    for count in (25_000, 300):
        publish(worker, count)
        while records := worker.poll(10_000, 0.05):
            done = records[-1].next
        worker.commit({stream: done})
        assert client.xlen(stream) < 400
    time.sleep(0.3)
    assert worker.poll(10, 0.05) == []
    assert client.xlen(stream) < 200


def test_topics_with_long_entries_are_bounded_by_their_size(
    client: redis.Redis, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(redis_streams.BYTES, topics.KNOWN, 1_000_000)
    monkeypatch.setattr(redis_streams, "SIZE_INTERVAL", 0.0)
    transport = member(client, prefix)
    for number in range(300):
        transport.publish(topics.KNOWN, b"%d" % number, b"x" * 20_000)
        transport.flush(1)
    stream = topics.stream(prefix, topics.KNOWN)
    assert 500_000 < client.memory_usage(stream, samples=0) < 1_200_000
    assert client.xrevrange(stream, count=1)[0][1][b"k"] == b"299"


def test_pages_of_a_killed_consumer_are_claimed(redis_url: str, client: redis.Redis, prefix: str) -> None:
    code = (
        "import sys, time; from clusterd_consumer.redis_connection import connect\n"
        "from clusterd_consumer.transport.redis_streams import RedisStreamTransport\n"
        "t = RedisStreamTransport(connect(sys.argv[1]), prefix=sys.argv[2], group='g')\n"
        "print(len(t.poll(100, 5)), flush=True); time.sleep(60)"
    )
    worker = member(client, prefix)
    publish(worker, 50)
    with subprocess.Popen(
        [sys.executable, "-c", code, redis_url, prefix], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "50\n"
        doomed.kill()
    assert worker.backlog() == 50
    publish(worker, 10)
    done = work_off(worker, 60)
    assert sum(record.again for record in done) == 50
    assert worker.backlog() == 0


def test_what_a_consumer_is_still_at_does_not_come_to_it_again(client: redis.Redis, prefix: str) -> None:
    """A batch may take longer than the pages of a dead consumer are waited for."""
    slow = RedisStreamTransport(client, prefix=prefix, group="g", claim_after=0.001)
    publish(slow, 10)
    first = slow.poll(4, 0.1)
    wait_until(lambda: client.xpending_range(next(iter(slow.assigned())), "g", "-", "+", 1, idle=2))
    assert [len(slow.poll(100, 0.01)) for _ in range(3)] == [6, 0, 0]
    slow.commit({record.partition: record.next for record in first})
    assert slow.backlog() == 6


def test_what_could_not_be_acknowledged_is_acknowledged_later(
    client: redis.Redis, redis_url: str, prefix: str, stream: str
) -> None:
    """It stayed pending, and its pages were worked on once more."""
    client.acl_setuser(prefix, enabled=True, nopass=True, keys=["*"], commands=["+@all", "-xack"])
    with connect(redis_url.replace("//", f"//{prefix[:-1]}%3A:any@")) as limited:
        worker = member(limited, prefix)
        publish(worker, 3)
        position = {stream: worker.poll(3, 0.1)[-1].next}
        with pytest.raises(Unreachable, match="xack"):
            worker.commit(position)
        client.acl_setuser(prefix, enabled=True, commands=["+xack"])
        worker.commit(position)
        assert client.xpending(stream, "g")["pending"] == 0
    client.acl_deluser(prefix)


def test_what_was_claimed_is_acknowledged_though_later_pages_are_in_hand(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    dead, other = member(client, prefix), RedisStreamTransport(client, prefix=prefix, group="g", claim_after=0.1)
    publish(other, 3)
    earlier = dead.poll(1, 0.1)
    assert len(other.poll(2, 0.1)) == 2
    wait_until(lambda: other.poll(1, 0.01))
    other.commit({stream: earlier[-1].next})
    assert other.backlog() == 2


def test_another_transport_s_position_moves_nothing(client: redis.Redis, prefix: str) -> None:
    worker = member(client, prefix)
    publish(worker, 3)
    assert len(worker.poll(2, 0.1)) == 2
    worker.seek({"0": "17"})
    assert len(worker.poll(2, 0.1)) == 1


def test_a_consumer_leaves_the_group_unless_pages_are_pending_at_it(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    orderly, hasty = member(client, prefix), member(client, prefix)
    publish(orderly, 10)
    hasty.poll(5, 0.1)
    work_off(orderly, 5)
    orderly.close()
    hasty.close()
    (left,) = client.xinfo_consumers(stream, "g")
    assert left["pending"] == 5


def test_who_leaves_forgets_who_is_long_gone_and_nobody_else(
    client: redis.Redis, prefix: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one that lives is given at that moment would be lost with its place in the group."""
    monkeypatch.setattr(redis_streams, "FORGET_AFTER", 1000)
    gone, living, leaving = (member(client, prefix) for _ in range(3))
    for one in (gone, leaving, living):
        publish(one, 1)
        work_off(one, 1)
        if one is gone:
            wait_until(lambda: client.xinfo_consumers(stream, "g")[0]["idle"] > 1000)
    leaving.close()
    assert [one["name"].decode() for one in client.xinfo_consumers(stream, "g")] == [living._name]


def test_entries_that_others_wrote_in_another_form_are_no_stumbling_block(
    client: redis.Redis, prefix: str, stream: str
) -> None:
    worker = member(client, prefix)
    client.xadd(stream, {"something": "else"})
    (record,) = worker.poll(10, 0.5)
    assert (record.key, record.value) == (b"", b"")


def test_a_redis_that_is_away_keeps_what_is_published_until_it_is_back(prefix: str) -> None:
    gone = connect(f"redis://127.0.0.1:{free_port()}/0")
    transport = RedisStreamTransport(gone, prefix=prefix)
    for _ in range(redis_streams.PUBLISH_BATCH):
        transport.publish(topics.ALERTS, b"k", b"v")
    with pytest.raises(Unreachable, match="does not answer"):  # no more than a pipeline waits in memory
        transport.publish(topics.ALERTS, b"k", b"v")
    for _ in range(2):
        with pytest.raises(Unreachable, match="does not answer"):
            transport.flush(1)
    with pytest.raises(Unreachable):
        transport.poll(1, 0.1)
    transport.close()
    gone.close()
