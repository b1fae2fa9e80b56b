"""The publisher where what it sends to, or writes to, hangs: nobody waits for it, and what is lost is counted."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.publish.spool import Entry, Spool

from tests.crawler.test_publish import LIMIT, values
from tests.services.waiting import wait_until


def hanging(folder: Path) -> Spool:
    made = Spool(folder, LIMIT)
    os.mkfifo(folder / f"{made.owner}-00000001.spool")  # what nobody reads is full after 64 kB
    return made


def test_a_disk_that_hangs_blocks_nobody(prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd_crawler.publish.publisher.RETRY_SECONDS", (0.05, 0.05))

    def offered(value: bytes) -> bool:
        offering = threading.Thread(target=out.offer, args=(b"key", value), daemon=True)
        offering.start()
        offering.join(30)
        return not offering.is_alive()

    log, spool = f"unix://{tmp_path}/nowhere.sock", tmp_path / "spool"
    out = Publisher(lambda: RedisLog(log, "s"), lambda: hanging(spool), capacity=100)
    wait_until(lambda: list(spool.glob("*.spool")))
    reader = os.open(next(spool.glob("*.spool")), os.O_RDWR)
    assert offered(bytes(100_000))
    time.sleep(0.3)  # the keeper has it in hand, and the queue is empty when the sender looks for more
    assert offered(b"next")
    os.set_blocking(reader, False)
    while out.counts.spooled < 2:
        with suppress(BlockingIOError):
            os.read(reader, 1 << 20)
        time.sleep(0.01)
    out.close(1)
    os.close(reader)


def test_what_a_log_that_hangs_has_in_hand_at_the_end_waits_for_the_next_crawl(tmp_path: Path) -> None:
    on = threading.Event()

    class Hanging:
        def send(self, entries: Sequence[Entry]) -> None:
            if entries:
                on.wait(60)

        def close(self) -> None:
            pass

    out = Publisher(Hanging, lambda: Spool(tmp_path, LIMIT), capacity=100)
    out.offer_together([(b"key", value) for value in values(3)])
    wait_until(lambda: out._in_flight)
    out.offer(b"key", b"%06d" % 3)
    out.close(0.1)
    assert (out.counts.spooled, out.counts.dropped) == (4, 0)
    out.offer(b"key", b"too late")
    assert out.counts.dropped == 1
    next_one = Spool(tmp_path, LIMIT)
    assert [value for _, value in next_one.read(9).entries] == values(4)
    next_one.close()
    on.set()


def test_at_the_end_all_that_a_disk_which_hangs_has_not_taken_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the keeper had in hand was counted nowhere."""
    monkeypatch.setattr("clusterd_crawler.publish.publisher.KEEPER_SECONDS", 0.2)
    log, spool = f"unix://{tmp_path}/nowhere.sock", tmp_path / "spool"
    out = Publisher(lambda: RedisLog(log, "s"), lambda: hanging(spool), capacity=100)
    wait_until(lambda: list(spool.glob("*.spool")))
    reader = os.open(next(spool.glob("*.spool")), os.O_RDWR)
    out.offer(b"key", bytes(100_000))
    wait_until(lambda: out._moving)
    out.offer(b"key", b"next")
    out.close(0.1)
    assert (out.counts.dropped, out.counts.spooled) == (2, 0)
    assert "2 messages are lost" in caplog.text
    os.set_blocking(reader, False)
    while out._keeper.is_alive():
        with suppress(BlockingIOError):
            os.read(reader, 1 << 20)
        time.sleep(0.01)
    os.close(reader)
