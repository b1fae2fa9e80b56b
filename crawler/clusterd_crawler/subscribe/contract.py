"""What the subscriber asks of a feed: Kafka and Redis Streams keep it. Client-library errors leave as `Unreachable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class News:
    """One message from the daemon: ``topic`` is `topics.RULES`, `topics.VERDICTS` or `topics.KNOWN`."""

    topic: str
    key: bytes
    value: bytes


class Feed(Protocol):
    """A connection that follows rule sets and verdicts from now on, and knows the rule sets of before.

    Where it is made with a time (Unix milliseconds), it follows known pages too, those published since then first.
    """

    def poll(self, seconds: float) -> Sequence[News]:
        """Return what is new; empty after so many seconds. Raises `Unreachable`."""
        ...

    def known(self, hosts: Sequence[str]) -> list[bytes | None]:
        """Return each host's latest rule set as it was published, None where there is none. May block; any thread."""
        ...

    def close(self) -> None:
        """Free the connection, within seconds."""
        ...
