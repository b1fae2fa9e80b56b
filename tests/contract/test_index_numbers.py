"""Numbers of contents: none is given twice, also where the home node lacks its latest writes; all are used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from clusterd.clusters.redis import numbers as redis_numbers
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.errors import Unreachable

from tests.contract.index_world import World, expected, page, partition, settled
from tests.contract.moments import interrupted
from tests.contract.test_index_homes import SHARDS
from tests.contract.test_index_marks import AOF, Nodes, pages
from tests.contract.test_index_restart import insist
from tests.services.redis_server import redis_cluster

#: Steps, enough for what the pages of a test leave and for all the numbers that were passed over, which are thousands.
MOST = 300


@pytest.fixture
def nodes(tmp_path: Path, prefix: str) -> Iterator[Nodes]:
    with ExitStack() as stack:
        url = stack.enter_context(redis_cluster(tmp_path / "cluster", options=AOF))
        yield Nodes(url, tmp_path, prefix, stack, home=True)


@pytest.mark.cluster
@pytest.mark.parametrize(("step", "gap"), [(redis_numbers.STEP, redis_numbers.GAP), (1, 0)], ids=["gap", "noted"])
def test_what_resembles_a_lost_page_does_not_join_who_came_after_it(
    nodes: Nodes, prefix: str, step: int, gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others' nodes still propose the lost pages, by their numbers, while new pages are on their way there."""
    monkeypatch.setattr(redis_numbers, "STEP", step)
    monkeypatch.setattr(redis_numbers, "GAP", gap)
    open_before = RedisIndex(nodes.url, prefix)
    before, lost, come, like = pages(0, 10), pages(10, 50), pages(100, 140), pages(10, 50, extra=1)
    open_before.apply(before)
    nodes.keep()
    open_before.apply(lost)
    nodes.set_back()

    def act() -> None:
        insist(open_before, like)

    index = interrupted(nodes.url, prefix, "APPEND", 1, act)
    insist(index, come)
    settled(index)
    assert partition(index) == expected([*before, *come, *like])
    for opened in (open_before, index):
        opened.close()


@pytest.mark.cluster
@pytest.mark.parametrize("alike", [False, True], ids=["told", "linked"])
def test_a_batch_that_the_home_node_forgot_while_it_was_posted_does_not_count(
    nodes: Nodes, prefix: str, alike: bool
) -> None:
    """Nor is the position before it, which lies with another home and would hide what else was forgotten."""
    crawl = [*pages(0, 20), *(pages(0, 20, extra=1) if alike else ())]
    RedisIndex(nodes.url, prefix).close()
    nodes.keep()
    index = interrupted(nodes.url, prefix, "post", 1, nodes.set_back)
    with suppress(Unreachable):
        index.apply(crawl, {"0": "20"})
    assert index.settle(MOST) == 0  # sets a mark
    assert (index.position(), index.went_back()) == ({}, True)
    insist(index, crawl)
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()


def let_go_on(url: str, base: str, given: int) -> None:
    """Let a home of a store have given so many numbers."""
    with connect(url) as client:
        counters = bytearray(client.get(f"{base}:i"))
        struct.pack_into("<I", counters, 4, given)
        client.set(f"{base}:i", bytes(counters))


@pytest.mark.parametrize("given", [2**31 - 20, 2**32 - 70_000])
def test_a_store_that_has_given_billions_of_numbers_answers_as_one_that_has_given_few(
    redis_url: str, prefix: str, given: int
) -> None:
    """Those of one home may be as high as on a cluster those that say which span a cluster is part of."""
    index = RedisIndex(redis_url, prefix)
    let_go_on(redis_url, f"{prefix}{{0}}", given)
    crawl = World(3).crawl(60)
    for start in range(0, len(crawl), 5):
        index.apply(crawl[start : start + 5])
        index.settle(3)
    settled(index)
    assert partition(index) == expected(crawl)
    hits = index.similar(crawl[0].main, crawl[0].profile)
    assert {hit.cluster for hit in hits} - {None} <= set(index.cluster_names([hit.url for hit in hits], "near"))
    index.expire(10**9)
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
def test_where_all_numbers_are_given_pages_wait_and_no_page_is_to_blame(
    redis_url: str, prefix: str, homes: int
) -> None:
    index = RedisIndex(redis_url, prefix, shards=homes)
    index.apply([page("http://h.example/1", 1, range(50))])
    home = index._homes.of_host("h.example")
    limit = 2**32 if homes == 1 else (home.place + 1) << redis_numbers.OWN
    let_go_on(redis_url, home.base, limit - 60_000)
    with pytest.raises(Unreachable, match=r"takes no more pages: .* has given all its numbers"):
        index.apply([page("http://h.example/2", 1, range(50))])
    assert index.counts()["documents"] == 1
    settled(index)
    assert [hit.url for hit in index.similar(page("", 1, range(50)).main, 1)] == ["http://h.example/1"]
    index.close()
