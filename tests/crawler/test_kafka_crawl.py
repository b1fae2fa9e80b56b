"""Crawls on a real Kafka: pages, rules and verdicts over its topics, and a broker that dies and freezes."""

from __future__ import annotations

import gc
import json
import shutil
import signal
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from clusterd_consumer.transport import kafka_topics
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import fetches, topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.message import SkipReport, decode
from clusterd_crawler.publish.contract import Refused
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.spool import Spool
from clusterd_crawler.rule_language.json_form import rule_set_to_json, version_of
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.subscribe.kafka_feed import KafkaFeed
from clusterd_crawler.subscribe.subscriber import Subscriber
from clusterd_crawler.verdict import Verdict, encode_verdict
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, codec
from kafka.admin import ConfigResource, ConfigResourceType

from tests.conftest import needs_kafka
from tests.crawler.crawling import REST, crawl, sid_rule
from tests.crawler.site import running
from tests.services.kafka_broker import MORTAL, KafkaBroker
from tests.services.waiting import wait_until

pytestmark = pytest.mark.kafka


@pytest.fixture
def own() -> str:
    """Return a topic prefix of this test's own."""
    return f"t{uuid.uuid4().hex[:10]}-"


@pytest.fixture
def broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[KafkaBroker]:
    needs_kafka()
    made = KafkaBroker(tmp_path / "broker", MORTAL)
    yield made
    made.kill()
    caplog.get_records("call").clear()  # they hold errors, which hold what the client has left open:
    gc.collect()  # that is closed here, and said here


def arrived(bootstrap: str, topic: str) -> list[bytes]:
    """Return everything that lies in a topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(found) < sum(ends.values()) and time.monotonic() < deadline:
            found += [record.value for records in consumer.poll(timeout_ms=200).values() for record in records]
        return found
    finally:
        consumer.close()


def produce(bootstrap: str, topic: str, key: bytes, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False, acks="all")
    try:
        producer.send(topic, key=key, value=value).get(20)
    finally:
        producer.close()


@pytest.mark.parametrize("most", [None, 1_000_000])
def test_long_messages_pass_and_longer_ones_are_refused(kafka_bootstrap: str, own: str, most: int | None) -> None:
    """By the client those that no topic of ours takes; by the broker what is more than a topic takes, made by hand."""
    if most is not None:
        admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        made = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": str(most)}}
        admin.create_topics({own + topics.SKETCHES: made})
        admin.close()
    kafka_topics.ensure(kafka_bootstrap, own)
    sent = [(b"k", b"x" * size) for size in (900_000, 1_900_000, 2_200_000, 5)]
    refused = sent[2:3] if most is None else sent[1:3]
    log = KafkaLog(f"kafka://{kafka_bootstrap}", own + topics.SKETCHES)
    try:
        with pytest.raises(Refused) as told:
            log.send(sent)
    finally:
        log.close()
    assert told.value.entries == refused
    assert arrived(kafka_bootstrap, own + topics.SKETCHES) == [entry[1] for entry in sent if entry not in refused]


def test_known_pages_come_over_kafka(kafka_bootstrap: str, own: str, tmp_path: Path) -> None:
    """Of any crawl within the stated time; by default only of one's own."""
    kafka_topics.ensure(kafka_bootstrap, own)
    settings: dict[str, Any] = {"CLUSTERD_KAFKA": f"kafka://{kafka_bootstrap}", "CLUSTERD_KAFKA_PREFIX": own}
    settings |= {"CLUSTERD_EXPLORE": 0}
    with running() as site:
        rules = RuleSet(site.host, 1, (sid_rule(site.host),))
        produce(kafka_bootstrap, own + topics.RULES, site.host.encode(), json.dumps(rule_set_to_json(rules)).encode())
        now = time.time_ns() // 1_000_000
        block = fetches.pack([Fetch(f"{site.url}/page/{n}?sid=x", now) for n in range(3)])
        produce(kafka_bootstrap, own + topics.KNOWN, fetches.key(site.host, "another"), block)
        steps = [f"{site.url}/", {"heard": 1}, REST, *(f"{site.url}/page/{n}?sid=y" for n in range(3))]
        within = crawl(tmp_path, steps, settings | {"CLUSTERD_SKIP_WITHIN": 3600})
        default = crawl(tmp_path, steps, settings)
    assert within.paths() == ["/"], within.log[-3000:]
    assert within.stat("skipped") == 3
    assert len(default.seen) == 4


def test_a_crawl_over_kafka(kafka_bootstrap: str, own: str, tmp_path: Path) -> None:
    kafka_topics.ensure(kafka_bootstrap, own)
    settings: dict[str, Any] = {"CLUSTERD_KAFKA": f"kafka://{kafka_bootstrap}", "CLUSTERD_KAFKA_PREFIX": own}
    with running() as site:
        rules = RuleSet(site.host, 1, (sid_rule(site.host),))
        produce(kafka_bootstrap, own + topics.RULES, site.host.encode(), json.dumps(rule_set_to_json(rules)).encode())
        steps = [f"{site.url}/page/1", {"heard": 1}, REST, *(f"{site.url}/page/1?sid={n}" for n in range(5))]
        done = crawl(tmp_path, steps, settings | {"CLUSTERD_EXPLORE": 0})
        assert len(done.seen) == done.stat("sketched") == 1
        assert done.stat("skipped") == 5
        assert done.stat("published") == 6
        messages = [decode(raw) for raw in arrived(kafka_bootstrap, own + topics.SKETCHES)]
        assert sum(isinstance(message, SkipReport) for message in messages) == 5
        assert {message.url for message in messages} == {step for step in steps if isinstance(step, str)}


def test_news_of_before_and_of_now(kafka_bootstrap: str, own: str) -> None:
    kafka_topics.ensure(kafka_bootstrap, own)
    rules: list[RuleSet] = []
    verdicts: list[Verdict] = []

    def publish(version: int) -> None:
        raw = json.dumps(rule_set_to_json(RuleSet("a.test", version, ()))).encode()
        produce(kafka_bootstrap, own + topics.RULES, b"a.test", raw)

    publish(3)
    publish(1)  # the slower of two writers: what a crawl uses is the later version
    verdict = Verdict("http://a.test/", 5, "c")
    produce(kafka_bootstrap, own + topics.VERDICTS, b"k", encode_verdict(verdict))
    subscriber = Subscriber(lambda: KafkaFeed(kafka_bootstrap, own), rules.append, verdicts.extend, "c")
    try:
        assert subscriber.connected.wait(20)
        time.sleep(1)
        subscriber.meet("a.test")
        wait_until(lambda: [found.version for found in rules] == [3])
        publish(4)
        produce(kafka_bootstrap, own + topics.VERDICTS, b"k", encode_verdict(verdict))
        wait_until(lambda: [found.version for found in rules] == [3, 4] and len(verdicts) == 1)
    finally:
        subscriber.close(5)


def publish_rules(bootstrap: str, topic: str, *versions: int) -> None:
    for version in versions:
        raw = json.dumps(rule_set_to_json(RuleSet("a.test", version, ()))).encode()
        produce(bootstrap, topic, b"a.test", raw)


def heard(feed: KafkaFeed) -> list[int]:
    return [version_of(news.value) for news in feed.poll(0.2)]


def refuses(feed: KafkaFeed, why: str) -> bool:
    try:
        return bool(heard(feed) and False)
    except Unreachable as error:
        return why in str(error)


def test_rules_of_a_topic_that_is_made_anew_are_heard_from_its_beginning(kafka_bootstrap: str, own: str) -> None:
    """Among them may be that the rules in use are withdrawn. Here there are more by then than had been read before."""
    topic = own + topics.RULES
    kafka_topics.ensure(kafka_bootstrap, own)
    publish_rules(kafka_bootstrap, topic, 1, 2, 3)
    with closing(KafkaFeed(kafka_bootstrap, own)) as feed:
        wait_until(lambda: heard(feed) == [3])
        admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics())
        admin.close()
        kafka_topics.ensure(kafka_bootstrap, own)
        publish_rules(kafka_bootstrap, topic, 4, 5, 6, 7, 8)
        wait_until(lambda: refuses(feed, "was deleted"))
    with closing(KafkaFeed(kafka_bootstrap, own)) as feed:  # as the subscriber does
        wait_until(lambda: heard(feed) == [8])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kafka-python leaves sockets to the GC
def test_rules_of_a_broker_that_comes_back_older_are_all_read(broker: KafkaBroker, tmp_path: Path) -> None:
    """As from a backup: what it was given before the crawl was back was passed over."""
    log, kept = broker.folder / "log", tmp_path / "kept"
    broker.start()
    kafka_topics.ensure(broker.bootstrap)
    publish_rules(broker.bootstrap, topics.RULES, 1)
    broker.end()
    shutil.copytree(log, kept)
    broker.start()
    publish_rules(broker.bootstrap, topics.RULES, 2, 3)
    with closing(KafkaFeed(broker.bootstrap, "")) as feed:
        wait_until(lambda: heard(feed) == [3])
        broker.end()
        shutil.rmtree(log)
        kept.rename(log)
        broker.start()
        publish_rules(broker.bootstrap, topics.RULES, 4)
        wait_until(lambda: refuses(feed, "rules came back older"), seconds=60)
    with closing(KafkaFeed(broker.bootstrap, "")) as feed:
        wait_until(lambda: heard(feed) == [4])


def test_rules_that_cannot_be_decompressed_are_spoken_of_once(
    kafka_bootstrap: str, own: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kafka_topics.ensure(kafka_bootstrap, own)
    admin = KafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, own + topics.RULES, {"compression.type": "gzip"})])
    admin.close()
    produce(kafka_bootstrap, own + topics.RULES, b"a.test", b"{}")
    monkeypatch.setattr(codec, "has_gzip", lambda: False)
    feeds: list[KafkaFeed] = []

    def connect() -> KafkaFeed:
        feeds.append(KafkaFeed(kafka_bootstrap, own))
        return feeds[-1]

    subscriber = Subscriber(connect, lambda _: None, lambda _: None, "c")
    try:
        wait_until(lambda: len(feeds) > 2)
    finally:
        subscriber.close(5)
    assert caplog.text.count("compressed in a way unknown here") == 1


def test_a_feed_that_cannot_be_begun_leaves_no_client_behind(kafka_bootstrap: str, own: str) -> None:
    kafka_topics.ensure(kafka_bootstrap, own)
    before = set(threading.enumerate())
    with pytest.raises(struct.error):  # the client's own: there is no such time
        KafkaFeed(kafka_bootstrap, own, known_since=2**70)
    assert set(threading.enumerate()) <= before


def test_of_rules_that_followed_each_other_before_the_crawl_only_the_last_are_told(
    kafka_bootstrap: str, own: str
) -> None:
    """Rules withdrawn long ago were put to use and withdrawn again, with their signals, before the first page."""
    kafka_topics.ensure(kafka_bootstrap, own)
    for version in (1, 2, 5, 4):  # the slower of two writers comes last
        raw = json.dumps(rule_set_to_json(RuleSet("a.test", version, ()))).encode()
        produce(kafka_bootstrap, own + topics.RULES, b"a.test", raw)
    for unreadable in (b"no rules", b'{"version": 1e999}'):
        produce(kafka_bootstrap, own + topics.RULES, b"a.test", unreadable)
    for raw in (json.dumps(rule_set_to_json(RuleSet("b.test", 1, ()))).encode(), b""):
        produce(kafka_bootstrap, own + topics.RULES, b"b.test", raw)
    feed = KafkaFeed(kafka_bootstrap, own)
    try:
        told: list[tuple[bytes, int]] = []
        wait_until(lambda: told.extend((news.key, version_of(news.value)) for news in feed.poll(0.2)) or told)
        last, none = feed.known(["a.test", "b.test"])
    finally:
        feed.close()
    assert (version_of(last or b""), none) == (5, b"")
    # What cannot be read is said by who reads it.
    assert told == [(b"a.test", 5), (b"a.test", -1), (b"a.test", -1), (b"b.test", 1), (b"b.test", -1)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kafka-python leaves sockets to the GC
def test_a_broker_that_comes_late_freezes_and_dies_gets_everything(broker: KafkaBroker, tmp_path: Path) -> None:
    log, spool = (lambda: KafkaLog(broker.bootstrap, "sketches")), (lambda: Spool(tmp_path / "spool", 10**8))
    out = Publisher(log, spool, capacity=100)

    def offer(start: int, count: int = 500) -> None:
        for number in range(start, start + count):
            before = time.perf_counter()
            out.offer(b"%d" % number, b"%06d" % number)
            assert time.perf_counter() - before < 0.2
            time.sleep(0.001)

    offer(0)
    wait_until(lambda: out.counts.spooled == 500)
    broker.start()
    kafka_topics.ensure(broker.bootstrap, partitions=2)
    wait_until(lambda: out.counts.published == 500, seconds=30)
    broker.signal(signal.SIGSTOP)
    offer(500)
    broker.signal(signal.SIGCONT)
    wait_until(lambda: out.counts.published == 1000, seconds=60)
    broker.kill()
    offer(1000)
    broker.start()
    wait_until(lambda: out.counts.published == 1500, seconds=60)
    out.close(10)
    assert set(arrived(broker.bootstrap, "sketches")) == {b"%06d" % number for number in range(1500)}
    assert out.counts.dropped == 0


def test_a_message_that_is_too_large_is_dropped_alone(kafka_bootstrap: str, own: str, tmp_path: Path) -> None:
    kafka_topics.ensure(kafka_bootstrap, own)
    topic = own + topics.SKETCHES
    out = Publisher(lambda: KafkaLog(kafka_bootstrap, topic), lambda: Spool(tmp_path, 10**8), capacity=100)
    for value in (b"a", b"x" * 3_000_000, b"b"):
        out.offer(b"key", value)
    wait_until(lambda: out.counts.published == 2, seconds=30)
    out.close(10)
    assert (out.counts.dropped, len(list(tmp_path.glob("*.spool")))) == (1, 0)
    assert arrived(kafka_bootstrap, topic) == [b"a", b"b"]


def test_a_broker_that_sends_its_clients_elsewhere_is_told(tmp_path: Path) -> None:
    """The first mistake that is made with brokers in containers: the daemon and the crawl spoke of missing topics."""
    needs_kafka()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, socket.socket() as probing:
        named = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        broker = KafkaBroker(tmp_path / "kafka", f"\nadvertised.listeners=PLAINTEXT://{named}\n")
        broker.start()
        wait_until(lambda: not probing.connect_ex(("127.0.0.1", broker.port)))
    asked: list[Callable[[], object]] = [
        lambda: KafkaTransport(broker.bootstrap).poll(1, 0.1),
        lambda: KafkaLog(broker.bootstrap, topics.SKETCHES),
        lambda: KafkaFeed(broker.bootstrap, ""),
    ]
    try:
        for ask in asked:
            with pytest.raises(
                Unreachable, match=rf"sends its clients to {named}: .*refused: its advertised.listeners"
            ):
                ask()
    finally:
        broker.kill()


def test_a_topic_that_nobody_has_made_is_named(kafka_bootstrap: str, own: str) -> None:
    topic = own + topics.SKETCHES
    log = KafkaLog(kafka_bootstrap, topic)
    for entries in ((), ((b"key", b"value"),)):
        with pytest.raises(Unreachable, match=f"^Kafka has no topic {topic}: a daemon makes it"):
            log.send(entries)
    kafka_topics.ensure(kafka_bootstrap, own)
    wait_until(lambda: sends(log), seconds=30)
    log.close()
    assert b"value" in arrived(kafka_bootstrap, topic)


def sends(log: KafkaLog) -> bool:
    try:
        log.send(((b"key", b"value"),))
    except Unreachable:
        return False
    return True
