"""What a topic holds, from its beginning to where it ends when asked; of a compacted one the latest of each key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.kafka_client import build, client_options, probe, translated
from kafka import KafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]

from clusterd_consumer.transport.kafka_group import edges

#: Seconds without a record after which the broker counts as away, and milliseconds for one poll and for closing.
PATIENCE: Final = 30.0
POLL_MS: Final = 500
CLOSE_MS: Final = 2_000


def records(where: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record, in order within a partition; none of a topic that is not there.

    `Unreachable` where the broker is away, or stops answering; `Forbidden` where it lets others read the topic, not us.
    """
    options = client_options(where)
    probe(where, options)
    consumer = build(
        KafkaConsumer, **options, enable_auto_commit=False, allow_auto_create_topics=False, metrics_enabled=False
    )
    try:
        with translated():
            yield from _read(consumer, topic)
    finally:
        with suppress(KafkaError, OSError):
            consumer.close(autocommit=False, timeout_ms=CLOSE_MS)


def _read(consumer: Any, topic: str) -> Iterator[tuple[bytes, bytes]]:
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
    if not partitions:
        return
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = edges(consumer.end_offsets, partitions, PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        fetched = consumer.poll(timeout_ms=POLL_MS)
        for taken in fetched.values():
            for record in taken:
                yield record.key or b"", record.value or b""
        if fetched:
            deadline = time.monotonic() + PATIENCE
        elif time.monotonic() > deadline:
            raise Unreachable(f"Kafka: {topic} cannot be read to its end")
