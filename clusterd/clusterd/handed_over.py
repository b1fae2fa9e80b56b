"""Rules that somebody changed who does not reach the crawls' log, as who names Redis alone beside daemons on Kafka.

The change itself lies in the store; what is to be told lies here until a daemon, which reaches the log, has told it.

    <prefix>rb:untold   SET   version and host of a rule set, with a space between: of each change its own
"""

from __future__ import annotations

from typing import Any

from clusterd_consumer.redis_connection import Client, translated
from clusterd_crawler.rules import RuleSet

from clusterd.learning.rulebook.rule_sets import RuleSets


class HandedOver:
    """Client-library errors leave as `Unreachable`."""

    def __init__(self, redis: Client, prefix: str) -> None:
        self._redis: Any = redis
        self._key = f"{prefix}rb:untold"

    def add(self, rules: RuleSet) -> None:
        """Leave it to the daemons to tell of a rule set."""
        with translated():
            self._redis.sadd(self._key, f"{rules.version} {rules.host}")

    def waiting(self) -> list[bytes]:
        """Return what is to be told."""
        with translated():
            return sorted(self._redis.smembers(self._key))

    def tell(self, sets: RuleSets) -> None:
        """Tell the crawls, as a daemon; whoever dies at it is followed by another. What changes meanwhile stays."""
        for member in self.waiting():
            version, _, host = member.decode().partition(" ")
            sets.announce_again(host, int(version))
            with translated():
                self._redis.srem(self._key, member)
