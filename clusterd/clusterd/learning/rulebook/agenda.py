"""Which of the hosts with new evidence a worker looks at, and in which order.

A host whose learner is in memory is shown what is new. The learner of any other is rebuilt from the whole log, and
another's goes for it. Taken in turn, the hosts of a crawl that has more pages than learners may hold
(`recall.PAGES_LIMIT`) would each be rebuilt for a few new pages, which costs the more the longer the crawl. So those
that are to be rebuilt come by how much they have grown since they were looked at, as relearning goes by growth; and
those that have grown little wait while there is other work, for some minutes: what a crawl that is over has brought
last may speak against a rule, and is to be shared with others.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Mapping
from math import inf
from time import monotonic
from typing import Final

#: Share of a host's pages that has to be new before its learner is rebuilt, where there is other work.
GROWN: Final = 0.1
#: Seconds after a look from which a host that has grown less is rebuilt all the same.
LONGEST: Final = 600.0
#: Hosts whose size is remembered: some 10 MB. One that was forgotten counts as new.
REMEMBERED: Final = 100_000


class Agenda:
    """The hosts of one worker."""

    def __init__(self) -> None:
        """Begin without knowing any host."""
        #: Host → pages in its log when it was looked at, and when (monotonic); those looked at longest ago first.
        self._looks: OrderedDict[str, tuple[int, float]] = OrderedDict()
        #: The host in memory that was looked at last: the next call goes on behind it, lest busy ones starve others.
        self._last = ""
        self._rebuilds_next = False

    def order(self, changed: Mapping[str, int], held: Collection[str], *, every: bool) -> Iterator[str]:
        """Yield the hosts to look at, of those changed (host → new pages); ``held``: their learners are in memory.

        One in memory and one that is to be rebuilt take turns, from call to call, so that neither kind keeps the other
        waiting. Of those that have grown little one is yielded where nothing else is due (with ``every`` all are).
        """
        in_memory = sorted((host for host in changed if host in held), key=lambda host: (host <= self._last, host))
        grown = {host: self._growth(host, new) for host, new in changed.items() if host not in held}
        waiting = sorted(grown, key=lambda host: (-grown[host], host))
        due = [host for host in waiting if every or grown[host] >= GROWN or self._has_waited(host)]
        queues = {True: deque(due or (waiting[:1] if not in_memory else [])), False: deque(in_memory)}
        while queues[True] or queues[False]:
            rebuilds = self._rebuilds_next if queues[self._rebuilds_next] else not self._rebuilds_next
            host = queues[rebuilds].popleft()
            self._rebuilds_next = not rebuilds
            if not rebuilds:
                self._last = host
            yield host

    def looked_at(self, host: str, pages: int) -> None:
        """Note how many pages a host has, now that a learner has seen them."""
        self._looks[host] = pages, monotonic()
        self._looks.move_to_end(host)
        if len(self._looks) > REMEMBERED:
            self._looks.popitem(last=False)

    def _growth(self, host: str, new: int) -> float:
        size, _ = self._looks.get(host, (0, 0.0))
        return new / size if size else inf

    def _has_waited(self, host: str) -> bool:
        return monotonic() - self._looks[host][1] >= LONGEST
