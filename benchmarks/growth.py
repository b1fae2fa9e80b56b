"""Does the rate hold as the store grows? Documents/s in slices from empty to PAGES, and bytes a document at the end.

``python -m benchmarks.growth [PAGES]``: 1,000,000 by default; sketches as in `synthetic`, made while the clock stands.
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import redis
from clusterd.clusters.redis_index import RedisIndex

from benchmarks.store import BATCH, feed, used
from benchmarks.synthetic import crawl
from tests.services.redis_server import redis_server

#: Documents of a slice; the first full one is what the others are compared with.
SLICE = 20_000


def run(pages: int = 1_000_000) -> list[dict[str, Any]]:
    """Measure; return a row for each power of ten reached, and for the end."""
    rates: list[float] = []
    made = crawl(pages)
    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server(Path(folder)) as url,
        redis.Redis.from_url(url) as client,
    ):
        index = RedisIndex(url, "growth:")
        before = used(client)
        while chunk := list(islice(made, SLICE)):
            at = time.perf_counter()
            feed(index, chunk, BATCH)
            rates.append(len(chunk) / (time.perf_counter() - at))
            print(f"{len(rates) * SLICE:>10,} {rates[-1]:>10,.0f} documents/s", file=sys.stderr, flush=True)
        size = (used(client) - before) / pages
        index.close()
    first = max(rates[min(len(rates) - 1, 100_000 // SLICE - 1)], 1e-9)
    work = f"growth: rate at {pages:,} documents"
    return [
        {"work": work, "subject": "clusterd", "value": rates[-1], "unit": "documents/s", "peer": "at 100,000",
         "ratio": rates[-1] / first},
        {"work": f"growth: memory at {pages:,} documents, URLs included", "subject": "clusterd", "value": size,
         "unit": "bytes/document", "peer": None, "ratio": None},
    ]  # fmt: skip


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
