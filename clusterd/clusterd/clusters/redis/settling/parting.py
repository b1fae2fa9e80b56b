"""Clusters fall apart: the sides that a search found apart move out, and the splits are kept until they are told.

Within a home one side after the other moves, chunk by chunk (`lua/move.lua`), and one call tells the splits. A side
with contents in several homes moves in all of them before any looks at its edges once more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.contract import SPLITS, Policy, Split
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.settling.lease import Lease
from clusterd.clusters.redis.spans.standings import SPANNED
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.clusters.splitting import Search

#: Contents moved in one step.
MOVES: Final = 500
#: part.lua: policy, name of the cluster that a part came off, URLs left there; then a URL of the part.
SPLIT: Final = struct.Struct("<BII")


class Place(NamedTuple):
    """Where a content stands: a cluster of its home or, above `SPANNED`, a span; its name, and URLs in it."""

    cluster: int
    name: int
    size: int


#: Where what was dismissed stands.
NOWHERE: Final = Place(0, 0, 0)


class BroughtBack(Exception):
    """Pages that came meanwhile brought a side back: the next call searches it again, when others had their turn."""


class Parter:
    """Lets parts of clusters leave."""

    def __init__(self, homes: Homes, spans: Spans, lease: Lease) -> None:
        self._homes = homes
        self._spans = spans
        self._lease = lease

    def move(self, home: Home, looking: int = 1) -> bool:
        """Continue a home's move, where there is one; 0: without a look at what has moved."""
        if not (home.command("EXISTS", "mv") or (looking and home.command("EXISTS", "rl"))):
            return False
        self._lease.keep()
        self._lease.held(home.run("move", self._lease.token, MOVES, looking))
        return True

    def move_all(self) -> bool:
        """Continue a move where there is one; look at what has moved when all homes are done with that."""
        if any(self.move(home, 0) for home in self._homes.all):
            return True
        return any(self.move(home) for home in self._homes.all)

    def part(self, home: Home, task: bytes, search: Search) -> None:
        """Let the sides that lie apart leave; ``home``: which has the task that was searched."""
        if len(self._homes) > 1:
            self._part_spread(home, task, search)
        else:
            self._part(home, task, search)

    def _part(self, home: Home, task: bytes, search: Search) -> None:
        """Let the sides that lie apart move, one after the other."""
        for side in search.apart:
            part = struct.pack(f"<B{len(side)}I", task[0], *sorted(side))
            self._lease.held(home.run("part", self._lease.token, task, part, b"", b"", SPLITS))
            while self.move(home):
                pass
        sides = packed_numbers([min(side) for side in search.apart])
        rest = struct.pack("<I", search.rest)
        if self._lease.held(home.run("part", self._lease.token, task, b"", rest, sides, SPLITS)) > 1:
            raise BroughtBack

    def _part_spread(self, home: Home, task: bytes, search: Search) -> None:
        """Let sides that lie in several homes move; then see whether all of them stayed away, and tell of those."""
        policy = task[0]
        there = self._places(policy, [min(side) for side in search.apart])
        # (What was dismissed has no edges. A page that its worker has linked and not united yet stands nowhere, too.)
        apart = {min(side): side for side in search.apart if len(side) > 1 or min(side) in there}
        for side in apart.values():
            self._move_spread(policy, side)
        self._spans.done(self._spans.unite_due(self._spans.due(0)))
        others = self._tasks_of(policy, task)
        where = self._places(policy, {search.rest, *apart, *(node for _, _, nodes in others for node in nodes)})
        here = where.get(search.rest, NOWHERE)
        with_rest = {content for content, at in where.items() if at.cluster == here.cluster}
        for place, other, nodes in others:
            if not with_rest.isdisjoint(nodes):
                more = other + packed_numbers([search.rest])
                self._lease.held(self._homes.all[place].run("parted", self._lease.token, other, more, SPLITS))
        back = [side for side in apart if side in with_rest]
        again = struct.pack(f"<BI{len(back) + 1}I", policy, 0, *back, search.rest) if back else b""
        urls = self._shown([side for side in apart if side not in back])
        told = [SPLIT.pack(policy, here.name, here.size) + url for url in urls] if here.size else []
        self._lease.held(home.run("parted", self._lease.token, task, again, SPLITS, *told))
        if back:
            raise BroughtBack

    def _move_spread(self, policy: int, side: Iterable[int]) -> None:
        """Let a side move in all homes before any looks at its edges.

        In which era a pair was looked up before its content moved does not count any more when the moves are looked at.
        """
        for place, contents in self._homes.by_home((content, content) for content in sorted(side)).items():
            part = struct.pack(f"<B{len(contents)}I", policy, *contents)
            self._lease.held(self._homes.all[place].run("part", self._lease.token, b"", part, b"", b"", SPLITS))
        for one in self._homes.all:
            while self.move(one, 0):
                pass
        self._spans.advance()
        for one in self._homes.all:
            while self.move(one):
                pass

    def _places(self, policy: int, contents: Iterable[int]) -> dict[int, Place]:
        """Return where contents stand under a policy; of those that were dismissed nothing."""
        stand = self._spans.stand_here(((policy, content) for content in contents), everyone=False)
        spanning = self._spans.standings({name for name, _ in stand.values()})
        places = {}
        for (_, content), (name, size) in stand.items():
            over = spanning.get(name)
            places[content] = Place(over.span + SPANNED, over.name, over.size) if over else Place(name, name, size)
        return places

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
            _, pages, _ = home.run("shown", packed_numbers([content]), 1, 1)
            if pages:
                urls += home.run("urls", pages[:4])
        return urls


def splits_of(homes: Homes, graded: Sequence[Policy]) -> list[Split]:
    """Return the splits that wait to be told."""
    return [
        _split(graded, entry)
        for entries in homes.ask("LRANGE", "sp", 0, -1)
        for entry in entries
        if not graded[entry[0]].vacant
    ]


def forget_splits(homes: Homes, graded: Sequence[Policy], splits: Sequence[Split]) -> None:
    """Forget these splits, each once."""
    places = {policy.name: place for place, policy in enumerate(graded)}
    entries = [_packed_split(places[split.policy], split) for split in splits if split.policy in places]
    homes.send([home.request("LREM", "sp", 1, entry) for home in homes.all for entry in entries])


def _split(graded: Sequence[Policy], entry: bytes) -> Split:
    place, name, size = SPLIT.unpack_from(entry)
    return Split(graded[place].name, f"{graded[place].name}-{name}", size, entry[SPLIT.size :].decode())


def _packed_split(place: int, split: Split) -> bytes:
    return SPLIT.pack(place, int(split.cluster.rpartition("-")[2]), split.size) + split.url.encode()
