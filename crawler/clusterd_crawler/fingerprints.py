"""Hashes of tokens → fingerprints of shingles: 40 bits each (Broder et al. 1997, section 7).

    t_i  = first 64 bits of MurmurHash3_x64_128(token_i as UTF-8, seed 0)       (mmh3.hash64(..., signed=False)[0])
    H    = sum of t_(i+j) * M^(w-1-j) for j in 0..w-1, modulo 2^64,  M = 0x9E3779B97F4A7C15
    fp   = fmix64(H) >> 24                                                       (MurmurHash3's finalizer)

which stands in for a random permutation of the set of shingles (tested for uniformity and min-wise bias).

M is odd, so it has an inverse: the sums of t_i * M^-i from the first token on give each H by one difference, whatever w
is. The compiled core has its own (``core/shingles.h``), with the same results.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clusterd_crawler.token_hashes import fmix64
from clusterd_crawler.tokens import Hashes

Values = npt.NDArray[np.uint64]

FINGERPRINT_BITS: Final = 40
#: M: 2^64 divided by the golden ratio.
MULTIPLIER: Final = 0x9E3779B97F4A7C15


def _powers(base: int, count: int) -> Values:
    """Return the first powers of a number from 0 on, modulo 2^64."""
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    powers: Values = np.multiply.accumulate(factors)
    return powers


_INVERSE: Final = pow(MULTIPLIER, -1, 1 << 64)
#: Tokens of which the powers are kept: enough for all but the longest documents.
_KEPT: Final = 1 << 14
_UP: Final = _powers(MULTIPLIER, _KEPT)
_DOWN: Final = _powers(_INVERSE, _KEPT)
_DROPPED: Final = np.array(64 - FINGERPRINT_BITS, np.uint64)


def fingerprints(hashes: Hashes, w: int) -> Values:
    """Return the fingerprints of the shingles of a non-empty token sequence, in order, with repetitions."""
    count = len(hashes)
    w = min(w, count)
    up, down = (_UP, _DOWN) if count <= _KEPT else (_powers(MULTIPLIER, count), _powers(_INVERSE, count))
    sums = np.zeros(count + 1, np.uint64)
    np.cumsum(hashes * down[:count], out=sums[1:])
    windows = sums[w:] - sums[:-w]
    windows *= up[w - 1 : count]
    mixed = fmix64(windows)
    return np.right_shift(mixed, _DROPPED, mixed)
