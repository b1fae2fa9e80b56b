"""What nodes add to a Redis Cluster: CPU and memory a document, of the busiest node and of all, with 1, 3, 4, 8 nodes.

The nodes share this machine's cores, so the clock says nothing of a cluster: what one takes is bounded by its busiest
node. Sketches as in `store`, in batches of the daemon's size. Pages lie in the homes of their hosts (`homes`), so two
crawls are measured: one whose copies are of pages of any host, nearly all of them of another home, which is as bad as
it can be; and one whose copies are of pages of the same host.

``python -m benchmarks.capacity [PAGES [RUNS]]`` runs it alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import Sketch

from benchmarks.results import Row, result
from benchmarks.store import cpu, feed, used
from benchmarks.synthetic import HOST, crawl
from tests.services.redis_server import connect_cluster, redis_cluster

NODES = (1, 3, 4, 8)
RUNS = 3
#: Documents of a batch: as many as the daemon applies at once.
BATCH = 256
#: What is measured of so many nodes, and its unit.
MEASURES = (
    ("busiest of {} nodes, CPU", "us/document"),
    ("all of {} nodes, CPU", "us/document"),
    ("fullest of {} nodes, memory", "bytes/document"),
    ("all of {} nodes, memory", "bytes/document"),
)


def run(pages: int = 50_000, runs: int = RUNS) -> list[Row]:
    """Measure; return rows for each crawl and number of nodes, with the ratio to one node alone."""
    rows: list[Row] = []
    for within in (False, True):
        sketches = list(crawl(pages, within=within))
        crawled = f"hosts of {HOST} pages, copies of {'the same host' if within else 'any host'}"
        alone: list[float] = []
        for nodes in NODES:
            found = [_measured(nodes, sketches) for _ in range(runs)]
            medians = [statistics.median(values) for values in zip(*found, strict=True)]
            alone = alone or medians
            for (what, unit), value, one in zip(MEASURES, medians, alone, strict=True):
                work, peer = f"capacity: {what.format(nodes)}; {crawled}", None if nodes == 1 else "one node"
                rows.append(result(work, "clusterd", round(value, 1), unit, peer, round(one / value, 2)))
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _measured(nodes: int, sketches: list[Sketch]) -> list[float]:
    """Feed a cluster; return its CPU (us a document) and memory (bytes a document), as in `MEASURES`."""
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
    count = len(sketches)
    return [1e6 * max(spent) / count, 1e6 * sum(spent) / count, max(held) / count, sum(held) / count]


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
