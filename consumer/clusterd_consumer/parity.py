"""Two parities, and what two samples say → in how many shingles two documents differ.

A shingle that only one of two documents has turns one of the n cells of their parities (`clusterd_crawler.sketch`). Of
d such shingles among the values that were read, each is known: its cell is turned back, and what is left speaks of the
rest alone. Of m such shingles beyond, an odd number lie in n/2 (1 - e^(-2m/n)) cells on average, so where z cells are
left (Mitzenmacher, Pagh, Pham 2014, section 3; the variance is that of so many shingles, not of a Poisson number)

    d + m = d - n/2 ln u        variance  n/4 (1/u² - 1 + 2 ln u)        u = 1 - 2z/n

The values say d + m, too: S (1-r)/(1+r), with S = |A| + |B|. Of N values read of A ∪ B, with C = (S-d-m)/2 shingles in
common and U = (S+d+m)/2 in the union, they tell of it with the (Fisher) information, of a sample of finitely many,

    I = N / (4 U³) (S²/C + B²/(A-C) + A²/(B-C)) / (1 - N/U)

taken where both say that it is: a sample in which nothing differs would be sure of itself, so it begins where the
parities say, and the mean of both, by their information, is taken for it `PASSES` times. That is the likeliest: by the
first pass alone a document within a longer one leaned, since where the parities say too much the values have no weight,
and where they say too little all (450 shingles in 1,575: the containment was .9956 on average, now .9999; of .94 it
was found ≥ .9 in .90 of the cases, by values alone in .92, now in .93). At r = .9, where 192 values are right to .018,
the mean is right to .0027 for pages of 450 shingles, .0036 for 1,000 and .005 for 4,000; .0045 while the values that
were read stayed in the parities.

Of a document that is kept entire the parity is made of its codes (`of_codes`), where the other was sampled.
Of documents that differ in many more shingles than there are cells (`FULL`) the parities say nothing: half of the cells
differ. The values decide that, so that no choice is made by the same chance twice.
Cost: a logarithm, beside the counting of z; .4 µs compiled.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

import numpy as np
from clusterd_crawler.sketch import CELL_BITS, PARITY_BITS, cells_parity

#: Differing shingles beyond the values read, to a cell, beyond which parities are not asked: chosen in 400 trials each
#: of 1,500 to 12,000 shingles. At 1 the error is larger by a tenth at r = .5 for pages of 2,000, at 1.5 the estimate
#: leans by .006 where r is .3.
FULL: Final = 1.4
#: Least u that is believed: two deviations of it, where it is 0.
LEAST: Final = 2 / sqrt(PARITY_BITS)
#: Least variance of m: where no cell differs two shingles may have met in one.
SURE: Final = 0.5
#: How often the information of the values is taken anew: more say the same to a tenth of the error.
PASSES: Final = 3


def of_codes(codes: np.typing.NDArray[np.uint32], bits: int) -> bytes:
    """Return the parity of a document by the codes of all its shingles, of so many mantissa bits."""
    return cells_parity(codes >> np.uint32(bits - CELL_BITS) & np.uint32(PARITY_BITS - 1))


def differing(a: bytes, b: bytes, known: bytes) -> int:
    """Return in how many cells two parities differ for more than what is ``known``: its own parity."""
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little") ^ int.from_bytes(known, "little")).bit_count()


def difference(by_values: float, read: float, apart: float, cells: int, a: int, b: int) -> float:
    """Return in how many shingles two documents differ, where ``read`` values say ``by_values``.

    ``apart``: how many of the values read are of one document alone; ``cells``: in how many of them the parities differ
    for more than these; ``a``, ``b``: the documents' numbers of shingles.
    """
    if by_values - apart > FULL * PARITY_BITS:
        return by_values
    both, least = float(a + b), float(abs(a - b))
    u = max(1 - 2 * cells / PARITY_BITS, LEAST)
    by_parity = apart - PARITY_BITS / 2 * log(u)
    certainty = 1 / max(PARITY_BITS / 4 * (1 / (u * u) - 1 + 2 * log(u)), SURE)
    differ = by_parity
    for _ in range(PASSES):
        information = _information(differ, read, float(a), float(b))
        differ = (by_parity * certainty + by_values * information) / (certainty + information)
    return min(max(differ, least), both)


def _information(differ: float, read: float, a: float, b: float) -> float:
    """Return what so many values read tell of the shingles in which documents differ, where they differ in so many."""
    both = a + b
    at = min(max(differ, abs(a - b) + 1), both - 1)
    common, union = (both - at) / 2, (both + at) / 2
    parts = both * both / common + (b * b / (a - common) + a * a / (b - common))  # the same whichever is A
    return read * parts / (4 * union * union * max(union - read, 1))
