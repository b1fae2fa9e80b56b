"""Which index: in this process's memory, or on a Redis or Redis Cluster."""

from __future__ import annotations

from collections.abc import Sequence

from clusterd_consumer.postings.scheme import DEFAULT, Scheme

from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd.clusters.memory.index import MemoryIndex


def open_index(
    redis_url: str | None,
    prefix: str = "clusterd:",
    policies: Sequence[Policy] = DEFAULT_POLICIES,
    scheme: Scheme | None = None,
    whole: bool = False,
) -> Index:
    """Open the index at ``redis_url``; None or "" keeps it in memory, where each opening is a new one.

    ``scheme``: a store keeps to the one that it was begun with; None takes that, the default one for a new store.
    ``whole``: whole pages can be asked for beside main texts; a store on Redis keeps them if it did from its beginning.
    """
    if not redis_url:
        return MemoryIndex(policies, scheme or DEFAULT, whole)
    from clusterd.clusters.redis.index import RedisIndex  # a user without Redis needs no client

    return RedisIndex(redis_url, prefix, policies, scheme, whole=whole)
