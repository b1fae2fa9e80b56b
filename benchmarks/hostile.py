"""Streams made to hurt: the cost of a page must not grow, and memory must stay bounded.

- ``shingle``: every page has one shingle in common with all others, and nothing else.
- ``cluster``: all pages are near duplicates of one another, one cluster; every eighth then changes and leaves it.
- ``recrawl``: one URL, fetched again and again, with another text each time; old versions expire.
- ``shuffled``: the same in any order of time, as several archives may have it; nothing expires.

What is compared is CPU time, of the worker and of Redis together: other work on the machine shows in it least.

``python -m benchmarks.hostile [PAGES [HOMES]]``: 100,000 of each by default; of several homes on `HOSTS` hosts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from zlib import crc32

import numpy as np
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import TEXT, Sketch, StreamSketch

from benchmarks.results import Row, result
from benchmarks.store import BATCH, cpu, feed, fresh_redis, used
from benchmarks.synthetic import fresh

#: Slices whose costs are compared: the last with the second (the first warms up).
SLICES = 10
#: Hosts of a stream over several homes.
HOSTS = 997


def shingle(pages: int) -> Iterator[Sketch]:
    """Yield pages with one shingle in common: the smallest of all, so that every page posts it."""
    dice = np.random.default_rng(1)
    for number in range(pages):
        values = np.frombuffer(fresh(dice).values, "<u8").copy()
        values[0] = 1
        yield _page(f"http://a.example/{number}", number, values, dice)


def cluster(pages: int) -> Iterator[Sketch]:
    """Yield near duplicates; every eighth page is a recrawl of an earlier URL that shows something else now."""
    dice = np.random.default_rng(2)
    base = np.frombuffer(fresh(dice).values, "<u8")
    for number in range(pages):
        if number % 8 == 7:
            values, url = np.frombuffer(fresh(dice).values, "<u8"), f"http://a.example/{dice.integers(number)}"
        else:
            values, url = base.copy(), f"http://a.example/{number}"
            values[dice.integers(len(values), size=4)] += dice.integers(1, 2**20, 4).astype(np.uint64)
        yield _page(url, number, values, dice)


def recrawl(pages: int) -> Iterator[Sketch]:
    """Yield one URL, with another text each time, of which a tenth changed."""
    dice = np.random.default_rng(3)
    values = np.frombuffer(fresh(dice).values, "<u8").copy()
    top = int(values.max())
    for number in range(pages):
        tenth = len(values) // 10
        values[dice.integers(len(values), size=tenth)] = dice.integers(0, top, tenth, dtype=np.uint64)
        yield _page("http://a.example/", number, values, dice)


def shuffled(pages: int) -> Iterator[Sketch]:
    """Yield the same in any order of time."""
    times = np.random.default_rng(4).permutation(pages).tolist()
    for at, sketch in zip(times, recrawl(pages), strict=True):
        yield replace(sketch, fetched_at=at + 1)


def _page(url: str, number: int, values: np.typing.NDArray[np.uint64], dice: np.random.Generator) -> Sketch:
    packed = np.unique(values).astype("<u8").tobytes()
    stream = StreamSketch(packed, 1000, 1009, int(dice.integers(1, 2**63)))
    return Sketch(url, number + 1, TEXT.code, stream.text, stream, stream, stream.text)


def run(pages: int = 100_000, homes: int = 1) -> list[Row]:
    """Measure; return two rows for each stream."""
    return [row for make in (shingle, cluster, recrawl, shuffled) for row in _measure(make, pages, homes)]


def _on_hosts(sketch: Sketch) -> Sketch:
    """Return a page on one of several hosts, always the same."""
    return replace(sketch, url=sketch.url.replace("a.example", f"h{crc32(sketch.url.encode()) % HOSTS}.example"))


def _measure(make: Callable[[int], Iterator[Sketch]], pages: int, homes: int) -> list[Row]:
    sketches = list(make(pages)) if homes == 1 else list(map(_on_hosts, make(pages)))
    size = pages // SLICES
    costs: list[float] = []
    with fresh_redis() as (url, client):
        index = RedisIndex(url, "hostile:", shards=homes)
        before = used(client)
        for start in range(0, pages, size):
            at, began = time.perf_counter(), time.process_time() + cpu(client)
            feed(index, sketches[start : start + size], BATCH, in_flight=1)
            if make is recrawl:
                index.expire(start)
                index.settle()
            costs.append((time.process_time() + cpu(client) - began) / size * 1e6)
            rate = size / (time.perf_counter() - at)
            told = f"{make.__name__} {start + size:>9,} {costs[-1]:>7,.0f} us CPU a document {rate:>9,.0f} documents/s"
            print(told, file=sys.stderr, flush=True)
        memory = (used(client) - before) / pages
        index.close()
    work = f"hostile: {make.__name__}, {pages:,} pages" + (f", {homes} homes" if homes > 1 else "")
    return [
        result(work, "clusterd", costs[-1], "us CPU/document", "its second tenth", costs[1] / costs[-1]),
        result(f"{work}, memory", "clusterd", memory, "bytes/document"),
    ]


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
