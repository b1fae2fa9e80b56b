"""A Kafka with an authorizer: what docs/operations.md grants is enough, and what is not granted is said in one line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterd.config import Config
from clusterd.health import Report
from clusterd.services import Services, open_services
from clusterd.upkeep import Upkeep
from clusterd_consumer.transport import kafka_topics
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from clusterd_crawler.errors import Forbidden, Unreachable
from clusterd_crawler.message import encode
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.subscribe.kafka_feed import KafkaFeed
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from tests.clusterd.made_up_rules import HOST, duplicates, sid_rule
from tests.conftest import needs_kafka
from tests.crawler.crawling import Crawling
from tests.crawler.site import running
from tests.flow.daemons import daemons, made_up_crawl, until
from tests.services.kafka_broker import KafkaBroker
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

pytestmark = pytest.mark.kafka

USERS = ("daemon", "crawl", "nobody", "reader", "lacking", "deaf", "writer")
#: The listener without passwords is the operator's.
GUARDED = """
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093,SASL://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:9092,SASL://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
GRANTED = {
    "daemon": dict.fromkeys(kafka_topics.TOPICS, "WRITE") | {topics.SKETCHES: "READ", topics.RULES: "READ WRITE"},
    "crawl": {topics.SKETCHES: "WRITE", topics.RULES: "READ", topics.VERDICTS: "READ", topics.KNOWN: "READ"},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the broker's address for each user, and for the operator."""
    needs_kafka()
    port = free_port()
    users = [f"SCRAM-SHA-256=[name={user},password=secret]" for user in USERS]
    broker = KafkaBroker(tmp_path_factory.mktemp("guarded"), GUARDED.format(port=port), users)
    broker.start()
    try:
        yield {user: f"kafka://{user}:secret@127.0.0.1:{port}?mechanism=SCRAM-SHA-256" for user in USERS} | {
            "operator": f"kafka://{broker.bootstrap}"
        }
    finally:
        broker.kill()


def grant(bootstrap: str, user: str, kind: ResourceType, name: str, operations: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.removeprefix("kafka://"))
    resource = ResourcePattern(kind, name)
    may = ACLPermissionType.ALLOW
    admin.create_acls([ACL(f"User:{user}", "*", ACLOperation[one], may, resource) for one in operations.split()])
    admin.close()


def test_who_may_not_make_a_topic_is_told_so_in_one_line(guarded: dict[str, str]) -> None:
    with pytest.raises(Unreachable, match=r"lets us make no topic sketches: .*create_topics") as raised:
        kafka_topics.ensure(guarded["nobody"])
    assert "Request" not in str(raised.value)
    with pytest.raises(Unreachable, match="InvalidTopicError") as raised:
        kafka_topics.ensure(guarded["operator"], "no topic/")
    assert "is invalid" in str(raised.value)
    assert "Request" not in str(raised.value)


def test_what_is_documented_is_enough(guarded: dict[str, str]) -> None:
    kafka_topics.ensure(guarded["operator"])
    for user, named in GRANTED.items():
        for topic, operations in named.items():
            grant(guarded["operator"], user, ResourceType.TOPIC, topic, operations)
    grant(guarded["operator"], "daemon", ResourceType.GROUP, "ours", "READ")
    log, feed = KafkaLog(guarded["crawl"], topics.SKETCHES), KafkaFeed(guarded["crawl"], "", known_since=0)
    daemon = KafkaTransport(guarded["daemon"], group="ours")
    feed.poll(1.0)  # verdicts are read from here on
    log.send([(b"url", b"page")])
    wait_until(lambda: any(record.value == b"page" for record in daemon.poll(10, 0.5)), 30)
    for topic in (topics.RULES, topics.KNOWN, topics.VERDICTS, topics.ALERTS, topics.DEAD_LETTERS):
        daemon.publish(topic, b"host", topic.encode())
    daemon.flush(30)
    heard: set[str] = set()
    wait_until(lambda: heard.update(news.topic for news in feed.poll(0.5)) or len(heard) == 3, 30)
    assert daemon.backlog() >= 0
    for one in (log, feed, daemon):
        one.close()


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(Forbidden) as raised:
        work()
    return str(raised.value)


def test_what_is_lacking_is_named(guarded: dict[str, str]) -> None:
    """To who knows of a topic, and to who does not."""
    kafka_topics.ensure(guarded["operator"])
    grant(guarded["operator"], "reader", ResourceType.TOPIC, topics.RULES, "WRITE")
    log = KafkaLog(guarded["reader"], topics.SKETCHES)
    assert "our user needs Write on the topic sketches (" in refused(lambda: log.send([(b"k", b"v")]))
    log.close()
    assert "our user needs Read on the topic verdicts (" in refused(lambda: KafkaFeed(guarded["reader"], ""))
    grant(guarded["operator"], "reader", ResourceType.TOPIC, topics.VERDICTS, "READ")
    feed = KafkaFeed(guarded["reader"], "")
    assert "our user needs Read on the topic rules (" in refused(lambda: feed.poll(5))
    feed.close()


def test_a_daemon_says_which_right_it_lacks_and_goes_on_when_it_has_it(
    guarded: dict[str, str], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    operator, user = guarded["operator"], "lacking"
    kafka_topics.ensure(operator)
    for topic in (topics.RULES, topics.VERDICTS, topics.KNOWN, topics.DEAD_LETTERS):
        grant(operator, user, ResourceType.TOPIC, topic, "READ WRITE")
    grant(operator, user, ResourceType.TOPIC, topics.SKETCHES, "READ")
    grant(operator, user, ResourceType.TOPIC, topics.ALERTS, "DESCRIBE")
    settings = {"kafka": guarded[user], "redis": redis_url, "redis_prefix": prefix, "group": "lacking"}
    with daemons(settings, tmp_path) as group, open_services(group.config()) as services:
        group.start()
        kinds = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
        asked = [("Read", "group", "lacking"), ("Write", "topic", topics.ALERTS)]
        with Services(Config(redis=redis_url, redis_prefix=prefix, kafka=operator)) as bringing:
            for message in made_up_crawl(40, seed=3):
                bringing.publisher.publish(topics.SKETCHES, message.url.encode(), encode(message))
            bringing.publisher.flush(30)
        for right, kind, name in asked:
            until(lambda line=f"needs {right} on the {kind} {name} (": line in group.said(), say=group.said)
            grant(operator, user, kinds[kind], name, right.upper())
        until(lambda: services.lag() == 0, say=group.said)
        assert "sent again" not in group.said()
        assert "Traceback" not in group.said()


def test_a_crawl_says_once_that_it_may_not_hear_the_daemon(guarded: dict[str, str], tmp_path: Path) -> None:
    kafka_topics.ensure(guarded["operator"])
    grant(guarded["operator"], "deaf", ResourceType.TOPIC, topics.SKETCHES, "WRITE")
    with running() as site:
        steps = [site.url + "/page/1", {"pause": 2}, site.url + "/page/2"]
        crawled = Crawling(tmp_path, steps, {"CLUSTERD_KAFKA": guarded["deaf"], "LOG_LEVEL": "INFO"}).result()
    assert crawled.stat("published") == 2
    assert crawled.log.count("cannot be read now: Kafka refuses us: our user needs Read on the topic rules (") == 1


def test_rules_are_not_said_to_be_lost_by_a_log_that_may_not_be_read(
    guarded: dict[str, str],
    redis_url: str,
    prefix: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka_topics.ensure(guarded["operator"])
    for topic in kafka_topics.TOPICS:
        grant(guarded["operator"], "writer", ResourceType.TOPIC, topic, "WRITE")
    monkeypatch.setattr("clusterd.upkeep.SELDOM", 0)
    with Services(Config(redis=redis_url, redis_prefix=prefix, kafka=guarded["writer"])) as services:
        services.rulebook.import_rules([sid_rule()], at=1)
        services.rulebook.observe(duplicates())
        upkeep = Upkeep(services, Report())
        with caplog.at_level(logging.INFO):
            upkeep.round(services)
            refused = caplog.text
            learner = services.rulebook._recalls.get(HOST)
            assert learner is not None
            upkeep.round(services)
            assert services.rulebook._recalls.get(HOST) is learner, "it was rebuilt each time, from all its pages"
            # … and once it may, a round is made without being refused.
            grant(guarded["operator"], "writer", ResourceType.TOPIC, topics.RULES, "READ")

            def is_let() -> bool:
                caplog.clear()
                upkeep.round(services)
                return "not restored" not in caplog.text

            until(is_let, say=lambda: caplog.text)
    assert "not restored: Kafka refuses us: our user needs Read on the topic rules (" in refused
    assert "came without" not in refused
