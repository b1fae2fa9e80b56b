"""The hash tags of shards: ``PREFIX{tag}`` puts all keys of a shard into one slot of a Redis Cluster.

The slots of small numbers lie in clumps: those of 0 to 15 fall to four of eight nodes that share all slots evenly. So a
shard's tag is the first number whose slot lies in the middle of a stretch of slots that is the shard's own.

Stores are found by these names: another choice is another layout (`clusters/redis/index.py`).
"""

from __future__ import annotations

from itertools import count
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

#: The shard of what must change together, and of a store that is not spread at all.
HOME: Final = "0"


def hash_tags(shards: int) -> tuple[str, ...]:
    """Return tags for so many shards, `HOME` first, whose slots are spread evenly."""
    found = {_stretch(HOME, shards)[0]: HOME}
    for number in count(1):
        if len(found) == shards:
            break
        stretch, place = _stretch(str(number), shards)
        if 0.25 <= place < 0.75:
            found.setdefault(stretch, str(number))
    return tuple(found.values())


def numbered(shards: int) -> tuple[str, ...]:
    """Return the tags that stores of layout 4 use: the numbers of the shards."""
    return tuple(str(number) for number in range(shards))


def _stretch(tag: str, shards: int) -> tuple[int, float]:
    """Return in which of so many stretches of slots a tag's slot lies, and where in it (0 to 1)."""
    stretch, rest = divmod(key_slot(tag.encode()) * shards, REDIS_CLUSTER_HASH_SLOTS)
    return stretch, rest / REDIS_CLUSTER_HASH_SLOTS
