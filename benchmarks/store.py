"""The stream over a real Redis: documents/s and bytes a document, beside datasketch's MinHashLSH on the same Redis.

Sketches of the default profile are given (`synthetic`: 25 % exact duplicates, 10 % near ones, 5 % changed recrawls);
look up, insert and cluster under four policies, versions kept. Splits settle beside the pages, in a thread of their
own as in the daemon; what is left after the last page settles inside the clock. Medians of three runs. Four workers,
threads of one process, have a batch in flight each, so that Redis works while the next batch is packed.

``python -m benchmarks.store [PAGES]`` runs it alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.postings.scheme import DEFAULT, Scheme
from clusterd_crawler.sketch import Sketch
from datasketch import MinHash, MinHashLSH

from benchmarks.results import Row, result
from benchmarks.synthetic import crawl
from tests.services.redis_server import redis_server

#: Documents of a batch (a part of the worker's), and batches in flight; calls of one document in flight.
BATCH = 64
IN_FLIGHT = 4
SINGLES_IN_FLIGHT = 4
#: The other way in which candidates are found.
SUPERS = Scheme(candidates="super")
#: Seconds between two looks of the settler (the daemon's: .1, .001 while something settles), and its steps at a time.
SETTLE_PAUSE = 0.05
SETTLE_STEPS = 50
RUNS = 3
#: Documents whose memory is measured: enough that what an empty server takes besides does not show.
MEMORY_PAGES = 60_000
#: Documents of the peer: it is a hundred times slower.
PEER = 400
#: Permutations of the peer's MinHash.
PERMUTATIONS = 128


def run(pages: int = 20_000) -> list[Row]:
    """Measure; return rows for the results file."""
    sketches = list(crawl(pages))
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as url:
        peer = _median(lambda number: _peer(url, sketches[:PEER], f"peer{number}"))
        batched = _median(lambda number: _stream(url, f"batched{number}:", sketches, BATCH)[0])
        single = _median(
            lambda number: _stream(url, f"single{number}:", sketches[: pages // 4], 1, SINGLES_IN_FLIGHT)[0]
        )
        supers = _median(lambda number: _stream(url, f"super{number}:", sketches, BATCH, scheme=SUPERS)[0])
        client, server = _stream(url, "cpu:", sketches, BATCH)[1:]
    many = list(crawl(MEMORY_PAGES))
    (size, strings), (both, _), peer_size = _memory(many), _memory(many, whole=True), _peer_memory(sketches[:PEER])
    name = "datasketch MinHashLSH on Redis"
    return [
        _row("store: stream into clusters, batches of 64", batched, "documents/s", name, batched / peer),
        _row("store: stream into clusters, one a call", single, "documents/s", name, single / peer),
        _row("store: batches of 64, by super-shingles", supers, "documents/s", name, supers / peer),
        _row("store: CPU of the worker", client, "us/document"),
        _row("store: CPU of Redis", server, "us/document"),
        _row("store: memory, URL strings apart", size - strings, "bytes/document", name, peer_size / (size - strings)),
        _row("store: memory with whole pages kept too, URL strings apart", both - strings, "bytes/document"),
        _row("store: memory of the URL strings", strings, "bytes/document"),
    ]


def _row(work: str, value: float, unit: str, peer: str | None = None, ratio: float | None = None) -> Row:
    return result(work, "clusterd", round(value, 1), unit, peer, None if ratio is None else round(ratio, 1))


def _median(measure: Callable[[int], float]) -> float:
    return statistics.median(measure(number) for number in range(RUNS))


def _stream(
    url: str,
    prefix: str,
    sketches: Sequence[Sketch],
    batch: int,
    in_flight: int = IN_FLIGHT,
    scheme: Scheme = DEFAULT,
) -> tuple[float, float, float]:
    """Stream sketches into an index; return documents/s, and the CPU of this process and of Redis, us a document."""
    index = RedisIndex(url, prefix, scheme=scheme)
    with redis.Redis.from_url(url) as client:
        before, began, at = cpu(client), time.process_time(), time.perf_counter()
        feed(index, sketches, batch, in_flight)
        seconds, mine = time.perf_counter() - at, time.process_time() - began
        server = cpu(client) - before
    index.close()
    count = len(sketches)
    return count / seconds, mine / count * 1e6, server / count * 1e6


def feed(index: RedisIndex, sketches: Sequence[Sketch], batch: int, in_flight: int = IN_FLIGHT) -> None:
    """Apply sketches, several batches in flight, settle beside them, and settle what is left."""
    done = threading.Event()

    def work(number: int) -> None:
        for start in range(number * batch, len(sketches), batch * in_flight):
            index.apply(sketches[start : start + batch])

    def settle() -> None:
        while not done.wait(SETTLE_PAUSE):
            index.settle(SETTLE_STEPS)

    settler = threading.Thread(target=settle)
    settler.start()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    settler.join()
    while index.settle():
        pass


@contextmanager
def fresh_redis(environment: Mapping[str, str] | None = None) -> Iterator[tuple[str, redis.Redis]]:
    """Start a Redis that holds nothing; yield its address and a client."""
    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server(Path(folder), environment=environment) as url,
        redis.Redis.from_url(url) as client,
    ):
        yield url, client


def cpu(client: redis.Redis) -> float:
    """Return the seconds of CPU that a Redis has used."""
    info: dict[str, Any] = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def used(client: redis.Redis) -> int:
    """Return what the data of a Redis take: all that it uses but its scripts and buffers."""
    stats: dict[str, Any] = client.memory_stats()
    tables = [part for name, part in stats.items() if name.startswith("db.") and isinstance(part, dict)]
    return int(stats["dataset.bytes"]) + sum(int(size) for table in tables for size in table.values())


def _memory(sketches: Sequence[Sketch], *, whole: bool = False) -> tuple[float, float]:
    """Return the bytes a document, and of these the blocks of URL strings; ``whole``: with the second token stream."""
    with fresh_redis() as (url, client):
        index = RedisIndex(url, "memory:", whole=whole)
        before = used(client)
        feed(index, sketches, BATCH)
        size = used(client) - before
        strings = sum(int(client.memory_usage(key) or 0) for key in client.scan_iter("memory:{0}:s:*", count=1000))
        index.close()
    return size / len(sketches), strings / len(sketches)


def _lsh(url: str, name: str) -> MinHashLSH:
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    storage = {"type": "redis", "basename": name.encode(), "redis": {"host": "127.0.0.1", "port": port}}
    return MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, storage_config=storage)


def _minhashes(sketches: Sequence[Sketch]) -> list[MinHash]:
    found = []
    for sketch in sketches:
        one = MinHash(num_perm=PERMUTATIONS)
        one.update_batch([sketch.main.values[at : at + 8] for at in range(0, len(sketch.main.values), 8)])
        found.append(one)
    return found


def _peer(url: str, sketches: Sequence[Sketch], name: str) -> float:
    """Look up, then insert, with the signatures given; return documents/s."""
    lsh, signatures = _lsh(url, name), _minhashes(sketches)
    at = time.perf_counter()
    for number, signature in enumerate(signatures):
        lsh.query(signature)
        lsh.insert(str(number), signature)
    return len(sketches) / (time.perf_counter() - at)


def _peer_memory(sketches: Sequence[Sketch]) -> float:
    with fresh_redis() as (url, client):
        before = used(client)
        _peer(url, sketches, "memory")
        return (used(client) - before) / len(sketches)


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
