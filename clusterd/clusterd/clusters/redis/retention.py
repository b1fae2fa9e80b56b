"""Retention on Redis: superseded versions are forgotten, those of some URLs at a call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.registered import LATEST

#: URLs whose superseded versions are looked through in one call, and versions at most: 2 ms of the server's time. Eight
#: times as many would take a quarter less time in all, and hold everybody up for 11 to 28 ms.
CHUNK: Final = 32
LOOKS: Final = 64


def expire(home: Home, before: int, patience: float) -> Iterator[int]:
    """Forget superseded versions fetched before a time, some in each call; yield how many after each.

    ``patience``: seconds that a content stays pending whose worker died before it said that it was posted.
    """
    superseded = np.frombuffer(home.command("GET", "x") or b"", np.uint8)
    numbers = np.flatnonzero(np.unpackbits(superseded)).tolist()
    limit = min(max(before, 0), LATEST).to_bytes(6, "big")
    start = offset = 0
    while True:  # (once at least: contents may wait that were pending the last time)
        chunk = packed_numbers(numbers[start : start + CHUNK])
        some, done, offset = home.run("forget", limit, LOOKS, offset, chunk, patience, int(time.time()))
        start += done
        yield int(some)
        if start >= len(numbers):
            return


def forgotten(home: Home) -> int:
    """Return before which time superseded versions were forgotten; 0: none was."""
    return int.from_bytes(home.command("HGET", "m", "forgotten") or b"", "big")
