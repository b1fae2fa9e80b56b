"""Disjoint sets over 0 … n-1 by union-find: the larger root goes under the smaller, paths are halved on the way."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt


class Union:
    """Disjoint sets; a set is named by its smallest element."""

    def __init__(self, size: int) -> None:
        self._parent = array("q", range(size))

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

    def names(self) -> npt.NDArray[np.int64]:
        """Return the smallest element of the set of each element."""
        return np.fromiter(map(self.find, range(len(self._parent))), np.int64, len(self._parent))
