"""Marks: how much of the log every node of a Redis Cluster is known to hold: what one has lost, it gets again.

Where one node comes back without its last second (AOF ``everysec``, a replica that took over) or from an older backup,
the home shard still says that contents were posted whose postings or sketches are gone. Every `INTERVAL` a mark is set:

1. note how far the log was read, of each home the last number of a content, and which contents are pending;
2. count up one counter in every shard;
3. keep both, with the process of the server that each shard answered from.

A server loses the end of what it wrote. So a shard whose counter is not below a mark's holds all that was written till
that mark: all of the contents that were neither pending then nor numbered since. When a shard answers from another
process than at the latest mark, or its counter is behind, the store **goes back** to the latest mark that every shard
holds: contents since then are pending again, the position in the log is that mark's, and the workers, who find it
changed, read again and post again. `pending` has why nobody undoes this. Every step may be repeated; the latest
mark is replaced last.

Old marks are thinned out: of any age there is one that is at most a quarter older (`KEPT`). A log that is not kept
outside the store has no position: what lost its postings alone is then looked up again by its stored sketch, as for a
new policy. Texts of whole pages (`stream`) are not posted again. A home of several that was set back may have lost what
joined its clusters with others' (`spans`): all its pairs are looked at again, by whoever settles. Cost: a call to each
node every `INTERVAL`, none for a page; a restart of any node costs the workers what they read since the last mark.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from operator import gt
from typing import Final

from clusterd_consumer.hash_tags import HOME
from clusterd_consumer.redis_scripts import Calls, command, packed_numbers
from clusterd_crawler.errors import Unreachable

from clusterd.clusters.redis.home import pairs
from clusterd.clusters.redis.homes import OWN, Homes
from clusterd.clusters.redis.numbers import Numbers, go_on
from clusterd.clusters.redis.pending import Pending, positions
from clusterd.portions import portions

log = logging.getLogger(__name__)

#: Seconds between two marks.
INTERVAL: Final = 5.0
#: Marks that are kept of the latest, of those up to twice as old, up to four times, and so on.
KEPT: Final = 8
#: Seconds after which another may go back in place of one that died at it; who is at it renews that with each chunk.
LEASE: Final = 10
#: Contents that are made pending in one call.
CHUNK: Final = 2_000
#: Contents that may be pending when a mark is set: there are more while much is read again, and the latest mark serves.
MOST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Mark:
    """What every shard held when it was set."""

    number: int = 0
    #: Of each shard: the process that answered, and its counter.
    processes: Sequence[str] = ()
    counts: Sequence[int] = ()
    #: Before that: of each home the last number of a content; contents that were pending, position in the log.
    nodes: int | Sequence[int] = ()
    pending: Sequence[int] = ()
    position: Mapping[str, str] = field(default_factory=dict)

    def node(self, home: int) -> int:
        """Return the last number of a content that a home had given."""
        if isinstance(self.nodes, int):  # of a store with one home
            return self.nodes
        return self.nodes[home] if self.nodes else home << OWN

    def within(self, counts: Sequence[int]) -> bool:
        """Whether shards with these counters hold all that was written before this mark."""
        return all(now >= then for now, then in zip(counts, self.counts, strict=True)) if self.counts else True


class Marks:
    """Sets marks, and lets the store go back where a node has lost something."""

    def __init__(
        self,
        calls: Calls,
        homes: Homes,
        prefix: str,
        tags: Sequence[str],
        pending: Sequence[Pending],
        numbers: Sequence[Numbers],
    ) -> None:
        self._calls = calls
        self._homes = homes
        self._home = homes.first
        self._pending = pending
        self._numbers = numbers
        self._keys = [f"{prefix}{{{tag}}}:mark" for tag in dict.fromkeys((HOME, *tags))]
        self._due = 0.0
        #: By which it knows the lock that it could not give back, when another node went away.
        self._token = os.urandom(8).hex().encode()

    def begin(self) -> None:
        """Set the first mark of a store: its homes lose what they lose each for itself, the position with the first."""
        if not self._last().number:
            self.mark()

    def look(self) -> None:
        """Set a mark where it is time to; a store that does not answer is looked at the next time."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + INTERVAL
            with suppress(Unreachable):
                self.mark()

    def mark(self) -> None:
        """Set a mark; where a node was set back since the latest, go back first."""
        go_on(self._calls, self._numbers)
        last, here = self._last(), self._here()
        same = (here.nodes, here.pending, here.position) == (last.nodes, last.pending, last.position)
        here = self._seen("GET", replace(here, number=last.number + 1))
        # (Shards that were marked, and no mark: the first home came back with nothing.)
        if any(here.counts) if not last.number else here.processes != last.processes or not last.within(here.counts):
            self._go_back_alone(last, here)
        elif not (same and last.number) and len(here.pending) <= MOST:
            then = self._seen("INCR", here)
            if then.processes == here.processes and all(
                map(gt, then.counts, here.counts)
            ):  # else the next look sees it
                numbers = (int(number) for number in self._home.command("HKEYS", "marks") if number != b"last")
                self._keep(last, then, [number for number in numbers if not _kept(number, then.number)])

    def _seen(self, name: str, here: Mark) -> Mark:
        """Return a mark with what the shards answer, after their counters were read, or counted up.

        Read before they are counted up: a shard that has lost the latest mark would seem to have it.
        """
        counts = [int(count or 0) for count in self._calls.ask([command(name, key) for key in self._keys])]
        return replace(here, processes=self._calls.processes(self._keys), counts=counts)

    def _last(self) -> Mark:
        """Return the latest mark, number 0 where there is none yet."""
        text = self._home.command("HGET", "marks", self._home.command("HGET", "marks", "last") or "")
        return Mark(**json.loads(text)) if text else Mark()

    def _go_back_alone(self, last: Mark, here: Mark) -> None:
        """Go back, unless somebody else is at it or has done so."""
        taken = self._home.command("SET", "back:lock", self._token, "NX", "EX", LEASE)
        if not taken and self._home.command("GET", "back:lock") != self._token:
            return
        try:
            if self._last().number == last.number:
                self._go_back(last, here)
        finally:
            self._home.command("DEL", "back:lock")

    def _here(self) -> Mark:
        """Return what the homes say, the position first: it may be older than the rest, not newer."""
        position = self._home.command("HGETALL", "q")
        counters, pending = self._homes.counters(), self._homes.ask("SRANDMEMBER", "w", MOST + 1)
        read = {partition.decode(): offset.decode() for partition, offset in pairs(position).items()}
        waiting = sorted(int(number) for of in pending for number in of)
        nodes = [known.nodes or home << OWN for home, known in enumerate(counters)]
        return Mark(nodes=nodes, pending=waiting, position=read)

    def _go_back(self, last: Mark, here: Mark) -> None:
        """Let everything since the latest mark that all shards hold be posted again."""
        texts = pairs(self._home.command("HGETALL", "marks"))
        known = [Mark(), *(Mark(**json.loads(text)) for number, text in texts.items() if number != b"last")]
        held = max((mark for mark in known if mark.within(here.counts)), key=lambda mark: mark.number)
        behind = held.number < last.number  # else it was restarted, or its slot moved: it may lack what came since
        what = "a node of the store was set back" if behind else "a shard of the store answers from another process"
        log.warning("%s; going back from mark %d to %d", what, last.number, held.number)
        self._homes.ask("INCR", "back")
        emptied = not last.number  # the position is lost, too: nobody knows whether the log brings anything again
        outside = bool(here.position or held.position)  # the log is kept outside the store
        for home, counters in zip(self._homes.all, self._homes.counters(), strict=True):
            again = [number for number in held.pending if self._homes.place_of(number) == home.place]
            for given in (again, range(held.node(home.place) + 1, counters.nodes + 1)) if outside or emptied else ():
                for some in portions(given, CHUNK):
                    self._home.command("EXPIRE", "back:lock", LEASE)
                    home.run("repend", packed_numbers(some))
            if not outside:
                home.run("rebuild", held.node(home.place) + 1)
        self._review(last, here)
        now = replace(held, number=here.number, processes=here.processes, counts=here.counts)
        lost = [mark.number for mark in known if mark.number > held.number]
        position = [word for pair in held.position.items() for word in pair]
        self._keep(last, now, lost, "back", *position)
        self._homes.send([home.request("INCR", "back") for home in self._homes.all[1:]])
        positions(self._homes, self._pending)

    def _review(self, last: Mark, here: Mark) -> None:
        """Let the pairs of the homes that were set back be looked at again, and all spans with their parts."""
        if len(self._homes) == 1:
            return
        back = {
            place
            for place in range(len(self._homes))
            if not last.number
            or here.processes[place] != last.processes[place]
            or here.counts[place] < last.counts[place]
        }
        # One that still looks at its pairs comes to its spans behind them; one that is at them begins with them anew.
        found = zip(self._homes.all, self._homes.ask("GET", "review"), strict=True)
        anew = [home for home, at in found if at is None or not at.isdigit()]
        self._homes.send([home.request("SET", "review", "s0") for home in anew])
        self._homes.send([self._homes.all[place].request("SET", "review", (place << OWN) + 1) for place in back])

    def _keep(self, last: Mark, mark: Mark, dropped: Sequence[int], *back: str) -> None:
        """Keep a mark, and drop others, unless somebody else was faster; ``back``: what `mark.lua` needs to go back."""
        text = json.dumps(asdict(mark))
        self._home.run("mark", last.number, mark.number, text, len(dropped), *dropped, *back)


def _kept(number: int, latest: int) -> bool:
    """Whether an old mark is one of those that are kept."""
    return number % (1 << max(0, ((latest - number) // KEPT).bit_length())) == 0
