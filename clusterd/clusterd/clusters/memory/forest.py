"""The clusters of one policy in memory: disjoint sets whose smaller part is renamed when two meet.

Renaming the smaller set costs O(log n) renamings a node over its life, and, unlike trees, lets a part leave again at
the cost of that part. Every set has a number of its own that is never used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count


class Forest:
    """Disjoint sets of nodes; a node that was never joined is a set of its own and costs nothing."""

    def __init__(self, weight: Callable[[int], int]) -> None:
        self._weight_of = weight
        self._weights: dict[int, int] = {}
        self._name: dict[int, int] = {}
        self._members: dict[int, set[int]] = {}
        self._names = count(1)

    def name(self, node: int) -> int | None:
        """Return the number of the node's set, None where it is alone."""
        return self._name.get(node)

    def members(self, node: int) -> set[int]:
        """Return the node's set."""
        name = self._name.get(node)
        return {node} if name is None else self._members[name]

    def weight(self, node: int) -> int:
        """Return the weight of the node's set."""
        name = self._name.get(node)
        return self._weight_of(node) if name is None else self._weights[name]

    def changed(self, node: int, by: int) -> None:
        """Note that the weight of a node has changed."""
        name = self._name.get(node)
        if name is not None:
            self._weights[name] += by

    def join(self, a: int, b: int) -> None:
        """Make the sets of two nodes one; the larger keeps its number."""
        small, large = sorted((self._of(a), self._of(b)), key=lambda name: (len(self._members[name]), -name))
        if small == large:
            return
        for node in self._members[small]:
            self._name[node] = large
        self._members[large] |= self._members.pop(small)
        self._weights[large] += self._weights.pop(small)

    def leave(self, nodes: Iterable[int]) -> None:
        """Give nodes of one set a set of their own."""
        fresh = next(self._names)
        gone = set(nodes)
        self.remove(gone)
        self._members[fresh] = gone
        self._weights[fresh] = sum(map(self._weight_of, gone))
        self._name.update(dict.fromkeys(gone, fresh))

    def remove(self, nodes: Iterable[int]) -> None:
        """Forget nodes."""
        for node in nodes:
            name = self._name.pop(node, None)
            if name is not None:
                self._members[name].discard(node)
                self._weights[name] -= self._weight_of(node)
                if not self._members[name]:
                    del self._members[name], self._weights[name]

    def _of(self, node: int) -> int:
        name = self._name.get(node)
        if name is None:
            name = next(self._names)
            self._name[node] = name
            self._members[name] = {node}
            self._weights[name] = self._weight_of(node)
        return name
