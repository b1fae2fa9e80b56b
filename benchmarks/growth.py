"""Does the rate hold as the store grows? Documents/s and CPU a document at 1, 2, 5 and 10 million, against 100,000.

``python -m benchmarks.growth [PAGES]``: 1,000,000 by default; sketches as in `synthetic`, made while the clock stands.
The pace of a shared machine changes by the minute. So at each mark a second store is filled anew, and what it gets from
70,000 to 130,000 documents is taken in turns with the last slices before the mark; on a machine that others use the CPU
of both processes tells more than the clock. Redis has its memory in huge pages, as deploy/redis/redis.conf asks for: in
small ones the processor looks up more and more page tables. Ten million documents take about 6 GB and an hour.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import Sketch

from benchmarks.results import Row, result
from benchmarks.store import BATCH, cpu, feed, fresh_redis, used
from benchmarks.synthetic import crawl
from tests.services.redis_server import HUGE_PAGES

#: Documents of a slice, slices in turns at a mark, and slices that the second store gets before.
SLICE, TURNS, BEFORE = 10_000, 6, 7
MARKS = (1_000_000, 2_000_000, 5_000_000, 10_000_000)


@dataclass(frozen=True)
class Cost:
    """What a document took, in seconds."""

    wall: float
    server: float
    worker: float


@dataclass(frozen=True)
class Store:
    """An index on a server of its own, and the crawl that it gets."""

    index: RedisIndex
    client: redis.Redis
    pages: Iterator[Sketch]

    def slice(self) -> Cost:
        """Feed a slice and say what a document took."""
        chunk = list(islice(self.pages, SLICE))
        wall, server, worker = time.perf_counter(), cpu(self.client), time.process_time()
        feed(self.index, chunk, BATCH)
        taken = time.perf_counter() - wall, cpu(self.client) - server, time.process_time() - worker
        return Cost(*(seconds / len(chunk) for seconds in taken))


@contextmanager
def store(pages: int) -> Iterator[Store]:
    """Start an empty store, to be fed so many pages."""
    with fresh_redis(HUGE_PAGES) as (url, client):
        index = RedisIndex(url, "growth:")
        yield Store(index, client, crawl(pages))
        index.close()


def in_turns(grown: Store) -> tuple[list[Cost], list[Cost]]:
    """Return the costs of slices of a store of 100,000 documents and of a grown one."""
    first: list[Cost] = []
    here: list[Cost] = []
    with store(SLICE * (BEFORE + TURNS)) as young:
        for _ in range(BEFORE):
            young.slice()
        for _ in range(TURNS):
            first.append(young.slice())
            here.append(grown.slice())
            print(f"  young {said(first[-1])}; grown {said(here[-1])}", file=sys.stderr, flush=True)
    return first, here


def said(cost: Cost) -> str:
    """Return a cost in words."""
    return f"{1 / cost.wall:,.0f}/s, Redis {1e6 * cost.server:.0f} µs, worker {1e6 * cost.worker:.0f} µs"


def version(client: redis.Redis) -> str:
    """Return the server's name and version: what a lookup costs as a store grows differs between them."""
    info: dict[str, Any] = client.info("server")
    return f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"


def rows(first: Sequence[Cost], here: Sequence[Cost], mark: int, server: str) -> list[Row]:
    """Compare a mark with the young store, by the means of the slices; ``server`` names Redis and its version."""

    def mean(costs: Sequence[Cost], name: str) -> float:
        return sum(getattr(cost, name) for cost in costs) / len(costs)

    young = "at 100,000"
    work = f"growth: {mark:,} documents on {server}"
    now, then = ([mean(costs, name) for name in ("wall", "server", "worker")] for costs in (here, first))
    redis_cpu, worker = (1e6 * now[at] for at in (1, 2))
    redis_ratio, worker_ratio = (now[at] / max(then[at], 1e-9) for at in (1, 2))
    return [
        result(f"{work}, rate", "clusterd", 1 / now[0], "documents/s", young, then[0] / now[0]),
        result(f"{work}, CPU of Redis", "clusterd", redis_cpu, "µs/document", young, redis_ratio),
        result(f"{work}, CPU of the worker", "clusterd", worker, "µs/document", young, worker_ratio),
    ]


def run(pages: int = 1_000_000) -> list[Row]:
    """Measure; return rows for each mark, and for the memory at the end."""
    found: list[Row] = []
    marks = [*(mark for mark in MARKS if mark < pages), pages]
    with store(pages) as grown:
        before, fed = used(grown.client), 0
        server = version(grown.client)
        for mark in marks:
            while fed < mark - SLICE * TURNS:
                cost = grown.slice()
                fed += SLICE
                print(f"{fed:>10,} {said(cost)}", file=sys.stderr, flush=True)
            found += rows(*in_turns(grown), mark, server)
            fed += SLICE * TURNS
        size = (used(grown.client) - before) / fed
    work = f"growth: memory at {fed:,} documents on {server}, URLs included"
    return [*found, result(work, "clusterd", size, "bytes/document")]


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
