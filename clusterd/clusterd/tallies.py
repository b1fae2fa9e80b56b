"""What a daemon tallies for its metrics: how long crawls wait for an answer, what it told, what the store holds."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

#: Up to so many seconds are told apart.
SECONDS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


@dataclass(slots=True)
class Waits:
    """How often something took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Note one. A clock behind that of the crawl's machine may say less than none: the total must not fall."""
        seconds = max(0.0, seconds)
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> Iterator[tuple[str, float]]:
        """Yield upper ends, and how many took at most so long, as Prometheus reads them."""
        return zip((*map(str, SECONDS), "+Inf"), accumulate(map(float, self.counts)), strict=True)


@dataclass(slots=True)
class Tallies:
    """Written by the threads of a daemon, read by the one that serves its metrics."""

    #: From the fetch of a page to the verdict on it, where its crawl asked for one.
    answered: Waits = field(default_factory=Waits)
    #: Alerts by event, requests that crawls did not send, rule sets.
    alerts: Counter[str] = field(default_factory=Counter)
    skips: int = 0
    rule_sets: int = 0
    #: What the store holds (`Index.counts`), and clusters by policy; empty until it was looked at.
    held: Mapping[str, int] = field(default_factory=dict)
    clusters: Mapping[str, int] = field(default_factory=dict)
