"""From text to clusters: ours over a real Redis beside the peers in their own memory, in one run.

Texts of about 1,000 words with the duplicates of a crawl: a quarter are exact copies, a tenth copies of which one word
in a hundred is another. Ours are sketched, looked up, inserted and clustered under four policies, versions
kept, every state in Redis. The peers make a signature of 128 values, look it up in their index in memory and insert it:
no versions, no clusters, no verification, nothing kept. Medians of rounds that take turns; by the clock, since Redis
works for us on a core of its own.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.page import sketch_plain

from benchmarks.results import Row, result
from benchmarks.sketching import PERMUTATIONS
from benchmarks.store import BATCH, feed
from tests.services.redis_server import HUGE_PAGES, redis_server

ROUNDS = 3
WORDS = 1000
#: Documents sketched before they are fed: what a daemon has in hand.
IN_HAND = 512
#: The slowest peer gets so many times fewer documents.
FEWER = 8


def texts(count: int) -> list[str]:
    """Make texts, some of them copies of earlier ones."""
    chosen = random.Random(1)
    vocabulary = ["".join(chosen.choices("etaoinshrdlucmfwypvbgk", k=chosen.randint(2, 10))) for _ in range(20_000)]
    made: list[str] = []
    for _ in range(count):
        kind = chosen.random() if made else 1.0
        if kind < 0.25:
            made.append(chosen.choice(made))
        elif kind < 0.35:
            words = chosen.choice(made).split()
            for at in chosen.sample(range(len(words)), len(words) // 100):
                words[at] = chosen.choice(vocabulary)
            made.append(" ".join(words))
        else:
            made.append(" ".join(chosen.choices(vocabulary, k=WORDS)))
    return made


def _ours(url: str, documents: Sequence[str], name: str) -> None:
    index = RedisIndex(url, name)
    for start in range(0, len(documents), IN_HAND):
        chunk = enumerate(documents[start : start + IN_HAND], start)
        sketches = [sketch_plain(f"http://h.example/{n}", one, fetched_at=1) for n, one in chunk]
        feed(index, sketches, BATCH)
    index.close()


def _shingles(document: str) -> Iterator[str]:
    words = document.split()
    return (" ".join(words[at : at + 10]) for at in range(max(1, len(words) - 9)))


def _rensa(documents: Sequence[str]) -> None:
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, num_bands=32)
    for number, document in enumerate(documents):
        made = RMinHash(num_perm=PERMUTATIONS, seed=42)
        made.update(list(_shingles(document)))
        index.query(made)
        index.insert(number, made)


def _gaoya(documents: Sequence[str]) -> None:
    from gaoya.minhash import MinHashStringIndex

    index = MinHashStringIndex(
        hash_size=64, jaccard_threshold=0.5, num_bands=32, band_size=4, analyzer="word", lowercase=True,
        ngram_range=(10, 10),
    )  # fmt: skip
    for number, document in enumerate(documents):
        index.query(document)
        index.insert_document(number, document)


def _datasketch(documents: Sequence[str]) -> None:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS)
    for number, document in enumerate(documents):
        made = MinHash(num_perm=PERMUTATIONS)
        made.update_batch([shingle.encode() for shingle in _shingles(document)])
        index.query(made)
        index.insert(str(number), made)


def run(count: int = 4_000) -> list[Row]:
    """Measure; return a row for each peer."""
    documents = texts(count)
    rates: dict[str, list[float]] = {}

    def measure(name: str, work: Callable[[Sequence[str]], None], some: Sequence[str]) -> None:
        at = time.perf_counter()
        work(some)
        rates.setdefault(name, []).append(len(some) / (time.perf_counter() - at))

    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder), environment=HUGE_PAGES) as url:
        for turn in range(ROUNDS):
            measure("clusterd", lambda some, turn=turn: _ours(url, some, f"text{turn}:"), documents)  # type: ignore[misc]
            measure("rensa", _rensa, documents[: count // 2])
            measure("gaoya", _gaoya, documents[: count // 2])
            measure("datasketch", _datasketch, documents[: count // FEWER])
    medians = {name: statistics.median(found) for name, found in rates.items()}
    ours = medians.pop("clusterd")
    return [
        result("text → clusters", "clusterd over Redis", round(ours), "documents/s", peer, round(ours / theirs, 1))
        for peer, theirs in ((f"{name} in memory: {round(rate)}", rate) for name, rate in medians.items())
    ]


if __name__ == "__main__":
    for row in run(*map(int, sys.argv[1:])):
        print(row)
