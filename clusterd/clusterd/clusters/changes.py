"""What a page's standing before and after says happened; how a cluster, and the match of a page, is told to readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from clusterd.clusters.contract import Change, Cluster, Hit

#: Policy → (cluster, size), for the policies in which a page has company.
Standing = Mapping[str, tuple[str, int]]


#: What a page did to others by which it was linked (link.lua): it made one of two clusters of several pages, or it
#: brought together pages and at most one such cluster.
MERGED: Final = 1
GREW: Final = 2


def changes(before: Standing, after: Standing, brought: Mapping[str, int] | None = None) -> tuple[Change, ...]:
    """Return what happened to a page whose standing was ``before`` and is ``after``.

    ``brought``: policy → what it did to others; a page that stays in its cluster may do that by its new text, too.
    """
    found = []
    for policy, (cluster, size) in before.items():
        if after.get(policy, ("", 0))[0] != cluster:
            found.append(Change(policy, "left", cluster, size - 1))
    for policy, (cluster, size) in after.items():
        done = brought.get(policy, 0) if brought else 0
        if done or before.get(policy, ("", 0))[0] != cluster:
            event: Literal["merged", "joined"] = "merged" if done == MERGED else "joined"
            found.append(Change(policy, event, cluster, size))
    return tuple(found)


def gathered(name: str, policy: str, urls: Sequence[str]) -> Cluster:
    """Return a cluster of these URLs: the shortest stands for it, the first in order where several are as short."""
    representative = min(urls, key=lambda url: (len(url), url))
    return Cluster(name, policy, len(urls), representative, tuple(sorted(urls)))


def first_other(found: Iterable[Hit], url: str) -> Hit | None:
    """Return the first of these pages that is not at a URL."""
    return next((hit for hit in found if hit.url != url), None)
