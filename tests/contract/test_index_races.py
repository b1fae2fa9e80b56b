"""The stream's partition is the batch's, whatever the order, the repetitions, the workers, and the crashes between."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusterd.clusters.contract import Index
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.clusters.opening import open_index
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.sketch import Sketch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.index_scheduler import ScheduledCalls, Scheduler, work
from tests.contract.index_world import World, expected, fall_apart, live_through, page, partition, settled

ROOT = Path(__file__).resolve().parents[2]

PAGES = st.builds(
    lambda url, at, start, length, order: page(
        f"http://h{url % 2}.example/{url}", at, range(start, start + length), order=order
    ),
    st.integers(0, 12),
    st.integers(1, 9),
    st.sampled_from([0, 1, 5, 20, 60, 61, 300]),
    st.sampled_from([0, 1, 30, 60, 61, 120]),
    st.sampled_from("ab"),
)
ACTIONS = st.lists(
    st.one_of(st.lists(PAGES, min_size=1, max_size=6), st.just("settle"), st.integers(1, 9)), min_size=1, max_size=25
)


@pytest.mark.parametrize("store", ["memory", "redis"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS, again=st.randoms(use_true_random=False))
def test_any_history_ends_in_the_batch_partition(
    store: str, redis_url: str, actions: list[list[Sketch] | str | int], again: random.Random
) -> None:
    index: Index = MemoryIndex()
    if store == "redis":
        index = RedisIndex(redis_url, f"t{time.monotonic_ns()}:")
    seen = live_through(index, actions, again)
    assert partition(index) == expected(seen)
    index.close()


@pytest.mark.parametrize("seed", range(30))
def test_chains_fall_apart_wherever_pages_depart_at_once(redis_url: str, prefix: str, seed: int) -> None:
    dice = random.Random(seed)
    index = RedisIndex(redis_url, prefix)
    fall_apart(index, dice, dice.randrange(6, 30), seed % 2 == 1, lambda n: f"http://h.example/{n}")
    index.close()


def race(url: str, prefix: str, seed: int, workers: int, crashes: float, fetches: int) -> None:
    """Run workers through one seeded interleaving and compare with the batch."""
    scheduler = Scheduler(seed, workers, crashes)
    scheduler.running = False
    indexes = [
        RedisIndex(url, prefix, calls=lambda client, number=number: ScheduledCalls(client, scheduler, number))
        for number in range(workers)
    ]
    scheduler.running = True
    world = World(seed, urls=8, families=2, length=[8, 40, 500][seed % 3])
    crawl = world.crawl(fetches)
    parts = [crawl[number::workers] for number in range(workers)]
    threads = [
        threading.Thread(target=work, args=(scheduler, number, indexes[number], parts[number], seed))
        for number in range(workers)
    ]
    scheduler.run(threads, url, prefix)
    settled(indexes[0])
    assert partition(indexes[0]) == expected(crawl), f"seed {seed}"
    indexes[0].expire(10**9)
    settled(indexes[0])
    assert partition(indexes[0]) == expected(crawl), f"seed {seed}, after expiry"
    assert indexes[0].counts()["contents"] == contents_of(crawl), f"seed {seed}"
    for index in indexes:
        index.close()


def contents_of(crawl: Sequence[Sketch]) -> int:
    """Return how many contents the current versions of a crawl show."""
    index = MemoryIndex()
    index.apply(crawl)
    index.settle()
    index.expire(10**9)
    return index.counts()["contents"]


@pytest.mark.parametrize("seed", range(24))
def test_no_interleaving_of_store_operations_loses_an_edge(redis_url: str, prefix: str, seed: int) -> None:
    race(redis_url, prefix, seed, workers=2 + seed % 3, crashes=0.0 if seed % 2 else 0.05, fetches=40)


@pytest.mark.cluster
@pytest.mark.parametrize("seed", range(3))
def test_no_interleaving_on_a_cluster_loses_an_edge(redis_cluster_url: str, prefix: str, seed: int) -> None:
    race(redis_cluster_url, prefix, 100 + seed, workers=2, crashes=0.01, fetches=24)


@pytest.mark.parametrize("where", ["redis_url", pytest.param("redis_cluster_url", marks=pytest.mark.cluster)])
def test_workers_that_really_run_at_once(
    where: str, prefix: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Three processes at once; the first is killed with -9 in the middle, and another reads its messages again."""
    url = request.getfixturevalue(where)
    crawl = World(5, urls=120, families=6, length=300).crawl(400)
    for part in range(3):
        (tmp_path / f"{part}").write_bytes(pickle.dumps(crawl[part::3]))

    def start(part: int, pause: float) -> subprocess.Popen[bytes]:
        arguments = [url, prefix, str(tmp_path / f"{part}"), str(pause)]
        return subprocess.Popen([sys.executable, "-m", "tests.contract.index_worker", *arguments], cwd=ROOT)

    workers = [start(0, 0.1), start(1, 0.0), start(2, 0.0)]
    index = open_index(url, prefix)
    while index.counts()["documents"] < 40:
        time.sleep(0.01)
    workers[0].kill()
    workers[0].wait()
    workers.append(start(0, 0.0))
    assert [worker.wait(200) for worker in workers[1:]] == [0, 0, 0]
    with connect(url) as client:
        client.delete(f"{prefix}{{0}}:lock")  # the lease of a settler that was killed runs out
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()
