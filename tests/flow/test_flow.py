"""The whole flow on real Kafka and Redis, and what may break on the way: the partition is the batch's all the same."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.config import Config
from clusterd.services import Services, open_services, process_pending, publish_sketches
from clusterd_consumer.transport.kafka_records import records
from clusterd_crawler import topics
from clusterd_crawler.sketch import Sketch

from tests.clusterd.command_line import clusterd
from tests.contract.index_world import Partition, expected, partition
from tests.flow.daemons import Daemons, daemons, made_up_crawl, until, wait_until_done
from tests.services.redis_server import free_port, redis_server

SESSION_TIMEOUT = "2"


@pytest.fixture(params=["redis", pytest.param("kafka", marks=pytest.mark.kafka)])
def group(request: pytest.FixtureRequest, redis_url: str, prefix: str, tmp_path: Path) -> Iterator[Daemons]:
    """Daemons on real Redis, with messages over Redis Streams and over Kafka."""
    settings = {"redis": redis_url, "redis_prefix": prefix, "claim_after": SESSION_TIMEOUT, "batch": "16"}
    if request.param == "kafka":
        settings |= kafka_settings(request.getfixturevalue("kafka_bootstrap"), prefix)
    with daemons(settings, tmp_path) as made:
        yield made


def kafka_settings(bootstrap: str, prefix: str) -> dict[str, str]:
    name = prefix.rstrip(":")
    return {
        "kafka": bootstrap,
        "kafka_prefix": f"{name}-",
        "group": name,
        "kafka_partitions": "4",
        "session_timeout": SESSION_TIMEOUT,
    }


def stored(services: Services) -> Partition:
    return partition(services.index)


def dead_value(letter: bytes) -> bytes:
    return b64decode(json.loads(letter)["value_b64"])


def publish_slowly(services: Services, crawl: list[Sketch]) -> None:
    for start in range(0, len(crawl), 20):
        publish_sketches(services, crawl[start : start + 20])
        time.sleep(0.02)


def test_two_daemons_one_of_them_killed_in_the_middle_reach_the_partition_of_the_batch(group: Daemons) -> None:
    crawl = made_up_crawl(1200, seed=1)
    with open_services(group.config()) as services:
        first, second = group.start(), group.start()
        until(lambda: len(reports(services)) == 2, say=group.said)
        publish_slowly(services, crawl[:700])
        first.send_signal(signal.SIGKILL)
        publish_slowly(services, crawl[700:])
        wait_until_done(services)
        assert second.poll() is None
        assert stored(services) == expected(crawl)
        assert services.index.counts()["documents"] == len({sketch.url for sketch in crawl})


def test_a_restarted_daemon_goes_on_where_it_stopped(group: Daemons) -> None:
    crawl = made_up_crawl(300, seed=2)
    with open_services(group.config()) as services:
        first = group.start()
        publish_slowly(services, crawl[:150])
        until(lambda: services.index.counts()["documents"] > 50, say=group.said)
        first.send_signal(signal.SIGTERM)
        assert first.wait(30) == 0, group.said()
        assert not services.daemon_alive()
        publish_slowly(services, crawl[150:])
        group.start()
        wait_until_done(services)
        assert stored(services) == expected(crawl)


def test_without_a_daemon_a_command_does_the_work(group: Daemons) -> None:
    crawl = made_up_crawl(200, seed=3)
    with open_services(group.config()) as services:
        publish_sketches(services, crawl)
        seen: list[int] = []
        assert process_pending(services, lambda done, left: seen.append(done)) == len(crawl)
        assert seen[-1] == len(crawl)
        assert stored(services) == expected(crawl)
        assert process_pending(services) == 0


def test_junk_on_the_topic_becomes_dead_letters_and_stops_nothing(group: Daemons) -> None:
    crawl = made_up_crawl(60, seed=4)
    chance = random.Random(4)
    junk = [chance.randbytes(chance.randrange(200)) for _ in range(20)]
    with open_services(group.config()) as services:
        for n, sketch in enumerate(crawl):
            if n % 3 == 0:
                services.publisher.publish(topics.SKETCHES, b"junk", junk[n // 3])
            publish_sketches(services, [sketch])
        process_pending(services)
        assert stored(services) == expected(crawl)
        assert services.dead_letters() == len(junk)
        if not group.config().uses_kafka():
            letters = services.redis.xrange(topics.stream(group.config().redis_prefix, topics.DEAD_LETTERS))
            assert sorted(dead_value(fields[b"v"]) for _, fields in letters) == sorted(junk)


def test_alerts_tell_of_every_page_that_finds_company(group: Daemons) -> None:
    crawl = made_up_crawl(200, seed=5)
    with open_services(group.config()) as services:
        publish_sketches(services, crawl)
        process_pending(services)
        alerts = list(services.alerts.since(0))
        told = {alert.url for alert in alerts}
        for cluster in services.index.clusters("near"):
            assert len(told & set(cluster.members)) >= cluster.size - 1
        assert {alert.policy for alert in alerts} <= {policy.name for policy in services.index.policies()}


def test_a_daemon_says_how_it_is(group: Daemons) -> None:
    with open_services(group.config()) as services:
        assert reports(services) == []
        process = group.start()
        until(lambda: [r["state"] for r in reports(services)] == ["running"], say=group.said)
        publish_sketches(services, made_up_crawl(30, seed=6))
        until(lambda: reports(services)[0]["messages"] == 30, say=group.said)
        assert reports(services)[0]["pid"] == process.pid


def test_who_does_not_name_the_daemons_log_has_them_tell_of_rules_and_brings_no_pages(
    group: Daemons, tmp_path: Path
) -> None:
    """Told Redis alone, a rule was retired in the store and used on by every crawl over Kafka."""
    config = group.config()
    (tmp_path / "page.html").write_text("<p>a page of a few words</p>")
    where = {"CLUSTERD_REDIS": config.redis, "CLUSTERD_REDIS_PREFIX": config.redis_prefix}
    right = where | {f"CLUSTERD_{name.upper()}": value for name, value in group.settings.items()}
    wrong = where if config.uses_kafka() else where | {"CLUSTERD_KAFKA": f"127.0.0.1:{free_port()}"}
    says = "name it, too (--kafka SERVERS" if config.uses_kafka() else "leave out --kafka"
    with open_services(config) as services:
        group.start()
        until(lambda: [r["state"] for r in reports(services)] == ["running"], say=group.said)
        done = clusterd("ingest", "page.html", folder=tmp_path, **wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert says in done.stderr
        assert clusterd("status", "--json", folder=tmp_path, **where).returncode == 0
        book = services.rulebook.book
        for number, environment in enumerate((wrong, right, wrong)):
            url = f"http://h.example/{number}"
            assert clusterd("unskip", url, folder=tmp_path, **environment).returncode == 0
            until(lambda: book.announced("h.example") == book.version("h.example"), say=group.said)
        until(lambda: not services.handed_over.waiting(), say=group.said)
        told = [json.loads(rules) for rules in rule_sets(services) if rules]
    assert [len(rules["unskip"]) for rules in told] == [1, 2, 3]


def rule_sets(services: Services) -> list[bytes]:
    """Return what the log has told of rules."""
    config = services.config
    if config.uses_kafka():
        return [value for _, value in records(config.kafka, config.kafka_prefix + topics.RULES)]
    entries: Any = services.redis.xrange(topics.stream(config.redis_prefix, topics.RULES))
    return [fields[topics.FIELD_VALUE] for _, fields in entries]


def reports(services: Services) -> list[dict[str, object]]:
    from clusterd.health import daemons as alive

    return alive(services.redis, services.config.redis_prefix)


@pytest.mark.kafka
def test_a_redis_that_lost_its_latest_state_is_caught_up_from_the_log(
    kafka_bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    """Redis is killed; it comes back with the files of some time ago, as from a backup, while the daemon runs on."""
    crawl = made_up_crawl(600, seed=7)
    durable = ("--appendonly", "yes", "--appendfsync", "always")
    port = free_port()
    settings = {"redis": f"redis://127.0.0.1:{port}/0", "redis_prefix": prefix, "batch": "16"}
    settings |= kafka_settings(kafka_bootstrap, prefix)
    with daemons(settings, tmp_path / "logs") as group:
        with redis_server(tmp_path / "redis", *durable, port=port), open_services(group.config()) as services:
            group.start()
            publish_slowly(services, crawl[:300])
            until(lambda: services.index.counts()["documents"] > 100, say=group.said)
            shutil.copytree(tmp_path / "redis", tmp_path / "backup")
            publish_slowly(services, crawl[300:])
            until(lambda: services.lag() == 0, say=group.said)
            begun = group.said().count("reading")
        with redis_server(tmp_path / "backup", *durable, port=port), open_services(group.config()) as services:
            until(lambda: "replaying from" in group.said() or group.said().count("reading") > begun)
            wait_until_done(services)
            until(lambda: stored(services) == expected(crawl), say=group.said)


@pytest.mark.cluster
def test_two_daemons_share_the_work_on_a_redis_cluster(redis_cluster_url: str, prefix: str, tmp_path: Path) -> None:
    crawl = made_up_crawl(400, seed=11)
    settings = {"redis": redis_cluster_url, "redis_prefix": prefix, "claim_after": SESSION_TIMEOUT, "batch": "16"}
    with daemons(settings, tmp_path) as group, open_services(group.config()) as services:
        first, second = group.start(), group.start()
        until(lambda: len(reports(services)) == 2, say=group.said)
        publish_slowly(services, crawl[:200])
        first.send_signal(signal.SIGKILL)
        publish_slowly(services, crawl[200:])
        wait_until_done(services)
        assert second.poll() is None
        assert stored(services) == expected(crawl)


@pytest.mark.kafka
def test_an_empty_redis_is_filled_from_the_log(kafka_bootstrap: str, redis_url: str, prefix: str) -> None:
    crawl = made_up_crawl(150, seed=8)
    given = {"redis": redis_url, **kafka_settings(kafka_bootstrap, prefix)}
    for store in ("one:", "two:"):
        config = Config.load(environment={}, options={**given, "redis_prefix": prefix + store})
        with open_services(config) as services:
            if store == "one:":
                publish_sketches(services, crawl)
            process_pending(services)
            assert stored(services) == expected(crawl)


@pytest.mark.kafka
def test_alerts_and_dead_letters_are_on_kafka_too(kafka_bootstrap: str, redis_url: str, prefix: str) -> None:
    from kafka import KafkaConsumer

    options = {"redis": redis_url, "redis_prefix": prefix, **kafka_settings(kafka_bootstrap, prefix)}
    config = Config.load(environment={}, options=options)
    with open_services(config) as services:
        publish_sketches(services, made_up_crawl(40, seed=9))
        services.publisher.publish(topics.SKETCHES, b"k", b"junk")
        process_pending(services)
        alerts = list(services.alerts.since(0))
    names = [config.kafka_prefix + topics.ALERTS, config.kafka_prefix + topics.DEAD_LETTERS]
    consumer = KafkaConsumer(
        *names, bootstrap_servers=kafka_bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=3000
    )
    records = list(consumer)
    consumer.close()
    sent = [json.loads(record.value) for record in records if record.topic == names[0]]
    assert sorted(alert["url"] for alert in sent) == sorted(alert.url for alert in alerts)
    assert [dead_value(record.value) for record in records if record.topic == names[1]] == [b"junk"]


def test_the_embedded_store_keeps_everything_between_two_commands(tmp_path: Path) -> None:
    crawl = made_up_crawl(120, seed=10)
    config = Config.load(environment={}, options={"data": str(tmp_path / "data")})
    with open_services(config) as services:
        publish_sketches(services, crawl[:60])
        process_pending(services)
        publish_sketches(services, crawl[60:])
    with open_services(config) as services:
        process_pending(services)
        assert stored(services) == expected(crawl)
        assert isinstance(services.redis, redis.Redis)
