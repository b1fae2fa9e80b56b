"""Alternatives of a page (paper, section 6.1) and the folding of a result list (section 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterd_crawler.errors import NotFound

from clusterd.clusters.contract import Cluster, Index
from clusterd.queries.documents import known_url


@dataclass(frozen=True, slots=True)
class Group:
    """Results that show the same content, in the order in which they were given."""

    #: The first of them: the one that ranked best.
    representative: str
    members: tuple[str, ...]


def alternatives(index: Index, url: str, policy: str) -> Cluster:
    """Return the cluster of a page under a policy: the other URLs of its content."""
    known = known_url(url, index)
    cluster = index.cluster_of(known, policy) if known else None
    if cluster is None:
        raise NotFound(f"the store has no page {url}; bring it in with clusterd ingest")
    return cluster


def group(index: Index, urls: Iterable[str], policy: str) -> list[Group]:
    """Fold a list of URLs: those of one cluster become one group. A URL that is unknown stays alone."""
    groups: dict[str, list[str]] = {}
    for url in dict.fromkeys(urls):
        known = known_url(url, index)
        cluster = index.cluster_of(known, policy) if known else None
        groups.setdefault(f"cluster {cluster.cluster}" if cluster else f"url {url}", []).append(url)
    return [Group(members[0], tuple(members)) for members in groups.values()]
