"""Does a cluster fall apart when one node leaves? Search from its former neighbours, all sides in lockstep.

Where two searches meet, they become one; where one has no more to visit, it has found a side that lies apart; where a
single search is left, the rest is one cluster. So the cost is that of the smaller sides, not of the cluster, and in a
dense cluster the sides meet after a step or two: each side begins with one node a round and doubles. (Two large sides
that stay apart cost the smaller of them.)

Several nodes may have left at once, if those that touched are taken for one. Each has a search of its own then, and the
side that one search has left over takes part in all that follow: it may lie apart from what another would leave over.

Nothing is read here: the caller asks `wanted`, fetches those nodes' neighbours in one go, and gives them to `feed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

#: Nodes that a side visits in a round at most, and all sides together, where one each is fewer.
WIDTH: Final = 64
ROUND: Final = 1024


class Search:
    """A search from several nodes at once for the sides into which they fall."""

    def __init__(self, starts: Iterable[int]) -> None:
        self._side_of: dict[int, int] = {}
        self._seen: dict[int, set[int]] = {}
        self._frontier: dict[int, deque[int]] = {}
        self._width = 1
        #: Sides found to lie apart from all others.
        self.apart: list[set[int]] = []
        for number, node in enumerate(dict.fromkeys(starts)):
            self._side_of[node] = number
            self._seen[number] = {node}
            self._frontier[number] = deque([node])

    @property
    def done(self) -> bool:
        """Whether at most one side is still open: it keeps the cluster's name."""
        return len(self._frontier) <= 1

    @property
    def rest(self) -> int:
        """A node of the side that was left over."""
        return next(iter(next(iter(self._seen.values()))))

    def wanted(self) -> list[int]:
        """Take the next nodes whose neighbours are to be fetched; all of them are then due to `feed`."""
        width = max(1, min(self._width, ROUND // len(self._frontier)))
        self._width = min(2 * self._width, WIDTH)
        return [front.popleft() for front in self._frontier.values() for _ in range(min(width, len(front)))]

    def feed(self, neighbours: Mapping[int, Iterable[int]]) -> None:
        """Take the neighbours of the nodes that were wanted."""
        for node, nears in neighbours.items():
            side = self._side_of[node]
            for near in nears:
                side = self._visit(near, side)
            if self.done:
                return
        for side in [side for side, frontier in self._frontier.items() if not frontier]:
            if not self.done:
                self.apart.append(self._seen.pop(side))
                del self._frontier[side]

    def _visit(self, node: int, side: int) -> int:
        """Reach a node from a side; return the side that they are on now."""
        other = self._side_of.get(node)
        if other is None:
            self._side_of[node] = side
            self._seen[side].add(node)
            self._frontier[side].append(node)
            return side
        if other == side or other not in self._seen:
            return side  # to a side that was found apart this edge came since: who moves that side sees it
        return self._join(side, other)

    def _join(self, a: int, b: int) -> int:
        """Make two sides one, the smaller into the larger."""
        small, large = sorted((a, b), key=lambda side: len(self._seen[side]))
        for node in self._seen[small]:
            self._side_of[node] = large
        self._seen[large] |= self._seen.pop(small)
        self._frontier[large].extend(self._frontier.pop(small))
        return large
