"""Posting lists on Redis as tests of them write and ask: one document, one query."""

from __future__ import annotations

import numpy as np
from clusterd_consumer.postings.redis_lists import Posting, RedisLists


def posting(number: int, stored: bytes, keys: np.typing.NDArray[np.uint32], fresh: bool = False) -> Posting:
    return Posting(number, stored, keys.tobytes(), fresh)


def look_up(lists: RedisLists, keys: np.typing.NDArray[np.uint32]) -> list[int]:
    """Return the documents that the lists of these keys propose."""
    (found,), _ = lists.look_up([keys.tobytes()])
    return found
