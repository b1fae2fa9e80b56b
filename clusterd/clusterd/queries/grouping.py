"""Alternatives of a page (paper, section 6.1) and the folding of a result list (section 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterd_crawler.urls import canonical

from clusterd.clusters.contract import Cluster, Index
from clusterd.queries.documents import known_url, missing


@dataclass(frozen=True, slots=True)
class Group:
    """Results that show the same content, in the order in which they were given."""

    #: The first of them: the one that ranked best.
    representative: str
    members: tuple[str, ...]


def alternatives(index: Index, url: str, policy: str) -> Cluster:
    """Return the cluster of a page under a policy: the other URLs of its content; `NotFound` of no stored page."""
    known = known_url(url, index)
    cluster = index.cluster_of(known, policy) if known else None
    if cluster is None:
        canonical(url)  # refuses what is no absolute URL
        raise missing(url)
    return cluster


def group(index: Index, urls: Iterable[str], policy: str) -> list[Group]:
    """Fold a list of URLs: those of one cluster become one group. A URL that is unknown stays alone.

    Each cluster is walked once, whatever number of its members is given.
    """
    given = {url: known_url(url, index) for url in dict.fromkeys(urls)}
    asked = {known for known in given.values() if known is not None}
    #: The name of the group of a stored URL.
    names: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    for url, known in given.items():
        if known is not None and known not in names:
            cluster = index.cluster_of(known, policy)
            members = cluster.members if cluster else ()
            names |= dict.fromkeys(asked.intersection(members), f"cluster of {known}")
        groups.setdefault(names.get(known or "", f"url {url}"), []).append(url)
    return [Group(members[0], tuple(members)) for members in groups.values()]
