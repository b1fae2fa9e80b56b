"""Workers over the log of Redis Streams and that of Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from clusterd_consumer.transport.contract import Transport
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics

from tests.consumer.kafka_members import OPENED
from tests.consumer.worker_bench import PATIENT, Bench, Ledger, bench_on_redis


@pytest.fixture
def stream(prefix: str) -> str:
    return topics.stream(prefix, topics.SKETCHES)


@pytest.fixture
def bench(redis_url: str, prefix: str) -> Iterator[Bench]:
    made = bench_on_redis(redis_url, prefix)
    yield made
    made.client.close()


@pytest.fixture
def kafka_bench(kafka_bootstrap: str, redis_url: str, prefix: str) -> Iterator[Bench]:
    name = prefix.rstrip(":")

    def connect(ledger: Ledger) -> Transport:
        return KafkaTransport(
            kafka_bootstrap,
            prefix=f"{name}-",
            group=name,
            session_timeout=PATIENT,
            partitions=2,
            remembered=ledger.position,
        )

    with redis.Redis.from_url(redis_url) as client:
        made = Bench(connect, client, prefix)
        yield made
        for transport in made.opened:
            transport.close()


@pytest.fixture(params=["bench", pytest.param("kafka_bench", marks=pytest.mark.kafka)])
def any_bench(request: pytest.FixtureRequest) -> Bench:
    bench: Bench = request.getfixturevalue(request.param)
    return bench


@pytest.fixture
def closed_at_last() -> Iterator[None]:
    """Close what a test that fails leaves open: its threads go on, and draw random numbers beside the next tests."""
    yield
    while OPENED:
        OPENED.pop().close()
