"""A Kafka with an authorizer: what docs/operations.md grants is enough, and what is not granted is said in one line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterd_consumer.transport import kafka_topics
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.subscribe.kafka_feed import KafkaFeed
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from tests.conftest import needs_kafka
from tests.services.kafka_broker import KafkaBroker
from tests.services.redis_server import free_port
from tests.services.waiting import wait_until

pytestmark = pytest.mark.kafka

USERS = ("daemon", "crawl", "nobody")
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
    "daemon": dict.fromkeys(kafka_topics.TOPICS, "READ WRITE"),
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
