"""Messages to Kafka: a bounded number on their way, each until Kafka has said that it has it.

The idempotent producer of kafka-python 3.0.12 can wedge for good behind a frozen broker; without idempotence it
recovers, and the worker is idempotent anyway. Messages in flight are bounded here, since the client bounds nothing.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.kafka_client import opened
from kafka import KafkaProducer  # type: ignore[import-untyped]
from kafka.errors import (  # type: ignore[import-untyped]
    AuthorizationError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
)

from clusterd_consumer.transport.kafka_connection import ANSWER_TIMEOUT, KafkaConnection
from clusterd_consumer.transport.kafka_group import close

log = logging.getLogger(__name__)

#: Messages that may be on their way to Kafka; beyond it `publish` waits for them.
IN_FLIGHT: Final = 10_000
#: Milliseconds after which the client gives a message up; it is then sent again by the next `flush`.
DELIVERY_TIMEOUT: Final = 30_000
#: Milliseconds that messages wait for company.
LINGER: Final = 5


class KafkaPublishing:
    """Not for several threads at once. Topics are given by their whole names."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._producer: Any = None
        self._unacknowledged: deque[tuple[str, bytes, bytes, Any]] = deque()
        #: Topic → how many of its messages Kafka will never take.
        self.refused: Counter[str] = Counter()

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Give the message to the producer; wait where too many are on their way."""
        if len(self._unacknowledged) >= IN_FLIGHT:
            self.flush(ANSWER_TIMEOUT)
        with self._connection.translated("Write"):
            self._send(topic, key, value)

    def flush(self, timeout: float) -> None:
        """Wait for Kafka's word on every message; send again, once, what the client has given up."""
        deadline = time.monotonic() + timeout
        sent_again = False
        while self._unacknowledged:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unreachable(f"Kafka has not taken {len(self._unacknowledged)} messages after {timeout:g} s")
            with self._connection.translated("Write"):
                self._producing().flush(timeout=left)
                failure = self._settle_acknowledged()
                if failure is not None and (sent_again or isinstance(failure, AuthorizationError)):
                    raise failure  # Kafka refuses at once, and would at once again: whoever asks makes the pauses
                if sent_again := failure is not None:
                    log.warning("sent again what the client gave up: %s", failure)

    def close(self) -> None:
        """Deliver what is on its way."""
        try:
            if self._unacknowledged:
                self.flush(ANSWER_TIMEOUT)
        except Unreachable as error:
            log.warning("closed with messages undelivered: %s", error)
        if self._producer is not None:
            close(self._producer, ANSWER_TIMEOUT)
        self._producer = None

    def _producing(self) -> Any:
        """Return the producer, made at first."""
        if self._producer is None:
            self._connection.ensure()
            self._producer = opened(
                KafkaProducer,
                **self._connection.settings,
                enable_idempotence=False,
                acks="all",
                linger_ms=LINGER,
                delivery_timeout_ms=DELIVERY_TIMEOUT,
                request_timeout_ms=DELIVERY_TIMEOUT // 2,
                max_block_ms=int(ANSWER_TIMEOUT * 1000),
                max_request_size=topics.LONGEST_MESSAGE,
            )
        return self._producer

    def _send(self, topic: str, key: bytes, value: bytes) -> None:
        try:
            future = self._producing().send(topic, key=key or None, value=value)
        except MessageSizeTooLargeError:
            self._drop(topic, value)
        except KafkaTimeoutError:
            self._connection.make_missing()
            raise
        else:
            self._unacknowledged.append((topic, key, value, future))

    def _drop(self, topic: str, value: bytes) -> None:
        log.error("a message of %d bytes is dropped: %s takes none so long (max.message.bytes)", len(value), topic)
        self.refused[topic] += 1

    def _settle_acknowledged(self) -> Any:
        """Forget what Kafka has taken or never takes, send the rest again; return why, None where nothing was sent."""
        again: Any = None
        for _ in range(len(self._unacknowledged)):
            topic, key, value, future = self._unacknowledged[0]
            if not future.is_done:
                self._unacknowledged.rotate(-1)
                continue
            if isinstance(future.exception, MessageSizeTooLargeError):
                self._drop(topic, value)
            elif not future.succeeded():
                again = future.exception
                self._send(topic, key, value)  # where this fails, the message stays first and is sent by the next flush
            self._unacknowledged.popleft()
        return again
