"""What the index says that a page did to clusters, as alerts tell it: merges are merges, and nothing grows unheard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from clusterd.clusters.redis.index import RedisIndex

from tests.contract.index_world import page

Told = Callable[[Sequence[tuple[str, Sequence[int]]]], list[tuple[str, int]]]

U = "http://h.example/u"
HERE, THERE = range(100), range(1000, 1100)
BRIDGE = [*HERE, *THERE]


def shown(first: Iterable[int], count: int, name: str) -> list[tuple[str, list[int]]]:
    """Return pages that show nearly these shingles."""
    return [(f"http://h.example/{name}{n}", [*first, 10_000 + n]) for n in range(count)]


@pytest.fixture(params=[1, 5], ids=["one_home", "several"])
def told(request: pytest.FixtureRequest, redis_url: str, prefix: str) -> Told:
    """Apply pages one by one; return the events of the last one under `contained`, and the sizes that they tell.

    Of several homes, where each page is on a host of its own.
    """

    def telling(history: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[str, int]]:
        index = RedisIndex(redis_url, prefix, shards=request.param)
        for at, (url, shingles) in enumerate(history, 1):
            spread = url.replace("h.example", f"{url[-2:].strip('/')}.example") if request.param > 1 else url
            (outcome,) = index.apply([page(spread, at, shingles)])
            while index.settle():
                pass
        index.close()
        return [(change.event, change.size) for change in outcome.changes if change.policy == "contained"]

    return telling


@pytest.mark.parametrize("alone_first", [False, True])
def test_a_page_alone_and_a_cluster_that_a_new_page_joins_are_no_merger(told: Told, alone_first: bool) -> None:
    parts = [shown(HERE, 1, "alone"), shown(THERE, 3, "cluster")]
    if not alone_first:
        parts.reverse()
    assert told([*parts[0], *parts[1], (U, BRIDGE)]) == [("joined", 5)]


@pytest.mark.parametrize("alone_first", [False, True])
def test_nor_where_the_page_has_company_under_another_policy(told: Told, alone_first: bool) -> None:
    alone = [("http://h.example/alone", [*THERE]), ("http://h.example/related", [*range(1030, 1130)])]
    parts = [alone, shown(HERE, 2, "cluster")] if alone_first else [shown(HERE, 2, "cluster"), alone]
    assert told([*parts[0], *parts[1], (U, BRIDGE)]) == [("joined", 4)]


def test_two_clusters_that_a_new_page_joins_are_a_merger(told: Told) -> None:
    assert told([*shown(HERE, 2, "a"), *shown(THERE, 3, "b"), (U, BRIDGE)]) == [("merged", 6)]


@pytest.mark.parametrize("others", [2, 4])
def test_a_page_that_changes_within_its_cluster_tells_of_the_cluster_that_it_brings_in(told: Told, others: int) -> None:
    """Whichever of the two is the larger, and keeps its name."""
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), *shown(THERE, others, "b"), (U, BRIDGE)]
    assert ("merged", 4 + others) in told(history)


def test_a_page_that_changes_within_its_cluster_tells_of_the_pages_that_it_brings_in(told: Told) -> None:
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), *shown(THERE, 1, "b"), (U, BRIDGE)]
    assert told(history) == [("joined", 5)]


def test_a_page_that_changes_and_stays_tells_nothing(told: Told) -> None:
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), (U, [*HERE, *range(5000, 5100)])]
    assert told(history) == []


def test_a_page_that_is_fetched_again_unchanged_tells_nothing(told: Told) -> None:
    history = [*shown(HERE, 3, "a"), (U, [*HERE]), (U, [*HERE])]
    assert told(history) == []
    assert told([*history, (U, [*THERE])]) == [("left", 3)]


@pytest.mark.parametrize("shards", [1, 5])
def test_copies_that_come_with_their_original_are_told_where_all_of_them_are_by_then(
    redis_url: str, prefix: str, shards: int
) -> None:
    index = RedisIndex(redis_url, prefix, shards=shards)
    index.apply([page(url, 1, shingles) for url, shingles in shown(HERE, 2, "known")])
    outcomes = index.apply([page(f"{U}{n}", 2, HERE) for n in range(3)])
    cluster = index.cluster_of(U + "0", "near")
    index.close()
    assert cluster is not None
    assert cluster.size == 5
    assert [outcome.clusters["near"] for outcome in outcomes] == [(cluster.cluster, 5)] * 3
    told = [(change.cluster, change.size) for one in outcomes for change in one.changes if change.policy == "near"]
    assert told == [(cluster.cluster, 5)] * 3
