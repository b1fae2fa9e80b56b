"""Kafka as the log, with kafka-python 3.

Idempotence is off and acknowledgement is from all replicas: with it on, a broker that stalls longer than the delivery
timeout wedges the client for good, and the daemon's work is idempotent anyway. The client has no bound on what it
buffers, so a batch is awaited before the next is handed over. Building it blocks while no broker answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.contract import Refused
from clusterd_crawler.publish.spool import Entry
from clusterd_crawler.servers.kafka_client import ask_why, build, client_library, client_options, probe, translated

#: Milliseconds until the client gives up: on metadata, on one request, on a message.
MAX_BLOCK_MS: Final = 5_000
REQUEST_MS: Final = 5_000
DELIVERY_MS: Final = 10_000
#: Seconds for closing: past the time at which every message has arrived or failed, since the client stays open, with
#: its thread and its sockets, where that takes longer than it is given.
CLOSE_SECONDS: Final = DELIVERY_MS / 1000 + 2


class KafkaLog:
    """One producer on one topic."""

    def __init__(self, setting: str, topic: str) -> None:
        library = client_library()
        options = client_options(setting)
        probe(setting, options)
        self._setting, self._options = setting, options
        self._topic = topic
        self._timed_out = library.errors.KafkaTimeoutError
        self._too_large = library.errors.MessageSizeTooLargeError
        self._producer = build(
            library.KafkaProducer,
            **options,
            enable_idempotence=False,
            acks="all",
            linger_ms=0,
            max_block_ms=MAX_BLOCK_MS,
            request_timeout_ms=REQUEST_MS,
            delivery_timeout_ms=DELIVERY_MS,
            max_request_size=topics.LONGEST_MESSAGE,
            metrics_enabled=False,
            # The daemon makes the topics, with their partitions; until then messages wait.
            allow_auto_create_topics=False,
        )

    def send(self, entries: Sequence[Entry]) -> None:
        """See the contract; no entries ask for the topic's partitions, to see whether a broker answers."""
        with translated("Write"):
            try:
                if entries:
                    self._await(self._hand_over(entries))
                else:
                    self._producer.partitions_for(self._topic)
            except self._timed_out:
                ask_why(self._setting, self._options)
                if self._is_absent():
                    raise Unreachable(
                        f"Kafka has no topic {self._topic}: a daemon makes it when it starts; "
                        "where one runs, its CLUSTERD_KAFKA_PREFIX is another"
                    ) from None
                raise

    def _is_absent(self) -> bool:
        """Whether a broker that answers knows of no such topic; all that the client says is that it has waited."""
        known = getattr(self._producer, "_metadata", None)
        return known is not None and known.partitions_for_topic(self._topic) is None

    def _hand_over(self, entries: Sequence[Entry]) -> list[tuple[Entry, Any]]:
        """Give the batch to the client; an entry that it finds too large has no future."""
        handed = []
        for entry in entries:
            try:
                handed.append((entry, self._producer.send(self._topic, key=entry[0], value=entry[1])))
            except self._too_large:
                handed.append((entry, None))
        return handed

    def _await(self, handed: list[tuple[Entry, Any]]) -> None:
        deadline = time.monotonic() + DELIVERY_MS / 1000 + 1
        refused = []
        for entry, future in handed:
            try:
                if future is None:
                    refused.append(entry)
                else:
                    future.get(max(0.0, deadline - time.monotonic()))
            except self._too_large:
                refused.append(entry)
        if refused:
            raise Refused("larger than the broker takes", refused)

    def close(self) -> None:
        """See the contract."""
        with translated():
            self._producer.close(timeout=CLOSE_SECONDS)
