"""Numbers of contents on a Redis Cluster: none is given twice, whatever the node of the home shard forgets.

Where that node comes back without its latest writes (AOF ``everysec``, a replica that took over, a backup), its counter
says that numbers are free under which the other nodes still keep sketches and postings of pages. Given anew, such a
number would be proposed to what resembles the lost page, and verified by its sketch, and the page that has the number
now would be joined with it: a false edge, which nothing takes away again.

So the home shard remembers which process of a server keeps it. Another one gives no number, and links nothing that was
registered before, until it was made to begin behind all that were ever given (`lua/anew.lua`). How many that are the
other nodes know to within `STEP`, and what was given since lies within `GAP`. Cost: a call to each node for `STEP`
contents; 131,072 of four billion numbers, and nothing else, for each restart of the home shard's server.

One Redis needs nothing of this: its sketches are as old as its counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from clusterd_consumer.redis_scripts import Calls, Request, command

from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import OWN

#: Numbers that are given before the nodes are told of it.
STEP: Final = 1 << 15
#: Numbers that are passed over: those of `STEP`, and those that workers had in hand meanwhile.
GAP: Final = 1 << 17


class Numbers:
    """What the shards know of numbers that were given."""

    def __init__(self, calls: Calls, home: Home, prefix: str, tags: Sequence[str], alone: bool) -> None:
        self._calls = calls
        self._home = home
        self._name = f"n{home.place}" if home.place else "n"
        #: One of several homes has fewer numbers to give.
        self._step, self._gap = (STEP, GAP) if alone else (STEP // 8, GAP // 8)
        self._first = home.place << OWN
        self._keys = [f"{prefix}{{{tag}}}:given" for tag in tags]
        self._noted = self._first - self._step

    def note(self, contents: Iterable[int]) -> None:
        """Tell all shards now and then how far numbers were given, these among them."""
        highest = max(contents, default=0)
        if highest >= self._noted + self._step:
            self._calls.ask([command("ZADD", key, "GT", highest, self._name) for key in self._keys])
            self._noted = highest

    def asks(self) -> list[Request]:
        """Return what asks the shards how far numbers were given."""
        return [command("ZSCORE", key, self._name) for key in self._keys]

    def begins(self, given: Sequence[bytes | None]) -> Request:
        """Return what lets the home begin behind all of these, where another process of a server keeps it."""
        return self._home.function("anew", max(self._first, *(int(float(number or 0)) for number in given)), self._gap)


def go_on(calls: Calls, several: Sequence[Numbers]) -> None:
    """Where another process of a server keeps a home shard, let it begin behind all numbers that were given.

    Two round trips, whatever the number of homes.
    """
    asked = [numbers.asks() for numbers in several]
    given = iter(calls.ask([request for of in asked for request in of]))
    begun = [numbers.begins(list(islice(given, len(of)))) for numbers, of in zip(several, asked, strict=True)]
    calls.ask(begun)
