"""Members of a consumer group on Redis Streams, what they publish, and what they work off."""

from __future__ import annotations

import time

import redis
from clusterd_consumer.transport.contract import Record
from clusterd_consumer.transport.redis_streams import RedisStreamTransport
from clusterd_crawler import topics


def member(client: redis.Redis, prefix: str, group: str = "g") -> RedisStreamTransport:
    return RedisStreamTransport(client, prefix=prefix, group=group, claim_after=1.0)


def publish(transport: RedisStreamTransport, count: int) -> None:
    for n in range(count):
        transport.publish(topics.SKETCHES, b"k", b"%04d" % n * 100)
    transport.flush(5)


def work_off(transport: RedisStreamTransport, count: int) -> list[Record]:
    done: list[Record] = []
    deadline = time.monotonic() + 20
    while len(done) < count:
        assert time.monotonic() < deadline
        records = transport.poll(200, 0.1)
        transport.commit({record.partition: record.next for record in records})
        done += records
    return done
