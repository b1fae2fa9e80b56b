"""Runs searches for what still holds together (`splitting`), over the borders of homes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping

from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.clusters.splitting import Search

#: Contents and their neighbours.
Joined = dict[int, list[int]]


def run(found: Mapping[bytes, Search], homes: Homes, spans: Spans, keep: Callable[[], None]) -> None:
    """Run the searches of these tasks, each round of all of them by one call; ``keep`` the lease while that takes."""
    near: dict[int, bytes] = {}

    def look(nodes: Iterable[int]) -> None:
        near.update(spans.near(node for node in nodes if node not in near))

    while open_ := {task: search.wanted() for task, search in found.items() if not search.done}:
        keep()
        look(node for nodes in open_.values() for node in nodes)
        fed = {task: {node: _joined(near[node], task[0]) for node in nodes} for task, nodes in open_.items()}
        if len(homes) > 1:
            place = homes.place_of
            edges = [(node, other) for of in fed.values() for node, joined in of.items() for other in joined]
            look(other for node, other in edges if place(other) != place(node))
            _leave_out(near, fed.values())
        for task, joined in fed.items():
            found[task].feed(joined)


def _leave_out(near: Mapping[int, bytes], fed: Iterable[Joined]) -> None:
    """Leave out neighbours that are known to have no edges: they were dismissed, and nobody hangs on them.

    An edge to such a one is left where the worker died that was about to tell both ends, or is not done yet.
    """
    for of in fed:
        of.update({node: [other for other in joined if near.get(other) != b""] for node, joined in of.items()})


def _joined(edges: bytes, policy: int) -> list[int]:
    return [number for number, bits in struct.iter_unpack("<IH", edges) if bits >> policy & 1]
