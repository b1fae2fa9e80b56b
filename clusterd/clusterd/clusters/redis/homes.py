"""The homes of a store: one on one Redis; on a Redis Cluster as many as shards, so that each node has some.

A page, its versions, texts and contents belong to the home of its host, whatever happens to others. Numbers of
contents, and names of clusters, tell by their highest bits which home gave them, so that postings, edges and clusters
name them as if there were one. What joins clusters of several homes is in `spans`. So nothing lies in one slot alone
but what is written once a batch (how far the log was read) or seldom (policies, marks): nodes add room and pace. All
pages of one host are together: a crawl of one host alone is no faster on more nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import mmh3
from clusterd_consumer.redis_scripts import Calls, Request, packed_numbers, process
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.urls import host_of

from clusterd.clusters.redis.home import Counters, Home, counted

#: Bits of a number that are a home's own: 134 million contents each (`lua/spans.lua`).
OWN: Final = 27

#: Items that one call looks at: some 25 µs each, in which pages that arrive wait for Redis. Of several homes all are
#: asked at once, each for a part of that: a server has some of them, and does what it is asked at once in one go.
CHUNK: Final = 250
PART: Final = 64
#: Members of a set that one call reads: some 2 µs each.
SCANNED: Final = 1000

Item = TypeVar("Item")


class Homes:
    """All homes of a store; the first keeps what is one for all."""

    def __init__(self, calls: Calls, prefix: str, tags: Sequence[str]) -> None:
        self._calls = calls
        self.all = [Home(calls, prefix, tag, place) for place, tag in enumerate(tags)]
        self.first = self.all[0]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.all)

    def seed(self) -> None:
        """Let each home begin its numbers behind those of the one before."""
        if len(self.all) > 1:
            self.each("seed", {home.place: (home.place << OWN,) for home in self.all})

    def place_of(self, number: int) -> int:
        """Return which home gave a number."""
        return number >> OWN if len(self.all) > 1 else 0

    def of_url(self, url: str) -> Home:
        """Return the home of a URL."""
        return self.of_host(host_of(url))

    def of_host(self, host: str) -> Home:
        """Return the home of a host."""
        if len(self.all) == 1:
            return self.first
        return self.all[mmh3.hash(host.encode("utf-8", "surrogatepass"), signed=False) % len(self.all)]

    def places(self, sketches: Sequence[Sketch]) -> dict[int, list[int]]:
        """Return the places of sketches by the home of their hosts."""
        if len(self.all) == 1:
            return {0: list(range(len(sketches)))} if sketches else {}
        groups: dict[int, list[int]] = {}
        for place, sketch in enumerate(sketches):
            groups.setdefault(self.of_host(host_of(sketch.url)).place, []).append(place)
        return groups

    def counters(self) -> list[Counters]:
        """Return what each home counts."""
        return [counted(packed) for packed in self.ask("GET", "i")]

    def by_home(self, numbered: Iterable[tuple[int, Item]]) -> dict[int, list[Item]]:
        """Return items by the home that gave their numbers."""
        groups: dict[int, list[Item]] = {}
        for number, item in numbered:
            groups.setdefault(self.place_of(number), []).append(item)
        return groups

    def of_numbers(self, name: str, numbers: Iterable[int]) -> Iterable[tuple[list[int], Any]]:
        """Run a function in the home of each number, with all that are of that home; return these with its reply."""
        groups = self.by_home((number, number) for number in numbers)
        replies = self.each(name, {place: (packed_numbers(of),) for place, of in groups.items()})
        return zip(groups.values(), replies.values(), strict=True)

    def hand(self, name: str, numbered: Iterable[tuple[int, bytes]]) -> None:
        """Run a function in the home of each number, with all that is packed for that home; nowhere without any."""
        self.each(name, {place: (b"".join(of),) for place, of in self.by_home(numbered).items()})

    def rounds(
        self, counts: Sequence[int], part: int = PART, alone: int = CHUNK
    ) -> Iterator[dict[int, tuple[int, int]]]:
        """Yield what to ask the homes for at once, where each has so many items: from the first to behind the last.

        ``part``: items of a call where there are several homes; ``alone``: where there is one.
        """
        size = alone if len(self.all) == 1 else part
        for start in range(0, max(counts, default=0), size):
            yield {place: (start, min(count, start + size)) for place, count in enumerate(counts) if start < count}

    def each(self, name: str, arguments: Mapping[int, Sequence[Any]]) -> dict[int, Any]:
        """Run a function in several homes at once; return what each replies."""
        replies = self._calls.ask([self.all[place].function(name, *given) for place, given in arguments.items()])
        return dict(zip(arguments, replies, strict=True))

    def ask(self, name: str, key: str, *arguments: Any) -> list[Any]:
        """Run a command on a key of every home."""
        return self._calls.ask([home.request(name, key, *arguments) for home in self.all])

    def scan(self, key: str) -> list[set[bytes]]:
        """Return the members of a set of each home, read some at a time: all at once would hold Redis up.

        A cursor is good at the process alone that gave it. At another one, a replica or the same node after a restart,
        it passes over members without a word: where that answers, it is asked from the beginning.
        """
        found: list[set[bytes]] = [set() for _ in self.all]
        reached = dict.fromkeys(range(len(self.all)), (b"0", ""))
        while reached:
            homes = [self.all[place] for place in reached]
            scans = [
                home.request("SSCAN", key, cursor, "COUNT", SCANNED)
                for home, (cursor, _) in zip(homes, reached.values(), strict=True)
            ]
            replies = self.send([*scans, *(process(home.base) for home in homes)])
            processes = replies[len(scans) :]
            following = {}
            for home, answers, (cursor, members) in zip(homes, processes, replies[: len(scans)], strict=True):
                before, gave = reached[home.place]
                if int(before) and answers != gave:
                    following[home.place] = b"0", ""
                    continue
                found[home.place].update(members)
                if int(cursor):
                    following[home.place] = cursor, answers
            reached = following
        return found

    def send(self, requests: Sequence[Request]) -> list[Any]:
        """Ask several things of several homes."""
        return self._calls.ask(requests)
