"""What a store was made with, and whoever opens it later: the scheme, the layout, the names of the shards."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.hash_tags import HOME, hash_tags, spread_tags
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.errors import Unreachable, WrongInput

from tests.contract.index_world import World, expected, page, partition, settled
from tests.contract.moments import interrupted


def test_a_store_keeps_to_the_scheme_that_it_was_made_with(redis_url: str, prefix: str) -> None:
    RedisIndex(redis_url, prefix).close()
    with pytest.raises(WrongInput, match="scheme"):
        RedisIndex(redis_url, prefix, scheme=Scheme(prefix=5))


def test_who_names_no_scheme_takes_the_store_s(redis_url: str, prefix: str) -> None:
    crawl = World(11, urls=30, length=600).crawl(90)
    begun = Scheme(candidates="super")
    RedisIndex(redis_url, prefix, scheme=begun).close()
    index = RedisIndex(redis_url, prefix)
    index.apply(crawl)
    settled(index)
    assert partition(index) == expected(crawl, scheme=begun)
    index.close()
    with pytest.raises(WrongInput, match="this store was begun with candidates = super and keeps to that; for prefix"):
        RedisIndex(redis_url, prefix, scheme=Scheme())


def test_a_store_begun_with_other_numbers_is_opened_where_its_candidates_are_named(redis_url: str, prefix: str) -> None:
    """As by CLUSTERD_CANDIDATES, after an update in which the default numbers changed."""
    crawl = World(11, urls=30, length=600).crawl(90)
    begun = Scheme(candidates="super", supers=6, prefix=4)
    RedisIndex(redis_url, prefix, scheme=begun).close()
    index = RedisIndex(redis_url, prefix, scheme=Scheme(candidates="super"))
    index.apply(crawl)
    settled(index)
    assert partition(index) == expected(crawl, scheme=begun)
    index.close()


def test_a_store_of_a_scheme_that_a_later_version_knows_is_refused(redis_url: str, prefix: str) -> None:
    with connect(redis_url) as client:
        later = json.dumps({**asdict(Scheme()), "permuted": 3}, sort_keys=True)
        client.hset(f"{prefix}{{0}}:m", mapping={"layout": 5, "shards": 1, "scheme": later})
        with pytest.raises(WrongInput, match=r"made with the scheme .*permuted"):
            RedisIndex(redis_url, prefix)


def test_a_store_of_another_layout_is_refused_in_words(redis_url: str, prefix: str) -> None:
    RedisIndex(redis_url, prefix).close()
    with connect(redis_url) as client:
        client.hset(f"{prefix}{{0}}:m", "layout", 1)
    with pytest.raises(WrongInput, match="layout 1"):
        RedisIndex(redis_url, prefix)


def keys_of_old(url: str, prefix: str, layout: int) -> list[bytes]:
    """Crawl into a cluster's store that was begun with a layout of before; return its keys."""
    crawl = World(12).crawl(40)
    with connect(url) as client:
        scheme = json.dumps(asdict(Scheme()), sort_keys=True)
        client.hset(f"{prefix}{{0}}:m", mapping={"layout": layout, "shards": 16, "scheme": scheme})
        index = RedisIndex(url, prefix)
        index.apply(crawl)
        settled(index)
        assert partition(index) == expected(crawl)
        index.close()
        return list(client.scan_iter(f"{prefix}*", count=10_000))


def test_a_cluster_s_store_of_layout_5_keeps_its_one_home(redis_cluster_url: str, prefix: str) -> None:
    keys = keys_of_old(redis_cluster_url, prefix, 5)
    assert {key.split(b"{")[1].split(b"}")[0].decode() for key in keys} == {HOME, *hash_tags(16)}
    assert {key for key in keys if b"}:h:" in key} == {
        f"{prefix}{{{HOME}}}:h:{host}".encode() for host in ("h0.example", "h1.example")
    }


def test_a_new_store_of_a_cluster_has_pages_in_many_homes(redis_cluster_url: str, prefix: str) -> None:
    crawl = [page(f"http://h{n}.example/", 1, range(100)) for n in range(12)]
    index = RedisIndex(redis_cluster_url, prefix)
    index.apply(crawl)
    settled(index)
    assert partition(index) == expected(crawl)
    with connect(redis_cluster_url) as client:
        hosts = {
            key.split(b"{")[1].split(b"}")[0].decode() for key in client.scan_iter(f"{prefix}*}}:h:*", count=10_000)
        }
    assert len(hosts) > 5
    assert hosts <= set(spread_tags(16))
    index.close()


def test_a_cluster_s_store_of_layout_4_keeps_the_names_of_its_shards(redis_cluster_url: str, prefix: str) -> None:
    shards = {key.split(b"{")[1].split(b"}")[0] for key in keys_of_old(redis_cluster_url, prefix, 4)}
    assert shards == {b"%d" % number for number in range(16)}


@pytest.mark.parametrize("nth", range(1, 9))
def test_two_that_begin_a_store_at_once_agree_on_its_policies(redis_url: str, prefix: str, nth: int) -> None:
    """As daemons do that are started together; one had told of a policy of the same name with another threshold."""
    first = interrupted(redis_url, prefix, "LRANGE", nth, lambda: RedisIndex(redis_url, prefix).close())
    second = RedisIndex(redis_url, prefix)
    assert first.policies() == second.policies()
    first.close()
    second.close()


@pytest.mark.parametrize("key", ["i", "policies"])
def test_a_store_that_has_lost_its_counters_or_policies_is_given_no_page(redis_url: str, prefix: str, key: str) -> None:
    """Else pages would be given the numbers of others, and a URL told to show another's content."""
    index, crawl = RedisIndex(redis_url, prefix), World(13).crawl(40)
    index.apply(crawl)
    settled(index)
    with connect(redis_url) as client:
        kept = client.dump(f"{prefix}{{0}}:{key}")
        client.delete(f"{prefix}{{0}}:{key}")
        lost = re.escape(f"the store has lost {prefix}{{0}}:{key} ")
        if key == "i":
            with pytest.raises(Unreachable, match=lost):
                index.apply(World(14).crawl(5))
        for use in (index.settle, lambda: RedisIndex(redis_url, prefix)):
            with pytest.raises(Unreachable, match=lost):
                use()
        client.restore(f"{prefix}{{0}}:{key}", 0, kept)
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()
