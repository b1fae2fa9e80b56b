"""How many clusters there are, without looking at them: each home counts its own, and the spans that it made.

Texts that are equal in several homes are counted when they are asked for: each home knows which of its contents have
a twin elsewhere. That is done again when anything has changed, and then takes at most a twentieth of the time.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.redis.home import counted, pairs
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.beyond import TEXT

#: How long counting may take to be done at each change (s), and how often it may else be done.
SHORT: Final = 0.05
SHARE: Final = 20


class ClusterCounts:
    """Counts clusters of two URLs and more."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self._counters: list[bytes] = []
        self._equals = 0
        self._due = 0.0

    def of(self, policies: Sequence[tuple[str, int]]) -> dict[str, int]:
        """Return the number for each policy, given by name and slot (-1: by identical text)."""
        packed: list[bytes] = self._homes.ask("GET", "i")
        clusters = [counted(one).clusters for one in packed]
        spans = [pairs(one) for one in self._homes.ask("HGETALL", "spanned")] if len(self._homes) > 1 else []
        found = {}
        for name, slot in policies:
            place = 0 if slot < 0 else 2 + slot
            found[name] = sum(one[place] for one in clusters if len(one) > place)
            found[name] += sum(int(one.get(b"%d" % slot, 0)) for one in spans)
            if slot < 0 and len(self._homes) > 1:
                found[name] += self._of_equals(packed)
        return found

    def _of_equals(self, counters: list[bytes]) -> int:
        """Return how many more clusters of equal texts there are than the homes count."""
        if counters != self._counters and time.monotonic() >= self._due:
            begun = time.monotonic()
            self._equals, self._counters = self._count_equals(), counters
            took = time.monotonic() - begun
            self._due = time.monotonic() + (SHARE * took if took > SHORT else 0)
        return self._equals

    def _count_equals(self) -> int:
        shown: dict[bytes, list[int]] = defaultdict(list)
        twins = [sorted(map(int, members)) for members in self._homes.scan("twins")]
        for one in self._homes.rounds([len(own) for own in twins]):
            asked = {place: (packed_numbers(twins[place][start:end]), 1) for place, (start, end) in one.items()}
            for reply in self._homes.each("texts", asked).values():
                for _, sketch, profile, text, live in TEXT.iter_unpack(reply):
                    shown[b"%c%b%b" % (profile, sketch, text)].append(live)
        return sum((sum(live) > 1) - sum(one > 1 for one in live) for live in shown.values())
