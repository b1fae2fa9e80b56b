"""Stores and brokers that die under a running daemon, and come back: it waits, says so, and loses nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from clusterd.daemon import END_SECONDS
from clusterd.services import open_services, publish_sketches
from clusterd_crawler.errors import Unreachable

from clusterd import health
from tests.contract.index_world import expected, partition
from tests.flow.daemons import daemons, made_up_crawl, until, wait_until_done
from tests.services.kafka_broker import KafkaBroker


def test_an_embedded_store_that_crashes_is_back_before_anybody_asks(tmp_path: Path) -> None:
    crawl = made_up_crawl(400, seed=30)
    with (
        daemons({"data": str(tmp_path / "data"), "batch": "16"}, tmp_path) as group,
        open_services(group.config()) as services,
    ):
        process = group.start()
        until(services.daemon_alive, say=group.said())
        publish_sketches(services, crawl[:200])
        os.kill(int(services.redis.info("server")["process_id"]), signal.SIGKILL)

        def published() -> bool:
            try:
                publish_sketches(services, crawl[200:])
            except Unreachable:
                return False
            return True

        until(published)
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)
        assert process.poll() is None
        assert "Traceback" not in group.said()


def test_two_commands_and_a_daemon_share_an_embedded_store(tmp_path: Path) -> None:
    crawl = made_up_crawl(100, seed=31)
    with daemons({"data": str(tmp_path / "data")}, tmp_path) as group:
        process = group.start()
        with open_services(group.config()) as services:
            until(services.daemon_alive, say=group.said())
            publish_sketches(services, crawl)
        with open_services(group.config()) as services:
            wait_until_done(services)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert partition(services.index) == expected(crawl)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see own_broker
def test_a_broker_that_starts_late_and_dies_in_between_is_waited_for(
    own_broker: KafkaBroker, redis_url: str, prefix: str, tmp_path: Path
) -> None:
    crawl = made_up_crawl(300, seed=32)
    settings = {"redis": redis_url, "redis_prefix": prefix, "kafka": own_broker.bootstrap, "session_timeout": "2"}
    with daemons(settings, tmp_path) as group, open_services(group.config()) as services:
        group.start()
        until(lambda: [one["state"] for one in health.daemons(services.redis, prefix)] == ["waiting"])
        own_broker.start()
        publish_sketches(services, crawl[:150])
        until(lambda: services.index.counts()["documents"] > 50, say=group.said())
        own_broker.kill()
        own_broker.start()
        publish_sketches(services, crawl[150:])
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)
        until(lambda: [one["state"] for one in health.daemons(services.redis, prefix)] == ["running"])


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see own_broker
def test_a_daemon_whose_broker_is_frozen_ends_within_seconds_and_loses_nothing(
    own_broker: KafkaBroker, redis_url: str, prefix: str, tmp_path: Path
) -> None:
    crawl = made_up_crawl(600, seed=33)
    settings = {"redis": redis_url, "redis_prefix": prefix, "kafka": own_broker.bootstrap, "session_timeout": "2"}
    own_broker.start()
    with daemons({**settings, "batch": "32"}, tmp_path) as group, open_services(group.config()) as services:
        process = group.start()
        until(services.daemon_alive, say=group.said())
        publish_sketches(services, crawl)
        until(lambda: services.index.counts()["documents"] > 30, say=group.said())
        own_broker.signal(signal.SIGSTOP)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert time.monotonic() - asked < END_SECONDS + 4, group.said()
        own_broker.signal(signal.SIGCONT)
        group.start()
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)
