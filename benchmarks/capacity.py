"""What nodes add to a Redis Cluster: the CPU and the memory of its busiest node a document, with 1, 3 and 6 nodes.

The nodes share this machine's cores, so the clock says nothing of a cluster: what one takes is bounded by its busiest
node, which is the one that has the home shard (`clusters/redis/home.py`). Sketches as in `store`, batches of 64.

``python -m benchmarks.capacity [PAGES]`` runs it alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import Sketch

from benchmarks.store import BATCH, cpu, feed, used
from benchmarks.synthetic import crawl
from tests.services.redis_server import connect_cluster, redis_cluster

NODES = (1, 3, 6)
RUNS = 3


def run(pages: int = 50_000) -> list[dict[str, Any]]:
    """Measure; return rows for each number of nodes, with the ratio to one node alone."""
    sketches = list(crawl(pages))
    rows: list[dict[str, Any]] = []
    alone: tuple[float, float] | None = None
    for nodes in NODES:
        found = [_busiest(nodes, sketches) for _ in range(RUNS)]
        busy, held = (statistics.median(values) for values in zip(*found, strict=True))
        alone = alone or (busy, held)
        peer = None if nodes == 1 else "one node"
        rows += [
            {"work": f"capacity: busiest of {nodes} nodes, CPU", "subject": "clusterd", "value": round(busy, 1),
             "unit": "us/document", "peer": peer, "ratio": round(alone[0] / busy, 2)},
            {"work": f"capacity: fullest of {nodes} nodes, memory", "subject": "clusterd", "value": round(held, 1),
             "unit": "bytes/document", "peer": peer, "ratio": round(alone[1] / held, 2)},
        ]  # fmt: skip
    return rows


def _busiest(nodes: int, sketches: list[Sketch]) -> tuple[float, float]:
    """Feed a cluster; return the most CPU (us a document) and the most memory (bytes a document) of one node."""
    with tempfile.TemporaryDirectory() as folder, redis_cluster(Path(folder), nodes) as url, ExitStack() as stack:
        members = connect_cluster(url)
        clients = [stack.enter_context(redis.Redis(node.host, node.port)) for node in members.get_primaries()]
        members.close()
        index = RedisIndex(url, "capacity:")
        before = [(cpu(client), used(client)) for client in clients]
        feed(index, sketches, BATCH)
        after = [(cpu(client), used(client)) for client in clients]
        index.close()
    spent = [end[0] - start[0] for start, end in zip(before, after, strict=True)]
    held = [end[1] - start[1] for start, end in zip(before, after, strict=True)]
    return 1e6 * max(spent) / len(sketches), max(held) / len(sketches)


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
