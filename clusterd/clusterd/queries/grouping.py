"""Alternatives of a page (paper, section 6.1) and the folding of a result list (section 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterd.clusters.contract import Cluster, Index
from clusterd.queries.documents import known_url, known_urls, missing


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
        raise missing(url)
    return cluster


def group(index: Index, urls: Iterable[str], policy: str) -> list[Group]:
    """Fold a list of URLs: those of one cluster become one group. A URL that is unknown stays alone.

    No cluster is walked: that two URLs are of one is said by its name.
    """
    given = list(dict.fromkeys(urls))
    known = known_urls(given, index)
    stored = list(dict.fromkeys(url for url in known if url is not None))
    names = dict(zip(stored, index.cluster_names(stored, policy), strict=True))
    groups: dict[str, list[str]] = {}
    for url, one in zip(given, known, strict=True):
        name = None if one is None else names[one]
        groups.setdefault(name or f"url {one or url}", []).append(url)
    return [Group(members[0], tuple(members)) for members in groups.values()]
