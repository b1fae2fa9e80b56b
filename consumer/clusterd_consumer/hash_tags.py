"""The hash tags of shards: ``PREFIX{tag}`` puts all keys of a shard into one slot of a Redis Cluster.

What must change together lies in one slot, `HOME`, and costs more of its node than all else costs of the others. So the
other shards lie below it: with nodes that share the slots evenly, all on other nodes than it from three nodes on. There
they are spread evenly, which numbers alone are not: the slots of 0 to 15 fall to four of eight nodes.

Stores are found by these names: another choice is another layout (`clusters/redis/index.py`).
"""

from __future__ import annotations

from itertools import count
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

#: The shard of what must change together, at slot 13,907; a store that is not spread has no other.
HOME: Final = "0"
#: The slots that the others are spread over: the first two of three nodes.
BELOW: Final = REDIS_CLUSTER_HASH_SLOTS * 2 // 3


def hash_tags(shards: int) -> tuple[str, ...]:
    """Return a tag for each of so many shards: the first number whose slot is in the middle of the shard's stretch."""
    if shards == 1:
        return (HOME,)
    found: dict[int, str] = {}
    for number in count(1):
        stretch, rest = divmod(key_slot(b"%d" % number) * shards, BELOW)
        if stretch < shards and BELOW <= 4 * rest < 3 * BELOW:
            found.setdefault(stretch, str(number))
        if len(found) == shards:
            break
    return tuple(found.values())


def spread_tags(shards: int) -> tuple[str, ...]:
    """Return a tag for each of so many shards over all slots, `HOME` first: each keeps pages, too (`homes`)."""
    found: dict[int, str] = {key_slot(HOME.encode()) * shards // REDIS_CLUSTER_HASH_SLOTS: HOME}
    for number in count(1):
        stretch, rest = divmod(key_slot(b"%d" % number) * shards, REDIS_CLUSTER_HASH_SLOTS)
        if REDIS_CLUSTER_HASH_SLOTS <= 4 * rest < 3 * REDIS_CLUSTER_HASH_SLOTS:
            found.setdefault(stretch, str(number))
        if len(found) == shards:
            break
    return tuple(found.values())


def numbered(shards: int) -> tuple[str, ...]:
    """Return the tags that stores of layout 4 use: the numbers of the shards."""
    return tuple(str(number) for number in range(shards))
