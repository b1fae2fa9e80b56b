"""Whose copy a page is on Redis (`Index.originals`): three round trips, whatever the number of pages.

The neighbours of a page are known to resemble it, but a list beyond its bound proposed the latest of them only; the
content that the cluster is named after is old, but a cluster is a chain, and its ends may have little in common. So
that one is compared, by the stored sketches, and the older of the two is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import mantissa
from clusterd_consumer.postings.verdict import judge
from clusterd_consumer.redis_scripts import packed_numbers
from clusterd_crawler.sketch import PROFILES

from clusterd.clusters.acceptance import accepts
from clusterd.clusters.contract import Policy
from clusterd.clusters.redis.home import ORIGINS, Home

#: origins.lua: oldest neighbour and its text, content that the cluster is named after and its text, profile.
ORIGIN: Final = struct.Struct("<I8sI8sB")


def originals(home: Home, lists: RedisLists, slot: int, policy: Policy, contents: Sequence[int]) -> list[int]:
    """Return for each content the text of the oldest that is known to resemble it itself, or its own."""
    reply = home.run(ORIGINS, slot, packed_numbers(contents))
    origins = [ORIGIN.unpack_from(reply, place) for place in range(0, len(reply), ORIGIN.size)]
    compared = [(content, one[2]) for content, one in zip(contents, origins, strict=True) if one[2] < one[0]]
    stored_of = lists.sketches({number for pair in compared for number in pair})

    def resembles(content: int, name: int, profile: int) -> bool:
        a, b = stored_of[content], stored_of[name]
        return bool(a and b) and accepts(policy, judge(a, b, mantissa(PROFILES[profile])))

    return [
        int.from_bytes(named if name < oldest and resembles(content, name, profile) else text, "big")
        for content, (oldest, text, name, named, profile) in zip(contents, origins, strict=True)
    ]
