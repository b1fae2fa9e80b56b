"""The hash tags of shards: ``PREFIX{tag}`` puts all keys of a shard into one slot of a Redis Cluster.

The shards of a store are spread evenly over all slots, which numbers alone are not: the slots of 0 to 15 fall to four
of eight nodes. `HOME` is one of them, and has what is one for the whole store.

Before layout 6 all that must change together lay in `HOME` alone, which cost more of its node than all else cost of the
others. So the other shards lay below it: with nodes that share the slots evenly, on other nodes than it from three on.

Stores are found by these names: another choice is another layout (`clusters/redis/founding.py`).
"""

from __future__ import annotations

from itertools import count
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

#: The first shard, at slot 13,907; a store that is not spread has no other.
HOME: Final = "0"
#: The slots that the others were spread over before layout 6: the first two of three nodes.
BELOW: Final = REDIS_CLUSTER_HASH_SLOTS * 2 // 3


def hash_tags(shards: int) -> tuple[str, ...]:
    """Return the tags that stores of layout 5 use, for a shard each; their home is `HOME`."""
    return (HOME,) if shards == 1 else _evenly(shards, BELOW, {})


def spread_tags(shards: int) -> tuple[str, ...]:
    """Return a tag for each of so many shards over all slots, `HOME` first: each keeps pages, too (`homes`)."""
    home = key_slot(HOME.encode()) * shards // REDIS_CLUSTER_HASH_SLOTS
    return _evenly(shards, REDIS_CLUSTER_HASH_SLOTS, {home: HOME})


def _evenly(shards: int, slots: int, found: dict[int, str]) -> tuple[str, ...]:
    """Return the tags found, and one in the middle half of each other stretch of the first so many slots."""
    for number in count(1):
        stretch, rest = divmod(key_slot(b"%d" % number) * shards, slots)
        if stretch < shards and slots <= 4 * rest < 3 * slots:
            found.setdefault(stretch, str(number))
        if len(found) == shards:
            break
    return tuple(found.values())


def numbered(shards: int) -> tuple[str, ...]:
    """Return the tags that stores of layout 4 use: the numbers of the shards."""
    return tuple(str(number) for number in range(shards))
