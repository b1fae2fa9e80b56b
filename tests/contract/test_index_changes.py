"""What the index says that a page did to clusters, as alerts tell it: merges are merges, and nothing grows unheard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from clusterd.clusters.redis.index import RedisIndex

from tests.contract.index_world import page

U = "http://h.example/u"
HERE, THERE = range(100), range(1000, 1100)
BRIDGE = [*HERE, *THERE]


def shown(first: Iterable[int], count: int, name: str) -> list[tuple[str, list[int]]]:
    """Return pages that show nearly these shingles."""
    return [(f"http://h.example/{name}{n}", [*first, 10_000 + n]) for n in range(count)]


def told(redis_url: str, prefix: str, history: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[str, int]]:
    """Apply pages one by one; return the events of the last one under `contained`, and the sizes that they tell."""
    index = RedisIndex(redis_url, prefix)
    for at, (url, shingles) in enumerate(history, 1):
        (outcome,) = index.apply([page(url, at, shingles)])
        while index.settle():
            pass
    index.close()
    return [(change.event, change.size) for change in outcome.changes if change.policy == "contained"]


@pytest.mark.parametrize("alone_first", [False, True])
def test_a_page_alone_and_a_cluster_that_a_new_page_joins_are_no_merger(
    redis_url: str, prefix: str, alone_first: bool
) -> None:
    parts = [shown(HERE, 1, "alone"), shown(THERE, 3, "cluster")]
    if not alone_first:
        parts.reverse()
    assert told(redis_url, prefix, [*parts[0], *parts[1], (U, BRIDGE)]) == [("joined", 5)]


@pytest.mark.parametrize("alone_first", [False, True])
def test_nor_where_the_page_has_company_under_another_policy(redis_url: str, prefix: str, alone_first: bool) -> None:
    alone = [("http://h.example/alone", [*THERE]), ("http://h.example/related", [*range(1030, 1130)])]
    parts = [alone, shown(HERE, 2, "cluster")] if alone_first else [shown(HERE, 2, "cluster"), alone]
    assert told(redis_url, prefix, [*parts[0], *parts[1], (U, BRIDGE)]) == [("joined", 4)]


def test_two_clusters_that_a_new_page_joins_are_a_merger(redis_url: str, prefix: str) -> None:
    assert told(redis_url, prefix, [*shown(HERE, 2, "a"), *shown(THERE, 3, "b"), (U, BRIDGE)]) == [("merged", 6)]


@pytest.mark.parametrize("others", [2, 4])
def test_a_page_that_changes_within_its_cluster_tells_of_the_cluster_that_it_brings_in(
    redis_url: str, prefix: str, others: int
) -> None:
    """Whichever of the two is the larger, and keeps its name."""
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), *shown(THERE, others, "b"), (U, BRIDGE)]
    assert ("merged", 4 + others) in told(redis_url, prefix, history)


def test_a_page_that_changes_within_its_cluster_tells_of_the_pages_that_it_brings_in(
    redis_url: str, prefix: str
) -> None:
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), *shown(THERE, 1, "b"), (U, BRIDGE)]
    assert told(redis_url, prefix, history) == [("joined", 5)]


def test_a_page_that_changes_and_stays_tells_nothing(redis_url: str, prefix: str) -> None:
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), (U, [*HERE, *range(5000, 5100)])]
    assert told(redis_url, prefix, history) == []
