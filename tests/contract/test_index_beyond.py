"""What a store of several homes says of each page is what a store of one says: sizes, equals, matches, events."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest
import redis
from clusterd.clusters.contract import IDENTICAL, Outcome
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import COMPACT, TEXT, Sketch, sketch_text

from tests.contract.index_world import World, expected, page, partition, settled


def told(outcome: Outcome) -> tuple[object, ...]:
    """Return what an outcome says, but for names; a match is as good as another that resembles as much."""
    sizes = {policy: size for policy, (_, size) in outcome.clusters.items()}
    events = [(change.policy, change.event, change.size) for change in outcome.changes]
    return outcome.new, outcome.identity, round(outcome.resemblance, 6), sizes, events


@pytest.mark.parametrize("seed", range(6))
def test_pages_are_told_alike(redis_url: str, prefix: str, seed: int) -> None:
    several = RedisIndex(redis_url, f"{prefix}several:", shards=4)
    one = RedisIndex(redis_url, f"{prefix}one:")
    company = 0
    for fetch in World(seed, urls=12, families=3, length=[8, 40, 500][seed % 3]).crawl(30):
        sketch = replace(fetch, url=fetch.url.replace("//", f"//{zlib.crc32(fetch.url.encode()) % 7}."))
        (found,), (expected,) = several.apply([sketch]), one.apply([sketch])
        assert told(found) == told(expected)
        company += len(found.clusters)
        settled(several)
        settled(one)
    assert company > 20
    for index in (several, one):
        index.close()


def test_equals_of_another_profile_are_not_joined(redis_url: str, prefix: str) -> None:
    """A page of a few words is stored alike under two profiles, which do not compare."""
    index = RedisIndex(redis_url, prefix, shards=4)
    for number in range(8):
        profile = (TEXT, COMPACT)[number % 2]
        main = sketch_text("Not found", profile)
        index.apply([Sketch(f"http://h{number // 2}.example/{number}", number + 1, profile.code, 1, main, main, 1)])
    settled(index)
    sizes = {one.size for policy in index.policies() for one in index.clusters(policy.name, min_size=1)}
    assert sizes == {4}
    index.close()


def test_equals_of_other_homes_are_counted_where_no_policy_is_by_resemblance(redis_url: str, prefix: str) -> None:
    """Two are equal; as one of them shows another text, a third comes."""
    index = RedisIndex(redis_url, prefix, (IDENTICAL,), shards=4)
    crawl = [page(f"http://{name}.example/", 1, range(40)) for name in ("h2", "h4", "h1")]
    crawl.insert(2, page(crawl[0].url, 2, range(1000, 1040)))
    index.apply(crawl[:2])
    index.apply(crawl[2:])
    settled(index)
    assert partition(index, (IDENTICAL,)) == expected(crawl, (IDENTICAL,))
    index.close()


def test_a_page_that_leaves_the_first_of_a_content_s_texts_reads_none_of_the_others(
    redis_url: str, prefix: str
) -> None:
    index = RedisIndex(redis_url, prefix, shards=4)
    first = page("http://h0.example/", 1, range(40))

    def shown(url: str, text: int) -> Sketch:
        return replace(first, url=url, main=replace(first.main, text=text))

    elsewhere = [shown(f"http://h{host}.example/", 1) for host in range(8)]
    index.apply([*elsewhere, *(shown(f"http://h0.example/{text}", text) for text in range(1, 1001))])
    with redis.Redis.from_url(redis_url) as client:
        before = client.info("stats")["total_net_output_bytes"]
        index.apply([page("http://h0.example/1", 2, range(1000, 1040))])
        assert client.info("stats")["total_net_output_bytes"] - before < 20_000  # 25,000 of 1,000 texts; INFO 7,000
    index.close()
