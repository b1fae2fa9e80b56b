"""Rules that somebody changed who does not reach the crawls' log, as who names Redis alone beside daemons on Kafka.

The change itself lies in the store; the hosts lie here until a daemon, which reaches the log, has told the crawls.

    <prefix>rb:untold   SET   hosts
"""

from __future__ import annotations

from typing import Any

from clusterd_consumer.redis_connection import Client, translated

from clusterd.learning.rulebook.rule_sets import RuleSets


class HandedOver:
    """Client-library errors leave as `Unreachable`."""

    def __init__(self, redis: Client, prefix: str) -> None:
        self._redis: Any = redis
        self._key = f"{prefix}rb:untold"

    def add(self, host: str) -> None:
        """Leave it to the daemons to tell of a host's rules."""
        with translated():
            self._redis.sadd(self._key, host)

    def hosts(self) -> list[str]:
        """Return the hosts of whose rules is to be told."""
        with translated():
            return sorted(host.decode() for host in self._redis.smembers(self._key))

    def tell(self, sets: RuleSets) -> None:
        """Tell the crawls, as a daemon. What changes meanwhile is told, too."""
        for host in self.hosts():
            sets.announce_unsaid(host)
            with translated():
                self._redis.srem(self._key, host)
            sets.announce_unsaid(host)
