"""The publisher over a real Redis that is up, down, frozen, full; and what its spool does meanwhile."""

from __future__ import annotations

import errno
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from clusterd_crawler import topics
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.publish.publisher import LINGER_SECONDS, Publisher
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.publish.spool import Entry, Spool
from clusterd_crawler.servers.redis_client import connect

from tests.crawler.outage import Server
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

LIMIT = 50 * 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    made = Server(folder)
    yield made
    made.stop()


@contextmanager
def publisher(
    url: str, prefix: str, folder: Path, capacity: int = 100, limit: int = LIMIT, log: type[RedisLog] = RedisLog
) -> Iterator[Publisher]:
    stream = topics.stream(prefix, topics.SKETCHES)
    made = Publisher(lambda: log(url, stream), lambda: Spool(folder / "spool", limit), capacity)
    try:
        yield made
    finally:
        made.close(5)


def arrived(url: str, prefix: str) -> list[bytes]:
    with redis.Redis.from_url(url) as client:
        entries = client.xrange(topics.stream(prefix, topics.SKETCHES))
        return [fields[topics.FIELD_VALUE] for _, fields in entries]


def values(count: int, start: int = 0) -> list[bytes]:
    return [b"%06d" % n for n in range(start, start + count)]


def test_all_arrives_in_order(redis_url: str, prefix: str, tmp_path: Path) -> None:
    with publisher(redis_url, prefix, tmp_path, capacity=5000) as out:
        for value in values(3000):
            out.offer(b"key", value)
    assert arrived(redis_url, prefix) == values(3000)
    assert (out.counts.published, out.counts.spooled, out.counts.dropped) == (3000, 0, 0)


def test_a_single_message_goes_out_though_nothing_follows(redis_url: str, prefix: str, tmp_path: Path) -> None:
    with publisher(redis_url, prefix, tmp_path) as out:
        wait_until(lambda: out.reachable)
        for number in (1, 2):
            time.sleep(2 * LINGER_SECONDS)  # by then the sender waits for no more to come with it
            out.offer(b"key", b"alone")
            wait_until(lambda number=number: out.counts.published == number)


def test_gathered_messages_wait_for_the_rest_of_them(redis_url: str, prefix: str, tmp_path: Path) -> None:
    entries = [(b"key", value) for value in values(20)]
    with publisher(redis_url, prefix, tmp_path) as out:
        wait_until(lambda: out.reachable)
        time.sleep(2 * LINGER_SECONDS)
        out.offer_together(entries[:10], more=True)
        time.sleep(2 * LINGER_SECONDS)
        assert arrived(redis_url, prefix) == []
        out.offer_together(entries[10:15])
        wait_until(lambda: out.counts.published == 15)
        out.offer_together(entries[15:], more=True)
        out.offer_together([])  # the rest of them were no pages
        wait_until(lambda: out.counts.published == 20)
    assert arrived(redis_url, prefix) == values(20)


def test_a_log_that_is_away_at_the_start_gets_all_when_it_comes(
    server: Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd_crawler.publish.publisher.RETRY_SECONDS", (3.0, 3.0))
    with publisher(server.url, prefix, tmp_path) as out:
        longest = 0.0
        for value in values(1000):
            before = time.perf_counter()
            out.offer(b"key", value)
            longest = max(longest, time.perf_counter() - before)
            time.sleep(0.0005)
        assert longest < 1.5  # it is asked again every 3 s: nobody who offers waits for that
        wait_until(lambda: out.counts.spooled == 1000)
        server.start()
        wait_until(lambda: out.counts.published == 1000)
    assert arrived(server.url, prefix) == values(1000)
    assert out.counts.dropped == 0


def test_a_log_that_dies_in_the_middle_loses_nothing(server: Server, prefix: str, tmp_path: Path) -> None:
    server.start()
    with publisher(server.url, prefix, tmp_path) as out:
        for value in values(500):
            out.offer(b"key", value)
            time.sleep(0.0005)
        wait_until(lambda: out.counts.published > 100)
        server.stop()
        for value in values(500, start=500):
            out.offer(b"key", value)
            time.sleep(0.0005)
        wait_until(lambda: not out.reachable)
        server.start()
        wait_until(lambda: out.counts.published == 1000)
    assert set(arrived(server.url, prefix)) == set(values(1000))
    assert out.counts.spooled >= 1
    assert out.counts.dropped == 0


def test_a_small_queue_leaves_to_the_spool_what_comes_at_once(redis_url: str, prefix: str, tmp_path: Path) -> None:
    sent = values(500)
    with publisher(redis_url, prefix, tmp_path, capacity=1) as out:
        out.offer_together((b"key", value) for value in sent)
        wait_until(lambda: out.counts.published == len(sent))
    assert (out.counts.dropped, sorted(arrived(redis_url, prefix))) == (0, sent)


def test_a_frozen_log_blocks_nobody(
    server: Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clusterd_crawler.servers.redis_client.ANSWER_SECONDS", 200.0)
    server.start()
    with publisher(server.url, prefix, tmp_path, capacity=50) as out:
        out.offer(b"key", b"first")
        wait_until(lambda: out.counts.published == 1)
        server.send_signal(signal.SIGSTOP)
        for value in values(1000):
            out.offer(b"key", value)
            time.sleep(0.0005)
        wait_until(lambda: out.counts.spooled > 500)  # while the sender still waits for its answer
        server.send_signal(signal.SIGCONT)
        wait_until(lambda: out.counts.published == 1001)
    assert set(arrived(server.url, prefix)) == {b"first", *values(1000)}
    assert out.counts.dropped == 0


def test_what_the_log_never_took_waits_for_the_next_crawl(server: Server, prefix: str, tmp_path: Path) -> None:
    with publisher(server.url, prefix, tmp_path, capacity=10_000) as out:
        for value in values(300):
            out.offer(b"key", value)
        started = time.monotonic()
        out.close(60, unanswered=0.5)
        assert time.monotonic() - started < 5
    server.start()
    with publisher(server.url, prefix, tmp_path) as out:
        wait_until(lambda: out.counts.published == 300)
    assert arrived(server.url, prefix) == values(300)


def test_a_log_that_is_back_when_the_crawl_ends_gets_all(
    server: Server, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow(RedisLog):
        def send(self, entries: Sequence[Entry]) -> None:
            super().send(entries)
            time.sleep(1.0 if entries else 0.0)  # as long as one is waited for that does not answer

    monkeypatch.setattr("clusterd_crawler.publish.publisher.RETRY_SECONDS", (60.0, 60.0))
    with publisher(server.url, prefix, tmp_path, capacity=1000, log=Slow) as out:
        wait_until(lambda: "does not answer" in caplog.text)  # and would be asked again in a minute
        server.start()
        for value in values(300):
            out.offer(b"key", value)
        out.close(10, unanswered=1.0)
        assert out.counts.published == 300
    assert arrived(server.url, prefix) == values(300)


def test_what_is_on_its_way_to_a_slow_disk_at_the_end_is_sent(server: Server, prefix: str, tmp_path: Path) -> None:
    class Slow(Spool):
        def append(self, entries: Sequence[Entry]) -> tuple[int, int]:
            time.sleep(1)
            return super().append(entries)

    log = f"{prefix}stream:slow"
    out = Publisher(lambda: RedisLog(server.url, log), lambda: Slow(tmp_path / "spool", LIMIT), capacity=100)
    out.offer_together((b"key", value) for value in values(50))
    wait_until(lambda: not out._queue)
    server.start()
    out.close(10, unanswered=10)
    assert out.counts.published == 50


def test_beyond_the_spool_the_oldest_are_dropped_and_counted(
    server: Server, prefix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with publisher(server.url, prefix, tmp_path, limit=512 * 1024) as out:
        for value in values(2000):
            out.offer(b"key", value.ljust(1000))
            time.sleep(0.0002)
        wait_until(lambda: out.counts.spooled == 2000)
        lost = out.counts.dropped
        assert 0 < lost < 2000
        assert caplog.text.count("Messages are dropped") == 1
        server.start()
        wait_until(lambda: out.counts.published == 2000 - lost)
    assert [value.strip() for value in arrived(server.url, prefix)] == values(2000 - lost, start=lost)


def test_a_spool_that_is_deleted_under_the_crawl_stops_nothing(server: Server, prefix: str, tmp_path: Path) -> None:
    with publisher(server.url, prefix, tmp_path) as out:
        for value in values(50):
            out.offer(b"key", value)
        wait_until(lambda: out.counts.spooled == 50)
        shutil.rmtree(tmp_path / "spool")
        server.start()
        wait_until(lambda: out.counts.dropped == 50)
        out.offer(b"key", b"later")
        wait_until(lambda: out.counts.published == 1)
    assert arrived(server.url, prefix) == [b"later"]


def test_without_a_spool_the_queue_still_serves(server: Server, prefix: str, tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file in the way")
    with publisher(server.url, prefix, tmp_path, capacity=100) as out:
        for value in values(90):
            out.offer(b"key", value)
        server.start()
        wait_until(lambda: out.counts.published == 90)
    assert arrived(server.url, prefix) == values(90)


def test_a_fault_of_the_client_library_loses_nothing(redis_url: str, prefix: str, tmp_path: Path) -> None:
    class Faulty(RedisLog):
        faults = 3

        def send(self, entries: Sequence[Entry]) -> None:
            if entries and Faulty.faults:
                Faulty.faults -= 1
                raise KeyError("a client library's own")
            super().send(entries)

    stream = topics.stream(prefix, topics.SKETCHES)
    out = Publisher(lambda: Faulty(redis_url, stream), lambda: Spool(tmp_path / "spool", LIMIT), capacity=5000)
    for value in values(600):
        out.offer(b"key", value)
    wait_until(lambda: Faulty.faults == 0 and out.counts.published == 600)
    out.close(5)
    assert arrived(redis_url, prefix) == values(600)
    assert out.counts.dropped == 0


@pytest.mark.parametrize("meanwhile", [0, 30, 90])
def test_what_a_full_disk_refuses_waits_in_the_queue(
    server: Server,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    meanwhile: int,
) -> None:
    """What has come ``meanwhile`` is later, and has its room there first."""
    come = values(meanwhile, start=60)

    def full(file: int, packed: bytes) -> int:
        while come:
            out.offer(b"key", come.pop(0))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("clusterd_crawler.publish.spool._write_all", full)
    with publisher(server.url, prefix, tmp_path, capacity=100) as out:
        out.offer_together((b"key", value) for value in values(60))
        wait_until(lambda: "cannot write" in caplog.text and not out._moving)
        assert (len(out._queue), out.counts.dropped) == (min(100, 60 + meanwhile), max(0, meanwhile - 40))
        for value in values(90 - meanwhile, start=60 + meanwhile):
            out.offer(b"key", value)
        wait_until(lambda: out.counts.dropped == 50)
        server.start()
        wait_until(lambda: out.counts.published == 100)
        assert arrived(server.url, prefix) == values(100, start=50)


def test_a_cluster_knows_the_crawl_by_the_name_in_its_url(redis_cluster_url: str) -> None:
    default = connect(redis_cluster_url)
    default.execute_command("ACL SETUSER", "crawl", "on", ">secret", "~*", "&*", "+@all", target_nodes="all")
    try:
        named = connect(redis_cluster_url.replace("://", "://crawl:secret@"))
        assert set(named.execute_command("ACL WHOAMI", target_nodes="all").values()) == {"crawl"}
        named.close()
        with pytest.raises(Unreachable) as refused:
            connect(redis_cluster_url.replace("://", "://crawl:open-sesame@"))
        assert "crawl:***@" in str(refused.value)
        assert "open-sesame" not in str(refused.value)
    finally:
        default.execute_command("ACL DELUSER", "crawl", target_nodes="all")
        default.close()


def test_a_kafka_that_is_not_there_is_unreachable_in_bounded_time() -> None:
    started = time.monotonic()
    with pytest.raises(Unreachable, match="no Kafka"):
        KafkaLog(f"kafka://127.0.0.1:{free_port()}", "sketches")
    assert time.monotonic() - started < 10


def test_a_missing_client_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SettingError, match=r"clusterd\[redis\]"):
        RedisLog("redis://127.0.0.1:1", "s")
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(SettingError, match=r"clusterd\[kafka\]"):
        KafkaLog("127.0.0.1:1", "s")


def test_where_there_is_no_spool_none_is_promised(
    prefix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")
    with publisher(f"unix://{tmp_path}/nowhere.sock", prefix, tmp_path, capacity=1) as out:
        out.offer(b"key", b"1")
        out.offer(b"key", b"2")
        wait_until(lambda: out.counts.dropped and "does not answer" in caplog.text)
    assert "There is no spool" in caplog.text
    assert "messages go to the spool" not in caplog.text
