"""Does what waits, step by step, one settler at a time."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from clusterd_consumer.postings.redis_lists import Posting, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_scripts import Request
from clusterd_consumer.resemblance import Estimate

from clusterd.clusters.acceptance import mask
from clusterd.clusters.redis.edges import packed_edges
from clusterd.clusters.redis.home import Counters, Home, counted
from clusterd.clusters.redis.homes import OWN, Homes
from clusterd.clusters.redis.policies import State, clear, uncleared
from clusterd.clusters.redis.posting import Stored, post, posted_keys
from clusterd.clusters.redis.settling.dismissing import Dismisser
from clusterd.clusters.redis.settling.lease import Lease, LeaseLost
from clusterd.clusters.redis.settling.parting import MOVES, BroughtBack, Parter
from clusterd.clusters.redis.settling.searching import run
from clusterd.clusters.redis.spans.steps import PAIR, UNION, Spans
from clusterd.clusters.redis.spans.tidying import Tidier
from clusterd.clusters.splitting import Search

#: Contents looked up again in one step, and numbers among which they are looked for: behind a home shard that came back
#: without its latest writes lie thousands that no content has (`numbers`).
BUILT: Final = 64
PASSED: Final = 1024
#: Bytes of edges (`edges`) after which a call that lets these be taken up ends: 200 edges.
TAKEN_UP: Final = 1200
#: Searches that go on side by side.
SEARCHES: Final = 96
#: Seconds that a departed content is waited for whose worker died before it was linked. The log delivers its message
#: again within seconds (Kafka's session timeout); one that was lost never comes, and must not keep `settle` busy.
PATIENCE: Final = 600.0
#: Seconds for which a pair that is due is left to the worker that has found it; the same while others come.
YOUNG: Final = 0.05
BUSY: Final = 1.0


class Waiting(NamedTuple):
    """What waits in a home: ghosts, searches, what is due, moves (or pairs to review), stretches to clear, to build."""

    ghosts: int
    tasks: int
    due: int
    moving: int
    clearing: int
    unbuilt: int


class Settler:
    """Does what waits, step by step."""

    def __init__(self, homes: Homes, spans: Spans, lists: RedisLists, scheme: Scheme, patience: float) -> None:
        self._homes = homes
        self._spans = spans
        self._lists = lists
        self._scheme = scheme
        self._lease = Lease(homes)
        self._tidier = Tidier(homes, spans)
        self._parter = Parter(homes, spans, self._lease)
        self._dismisser = Dismisser(homes, spans, lists, scheme, self._lease, patience)
        #: Held by the thread that settles: to those of one index the lease is one settler's.
        self._at_it = threading.Lock()
        #: What was due when that was last looked at, and since when.
        self._seen: dict[bytes, float] = {}

    def waiting(self) -> int:
        """Return how many ghosts, searches, moves, pairs, and stretches to clear and to build wait."""
        return sum(sum(one) for one in self._look())

    def only_awaits(self) -> bool:
        """Whether nothing waits but for ghosts that are pending: some worker may have them in hand yet."""
        waits = self._look()
        return all(not any(of[1:]) for of in waits) and self._dismisser.are_pending(
            [home for home, of in zip(self._homes.all, waits, strict=True) if of.ghosts]
        )

    def _look(self) -> list[Waiting]:
        """Return what waits in each home."""
        replies = iter(self._homes.send([request for home in self._homes.all for request in _looks(home)]))
        found = []
        for home in self._homes.all:
            ghosts, tasks, due, moving = (int(next(replies)) for _ in range(4))
            clearing, unbuilt = uncleared(next(replies)), _unbuilt(counted(next(replies)), home.place << OWN)
            found.append(Waiting(ghosts, tasks, due, moving, clearing, unbuilt))
        return found

    def settle(self, steps: int | None, policies: State) -> int:
        """Do up to ``steps`` steps, unless another settler is at it; return how many wait."""
        if self.waiting() and self._at_it.acquire(blocking=False):
            try:
                self._settle(steps, policies)
            finally:
                self._at_it.release()
        self.discard()
        return self.waiting()

    def _settle(self, steps: int | None, policies: State) -> None:
        if not self._lease.take():
            return
        try:
            done = 0
            while (steps is None or done < steps) and self._step(policies):
                done += 1
            if not done and self._seen:
                time.sleep(YOUNG)
        except (LeaseLost, BroughtBack):
            pass
        finally:
            self._lease.give_back()

    def _step(self, policies: State) -> bool:
        """Do one step; return whether anything could be done."""
        if len(self._homes) > 1:
            return self._step_of_several(policies)
        home = self._homes.first
        return (
            self._parter.move(home)
            or self._search(home)
            or self._dismisser.dismiss([home])
            or self._clear(home)
            or self._build(home, policies)
        )

    def _step_of_several(self, policies: State) -> bool:
        self._lease.keep()
        there = list(zip(self._homes.all, self._look(), strict=True))
        ghosts = [home for home, waits in there if waits.ghosts]
        return (
            (any(waits.moving for _, waits in there) and self._parter.move_all())
            or (any(waits.due for _, waits in there) and self._unite())
            or any(self._review(home) for home, waits in there if waits.moving)
            or any(self._search(home) for home, waits in there if waits.tasks)
            or (bool(ghosts) and self._dismisser.dismiss(ghosts))
            or any(self._clear(home) for home, waits in there if waits.clearing)
            or any(self._build(home, policies) for home, waits in there if waits.unbuilt)
        )

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

    def _review(self, home: Home) -> bool:
        """Let pairs of a home that was set back be due again, some at a time."""
        return self._lease.held(home.run("review", self._lease.token, MOVES)) > 0

    def _search(self, home: Home) -> bool:
        """Search side by side what waits; part the first that has fallen apart: the others may hang on that."""
        tasks: list[bytes] = home.command("LRANGE", "tasks", 0, SEARCHES - 1)
        if not tasks:
            return False
        found = {task: Search(np.frombuffer(task, "<u4", offset=5).tolist()) for task in tasks}
        run(found, self._homes, self._spans, self._lease.keep)
        whole = [task for task, search in found.items() if not search.apart]
        if whole:
            self._lease.held(home.run("whole", self._lease.token, *whole))
        for task, search in found.items():
            if search.apart:
                self._parter.part(home, task, search)
                break
        return True

    def _clear(self, home: Home) -> bool:
        """Let some contents forget policies that were removed."""
        self._lease.keep()
        return clear(home)

    def _build(self, home: Home, policies: State) -> bool:
        """Look a stretch of contents up again; their edges take up the bits of new policies."""
        known = home.counters()
        start, to = known.build, known.build_to
        if not start or start > to:
            return False
        graded = policies.graded
        if policies.number != known.policies:
            return False  # one was added or removed a moment ago: the next call knows it
        last = min(to, start + PASSED - 1)
        profiles = dict(struct.iter_unpack("<IB", home.run("contents", start, last, BUILT)))
        if len(profiles) == BUILT:
            last = max(profiles)
        stored = sorted(self._lists.sketches(profiles).items())
        contents = {number: Stored(one, profiles[number]) for number, one in stored if one}
        several = len(self._homes) > 1
        keys = {number: posted_keys(*content, self._scheme, several) for number, content in contents.items()}
        postings = [Posting(number, b"", of.tobytes()) for number, of in keys.items()]
        arguments: list[object] = []
        size = 0
        verdicts = post(self._lists, postings, contents, self._scheme, several) if postings else []
        for number, near in zip(contents, verdicts, strict=True):
            kept = self._told(policies, home, number, near)
            if kept is None:
                return False
            edges = packed_edges(graded, kept)
            arguments += (number, edges)
            size += len(edges)
            if size > TAKEN_UP:
                home.run("relink", policies.number, number + 1, *arguments)
                arguments, size = [], 0
        home.run("relink", policies.number, last + 1, *arguments)
        return True

    def _told(
        self, policies: State, home: Home, content: int, verdicts: Mapping[int, Estimate]
    ) -> Mapping[int, Estimate] | None:
        """Tell contents of other homes of their edges; leave out those that are gone. None: of other policies."""
        away = [(number, content, mask(policies.graded, one)) for number, one in verdicts.items()]
        away = [edge for edge in away if self._homes.place_of(edge[0]) != home.place and edge[2]]
        gone = self._spans.tell([(content, number, bits) for number, _, bits in away], policies.number)
        return None if gone is None else {number: one for number, one in verdicts.items() if number not in gone}

    def discard(self) -> None:
        """Free the stored sketches of contents that were forgotten."""
        for home, first in zip(self._homes.all, self._homes.ask("LRANGE", "trash", 0, 255), strict=True):
            numbers = first
            while numbers:
                self._lists.discard([int(number) for number in numbers])
                home.ask([home.request("LREM", "trash", 1, number) for number in numbers])
                numbers = home.command("LRANGE", "trash", 0, 255)


def _looks(home: Home) -> list[Request]:
    """Return what asks a home for what waits there, in the order of `Waiting`."""
    lists = [home.request("LLEN", key) for key in ("g", "tasks", "due")]
    moving = home.request("EXISTS", "mv", f"{home.base}:rl", f"{home.base}:review")
    return [*lists, moving, home.request("GET", "clear"), home.request("GET", "i")]


def _unbuilt(known: Counters, first: int) -> int:
    """Return how many stretches of a home wait for a new policy; ``first``: behind which its numbers begin."""
    return -(-max(0, known.build_to - known.build + 1) // BUILT) if known.build > first else 0
