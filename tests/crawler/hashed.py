"""Tokens hashed one by one, and sketches of them: what the faster ways must agree with."""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np
from clusterd_crawler.sketch import Profile, StreamSketch, sketch_hashes
from clusterd_crawler.tokens import Hashes


def token_hash(token: str) -> int:
    return int(mmh3.hash64(token.encode("utf-8", "surrogatepass"), signed=False)[0])


def hash_tokens(sequence: Sequence[str]) -> Hashes:
    return np.fromiter(map(token_hash, sequence), np.uint64, len(sequence))


def sketch_tokens(sequence: Sequence[str], profile: Profile) -> StreamSketch:
    return sketch_hashes(hash_tokens(sequence), profile)
