"""What reading and publishing have in common: where Kafka is, that its topics are there, what its errors become."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.kafka_client import METADATA_AGE, address, ask_why, probe
from kafka.errors import KafkaError, KafkaTimeoutError  # type: ignore[import-untyped]

from clusterd_consumer.transport.kafka_group import reason
from clusterd_consumer.transport.kafka_topics import ensure

log = logging.getLogger(__name__)

#: Seconds that a full window may block `publish`, and for administrative answers.
ANSWER_TIMEOUT: Final = 10.0


class KafkaConnection:
    """To the brokers at ``where``, with topics under a prefix, made with so many partitions and replicas."""

    def __init__(self, where: str, prefix: str, partitions: int, replication: int) -> None:
        self._where = where
        self._options = address(where).client_options()
        self._prefix = prefix
        self._shape = (partitions, replication)

    @property
    def settings(self) -> dict[str, Any]:
        """What every client of it is made with."""
        return {
            **self._options,
            "bootstrap_timeout_ms": int(ANSWER_TIMEOUT * 1000),
            "reconnect_backoff_max_ms": 1000,
            "metadata_max_age_ms": METADATA_AGE,
            "allow_auto_create_topics": False,
        }

    def probe(self) -> None:
        """Raise `Unreachable`, which says why, where nobody answers."""
        probe(self._where, self._options)

    def ensure(self) -> list[str]:
        """Make the topics that are not there; return their names."""
        return ensure(self._where, self._prefix, *self._shape, timeout=ANSWER_TIMEOUT)

    def make_missing(self) -> None:
        """Make the topics that were deleted under us, as at the start; whether Kafka answers at all others say."""
        with suppress(Unreachable):
            if made := self.ensure():
                log.warning("Kafka had no topic %s any more: made anew, what was in it is gone", ", ".join(made))

    @contextmanager
    def translated(self, right: str = "Read") -> Iterator[None]:
        """Let the client's errors leave as `Unreachable`; what is done needs a ``right`` on topics."""
        try:
            yield
        except (KafkaError, OSError) as error:
            # The client leaves the sockets of refused connections to the garbage collector, which hardly comes while
            # nothing happens: an outage of an hour would use up the file handles.
            gc.collect()
            if isinstance(error, KafkaTimeoutError):
                ask_why(self._where, self._options)
            raise Unreachable(f"Kafka at {address(self._where)} {reason(error, right)}") from error
