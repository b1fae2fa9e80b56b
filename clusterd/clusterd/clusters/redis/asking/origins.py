"""Whose copy a page is on Redis (`Index.originals`): three round trips, whatever the number of pages.

The neighbours of a page are known to resemble it, but a list beyond its bound proposed the latest of them only; the
content that the cluster is named after is old, but a cluster is a chain, and its ends may have little in common. So
that one is compared, by the stored sketches, and the older of the two is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from clusterd_consumer.postings.judging import judge
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import mantissa
from clusterd_consumer.redis_scripts import packed_numbers
from clusterd_crawler.sketch import PROFILES

from clusterd.clusters.acceptance import accepts
from clusterd.clusters.contract import Policy
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.beyond import TEXT
from clusterd.clusters.redis.spans.steps import Spans

#: origins.lua: oldest neighbour and its text, content that the cluster is named after and its text, profile.
ORIGIN: Final = struct.Struct("<I8sI8sB")
Origin = tuple[int, bytes, int, bytes, int]


def originals(
    homes: Homes, spans: Spans, lists: RedisLists, slot: int, policy: Policy, contents: Sequence[int]
) -> list[int]:
    """Return for each content the text of the oldest that is known to resemble it itself, or its own."""
    groups = homes.by_home((content, place) for place, content in enumerate(contents))
    asked = {home: (slot, packed_numbers([contents[place] for place in of])) for home, of in groups.items()}
    found = [(0, b"", 0, b"", 0)] * len(contents)
    for home, reply in homes.each("origins", asked).items():
        for place, one in zip(groups[home], ORIGIN.iter_unpack(reply), strict=True):
            found[place] = one
    origins = _beyond(homes, spans, slot, contents, found) if len(homes) > 1 else found
    compared = [(content, one[2]) for content, one in zip(contents, origins, strict=True) if one[2] < one[0]]
    stored_of = lists.sketches({number for pair in compared for number in pair})

    def resembles(content: int, name: int, profile: int) -> bool:
        a, b = stored_of[content], stored_of[name]
        return bool(a and b) and accepts(policy, judge(a, b, mantissa(PROFILES[profile])))

    return [
        int.from_bytes(named if name < oldest and resembles(content, name, profile) else text, "big")
        for content, (oldest, text, name, named, profile) in zip(contents, origins, strict=True)
    ]


def _beyond(homes: Homes, spans: Spans, slot: int, contents: Sequence[int], found: Sequence[Origin]) -> list[Origin]:
    """Complete what homes know of their own contents: neighbours in other homes, and names of clusters of several.

    Of several homes the numbers do not tell which content is older: then the least number stands for the oldest.
    """
    stand = spans.stand((slot, content) for content in contents)
    names = [stand[slot, content][0] for content in contents]
    told = homes.of_numbers("texts", {*names, *(one[0] for one in found)})
    texts = {node: (text, profile) for _, reply in told for node, _, profile, text, _ in TEXT.iter_unpack(reply)}
    origins = []
    for content, name, (oldest, text, own, named, profile) in zip(contents, names, found, strict=True):
        first = (oldest, texts[oldest][0]) if oldest in texts else (content, text)
        of_name = (name, texts[name][0]) if name in texts and texts[name][1] == profile else (own, named)
        origins.append((*first, *of_name, profile))
    return origins
