"""Ghosts, contents that no page shows any more, leave lists, neighbours and clusters (`lua/dismiss.lua`).

Some at once, of all homes together: what is looked up in other homes is looked up once for all.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import compress, product
from typing import Final

from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.sketch import PROFILES

from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.posting import Stored, withdraw
from clusterd.clusters.redis.settling.lease import Lease
from clusterd.clusters.redis.spans.standings import SPANNED
from clusterd.clusters.redis.spans.steps import Spans, pairs_of

#: Ghosts of a home that are withdrawn and dismissed in one step.
GHOSTS: Final = 32
#: The profile of one that was freed before it was posted (lua/settling.lua).
UNKNOWN: Final = 255


class Dismisser:
    """Dismisses ghosts; ``patience``: seconds that one is waited for whose worker died before it was linked."""

    def __init__(
        self, homes: Homes, spans: Spans, lists: RedisLists, scheme: Scheme, lease: Lease, patience: float
    ) -> None:
        self._homes = homes
        self._spans = spans
        self._lists = lists
        self._scheme = scheme
        self._lease = lease
        self._patience = patience

    def dismiss(self, homes: Sequence[Home]) -> bool:
        """Withdraw and dismiss the first ghosts; one that was pending at first may yet be posted, and waits."""
        entries = self._first(homes)
        if not entries:
            return False
        pending = self._pending(entries)
        near = self._near(entry for of in entries.values() for entry in of if entry not in pending)
        later = self._touching(near)
        entries = {home: [entry for entry in of if entry >> 8 not in later] for home, of in entries.items()}
        ready = {home: [entry for entry in of if entry not in pending] for home, of in entries.items()}
        self._withdraw([entry for of in ready.values() for entry in of if entry & 255])
        self._cut_beyond({ghost: of for ghost, of in near.items() if ghost not in later})
        return self._bury(ready, {home: [entry for entry in of if entry in pending] for home, of in entries.items()})

    def are_pending(self, homes: Sequence[Home]) -> bool:
        """Whether all ghosts of these homes are pending, as far as can be told of the first `GHOSTS` of each."""
        entries = self._first(homes)
        return self._pending(entries) == {entry for of in entries.values() for entry in of}

    def _first(self, homes: Sequence[Home]) -> dict[Home, list[int]]:
        """Return the first ghosts of homes that have any."""
        lists = self._homes.send([home.request("LRANGE", "g", 0, GHOSTS - 1) for home in homes])
        return {home: [int(entry) for entry in of] for home, of in zip(homes, lists, strict=True) if of}

    def _pending(self, entries: Mapping[Home, Sequence[int]]) -> set[int]:
        """Return which ghosts are pending."""
        waits = self._homes.send(
            [home.request("SMISMEMBER", "w", *(entry >> 8 for entry in of)) for home, of in entries.items()]
        )
        return {entry for of, waiting in zip(entries.values(), waits, strict=True) for entry in compress(of, waiting)}

    def _near(self, entries: Iterable[int]) -> dict[int, bytes]:
        """Return the edges of ghosts, which stay as they are: what departed takes up none; of one home, nothing."""
        return self._spans.near(entry >> 8 for entry in entries) if len(self._homes) > 1 else {}

    def _withdraw(self, posted: Sequence[int]) -> None:
        """Take posted ghosts from the lists of their values."""
        stored = self._lists.sketches({entry >> 8 for entry in posted})
        there = [(entry >> 8, entry & 255) for entry in posted if stored[entry >> 8]]
        contents = {number: Stored(stored[number], profile) for number, profile in there if profile != UNKNOWN}
        withdraw(self._lists, contents, self._scheme, len(self._homes) > 1)
        for number, profile in product((n for n, profile in there if profile == UNKNOWN), PROFILES):
            with suppress(ValueError, IndexError):  # it cannot be read as one of this profile
                content = {number: Stored(stored[number], profile)}
                withdraw(self._lists, content, self._scheme, len(self._homes) > 1)

    def _bury(self, ready: Mapping[Home, Sequence[int]], pending: Mapping[Home, Sequence[int]]) -> bool:
        """Dismiss ghosts that are ready, and those pending that were waited for in vain; return whether there were."""
        now, calls = int(time.time()), {}
        for home, of in ready.items():
            packed = struct.pack(f"<{len(of) + len(pending[home])}Q", *of, *pending[home])
            calls[home.place] = self._lease.token, self._patience, len(of), packed, now
        replies = self._homes.each("dismiss", calls).values()
        done = any(reply > 0 for reply in replies)
        if done and len(self._homes) > 1:
            self._spans.advance()
        for reply in replies:
            self._lease.held(reply)
        return done

    def _touching(self, near: Mapping[int, bytes]) -> set[int]:
        """Return which of these ghosts, by their packed edges, touch one before them in another home.

        What each of the two held together may hang on the other, and no home sees both: one is dismissed when what the
        other held together has been searched.
        """
        later: set[int] = set()
        first: set[int] = set()
        for ghost, edges in near.items():
            others = {other for other, _ in struct.iter_unpack("<IH", edges)} & first
            if any(self._homes.place_of(other) != self._homes.place_of(ghost) for other in others):
                later.add(ghost)
            else:
                first.add(ghost)
        return later

    def _cut_beyond(self, near: Mapping[int, bytes]) -> None:
        """Take ghosts from the edges of their neighbours in other homes: nobody is told of these any more.

        A span that was made for such an edge, and that the ghost's cluster never became part of, has but one part.
        """
        edges = [(other, ghost, bits) for ghost, of in near.items() for other, bits in struct.iter_unpack("<IH", of)]
        edges = [edge for edge in edges if self._homes.place_of(edge[0]) != self._homes.place_of(edge[1])]
        self._spans.cut((other, ghost) for other, ghost, _ in edges)
        pairs = [pair for edge in edges for pair in pairs_of(*edge)]
        stand = self._spans.stand_here((pair.policy, pair.b) for pair in pairs)
        self._spans.lose((pair.policy, pair.a) for pair in pairs if stand[pair.policy, pair.b][0] < SPANNED)
