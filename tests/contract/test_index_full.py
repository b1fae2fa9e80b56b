"""A Redis that is full, and may not evict: it takes no page, loses nothing, still answers, and retention makes room."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.errors import Unreachable

from tests.contract.index_world import expected, page, partition, settled, stream
from tests.contract.test_index_homes import SHARDS
from tests.services.redis_server import redis_server

URLS = [f"http://h.example/{n}" for n in range(40)]


@pytest.mark.parametrize(("shards", "homes"), [(1, 1), (16, 1), (SHARDS, SHARDS)])
def test_a_full_store_answers_and_retention_makes_room(tmp_path: Path, prefix: str, shards: int, homes: int) -> None:
    """With several shards as a cluster's, whose home node was restarted besides; with several homes."""
    crawl = [page(url, at, range(n + at, n + at + 100)) for at in (1, 2) for n, url in enumerate(URLS)]
    more = [page(f"{url}/more", 3, range(n + 3, n + 103)) for n, url in enumerate(URLS)]
    with redis_server(tmp_path / "full") as url, redis.Redis.from_url(url) as client:
        if homes == 1:
            client.hset(f"{prefix}{{0}}:m", "shards", shards)
        index = RedisIndex(url, prefix, shards=homes)
        index.apply(crawl)
        settled(index)
        before = index.counts()
        if shards > homes:
            client.set(f"{prefix}{{0}}:process", "another")
        client.config_set("maxmemory", 1)
        with pytest.raises(Unreachable, match="maxmemory"):
            index.apply(more)
        other = RedisIndex(url, prefix, shards=homes)
        assert partition(other) == expected(crawl)
        assert len(other.versions_of([URLS[0]])[0]) == 2
        assert other.cluster_of(URLS[0], "near") is not None
        assert other.similar(stream(range(2, 102)), 1)[0].url == URLS[0]
        assert other.expire(2) == len(URLS)
        after = other.counts()
        assert after["versions"] == before["versions"] - len(URLS)
        assert after["contents"] < before["contents"]
        client.config_set("maxmemory", 0)
        index.apply(more)
        settled(index)
        assert partition(index) == expected([*crawl, *more])
        for opened in (index, other):
            opened.close()


def test_what_departed_is_dismissed_though_the_store_is_full(tmp_path: Path, prefix: str) -> None:
    crawl = [page(url, at, range(100 * n + at, 100 * n + at + 100)) for at in (1, 20) for n, url in enumerate(URLS)]
    with redis_server(tmp_path / "full") as url, redis.Redis.from_url(url) as client:
        index = RedisIndex(url, prefix)
        index.apply(crawl[: len(URLS)])
        index.apply(crawl[len(URLS) :])
        assert index.counts()["settling"]
        client.config_set("maxmemory", 1)
        settled(index)
        assert index.counts()["settling"] == 0
        assert partition(index) == expected(crawl)
        index.close()
