"""A worker in a process of its own: ``python -m tests.contract.index_worker URL PREFIX MESSAGES PAUSE``."""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

from clusterd.clusters.opening import open_index


def main(url: str, prefix: str, messages: str, pause: str) -> None:
    """Apply the messages of a file, batch by batch."""
    sketches = pickle.loads(Path(messages).read_bytes())
    index = open_index(url, prefix)
    for start in range(0, len(sketches), 8):
        index.apply(sketches[start : start + 8])
        index.settle(2)
        time.sleep(float(pause))
    index.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
