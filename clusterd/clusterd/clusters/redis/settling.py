"""What waits on Redis: ghosts to dismiss, clusters to part, a new policy to build, sketches to discard.

One settler works at a time, under a lease; the pages of other workers go on meanwhile. A step is one of:

1. continue a move (a part of a cluster on its way to a fresh element, `lua/move.lua`),
2. unite clusters of several homes that others left (`spans`),
3. search whether the former neighbours of dismissed ghosts still hold together (`splitting`), and start the moves,
4. withdraw a few ghosts from their lists and dismiss them together (`lua/dismiss.lua`),
5. look contents up again for a policy that was added after them.

Of several homes one settler has the leases of all. A search goes over their borders; a part that has contents in
several moves in all of them before any looks at its edges once more. Each step leaves its mark in the store before the
next begins, so a settler that dies is followed by another.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from clusterd_consumer.postings.posted import Keys, keys_of
from clusterd_consumer.postings.redis_lists import Posting, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.postings.verdict import Verdict
from clusterd_consumer.redis_scripts import Request, packed_numbers

from clusterd.clusters.acceptance import mask
from clusterd.clusters.contract import SPLITS, Policy, Split
from clusterd.clusters.redis.edges import packed_edges
from clusterd.clusters.redis.home import (
    CONTENTS,
    DISMISS,
    LEASE,
    MOVE,
    PART,
    PARTED,
    RELINK,
    RENEW,
    REVIEW,
    SHOWN,
    URLS,
    WHOLE,
    Counters,
    Home,
    counted,
)
from clusterd.clusters.redis.homes import OWN, Homes
from clusterd.clusters.redis.posting import judged, keys_with_identity
from clusterd.clusters.redis.searching import run
from clusterd.clusters.redis.spans import PAIR, UNION, Spans, pairs_of
from clusterd.clusters.redis.standings import SPANNED
from clusterd.clusters.redis.tidying import Tidier
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


#: Seconds for which a pair that is due is left to the worker that has found it; the same while others come.
YOUNG: Final = 0.05
BUSY: Final = 1.0


class Waiting(NamedTuple):
    """What waits in a home: ghosts, searches, what is due, moves (or pairs to be reviewed), unbuilt stretches."""

    ghosts: int
    tasks: int
    due: int
    moving: int
    unbuilt: int


class LeaseLost(Exception):
    """Another settler took over."""


class BroughtBack(Exception):
    """Pages that came meanwhile brought a side back: the next call searches it again, when others had their turn."""


class Settler:
    """Does what waits, step by step."""

    def __init__(
        self, homes: Homes, spans: Spans, lists: RedisLists, scheme: Scheme, patience: float = PATIENCE
    ) -> None:
        self._homes = homes
        self._spans = spans
        self._tidier = Tidier(homes, spans)
        self._lists = lists
        self._scheme = scheme
        self._patience = patience
        self._token = os.urandom(8).hex()
        #: What was due when that was last looked at, and since when.
        self._seen: dict[bytes, float] = {}

    def waiting(self) -> int:
        """Return how many ghosts, searches, moves, pairs and unbuilt stretches wait."""
        return sum(sum(one) for one in self._look())

    def _look(self) -> list[Waiting]:
        """Return what waits in each home."""
        replies = iter(self._homes.send([request for home in self._homes.all for request in _looks(home)]))
        found = []
        for home in self._homes.all:
            ghosts, tasks, due, moving = (int(next(replies)) for _ in range(4))
            found.append(Waiting(ghosts, tasks, due, moving, _unbuilt(counted(next(replies)), home.place << OWN)))
        return found

    def settle(self, steps: int | None, policies: Sequence[Policy]) -> int:
        """Do up to ``steps`` steps, unless another settler is at it; return how many wait."""
        if self.waiting() and self._lease():
            try:
                done = 0
                while (steps is None or done < steps) and self._step(policies):
                    done += 1
                if not done and self._seen:
                    time.sleep(YOUNG)
            except (LeaseLost, BroughtBack):
                pass
            finally:
                self._release()
        self.discard()
        return self.waiting()

    def _lease(self) -> bool:
        """Take the leases of all homes, in order: who has the first has, or gets, the others."""
        taken = self._homes.first.run(LEASE, self._token, SILENCE)
        if taken and len(self._homes) > 1:
            calls = {home.place: (self._token, SILENCE) for home in self._homes.all[1:]}
            taken = all(self._homes.each(LEASE, calls).values())
            if not taken:
                self._release()
        return bool(taken)

    def _release(self) -> None:
        locks = zip(self._homes.all, self._homes.ask("GET", "lock"), strict=True)
        self._homes.send([home.request("DEL", "lock") for home, lock in locks if lock == self._token.encode()])

    def _step(self, policies: Sequence[Policy]) -> bool:
        """Do one step; return whether anything could be done."""
        if len(self._homes) > 1:
            return self._step_of_several(policies)
        home = self._homes.first
        return self._move(home) or self._search(home) or self._dismiss([home]) or self._build(home, policies)

    def _step_of_several(self, policies: Sequence[Policy]) -> bool:
        self._renew()
        there = list(zip(self._homes.all, self._look(), strict=True))
        ghosts = [home for home, waits in there if waits.ghosts]
        return (
            (any(waits.moving for _, waits in there) and self._move_all())
            or (any(waits.due for _, waits in there) and self._unite())
            or any(self._held(home.run(REVIEW, self._token, MOVES)) for home, waits in there if waits.moving)
            or any(self._search(home) for home, waits in there if waits.tasks)
            or (bool(ghosts) and self._dismiss(ghosts))
            or any(self._build(home, policies) for home, waits in there if waits.unbuilt)
        )

    def _renew(self) -> None:
        """Keep the leases of all homes: most steps are of one."""
        for held in self._homes.each(RENEW, {home.place: (self._token,) for home in self._homes.all}).values():
            self._held(held)

    def _move(self, home: Home, looking: int = 1) -> bool:
        if not (home.command("EXISTS", "mv") or (looking and home.command("EXISTS", "rl"))):
            return False
        self._held(home.run(MOVE, self._token, MOVES, looking))
        return True

    def _move_all(self) -> bool:
        """Continue a move where there is one; look at what has moved when all homes are done with that."""
        if any(self._move(home, 0) for home in self._homes.all):
            return True
        return any(self._move(home) for home in self._homes.all)

    def _unite(self) -> bool:
        """Unite what is due: what other workers left, and what has moved."""
        entries = self._left(self._spans.due())
        if not any(entries.values()):
            return False
        finished = self._spans.unite_due(entries)
        self._spans.done(finished)
        tidied = self._tidier.tidy()
        return tidied or any(finished.values())

    def _left(self, due: Mapping[int, Sequence[bytes]]) -> dict[int, list[bytes]]:
        """Return what is due but for what a worker has written just now: it is at it."""
        now, entries = time.monotonic(), {entry for of in due.values() for entry in of}
        age = YOUNG if entries <= self._seen.keys() else BUSY
        self._seen = {entry: self._seen.get(entry, now) for entry in entries}
        return {
            place: [e for e in of if e[0] not in (PAIR, UNION) or now - self._seen[e] >= age]
            for place, of in due.items()
        }

    def _search(self, home: Home) -> bool:
        """Search side by side what waits; part the first that has fallen apart: the others may hang on that."""
        tasks: list[bytes] = home.command("LRANGE", "tasks", 0, SEARCHES - 1)
        if not tasks:
            return False
        found = {task: Search(np.frombuffer(task, "<u4", offset=5).tolist()) for task in tasks}
        run(found, self._homes, self._spans)
        whole = [task for task, search in found.items() if not search.apart]
        if whole:
            self._held(home.run(WHOLE, self._token, *whole))
        for task, search in found.items():
            if search.apart:
                if len(self._homes) > 1:
                    self._part_spread(home, task, search)
                else:
                    self._part(home, task, search)
                break
        return True

    def _part(self, home: Home, task: bytes, search: Search) -> None:
        """Let the sides that lie apart move, one after the other."""
        for side in search.apart:
            part = struct.pack(f"<B{len(side)}I", task[0], *sorted(side))
            self._held(home.run(PART, self._token, task, part, b"", b"", SPLITS))
            while self._move(home):
                pass
        sides = packed_numbers([min(side) for side in search.apart])
        if self._held(home.run(PART, self._token, task, b"", struct.pack("<I", search.rest), sides, SPLITS)) > 1:
            raise BroughtBack

    def _part_spread(self, home: Home, task: bytes, search: Search) -> None:
        """Let sides that lie in several homes move; then see whether all of them stayed away, and tell of those.

        In which era a pair was looked up before its content moved does not count any more when the moves are looked at.
        """
        policy = task[0]
        for side in search.apart:
            for place, contents in self._homes.by_home((content, content) for content in sorted(side)).items():
                part = struct.pack(f"<B{len(contents)}I", policy, *contents)
                self._held(self._homes.all[place].run(PART, self._token, b"", part, b"", b"", SPLITS))
            for one in self._homes.all:
                while self._move(one, 0):
                    pass
            self._spans.advance()
            for one in self._homes.all:
                while self._move(one):
                    pass
        entries = self._spans.due(0)
        self._spans.done(self._spans.unite_due(entries))
        sides = [min(side) for side in search.apart]
        others = self._tasks_of(policy, task)
        asked = {search.rest, *sides, *(node for _, _, nodes in others for node in nodes)}
        stand = self._spans.stand_here((policy, content) for content in asked)
        spanning = self._spans.standings({name for name, _ in stand.values()})
        where = {
            content: (spanning[name].span + SPANNED if name in spanning else name)
            for (_, content), (name, _) in stand.items()
        }
        here = where[search.rest]
        for place, other, nodes in others:
            if any(where[node] == here for node in nodes):
                self._held(
                    self._homes.all[place].run(
                        PARTED, self._token, other, other + packed_numbers([search.rest]), SPLITS
                    )
                )
        back = [side for side in sides if where[side] == here]
        again = struct.pack(f"<BI{len(back) + 1}I", policy, 0, *back, search.rest) if back else b""
        name, size = stand[policy, search.rest]
        if name in spanning:
            name, size = spanning[name].name, spanning[name].size
        urls = self._shown([side for side in sides if side not in back])
        told = [SPLIT.pack(policy, name, size) + url for url in urls] if size else []
        self._held(home.run(PARTED, self._token, task, again, SPLITS, *told))
        if back:
            raise BroughtBack

    def _tasks_of(self, policy: int, except_: bytes) -> list[tuple[int, bytes, list[int]]]:
        """Return the searches of a policy that wait: home, task, contents."""
        return [
            (place, task, np.frombuffer(task, "<u4", offset=5).tolist())
            for place, tasks in enumerate(self._homes.ask("LRANGE", "tasks", 0, -1))
            for task in tasks
            if task[0] == policy and task != except_
        ]

    def _shown(self, contents: Sequence[int]) -> list[bytes]:
        """Return a URL of each content that a page shows."""
        urls = []
        for content in contents:
            home = self._homes.all[self._homes.place_of(content)]
            _, pages = home.run(SHOWN, packed_numbers([content]), 1)
            if pages:
                urls += home.run(URLS, pages[:4])
        return urls

    def splits(self, graded: Sequence[Policy]) -> list[Split]:
        """Return the splits that wait to be told."""
        return [_split(graded, entry) for entries in self._homes.ask("LRANGE", "sp", 0, -1) for entry in entries]

    def told(self, graded: Sequence[Policy], splits: Sequence[Split]) -> None:
        """Forget these splits, each once."""
        places = {policy.name: place for place, policy in enumerate(graded)}
        entries = [_packed_split(places[split.policy], split) for split in splits]
        for home in self._homes.all:
            home.ask([home.request("LREM", "sp", 1, entry) for entry in entries])

    def _dismiss(self, homes: Sequence[Home]) -> bool:
        """Withdraw and dismiss the first ghosts; one that was pending at first may yet be posted, and waits."""
        lists = self._homes.send([home.request("LRANGE", "g", 0, GHOSTS - 1) for home in homes])
        entries = {home: [int(entry) for entry in of] for home, of in zip(homes, lists, strict=True) if of}
        if not entries:
            return False
        waits = self._homes.send(
            [home.request("SMISMEMBER", "w", *(e >> 8 for e in of)) for home, of in entries.items()]
        )
        pending = {
            entry for of, waiting in zip(entries.values(), waits, strict=True) for entry in compress(of, waiting)
        }
        ready = {home: [entry for entry in of if entry not in pending] for home, of in entries.items()}
        if len(self._homes) > 1:
            later = self._touching([entry >> 8 for of in ready.values() for entry in of])
            ready = {home: [entry for entry in of if entry >> 8 not in later] for home, of in ready.items()}
            entries = {home: [e for e in of if e >> 8 not in later] for home, of in entries.items()}
        posted = [entry for of in ready.values() for entry in of if entry & 255]
        stored = self._lists.sketches({entry >> 8 for entry in posted})
        keys = {e >> 8: self._keys(stored[e >> 8], e & 255) for e in posted if stored[e >> 8]}
        if keys:
            self._lists.withdraw(keys)
        if len(self._homes) > 1:
            self._cut_beyond([entry >> 8 for of in ready.values() for entry in of])
        now = int(time.time())
        calls = {}
        for home, of in entries.items():
            packed = struct.pack(f"<{len(of)}Q", *ready[home], *(entry for entry in of if entry in pending))
            calls[home.place] = self._token, self._patience, len(ready[home]), packed, now
        replies = self._homes.each(DISMISS, calls).values()
        done = any(reply > 0 for reply in replies)
        if len(self._homes) > 1 and done:
            self._spans.advance()
        for reply in replies:
            self._held(reply)
        return done

    def _touching(self, ghosts: Sequence[int]) -> set[int]:
        """Return which of these ghosts touch one before them in another home.

        What each of the two held together may hang on the other, and no home sees both: one is dismissed when what the
        other held together has been searched.
        """
        near = self._spans.near(ghosts)
        later: set[int] = set()
        first: set[int] = set()
        for ghost in ghosts:
            others = {other for other, _ in struct.iter_unpack("<IH", near[ghost])} & first
            if any(self._homes.place_of(other) != self._homes.place_of(ghost) for other in others):
                later.add(ghost)
            else:
                first.add(ghost)
        return later

    def _cut_beyond(self, ghosts: Sequence[int]) -> None:
        """Take ghosts from the edges of their neighbours in other homes: nobody is told of these any more.

        A span that was made for such an edge, and that the ghost's cluster never became part of, has but one part.
        """
        near = self._spans.near(ghosts)
        edges = [(other, ghost, bits) for ghost in ghosts for other, bits in struct.iter_unpack("<IH", near[ghost])]
        edges = [edge for edge in edges if self._homes.place_of(edge[0]) != self._homes.place_of(edge[1])]
        if edges:
            self._spans.cut((other, ghost) for other, ghost, _ in edges)
            pairs = [pair for edge in edges for pair in pairs_of(*edge)]
            stand = self._spans.stand_here((pair.policy, pair.b) for pair in pairs)
            self._spans.lose((pair.policy, pair.a) for pair in pairs if stand[pair.policy, pair.b][0] < SPANNED)

    def _build(self, home: Home, policies: Sequence[Policy]) -> bool:
        """Look a stretch of contents up again; their edges take up the bits of new policies."""
        known = home.counters()
        start, to = known.build, known.build_to
        if not start or start > to:
            return False
        graded = [policy for policy in policies if not policy.identical]
        if len(graded) != known.graded:
            return False  # a policy was added a moment ago: the next call knows it
        found = home.run(CONTENTS, start, min(to, start + BUILT - 1))
        profiles = dict(struct.iter_unpack("<IB", found))
        stored = {number: one for number, one in self._lists.sketches(profiles).items() if one}
        postings = [Posting(n, b"", self._keys(one, profiles[n]).tobytes()) for n, one in stored.items()]
        arguments: list[object] = [len(graded), start + BUILT]
        proposed, candidates = self._lists.propose(postings) if postings else ([], {})
        for posting, numbers in zip(postings, proposed, strict=True):
            near = {number: candidates[number] for number in numbers if candidates.get(number)}
            verdicts = judged(stored[posting.number], profiles[posting.number], near)
            kept = self._told(graded, home, posting.number, verdicts)
            if kept is None:
                return False
            arguments += (posting.number, packed_edges(graded, kept))
        home.run(RELINK, *arguments)
        return True

    def _told(
        self, graded: Sequence[Policy], home: Home, content: int, verdicts: Mapping[int, Verdict]
    ) -> Mapping[int, Verdict] | None:
        """Tell contents of other homes of their edges; leave out those that are gone. None: of other policies."""
        away = [(number, content, mask(graded, one)) for number, one in verdicts.items()]
        away = [edge for edge in away if self._homes.place_of(edge[0]) != home.place and edge[2]]
        gone = self._spans.tell([(content, number, bits) for number, _, bits in away], len(graded))
        return None if gone is None else {number: one for number, one in verdicts.items() if number not in gone}

    def _keys(self, stored: bytes, profile: int) -> Keys:
        """Return the keys under which a stored sketch is posted."""
        keys = keys_of(stored, profile, self._scheme)
        return keys_with_identity(stored, keys) if len(self._homes) > 1 else keys

    def discard(self) -> None:
        """Free the stored sketches of contents that were forgotten."""
        for home, first in zip(self._homes.all, self._homes.ask("LRANGE", "trash", 0, 255), strict=True):
            numbers = first
            while numbers:
                self._lists.discard([int(number) for number in numbers])
                home.ask([home.request("LREM", "trash", 1, number) for number in numbers])
                numbers = home.command("LRANGE", "trash", 0, 255)

    def _held(self, reply: int) -> int:
        if reply == -1:
            raise LeaseLost
        return reply


def _looks(home: Home) -> list[Request]:
    """Return what asks a home for what waits there, in the order of `Waiting`."""
    lists = [home.request("LLEN", key) for key in ("g", "tasks", "due")]
    return [*lists, home.request("EXISTS", "mv", f"{home.base}:rl", f"{home.base}:review"), home.request("GET", "i")]


def _unbuilt(known: Counters, first: int) -> int:
    """Return how many stretches of a home wait for a new policy; ``first``: behind which its numbers begin."""
    return -(-max(0, known.build_to - known.build + 1) // BUILT) if known.build > first else 0


def _split(graded: Sequence[Policy], entry: bytes) -> Split:
    place, name, size = SPLIT.unpack_from(entry)
    return Split(graded[place].name, f"{graded[place].name}-{name}", size, entry[SPLIT.size :].decode())


def _packed_split(place: int, split: Split) -> bytes:
    return SPLIT.pack(place, int(split.cluster.rpartition("-")[2]), split.size) + split.url.encode()
