"""A decider that is loaded in one thread while the crawl asks it in another, and never makes the crawl wait.

Loading a rule set computes the keys of all known pages of its host, which takes a second for some hundred thousand.
Meanwhile nothing is skipped, and pages that are fetched are noted as soon as it is done.
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

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._lock = threading.Lock()
        self._noted: deque[tuple[Any, ...]] = deque()

    def load(self, rules: RuleSet) -> None:
        """Take a host's rule set. Blocks until it is in use."""
        with self._lock:
            self._note()
            self._decider.load(rules)
            self._note()

    def fetched(self, url: str, at: int, names: Iterable[Name] = (), good: bool = True, content: int = 0) -> None:
        """Note a page that was fetched, at once or after the loading that is going on."""
        self._noted.append((url, at, tuple(names), good, content))
        if self._lock.acquire(blocking=False):
            try:
                self._note()
            finally:
                self._lock.release()

    def decide(self, url: str, at: int) -> Skip | None:
        """Return the skip that the rules ask for; None while rules are being loaded."""
        if not self._lock.acquire(blocking=False):
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
