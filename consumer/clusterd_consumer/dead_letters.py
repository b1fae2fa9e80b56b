"""Dead letters: what could not be decoded or applied goes to a topic of its own, with its reason and its bytes.

A dead letter is a JSON object: ``at`` (UTC, ISO 8601), ``reason``, ``partition``, ``offset``, ``size`` (bytes of the
value), ``key_b64``, ``value_b64`` (of a value longer than `LONGEST` the beginning): decoded, they can be published
again once the cause is mended. How many there have been is counted in ``<prefix>dead-letters``.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.clock import iso, now_ms

from clusterd_consumer.redis_connection import Client, translated
from clusterd_consumer.transport.contract import Record, Transport

log = logging.getLogger(__name__)

#: Bytes of a value that are kept: base64 of it fits Kafka's usual limit of 1 MiB a message.
LONGEST: Final = 700_000
#: Bytes of a key that are kept.
LONGEST_KEY: Final = 16_384


class DeadLetters:
    """Publishes dead letters and counts them."""

    def __init__(self, transport: Transport, redis: Client | None = None, prefix: str = "clusterd:") -> None:
        self._transport = transport
        self._redis: Any = redis
        self._counter = f"{prefix}dead-letters"
        self.count = 0
        #: Of these, how many the store was told of.
        self._told = 0

    def bury(self, record: Record, reason: str) -> None:
        """Publish a record that no one can work on. Where that fails it was not published, as far as is known."""
        self._transport.publish(topics.DEAD_LETTERS, record.key[:LONGEST_KEY], letter(record, reason))
        log.warning("dead letter from %s at %s: %s", record.partition, record.offset, reason)
        self.count += 1

    def tell(self) -> None:
        """Count in the store what was published since: apart, so that nothing is published again while it is away."""
        if self._redis is not None:
            with translated():
                self._redis.incrby(self._counter, self.count - self._told)
            self._told = self.count


def letter(record: Record, reason: str) -> bytes:
    """Return the JSON of a dead letter."""
    return json.dumps(
        {
            "at": iso(now_ms()),
            "reason": reason[:1000],
            "partition": record.partition,
            "offset": record.offset,
            "size": len(record.value),
            "key_b64": base64.b64encode(record.key[:LONGEST_KEY]).decode(),
            "value_b64": base64.b64encode(record.value[:LONGEST]).decode(),
        }
    ).encode()


def counted(redis: Client, prefix: str) -> int:
    """Return how many dead letters there have been."""
    client: Any = redis
    with translated():
        return int(client.get(f"{prefix}dead-letters") or 0)
