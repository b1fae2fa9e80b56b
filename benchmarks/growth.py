"""Does the rate hold as the store grows? Documents/s and CPU a document at 100,000, 1, 2, 5 and 10 million documents.

``python -m benchmarks.growth [PAGES]``: 1,000,000 by default; sketches as in `synthetic`, made while the clock stands.
Five slices up to a mark are taken together. On a machine that others use the CPU of both processes tells more than the
wall clock. Ten million documents take about 6 GB and an hour.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import redis
from clusterd.clusters.redis_index import RedisIndex

from benchmarks.store import BATCH, cpu, feed, used
from benchmarks.synthetic import crawl
from tests.services.redis_server import redis_server

#: Documents of a slice, and slices of a mark.
SLICE, TOGETHER = 20_000, 5
FIRST = 100_000
MARKS = (1_000_000, 2_000_000, 5_000_000, 10_000_000)


@dataclass(frozen=True)
class Cost:
    """What a slice took, in seconds."""

    wall: float
    server: float
    worker: float


def measured(index: RedisIndex, client: redis.Redis, chunk: Sequence[Any]) -> Cost:
    """Feed a slice and say what it took."""
    wall, server, worker = time.perf_counter(), cpu(client), time.process_time()
    feed(index, chunk, BATCH)
    return Cost(time.perf_counter() - wall, cpu(client) - server, time.process_time() - worker)


def together(costs: Sequence[Cost], pages: int) -> Cost:
    """Return the mean costs of a document over the slices up to a mark."""
    last = costs[max(0, pages // SLICE - TOGETHER) : pages // SLICE] or costs
    size = len(last) * SLICE
    return Cost(*(sum(getattr(cost, name) for cost in last) / size for name in ("wall", "server", "worker")))


def rows(costs: Sequence[Cost], pages: int) -> list[dict[str, Any]]:
    """Compare a mark with the first."""
    first, here = together(costs, min(FIRST, pages)), together(costs, pages)
    peer = f"at {FIRST:,}"
    taken = {"subject": "clusterd", "peer": peer}
    ratio = first.wall / here.wall
    work = f"growth: {pages:,} documents"
    return [
        {"work": f"{work}, rate", **taken, "value": 1 / here.wall, "unit": "documents/s", "ratio": ratio},
        {"work": f"{work}, CPU of Redis", **taken, "value": 1e6 * here.server, "unit": "µs/document",
         "ratio": here.server / max(first.server, 1e-9)},
        {"work": f"{work}, CPU of the worker", **taken, "value": 1e6 * here.worker, "unit": "µs/document",
         "ratio": here.worker / max(first.worker, 1e-9)},
    ]  # fmt: skip


def run(pages: int = 1_000_000) -> list[dict[str, Any]]:
    """Measure; return rows for each mark reached, and for the end."""
    costs: list[Cost] = []
    found: list[dict[str, Any]] = []
    made = crawl(pages)
    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server(Path(folder)) as url,
        redis.Redis.from_url(url) as client,
    ):
        index = RedisIndex(url, "growth:")
        before = used(client)
        while chunk := list(islice(made, SLICE)):
            costs.append(measured(index, client, chunk))
            at, cost = len(costs) * SLICE, together(costs[-1:], SLICE)
            print(f"{at:>10,} {1 / cost.wall:>8,.0f} documents/s, Redis {1e6 * cost.server:.0f} µs,"
                  f" worker {1e6 * cost.worker:.0f} µs", file=sys.stderr, flush=True)  # fmt: skip
            if at in MARKS and at < pages:
                found += rows(costs, at)
        size = (used(client) - before) / pages
        index.close()
    return [
        *found,
        *rows(costs, pages),
        {"work": f"growth: memory at {pages:,} documents, URLs included", "subject": "clusterd", "value": size,
         "unit": "bytes/document", "peer": None, "ratio": None},
    ]  # fmt: skip


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
