"""Lists clusters on Redis, the largest first.

Those of all pages by one pass over where each stands. Those of a host by a walk of each cluster that one of its pages
is in: a pass over all pages would take Redis 10 µs for each page of every other host.

Cost: one round trip for `CHUNK` pages, of several homes for `PART` of each; of a host, those of `Members.of` for each
cluster beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from clusterd.clusters.acceptance import slot_of
from clusterd.clusters.changes import gathered
from clusterd.clusters.contract import Cluster, Policy
from clusterd.clusters.redis.asking.members import Members, Pages, pages_of_host, urls_of
from clusterd.clusters.redis.homes import CHUNK, Homes
from clusterd.clusters.redis.spans.standings import SPANNED
from clusterd.clusters.redis.spans.steps import Spans

#: A host's clusters are walked where more than so many times its pages are known: a page takes as many times as long.
WALKS: Final = 30

Numbers = np.typing.NDArray[np.uint32]
#: alike.lua.
IDENTITY: Final = np.dtype([("node", "<u4"), ("sketch", "V8"), ("profile", "u1"), ("text", "V8")])
Identities = np.typing.NDArray[np.void]
#: Name of a cluster, and the pages in it.
Named = tuple[int, Pages]


class Listing:
    """Clusters of two pages and more, or of all sizes."""

    def __init__(self, homes: Homes, spans: Spans, members: Members) -> None:
        self._homes = homes
        self._spans = spans
        self._members = members

    def clusters(self, policies: Sequence[Policy], policy: str, min_size: int, host: str | None) -> Iterator[Cluster]:
        """Yield the clusters of a policy, largest first."""
        slot = slot_of(policies, policy)
        own = None if host is None else pages_of_host(self._homes, host)
        if own is not None and self._is_walked(own):
            found = self._walked(slot, own, min_size)
        else:
            found = self._passed(slot, own, min_size)
        for size, alike in groupby(sorted(found, key=lambda one: -len(one[1])), key=lambda one: len(one[1])):
            same = list(alike)
            urls = urls_of(self._homes, np.concatenate([pages for _, pages in same]))
            listed = (
                gathered(f"{policy}-{name}", policy, urls[place * size : (place + 1) * size])
                for place, (name, _) in enumerate(same)
            )
            yield from sorted(listed, key=lambda cluster: cluster.representative)

    def _is_walked(self, own: Pages) -> bool:
        known = sum(counted.urls for counted in self._homes.counters())
        return WALKS * len(own) < known

    def _by_texts(self, slot: int) -> bool:
        """Whether clusters are told by the texts of all homes: none knows which of its own are elsewhere, too."""
        return slot < 0 and len(self._homes) > 1

    def _walked(self, slot: int, own: Pages, min_size: int) -> list[Named]:
        """Return the clusters of some pages; one that gains another while they are walked is told once."""
        found: dict[int, Pages] = {}
        for start in range(0, len(own), CHUNK):
            part = own[start : start + CHUNK]
            new = part[~np.isin(part, np.concatenate([part[:0], *found.values()]))]
            asked = [(slot, url) for url in urls_of(self._homes, new)]
            for _, url in self._members.with_others(asked, alone=min_size < 2):
                name, pages = self._members.of(slot, url) or (0, [])
                found[name] = np.array(pages, np.int64)
        return [(name, pages) for name, pages in found.items() if len(pages) >= max(1, min_size)]

    def _passed(self, slot: int, own: Pages | None, min_size: int) -> list[Named]:
        """Return the clusters of all pages, or those with one of some pages."""
        names, pages = self._standings(slot)
        order = np.argsort(names, kind="stable")
        known, starts, sizes = np.unique(names[order], return_index=True, return_counts=True)
        wanted = (sizes >= min_size) & (known > 0)
        if own is not None:
            wanted &= np.isin(known, names[np.isin(pages, own)])
        # Most pages are alone: only what is wanted takes more than a few bytes.
        found = zip(known[wanted].tolist(), starts[wanted].tolist(), sizes[wanted].tolist(), strict=True)
        return [(name, pages[order[at : at + size]]) for name, at, size in found]

    def _standings(self, slot: int) -> tuple[Numbers, Pages]:
        """Return the name of the cluster of each page, and the pages."""
        counts = [known.urls for known in self._homes.counters()]
        name, before = ("alike", ()) if self._by_texts(slot) else ("standings", (slot,))
        replies: list[list[bytes]] = [[] for _ in counts]
        for one in self._homes.rounds(counts):
            asked = {place: (*before, start + 1, end) for place, (start, end) in one.items()}
            for place, reply in self._homes.each(name, asked).items():
                replies[place].append(reply)
        packed = b"".join([reply for of in replies for reply in of])
        found = _names_of_equals(np.frombuffer(packed, IDENTITY)) if before == () else np.frombuffer(packed, "<u4")
        pages = [np.arange(1, count + 1, dtype=np.int64) | place << 32 for place, count in enumerate(counts)]
        spanning = self._spans.standings(np.unique(found[found >= SPANNED]).tolist())
        if spanning:
            found = found.copy()
            for place in np.flatnonzero(found >= SPANNED).tolist():
                found[place] = spanning[int(found[place])].name
        return found, np.concatenate(pages)


def _names_of_equals(found: Identities) -> Numbers:
    """Return for each page the least text that is equal to its own, 0 where there is no page."""
    if not len(found):
        return np.zeros(0, np.uint32)
    octets = found.view(np.uint8).reshape(len(found), IDENTITY.itemsize)[:, 4:]
    identities = np.ascontiguousarray(octets).view("V17").ravel()
    _, inverse = np.unique(identities, return_inverse=True)
    least = np.full(inverse.max() + 1, 0xFFFFFFFF, np.uint32)
    np.minimum.at(least, inverse, np.where(found["node"] > 0, found["node"], 0xFFFFFFFF).astype(np.uint32))
    return np.where(found["node"] > 0, least[inverse], 0).astype(np.uint32)
