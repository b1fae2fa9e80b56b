"""Two stored sketches → resemblance and containment (Broder et al. 1997, section 3). Symmetric, free of any postings.

Both sketches are brought to the lower of their thresholds t. With a, b codes up to t in A and B and m in common
(counted with repeats), of which (a - m)(b - m) κ agree by chance:

    x = m - (a - m)(b - m) κ

Where every shingle of A (or of B) lies below t, x is all that they have in common, and with the numbers of shingles:

    r = x / (|A| + |B| - x)        c(A, B) = x / |A|        c(B, A) = x / |B|

Elsewhere the likeliest ratios are taken, given x, a - x, b - x, |A| and |B| (`resemblance`), and in how many cells the
documents' parities differ for more than these codes, where both have one (`parity`); one that is kept entire has it in
its codes.
κ: let t lie the fraction f into its octave. Two values up to t lie in that last octave with probability (f/(1+f))², in
one of its f 2^bits cells, or in one and the same of those below with Σ 4^-i = 1/3 times (1/(1+f))². So

    κ = (1/3 + f) / (1 + f)² / 2^bits

which is 1/3 of a cell where t begins or ends an octave, or there is none, and up to 3/8 between. Of documents of which
every shingle is known it is rounded to a whole number, so that they get their exact ratios. A containment that is seen
through fewer than `EVIDENCE` values is not claimed, unless every shingle of the document was seen.

Of documents that no key proposes some agree by chance with any query in more than is expected: of n that were looked
at, m codes in common of a ≤ b count where the binomial tail (by Chernoff's bound) lets all of them have that by chance
fewer than `STRAY` times. Of the b several lie in one cell, with which a code agrees once: at most 1 - e^(-bκ) of the
a agree with any (with a book's 1,600 a fourth). So with λ = a (1 - e^(-bκ))

    m ln(m / λ) + (a - m) ln((a - m) / (a - λ)) ≥ ln(n / STRAY)

Cost: a merge, 3 µs for 192 values compiled (`core/_verify.c`), 60 µs in NumPy; both say the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import expm1, inf, log
from typing import Final

import numpy as np
import numpy.typing as npt

from clusterd_consumer.core.compiled import CORE
from clusterd_consumer.parity import differing, of_codes
from clusterd_consumer.postings.stored import Codes, Stored, repeats, unpack
from clusterd_consumer.resemblance import NOTHING, Estimate, likeliest, ratios, refined

#: Codes of A and of B up to the common threshold, codes in common, cells of the last octave up to there; whether each
#: document was seen whole; its shingles.
Counts = tuple[int, int, int, int, bool, bool, int, int]

#: Fewest sampled values that may speak for a containment (chosen: at 8 of 8 in common, c is above .69 with 95 %).
EVIDENCE: Final = 8

#: Bits of the number of a repetition, beside the code that comes again.
REPEATS: Final = 24
#: How many documents of all that were looked at may pass for alike by chance; the least containment, either way, that
#: is looked for so.
STRAY: Final = 0.01
PART: Final = 0.05
#: Resemblance from which on a document finds its clusters by another, however common its lists.
ALIKE: Final = 0.9


def judge(a: bytes, b: bytes, bits: int) -> Estimate:
    """Return the verdict on two stored sketches of one profile."""
    return judge_many(a, [b], bits)[0]


def judge_many(query: bytes, candidates: list[bytes], bits: int) -> list[Estimate]:
    """Return the verdict on a query and each candidate."""
    if CORE is not None:
        return [Estimate(*ratios) for ratios in CORE.judge(query, candidates, bits)]
    decoded = unpack(query, bits)
    return [_verdict(decoded, unpack(candidate, bits), bits) for candidate in candidates]


def alike_of(verdicts: Mapping[int, Estimate]) -> dict[int, Estimate]:
    """Return the verdicts on what is so much alike that a document finds its clusters by it."""
    return {number: verdict for number, verdict in verdicts.items() if verdict.resemblance >= ALIKE}


def judge_unproposed(query: bytes, candidates: list[bytes], bits: int, among: int) -> list[Estimate]:
    """Return the verdicts on a query and candidates, of so many that no key proposed; `NOTHING` where it is chance."""
    verdicts = judge_many(query, candidates, bits)
    likely = [place for place, verdict in enumerate(verdicts) if verdict.containment >= PART]
    least = log(max(1, among) / STRAY)
    found = [NOTHING] * len(candidates)
    counts = _counts(query, [candidates[place] for place in likely], bits)
    for place, (a, b, common, last) in zip(likely, counts, strict=True):
        if _surprise(common, min(a, b), _expected(a, b, last, bits)) >= least:
            found[place] = verdicts[place]
    return found


def _counts(query: bytes, candidates: list[bytes], bits: int) -> list[tuple[int, int, int, int]]:
    """Return `Counts` of a query and each candidate as far as chance goes."""
    if CORE is not None:
        counts: list[tuple[int, int, int, int]] = CORE.counts(query, candidates, bits)
        return counts
    decoded = unpack(query, bits)
    return [_count(decoded, unpack(candidate, bits), bits)[:4] for candidate in candidates]


def _by_chance(a: int, b: int, last: int, bits: int) -> tuple[int, int]:
    """Return how many of so many codes agree by chance, a b κ, as a fraction."""
    cells = 1 << bits
    return a * b * (cells + 3 * last), 3 * (cells + last) ** 2


def _expected(a: int, b: int, last: int, bits: int) -> float:
    """Return how many of the fewer codes agree with any of the others by chance, at most (κ's octaves as one)."""
    pairs, per = _by_chance(a, b, last, bits)
    fewer = min(a, b)
    return -fewer * expm1(-pairs / per / fewer)


def _surprise(common: int, of: int, expected: float) -> float:
    """Return the bound on -ln of the probability that chance brings so many of some, where others are expected."""
    if common <= expected:
        return 0.0
    rest = of - common
    others = rest * log(rest / (of - expected)) if rest else 0.0
    return common * log(common / expected) + others if expected else inf


def _count(a: Stored, b: Stored, bits: int) -> Counts:
    codes_a, codes_b, limit = _read(a, b, bits)
    common = len(np.intersect1d(_numbered(codes_a), _numbered(codes_b), assume_unique=True))
    last = limit & (1 << bits) - 1  # (of no threshold: none)
    whole_a, whole_b = a.exact and len(codes_a) == len(a.codes), b.exact and len(codes_b) == len(b.codes)
    return len(codes_a), len(codes_b), common, last, whole_a, whole_b, a.shingles, b.shingles


def _read(a: Stored, b: Stored, bits: int) -> tuple[Codes, Codes, int]:
    """Return the codes of both up to the lower of their thresholds, and that."""
    limit = min(_threshold(a, bits), _threshold(b, bits))
    codes_a, codes_b = (one.codes[: np.searchsorted(one.codes, limit, "right")] for one in (a, b))
    return codes_a, codes_b, limit


def _threshold(sketch: Stored, bits: int) -> int:
    if sketch.unbounded or len(sketch.codes) == 0:
        return 2**32
    last = int(sketch.codes[-1])
    return last | (2**bits - 1) if sketch.octave else last


def _numbered(codes: Codes) -> npt.NDArray[np.uint64]:
    """Return codes made distinct: a repeated code carries the number of its repetition."""
    return (codes.astype(np.uint64) << np.uint64(REPEATS)) + repeats(codes)


def _verdict(a: Stored, b: Stored, bits: int) -> Estimate:
    return _conclude(_count(a, b, bits), bits, _differing(a, b, bits))


def _differing(a: Stored, b: Stored, bits: int) -> int | None:
    """Return in how many cells the parities differ for more than the codes up to the common threshold.

    None where a document has none, or none was kept of either.
    """
    if not (a.parity or b.parity):
        return None
    of_a, of_b = (one.parity or (of_codes(one.codes, bits) if one.exact else b"") for one in (a, b))
    if not (of_a and of_b):
        return None
    codes_a, codes_b, _ = _read(a, b, bits)
    apart = np.setxor1d(_numbered(codes_a), _numbered(codes_b), assume_unique=True)
    return differing(of_a, of_b, of_codes((apart >> np.uint64(REPEATS)).astype(np.uint32), bits))


def _conclude(counts: Counts, bits: int, cells: int | None = None) -> Estimate:
    """Turn counts into ratios, corrected for chance; ``cells``: as `_differing` returns them."""
    a, b, common, last, whole_a, whole_b, shingles_a, shingles_b = counts
    if not a or not b or not common:
        return NOTHING
    chance, per = _by_chance(a - common, b - common, last, bits)
    if whole_a or whole_b:  # rounded to the nearest whole number, in whole numbers
        whole = max(0, common - (2 * chance + per) // (2 * per))
        found = ratios(whole, shingles_a - whole, shingles_b - whole)
    else:
        x = common - chance / per
        found = likeliest(x, a - x, b - x, shingles_a, shingles_b)
        if cells is not None and found.resemblance > 0:
            found = refined(found, a + b - x, a + b - 2 * x, cells, shingles_a, shingles_b)
    a_in_b = found.a_in_b if whole_a or a >= EVIDENCE else 0.0
    b_in_a = found.b_in_a if whole_b or b >= EVIDENCE else 0.0
    return Estimate(found.resemblance, a_in_b, b_in_a)
