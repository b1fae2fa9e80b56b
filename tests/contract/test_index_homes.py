"""A store of several homes, on one Redis: clusters over many hosts end in the batch's partition, and leave nothing."""

from __future__ import annotations

import random
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import replace

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.sketch import Sketch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.index_scheduler import ScheduledCalls, Scheduler, work
from tests.contract.index_world import World, expected, fall_apart, live_through, page, partition, settled
from tests.contract.test_index_races import ACTIONS

SHARDS = 3
LATER = [replace(DEFAULT_POLICIES[1], name="later"), replace(DEFAULT_POLICIES[2], name="last")]


def spread(sketches: Sequence[Sketch], hosts: int = 6) -> list[Sketch]:
    """Give pages more hosts: which depends on the URL."""
    return [
        replace(one, url=one.url.replace(".example", f"{zlib.crc32(one.url.encode()) % hosts}.example"))
        for one in sketches
    ]


def leftovers(url: str, prefix: str) -> dict[str, object]:
    """Return the keys that say how clusters of several contents hang together, and what is to be done about that."""
    empty = ("parts", "spans", "due", "twins", "tasks", "mv", "rl", "review", "g", "w")
    found: dict[str, object] = {}
    with connect(url) as client:
        for key in client.scan_iter(f"{prefix}*", count=10_000):
            kind = key.decode().split("}:")[1]
            if kind in empty or kind.startswith(("r:", "a:")):
                found[key.decode()] = client.type(key)
            elif kind == "spanned" and any(map(int, client.hvals(key))):
                found[key.decode()] = client.hgetall(key)
    return found


def depart(url: str, prefix: str, index: RedisIndex, crawl: Sequence[Sketch]) -> None:
    """Let each page of a crawl become one of its own: nothing is left of what there was."""
    urls = sorted({one.url for one in crawl})
    last = [page(one, 10**6, range(10**7 + 1000 * n, 10**7 + 1000 * n + 50)) for n, one in enumerate(urls)]
    index.apply(last)
    settled(index)
    index.expire(10**9)
    settled(index)
    assert partition(index, index.policies()) == expected(last, index.policies())
    assert leftovers(url, prefix) == {}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS, again=st.randoms(use_true_random=False))
def test_any_history_ends_in_the_batch_partition(
    redis_url: str, actions: list[list[Sketch] | str | int], again: random.Random
) -> None:
    index = RedisIndex(redis_url, f"t{time.monotonic_ns()}:", shards=SHARDS)
    seen = live_through(index, [spread(one) if isinstance(one, list) else one for one in actions], again)
    assert partition(index) == expected(seen)
    index.close()


@pytest.mark.parametrize("seed", range(6))
def test_chains_over_homes_fall_apart_wherever_pages_depart_at_once(redis_url: str, prefix: str, seed: int) -> None:
    """Each page is on a host of its own."""
    dice = random.Random(seed)
    index = RedisIndex(redis_url, prefix, shards=SHARDS)
    crawl = fall_apart(index, dice, dice.randrange(6, 24), seed % 2 == 1, lambda n: f"http://h{n}.example/")
    depart(redis_url, prefix, index, crawl)
    index.close()


def test_a_split_over_homes_is_told_once_with_its_name_and_size(redis_url: str, prefix: str) -> None:
    """Three pages on one side, two on the other, each on a host of its own; what held them together changes."""
    index = RedisIndex(redis_url, prefix, shards=SHARDS)
    left, right = [*range(1000)], [*range(5000, 6000)]
    crawl = [page(f"http://l{n}.example/", 1, [*left, 9000 + n]) for n in range(3)]
    crawl += [page(f"http://r{n}.example/", 1, [*right, 9100 + n]) for n in range(2)]
    crawl += [page("http://bridge.example/", 1, left + right), page("http://bridge.example/", 2, range(7000, 7100))]
    index.apply(crawl[:-1])
    settled(index)
    assert index.splits() == []
    index.apply(crawl[-1:])
    settled(index)
    assert partition(index) == expected(crawl)
    (split,) = [one for one in index.splits() if one.policy == "contained"]
    side, rest = index.cluster_of(split.url, "contained"), None
    for url in ("http://l0.example/", "http://r0.example/"):
        found = index.cluster_of(url, "contained")
        assert found is not None
        if found.cluster == split.cluster:
            rest = found
    assert side is not None
    assert rest is not None
    assert (split.size, side.cluster != rest.cluster) == (rest.size, True)
    index.told(index.splits())
    assert index.splits() == []
    index.close()


def test_policies_that_two_workers_add_at_once_to_a_filled_store(redis_url: str, prefix: str) -> None:
    crawl = spread(World(7, urls=24, families=4).crawl(60))
    index, other = (RedisIndex(redis_url, prefix, shards=SHARDS) for _ in range(2))
    index.apply(crawl[:40])
    settled(index)
    threads = [
        threading.Thread(target=one.add_policy, args=(policy,))
        for one, policy in zip((index, other), LATER, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.apply(crawl[40:])
    settled(index)
    policies = index.policies()
    assert {policy.name for policy in policies} >= {"later", "last"}
    assert partition(index, policies) == expected(crawl, policies)
    other.close()
    depart(redis_url, prefix, index, crawl)
    index.close()


@pytest.mark.parametrize("seed", range(5))
def test_no_interleaving_of_store_operations_loses_what_spans_homes(redis_url: str, prefix: str, seed: int) -> None:
    workers = 2 + seed % 2
    scheduler = Scheduler(seed, workers, 0.03)
    scheduler.running = False
    indexes = [
        RedisIndex(
            redis_url,
            prefix,
            shards=SHARDS,
            calls=lambda client, number=number: ScheduledCalls(client, scheduler, number),
        )
        for number in range(workers)
    ]
    scheduler.running = True
    crawl = spread(World(seed, urls=8, families=2, length=[8, 40, 500][seed % 3]).crawl(24))
    later = [[LATER[number % len(LATER)]] if seed % 2 else [] for number in range(workers)]
    threads = [
        threading.Thread(target=work, args=(scheduler, n, indexes[n], crawl[n::workers], seed, later[n]))
        for n in range(workers)
    ]
    scheduler.run(threads, redis_url, prefix)
    index = indexes[0]
    settled(index)
    policies = index.policies()
    assert partition(index, policies) == expected(crawl, policies), f"seed {seed}"
    index.expire(10**9)
    settled(index)
    assert partition(index, policies) == expected(crawl, policies), f"seed {seed}, after expiry"
    for other in indexes[1:]:
        other.close()  # with this the store is told what it was done with
    depart(redis_url, prefix, index, crawl)
    index.close()


@pytest.mark.parametrize("position", [{"0": "400"}, {}], ids=["log outside", "log in the store"])
@pytest.mark.parametrize("shards", [1, SHARDS])
@pytest.mark.parametrize("pages", [40, 400])
def test_what_was_posted_is_told_to_every_home_with_its_batch(
    redis_url: str, prefix: str, pages: int, shards: int, position: dict[str, str]
) -> None:
    """A worker that is killed then leaves nothing pending: no log brings again what lies before it."""
    index = RedisIndex(redis_url, prefix, shards=shards)
    alone = [page(f"http://h.example/{n}", n, range(1000 * n, 1000 * n + 50)) for n in range(pages)]
    index.apply(spread(alone), position)
    with connect(redis_url) as client:
        waiting = {key: client.smembers(key) for key in client.scan_iter(f"{prefix}*:w", count=10_000)}
    assert waiting == {}
    index.close()
