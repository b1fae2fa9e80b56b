"""The rule sets of hosts: changed in the book by compare-and-set, then announced to the crawls.

A set is saved before it is published, and noted as announced when it has arrived in the log. Where a worker dies
between the two, the next one announces it. Who does not reach the crawls' log leaves that to those who do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from clusterd_crawler import topics
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.rules import RuleSet

from clusterd.learning.rulebook.contract import HostRules
from clusterd.learning.rulebook.entries import rules_to_bytes
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.sharing import Publish

log = logging.getLogger(__name__)

#: Times that a change is tried again when another came first.
ATTEMPTS: Final = 8


class RuleSets:
    """Changes the rule sets of hosts, and announces them."""

    def __init__(self, book: RuleBook, publish: Publish, flush: Callable[[], None]) -> None:
        """Take where rules are kept and told; ``flush`` returns when what was published has arrived, or raises."""
        self._book, self._publish, self._flush = book, publish, flush
        self._hand_over: Callable[[RuleSet], None] | None = None

    def leave_to_others(self, hand_over: Callable[[RuleSet], None]) -> None:
        """Announce nothing from now on: ``hand_over`` is called with each set for others to announce."""
        self._hand_over = hand_over

    def change(self, host: str, change: Callable[[HostRules], HostRules]) -> HostRules:
        """Change a host's rules by compare-and-set, and announce what the crawlers must know and were not told yet."""
        for _ in range(ATTEMPTS):
            before = self._book.load(host)
            after = change(before)
            if after is before or self._book.save(after, before):
                if after.rules.version != before.rules.version or after.rules.version > self._book.announced(host):
                    self.announce(after.rules)
                return after
        raise ClusterdError(f"the rules of {host} changed {ATTEMPTS} times meanwhile; try again")

    def announce(self, rules: RuleSet) -> None:
        """Tell the crawlers that start later, and those that run.

        Another may have saved a later version meanwhile and have published it before ours arrived. Of a compacted
        topic only the last record stays, so the later version is then published once more, behind ours.
        """
        if self._hand_over is not None:
            self._book.offer(rules)
            self._hand_over(rules)
            return
        later: RuleSet | None = rules
        while later is not None:
            rules = later
            self._book.offer(rules)
            self._publish(topics.RULES, rules.host.encode(), rules_to_bytes(rules))
            self._flush()
            later = self._book.load(rules.host).rules if self._book.version(rules.host) > rules.version else None
        self._book.note_announced(rules.host, rules.version)
        log.info("rules of %s: version %d, %d in force", rules.host, rules.version, len(rules.rules))

    def announce_again(self, host: str, version: int) -> None:
        """Announce a set of this version that was saved by somebody who died before he could say so, or cannot."""
        if version and version > self._book.announced(host):
            self.announce(self._book.load(host).rules)
