"""A decider that is loaded in one thread while the crawl asks it in another, and never makes the crawl wait.

Loading a rule set computes the keys of all known pages of its host, which takes a second for some hundred thousand.
Meanwhile nothing is skipped, and fetched pages are noted as soon as it is done. Until the first rule set comes, pages
are only written down: most crawls begin without rules, and those that never have any pay nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any

from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Name
from clusterd_crawler.skips import Decider, Skip


class Decisions:
    """`load` in any thread; the rest in the loop's."""

    def __init__(self, decider: Decider, limit: int) -> None:
        self._decider = decider
        self._lock = threading.Lock()
        self._noted: deque[tuple[Any, ...]] = deque(maxlen=limit)
        self._has_rules = False

    def load(self, rules: RuleSet) -> None:
        """Take a host's rule set. Blocks until it is in use."""
        with self._lock:
            self._note()
            self._decider.load(rules)
            self._has_rules = self._has_rules or bool(rules.rules)
            self._note()

    def fetched(self, url: str, at: int, names: Iterable[Name] = (), good: bool = True, content: int = 0) -> None:
        """Note a page that was fetched, at once or after the loading that is going on."""
        self._noted.append((url, at, tuple(names), good, content))
        if self._has_rules and self._lock.acquire(blocking=False):
            try:
                self._note()
            finally:
                self._lock.release()

    def decide(self, url: str, at: int) -> Skip | None:
        """Return the skip that the rules ask for; None while rules are being loaded."""
        if not self._has_rules or not self._lock.acquire(blocking=False):
            return None
        try:
            self._note()
            return self._decider.decide(url, at)
        finally:
            self._lock.release()

    def _note(self) -> None:
        while self._noted:
            url, at, names, good, content = self._noted.popleft()
            self._decider.fetched(url, at, names, good=good, content=content)
