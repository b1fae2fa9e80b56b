"""What the publisher asks of a log: Kafka and Redis Streams keep it. Client-library errors leave as `Unreachable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.publish.spool import Entry


class Refused(ClusterdError):
    """The log will never take these entries (too large): sending them again is of no use."""

    def __init__(self, reason: str, entries: Sequence[Entry]) -> None:
        super().__init__(reason)
        self.entries = entries


class Log(Protocol):
    """A connection to the log's topic `topics.SKETCHES`. Used by one thread; may block, but for bounded time."""

    def send(self, entries: Sequence[Entry]) -> None:
        """Return when all entries are in the log.

        Raises `Unreachable` when that is not certain (some may have arrived), `Refused` when only some are refused.
        """
        ...

    def close(self) -> None:
        """Free the connection, within seconds."""
        ...
