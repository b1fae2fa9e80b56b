"""A worker in a process of its own: ``python -m tests.contract.index_worker URL PREFIX MESSAGES PAUSE [BOUND]``."""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.postings.scheme import DEFAULT, Scheme


def main(url: str, prefix: str, messages: str, pause: str, bound: str = "") -> None:
    """Apply the messages of a file, batch by batch."""
    sketches = pickle.loads(Path(messages).read_bytes())
    index = RedisIndex(url, prefix, scheme=Scheme(bound=int(bound)) if bound else DEFAULT)
    for start in range(0, len(sketches), 8):
        index.apply(sketches[start : start + 8])
        index.settle(2)
        time.sleep(float(pause))
    index.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
