"""What waits on Redis: ghosts to dismiss, clusters to part, a new policy to build, sketches to discard.

One settler works at a time, under a lease; the pages of other workers go on meanwhile. A step is one of:

1. continue a move (a part of a cluster on its way to a fresh element, `lua/move.lua`),
2. search whether the former neighbours of dismissed ghosts still hold together (`splitting`), and start the moves,
3. withdraw a few ghosts from their lists and dismiss them together (`lua/dismiss.lua`),
4. look contents up again for a policy that was added after them.

Each leaves its mark in the store before the next begins, so a settler that dies is followed by another.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from clusterd_consumer.postings.posted import keys_of
from clusterd_consumer.postings.redis_lists import Posting, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.contract import SPLITS, Policy, Split
from clusterd.clusters.redis.edges import packed_edges
from clusterd.clusters.redis.home import CONTENTS, DISMISS, LEASE, MOVE, NEAR, PART, RELINK, WHOLE, Home, counted
from clusterd.clusters.redis.posting import judged
from clusterd.clusters.splitting import Search

#: Milliseconds that a settler may be silent before another takes over (settling.lua renews it).
SILENCE: Final = 30_000
#: Contents moved, and contents looked up again, in one step.
MOVES: Final = 500
BUILT: Final = 64
#: Ghosts withdrawn and dismissed in one step, and searches that go on side by side.
GHOSTS: Final = 32
SEARCHES: Final = 96
#: Seconds that a departed content is waited for whose worker died before it was linked. The log delivers its message
#: again within seconds (Kafka's session timeout); one that was lost never comes, and must not keep `settle` busy.
PATIENCE: Final = 600.0
#: part.lua: policy, name of the cluster that a part came off, URLs left there; then a URL of the part.
SPLIT: Final = struct.Struct("<BII")


class LeaseLost(Exception):
    """Another settler took over."""


class BroughtBack(Exception):
    """Pages that came meanwhile brought a side back: the next call searches it again, when others had their turn."""


class Settler:
    """Does what waits, step by step."""

    def __init__(self, home: Home, lists: RedisLists, scheme: Scheme, patience: float = PATIENCE) -> None:
        self._home = home
        self._lists = lists
        self._scheme = scheme
        self._patience = patience
        self._token = os.urandom(8).hex()

    def waiting(self) -> int:
        """Return how many ghosts, searches, moves and unbuilt stretches wait."""
        asked = ("LLEN", "g"), ("LLEN", "tasks"), ("EXISTS", "mv"), ("EXISTS", "rl"), ("GET", "i")
        *waits, packed = self._home.ask([self._home.request(*one) for one in asked])
        known = counted(packed)
        unbuilt = -(-max(0, known.build_to - known.build + 1) // BUILT) if known.build else 0
        return int(sum(waits) + unbuilt)

    def settle(self, steps: int | None, policies: Sequence[Policy]) -> int:
        """Do up to ``steps`` steps, unless another settler is at it; return how many wait."""
        if self.waiting() and self._home.run(LEASE, self._token, SILENCE):
            try:
                done = 0
                while (steps is None or done < steps) and self._step(policies):
                    done += 1
            except (LeaseLost, BroughtBack):
                pass
            finally:
                if self._home.command("GET", "lock") == self._token.encode():
                    self._home.command("DEL", "lock")
        self.discard()
        return self.waiting()

    def _step(self, policies: Sequence[Policy]) -> bool:
        """Do one step; return whether anything could be done."""
        return self._move() or self._search() or self._dismiss() or self._build(policies)

    def _move(self) -> bool:
        if not (self._home.command("EXISTS", "mv") or self._home.command("EXISTS", "rl")):
            return False
        self._held(self._home.run(MOVE, self._token, MOVES))
        return True

    def _search(self) -> bool:
        """Search side by side what waits; part the first that has fallen apart: the others may hang on that."""
        tasks: list[bytes] = self._home.command("LRANGE", "tasks", 0, SEARCHES - 1)
        if not tasks:
            return False
        found = {task: Search(np.frombuffer(task, "<u4", offset=5).tolist()) for task in tasks}
        self._run(found)
        whole = [task for task, search in found.items() if not search.apart]
        if whole:
            self._held(self._home.run(WHOLE, self._token, *whole))
        for task, search in found.items():
            if search.apart:
                self._part(task, search)
                break
        return True

    def _run(self, found: Mapping[bytes, Search]) -> None:
        """Run the searches of these tasks, each round of all of them by one call."""
        near: dict[int, bytes] = {}
        while open_ := {task: search.wanted() for task, search in found.items() if not search.done}:
            unread = list(dict.fromkeys(node for nodes in open_.values() for node in nodes if node not in near))
            near.update(zip(unread, self._home.run(NEAR, packed_numbers(unread)), strict=True))
            for task, nodes in open_.items():
                found[task].feed({node: _joined(near[node], task[0]) for node in nodes})

    def _part(self, task: bytes, search: Search) -> None:
        """Let the sides that lie apart move, one after the other."""
        for side in search.apart:
            part = struct.pack(f"<B{len(side)}I", task[0], *sorted(side))
            self._held(self._home.run(PART, self._token, task, part, b"", b"", SPLITS))
            while self._move():
                pass
        sides = packed_numbers([min(side) for side in search.apart])
        if self._held(self._home.run(PART, self._token, task, b"", struct.pack("<I", search.rest), sides, SPLITS)) > 1:
            raise BroughtBack

    def splits(self, graded: Sequence[Policy]) -> list[Split]:
        """Return the splits that wait to be told."""
        return [_split(graded, entry) for entry in self._home.command("LRANGE", "sp", 0, -1)]

    def told(self, graded: Sequence[Policy], splits: Sequence[Split]) -> None:
        """Forget these splits, each once."""
        places = {policy.name: place for place, policy in enumerate(graded)}
        entries = [_packed_split(places[split.policy], split) for split in splits]
        self._home.ask([self._home.request("LREM", "sp", 1, entry) for entry in entries])

    def _dismiss(self) -> bool:
        """Withdraw and dismiss the first ghosts; one that was pending at first may yet be posted, and waits."""
        entries = [int(entry) for entry in self._home.command("LRANGE", "g", 0, GHOSTS - 1)]
        if not entries:
            return False
        waits = self._home.command("SMISMEMBER", "w", *(entry >> 8 for entry in entries))
        ready = [entry for entry, pending in zip(entries, waits, strict=True) if not pending]
        awaited = [entry for entry, pending in zip(entries, waits, strict=True) if pending]
        posted = [entry for entry in ready if entry & 255]
        stored = self._lists.sketches({entry >> 8 for entry in posted})
        keys = {e >> 8: keys_of(stored[e >> 8], e & 255, self._scheme) for e in posted if stored[e >> 8]}
        if keys:
            self._lists.withdraw(keys)
        packed = struct.pack(f"<{len(entries)}Q", *ready, *awaited)
        now = int(time.time())
        return self._held(self._home.run(DISMISS, self._token, self._patience, len(ready), packed, now)) > 0

    def _build(self, policies: Sequence[Policy]) -> bool:
        """Look a stretch of contents up again; their edges take up the bits of new policies."""
        known = self._home.counters()
        start, to = known.build, known.build_to
        if not start or start > to:
            return False
        graded = [policy for policy in policies if not policy.identical]
        if len(graded) != known.graded:
            return False  # a policy was added a moment ago: the next call knows it
        found = self._home.run(CONTENTS, start, min(to, start + BUILT - 1))
        profiles = dict(struct.iter_unpack("<IB", found))
        stored = {number: one for number, one in self._lists.sketches(profiles).items() if one}
        postings = [Posting(n, b"", keys_of(one, profiles[n], self._scheme).tobytes()) for n, one in stored.items()]
        arguments: list[object] = [len(graded), start + BUILT]
        proposed, candidates = self._lists.propose(postings) if postings else ([], {})
        for posting, numbers in zip(postings, proposed, strict=True):
            near = {number: candidates[number] for number in numbers if candidates.get(number)}
            verdicts = judged(stored[posting.number], profiles[posting.number], near)
            arguments += (posting.number, packed_edges(graded, verdicts))
        self._home.run(RELINK, *arguments)
        return True

    def discard(self) -> None:
        """Free the stored sketches of contents that were forgotten."""
        while numbers := [int(number) for number in self._home.command("LRANGE", "trash", 0, 255)]:
            self._lists.discard(numbers)
            self._home.ask([self._home.request("LREM", "trash", 1, number) for number in numbers])

    def _held(self, reply: int) -> int:
        if reply == -1:
            raise LeaseLost
        return reply


def _joined(edges: bytes, policy: int) -> list[int]:
    return [number for number, bits in struct.iter_unpack("<IH", edges) if bits >> policy & 1]


def _split(graded: Sequence[Policy], entry: bytes) -> Split:
    place, name, size = SPLIT.unpack_from(entry)
    return Split(graded[place].name, f"{graded[place].name}-{name}", size, entry[SPLIT.size :].decode())


def _packed_split(place: int, split: Split) -> bytes:
    return SPLIT.pack(place, int(split.cluster.rpartition("-")[2]), split.size) + split.url.encode()
