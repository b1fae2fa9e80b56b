"""Disjoint sets over 0 … n-1 by union-find: the larger root goes under the smaller, paths are halved on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clusterd.batch.numbers import Column


class Union:
    """Disjoint sets; a set is named by its smallest element."""

    def __init__(self, size: int) -> None:
        self._parent = Column(size).at

    def find(self, node: int) -> int:
        """Return the smallest element of the node's set."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def apart(self, node: int, others: Iterable[int]) -> Iterator[int]:
        """Yield those of some nodes that are in another set than this one."""
        root = self.find(node)
        return (other for other in others if self.find(other) != root)

    def join(self, a: int, b: int) -> None:
        """Make the sets of two nodes one."""
        a, b = sorted((self.find(a), self.find(b)))
        self._parent[b] = a
