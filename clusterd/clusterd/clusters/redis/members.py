"""The pages of a cluster on Redis, walked in bounded calls, and what a question finds by that.

A list that grew beyond its bound proposes its latest pages only: of 600 pages that carry one text, each with a word of
its own, a question would see some fifty. But the pages that the lists left out are in one cluster with those that they
name. So the clusters of the best hits, under the loosest policies by resemblance and by containment, are walked too,
up to `WALKED` pages, and their sketches read. Cost: one round trip for all hits; three a thousand pages walked.

Who asks for all is given every content there is, chunk by chunk (`current`).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np

from clusterd.clusters.acceptance import WALKED
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.home import CONTENTS, MEMBERS, VERSIONS, Home

#: URLs, or contents, that one call looks at.
CHUNK: Final = 1000
#: versions.lua: content, time, text, bytes, words, crawl, sweep, status, shingles, tokens, profile.
VERSION: Final = struct.Struct("<I6s8s8s8s3s3sH3s3sB")


def members(home: Home, slot: int, url: str, most: int | None = None) -> tuple[int, list[int]] | None:
    """Return the name of a URL's cluster and its pages, ``most`` of them at least where there are as many.

    Where it parts meanwhile, or the URL leaves it, the walk begins again, with steps twice as long. None: no such URL.
    """
    limit = CHUNK
    place: tuple[int, int, int] = (0, 0, 0)
    pages: dict[int, None] = {}
    while True:
        reply = home.run(MEMBERS, slot, url_key(url), *place, limit)
        if not reply:
            return None
        if len(reply) == 1:
            place, pages, limit = (0, 0, 0), {}, 2 * limit
            continue
        name, content, text, page, packed = reply
        pages.update(dict.fromkeys(np.frombuffer(packed, "<u4").tolist()))
        if not content or (most is not None and len(pages) >= most):
            return int(name), list(pages)
        place = (content, text, page)


def left_out(
    home: Home, slots: Sequence[int], urls: Sequence[str], profile: int, known: Collection[int]
) -> Iterator[list[int]]:
    """Yield the contents of this profile in the clusters of these URLs that are not known yet, some at a time."""
    asked = [(slot, url) for slot in slots for url in urls]
    replies = home.ask([home.function(MEMBERS, slot, url_key(url), 0, 0, 0, 1) for slot, url in asked])
    first: dict[tuple[int, int], str] = {}
    for (slot, url), reply in zip(asked, replies, strict=True):
        if len(reply) > 1 and reply[1]:  # it has company
            first.setdefault((slot, int(reply[0])), url)
    seen: set[int] = set()
    for (slot, _), url in first.items():
        if len(seen) >= WALKED:
            return
        _, walked = members(home, slot, url, WALKED - len(seen)) or (0, [])
        fresh = [page for page in walked[: WALKED - len(seen)] if page not in seen]
        seen.update(fresh)
        for start in range(0, len(fresh), CHUNK):
            yield _contents(home, fresh[start : start + CHUNK], profile, known)


def current(home: Home, nodes: int, profile: int) -> Iterator[list[int]]:
    """Yield the contents of a profile among the first ``nodes`` that URLs show now, some at a time."""
    for start in range(1, nodes + 1, CHUNK):
        found = home.run(CONTENTS, start, min(nodes, start + CHUNK - 1))
        yield [number for number, code in struct.iter_unpack("<IB", found) if code == profile]


def _contents(home: Home, pages: Sequence[int], profile: int, known: Collection[int]) -> list[int]:
    """Return the contents that pages show now, of this profile and not known."""
    reply = home.run(VERSIONS, "id", np.array(pages, "<u4").tobytes())
    current = (VERSION.unpack(packed[-VERSION.size :]) for packed in reply[1::2] if packed)
    return list({fetch[0]: None for fetch in current if fetch[-1] == profile and fetch[0] not in known})
