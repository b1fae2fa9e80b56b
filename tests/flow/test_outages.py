"""Stores and brokers that die under a running daemon, and come back: it waits, says so, and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusterd.config import Config
from clusterd.daemon import END_SECONDS
from clusterd.services import Services, open_services, publish_sketches
from clusterd.working import work_off
from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.insisting import Insisting
from clusterd_consumer.worker import Worker
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch

from clusterd import health
from tests.contract.index_world import expected, partition
from tests.flow.daemons import daemons, made_up_crawl, until, wait_until_done
from tests.services.kafka_broker import KafkaBroker
from tests.services.redis_server import free_port, redis_server

#: Seconds in which a batch arrives, the broker is frozen, takes nothing for 10, and does not say why for 5.
FROZEN_SEEN = 25.0


def test_an_embedded_store_that_crashes_is_back_before_anybody_asks(tmp_path: Path) -> None:
    crawl = made_up_crawl(400, seed=30)
    with (
        daemons({"data": str(tmp_path / "data"), "batch": "16"}, tmp_path) as group,
        open_services(group.config()) as services,
    ):
        process = group.start()
        until(services.daemon_alive, say=group.said)
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
            until(services.daemon_alive, say=group.said)
            publish_sketches(services, crawl)
        with open_services(group.config()) as services:
            wait_until_done(services)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert partition(services.index) == expected(crawl)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
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
        until(lambda: services.index.counts()["documents"] > 50, say=group.said)
        own_broker.kill()
        own_broker.start()
        publish_sketches(services, crawl[150:])
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)
        until(lambda: [one["state"] for one in health.daemons(services.redis, prefix)] == ["running"])


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
def test_a_daemon_whose_broker_is_frozen_ends_within_seconds_and_loses_nothing(
    own_broker: KafkaBroker, redis_url: str, prefix: str, tmp_path: Path
) -> None:
    crawl = made_up_crawl(600, seed=33)
    settings = {"redis": redis_url, "redis_prefix": prefix, "kafka": own_broker.bootstrap, "session_timeout": "2"}
    own_broker.start()
    with daemons({**settings, "batch": "32"}, tmp_path) as group, open_services(group.config()) as services:
        process = group.start()
        until(services.daemon_alive, say=group.said)
        publish_sketches(services, crawl)
        until(lambda: services.index.counts()["documents"] > 30, say=group.said)
        own_broker.signal(signal.SIGSTOP)
        asked = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert time.monotonic() - asked < END_SECONDS + 4, group.said()
        own_broker.signal(signal.SIGCONT)
        group.start()
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
def test_a_broker_that_takes_nothing_is_told_as_trouble(own_broker: KafkaBroker, redis_url: str, prefix: str) -> None:
    own_broker.start()
    troubles: list[str] = []
    config = Config(kafka=own_broker.bootstrap, redis=redis_url, redis_prefix=prefix)
    with open_services(config) as services:
        transport = services.transport()

        def hand_on(*_: object) -> None:
            transport.publish(topics.ALERTS, b"key", b"value")
            transport.flush(30)  # from now on the client knows where this key belongs
            own_broker.signal(signal.SIGSTOP)
            transport.publish(topics.ALERTS, b"key", b"value")

        dead = DeadLetters(transport, services.redis, prefix)
        worker = Worker(transport, services.index, hand_on, dead, on_trouble=troubles.append)
        publish_sketches(services, made_up_crawl(1, seed=38))
        working = threading.Thread(target=lambda: until(lambda: worker.step() > 0))
        working.start()
        try:
            until(lambda: bool(troubles), FROZEN_SEEN)
        finally:
            own_broker.signal(signal.SIGCONT)
            working.join(60)
            worker.leave()
    assert not working.is_alive()
    assert troubles[-1] == ""


def test_a_redis_that_is_full_is_waited_for_and_said_and_still_asked(tmp_path: Path) -> None:
    crawl = made_up_crawl(400, seed=34)
    with (
        redis_server(tmp_path / "redis") as url,
        daemons({"redis": url}, tmp_path) as group,
        open_services(group.config()) as services,
    ):
        process = group.start()
        until(services.daemon_alive, say=group.said)
        publish_sketches(services, crawl[:200])
        wait_until_done(services)
        process.send_signal(signal.SIGSTOP)
        publish_sketches(services, crawl[200:])
        services.redis.config_set("maxmemory", 1)
        process.send_signal(signal.SIGCONT)

        def waits() -> bool:
            said = health.daemons(services.redis, "clusterd:")
            return [one["state"] for one in said] == ["waiting"] and "maxmemory" in said[0]["last_error"]

        until(waits, say=group.said)
        assert "Redis is full" in group.said()
        process.kill()
        process.wait()
        (left,) = health.daemons(services.redis, "clusterd:")
        health.leave(services.redis, "clusterd:", health.Report(id=left["id"]))
        asked = subprocess.run(
            [sys.executable, "-m", "clusterd", "clusters", "--policy", "identical", "--redis", url, "--json"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert len(asked.stdout.splitlines()) == len(list(services.index.clusters("identical")))
        assert "Redis is full" in asked.stderr
        assert "left for later" in asked.stderr
        services.redis.config_set("maxmemory", 0)
        group.start()
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)


@pytest.mark.parametrize("key", ["{0}:pv", "{0}:n:0", "{0}:whole:k:0", "stream:alerts"])
def test_pages_wait_while_a_key_of_the_store_is_another_program_s(redis_url: str, prefix: str, key: str) -> None:
    """Each was a dead letter, or told of nobody, as if it were to blame."""
    crawl = made_up_crawl(60, seed=32)
    with open_services(Config(redis=redis_url, redis_prefix=prefix, whole=True)) as services:
        services.redis.zadd(f"{prefix}{key}", {"theirs": 1})
        publish_sketches(services, crawl)
        with pytest.raises(Unreachable, match="another program has written under"):
            work_off(services, insist=Insisting(patience=0.2))
        assert services.dead_letters() == 0
        assert services.redis.zrange(f"{prefix}{key}", 0, -1) == [b"theirs"]
        services.redis.delete(f"{prefix}{key}")
    with open_services(Config(redis=redis_url, redis_prefix=prefix, claim_after=0.5)) as services:
        work_off(services)
        assert services.dead_letters() == 0
        assert partition(services.index) == expected(crawl)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_redis_that_would_evict_pages_is_given_none_and_said(tmp_path: Path, policy: str) -> None:
    """Of 1,487 keys one that was full dropped 769; the daemon ran on, of good pages 211 were dead letters.

    Of those that expire it dropped the evidence of rules and the reports of daemons, which commands then took for dead.
    """
    crawl = made_up_crawl(40, seed=35)
    with (
        redis_server(tmp_path / "redis", "--maxmemory", "64mb", "--maxmemory-policy", policy) as url,
        daemons({"redis": url}, tmp_path) as group,
        open_services(group.config()) as services,
    ):
        for work in (lambda: publish_sketches(services, crawl), lambda: work_off(services)):
            with pytest.raises(Unreachable, match="when it is full: set its maxmemory-policy to noeviction"):
                work()
        group.start()

        def waits() -> bool:
            said = health.daemons(services.redis, "clusterd:")
            return [one["state"] for one in said] == ["waiting"] and "noeviction" in said[0]["last_error"]

        until(waits, say=group.said)
        services.redis.config_set("maxmemory-policy", "noeviction")
        publish_sketches(services, crawl)
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)


def test_a_redis_that_would_evict_pages_from_now_on_is_given_none(tmp_path: Path) -> None:
    """Set so under a running daemon, one that was full dropped keys of 600 pages; of 3,000 good ones 173 were lost."""
    crawl = made_up_crawl(80, seed=37)
    with (
        redis_server(tmp_path / "redis", "--maxmemory", "64mb") as url,
        daemons({"redis": url}, tmp_path) as group,
        open_services(group.config()) as services,
    ):
        group.start()
        publish_sketches(services, crawl[:40])
        wait_until_done(services)
        services.redis.config_set("maxmemory-policy", "allkeys-lru")
        until(lambda: "set its maxmemory-policy to noeviction" in group.said(), say=group.said)
        with pytest.raises(Unreachable, match="set its maxmemory-policy to noeviction"):
            publish_sketches(services, crawl[40:])
        until(lambda: [one["state"] for one in health.daemons(services.redis, "clusterd:")] == ["waiting"])
        services.redis.config_set("maxmemory-policy", "noeviction")
        publish_sketches(services, crawl[40:])
        wait_until_done(services)
        assert partition(services.index) == expected(crawl)


def test_who_follows_alerts_goes_on_where_the_store_was_away(tmp_path: Path) -> None:
    crawl, port, kept = made_up_crawl(120, seed=36), free_port(), ("--appendonly", "yes")
    command = [
        sys.executable,
        "-m",
        "clusterd",
        "alerts",
        "--follow",
        "--json",
        "--redis",
        f"redis://127.0.0.1:{port}/0",
    ]
    told, said = tmp_path / "told", tmp_path / "said"

    def works_off(services: Services, pages: Sequence[Sketch]) -> list[str]:
        publish_sketches(services, pages)
        work_off(services)
        return [alert.to_bytes().decode() for alert in services.alerts.since()]

    with told.open("wb") as out, said.open("wb") as err:
        with redis_server(tmp_path / "redis", *kept, port=port) as url, open_services(Config(redis=url)) as services:
            works_off(services, crawl[:60])
            follower = subprocess.Popen([*command, "--since", "1h"], stdout=out, stderr=err)
            until(lambda: bool(told.read_text()), say=said.read_text)
        try:
            until(lambda: "trying again" in said.read_text(), say=said.read_text)
            with (
                redis_server(tmp_path / "redis", *kept, port=port) as url,
                open_services(Config(redis=url)) as services,
            ):
                alerts = works_off(services, crawl[60:])
                until(lambda: len(told.read_text().splitlines()) == len(alerts), say=said.read_text)
                assert list(map(json.loads, told.read_text().splitlines())) == list(map(json.loads, alerts))
            follower.send_signal(signal.SIGTERM)
            assert follower.wait(20) == 0
        finally:
            follower.kill()
            follower.wait()
    assert said.read_text().count("trying again") == 1
