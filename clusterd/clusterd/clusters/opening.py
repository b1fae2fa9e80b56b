"""Which index: in this process's memory, or on a Redis or Redis Cluster."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from clusterd_consumer.postings.scheme import DEFAULT, Scheme

from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd.clusters.memory.index import MemoryIndex


def open_index(
    redis_url: str | None,
    prefix: str = "clusterd:",
    policies: Sequence[Policy] | None = None,
    scheme: Scheme | None = None,
    whole: bool = False,
    transit: float = 0.0,
) -> Index:
    """Open the index at ``redis_url``; None or "" keeps it in memory, where each opening is a new one.

    ``policies``: added where the store lacks them; None: a store keeps those that it has, a new one gets the default.
    ``scheme``: a store keeps to the one that it was begun with; None takes that, the default one for a new store.
    ``whole``: whole pages can be asked for beside main texts; a store on Redis keeps them if it did from its beginning.
    ``transit``: seconds for which a slot that moves to another node of a Redis Cluster is waited for.
    """
    if not redis_url:
        return MemoryIndex(DEFAULT_POLICIES if policies is None else policies, scheme or DEFAULT, whole)
    from clusterd_consumer.redis_scripts import Calls

    from clusterd.clusters.redis.index import RedisIndex  # a user without Redis needs no client

    return RedisIndex(redis_url, prefix, policies, scheme, partial(Calls, transit=transit), whole=whole)
