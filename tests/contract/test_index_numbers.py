"""Numbers of contents on a Redis Cluster whose home node came back without its latest writes: none is given twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from clusterd.clusters.redis import numbers as redis_numbers
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.errors import Unreachable

from tests.contract.index_world import expected, partition, settled
from tests.contract.test_index_marks import AOF, Nodes, pages
from tests.contract.test_index_moments import interrupted
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
