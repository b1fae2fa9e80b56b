"""Two parities, and what two samples say → in how many shingles two documents differ.

A shingle that only one of two documents has turns one of the n cells of their parities (`clusterd_crawler.sketch`). Of
m such shingles an odd number lie in n/2 (1 - e^(-2m/n)) cells on average, so where the parities differ in z cells
(Mitzenmacher, Pagh, Pham 2014, section 3; the variance is that of so many shingles, not of a Poisson number of them)

    m = -n/2 ln u        variance  n/4 (1/u² - 1 + 2 ln u)        u = 1 - 2z/n

The values say m, too: S (1-r)/(1+r), with S = |A| + |B|. Of N values read of A ∪ B, with C = (S-m)/2 shingles in common
and U = (S+m)/2 in the union, they tell of it with the (Fisher) information

    I = N / (4 U³) (S²/C + B²/(A-C) + A²/(B-C))

taken where the parities say that m is: a sample in which nothing differs would be sure of itself. The mean of both, by
their information, is the likeliest m to the first order: in 500 trials each at r from .3 to .97, of 450 to 8,000
shingles, no worse than the maximum of the likelihood, and right to .0045 at r = .9 where 192 values are to .018.

Of a document that is kept entire the parity is made of its codes (`of_codes`), where the other was sampled.
Of documents that differ in many more shingles than there are cells (`FULL`) the parities say nothing: half of the cells
differ. The values decide that, so that no choice is made by the same chance twice.
Cost: a logarithm, beside the counting of z; .1 µs compiled.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

import numpy as np
from clusterd_crawler.sketch import CELL_BITS, PARITY_BITS, cells_parity

#: Differing shingles to a cell beyond which parities are not asked: chosen in those trials, at 1 the error is larger by
#: half for pages of 8,000 shingles, at 2 the estimate leans by .01.
FULL: Final = 1.5
#: Least u that is believed: two deviations of it, where it is 0.
LEAST: Final = 2 / sqrt(PARITY_BITS)
#: Least variance of m: where no cell differs two shingles may have met in one.
SURE: Final = 0.5


def of_codes(codes: np.typing.NDArray[np.uint32], bits: int) -> bytes:
    """Return the parity of a document by the codes of all its shingles, of so many mantissa bits."""
    return cells_parity(codes >> np.uint32(bits - CELL_BITS) & np.uint32(PARITY_BITS - 1))


def differing(a: bytes, b: bytes) -> int:
    """Return in how many cells two parities differ."""
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).bit_count()


def difference(by_values: float, read: float, cells: int, a: int, b: int) -> float:
    """Return in how many shingles two documents differ, where ``read`` values say ``by_values``.

    ``cells``: in how many of them the parities differ; ``a``, ``b``: the documents' numbers of shingles.
    """
    if by_values > FULL * PARITY_BITS:
        return by_values
    both, least = float(a + b), float(abs(a - b))
    u = max(1 - 2 * cells / PARITY_BITS, LEAST)
    by_parity = -PARITY_BITS / 2 * log(u)
    certainty = 1 / max(PARITY_BITS / 4 * (1 / (u * u) - 1 + 2 * log(u)), SURE)
    at = min(max(by_parity, least + 1), both - 1)
    common, union = (both - at) / 2, (both + at) / 2
    parts = both * both / common + (b * b / (a - common) + a * a / (b - common))  # the same whichever is A
    information = read * parts / (4 * union * union * union)
    return min(max((by_parity * certainty + by_values * information) / (certainty + information), least), both)
