"""A list that becomes common while several workers post into it: a giant cluster stays whole, whoever comes between."""

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
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.sketch import Sketch

from tests.contract.index_scheduler import Crash, ScheduledCalls, Scheduler
from tests.contract.index_world import page, settled

ROOT = Path(__file__).resolve().parents[2]


def giant(pages: int) -> list[Sketch]:
    """Pages of which each is a near duplicate of every other: all their lists grow alike."""
    return [page(f"http://h.example/{n}", 1, [*range(200), 1000 + n]) for n in range(pages)]


def pieces(index: Index) -> list[int]:
    """Return the sizes of the near clusters."""
    return [cluster.size for cluster in index.clusters("near", min_size=1)]


def work(scheduler: Scheduler, worker: int, index: Index, messages: Sequence[Sketch], seed: int, most: int) -> None:
    """Apply messages in batches of up to ``most``; after a crash once more, as the log delivers again."""
    dice = random.Random(seed * 100 + worker)
    at = 0
    while at < len(messages):
        size = dice.randrange(1, most + 1)
        try:
            index.apply(messages[at : at + size])
            at += size
        except Crash:
            continue
    scheduler.leave(worker)


def race(url: str, prefix: str, seed: int, scheme: Scheme, crawl: Sequence[Sketch], most: int, crashes: float) -> None:
    """Run three or four workers through one seeded interleaving."""
    workers = 3 + seed % 2
    scheduler = Scheduler(seed, workers, crashes)
    scheduler.running = False
    indexes = [
        RedisIndex(url, prefix, scheme=scheme, calls=lambda client, n=n: ScheduledCalls(client, scheduler, n))
        for n in range(workers)
    ]
    scheduler.running = True
    threads = [
        threading.Thread(target=work, args=(scheduler, n, indexes[n], crawl[n::workers], seed, most))
        for n in range(workers)
    ]
    scheduler.run(threads, url, prefix)
    settled(indexes[0])
    assert pieces(indexes[0]) == [len(crawl)], f"seed {seed}"
    for index in indexes:
        index.close()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "scheme", [Scheme(bound=6, latest=2), Scheme(bound=4, latest=1), Scheme(bound=12, latest=4)], ids=str
)
def test_no_interleaving_tears_a_list_that_becomes_common(
    redis_url: str, prefix: str, seed: int, scheme: Scheme
) -> None:
    """A batch is as long as the list: others' pages push a page out of it before that has looked up."""
    race(redis_url, prefix, seed, scheme, giant(48), most=scheme.bound, crashes=0.0)


@pytest.mark.parametrize("seed", range(8))
def test_workers_that_crash_leave_the_list_in_one_piece(redis_url: str, prefix: str, seed: int) -> None:
    """A batch is half as long as the list, as it is by default: whose worker died is reached over."""
    race(redis_url, prefix, seed, Scheme(bound=24), giant(120), most=12, crashes=0.03)


@pytest.mark.cluster
@pytest.mark.parametrize("seed", range(2))
def test_no_interleaving_on_a_cluster_tears_a_common_list(redis_cluster_url: str, prefix: str, seed: int) -> None:
    race(redis_cluster_url, prefix, seed, Scheme(bound=6, latest=2), giant(30), most=6, crashes=0.0)


@pytest.mark.parametrize("where", ["redis_url", pytest.param("redis_cluster_url", marks=pytest.mark.cluster)])
def test_workers_that_really_run_at_once_keep_a_giant_cluster_whole(
    where: str, prefix: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Three processes post into lists of at most 16; the first is killed with -9, and its messages are read again."""
    url, bound = request.getfixturevalue(where), 16
    crawl = giant(450)
    for part in range(3):
        (tmp_path / f"{part}").write_bytes(pickle.dumps(crawl[part::3]))

    def start(part: int, pause: float) -> subprocess.Popen[bytes]:
        arguments = [url, prefix, str(tmp_path / f"{part}"), str(pause), str(bound)]
        return subprocess.Popen([sys.executable, "-m", "tests.contract.index_worker", *arguments], cwd=ROOT)

    workers = [start(0, 0.05), start(1, 0.0), start(2, 0.0)]
    index = RedisIndex(url, prefix, scheme=Scheme(bound=bound))
    while index.counts()["documents"] < 60:
        time.sleep(0.01)
    workers[0].kill()
    workers[0].wait()
    workers.append(start(0, 0.0))
    assert [worker.wait(200) for worker in workers[1:]] == [0, 0, 0]
    settled(index)
    assert pieces(index) == [len(crawl)]
    index.close()


def test_a_batch_that_finds_its_list_full_of_others_is_joined_with_them_in_memory() -> None:
    index = MemoryIndex(scheme=Scheme(bound=5, latest=2))
    index.apply(giant(60))
    assert pieces(index) == [60]
