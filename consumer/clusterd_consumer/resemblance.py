"""(Sketch, Sketch) → resemblance and containment, from the two sketches alone (Broder et al. 1997, section 3).

A ∪ B is read in the order of the permutation, and the reading stops as soon as one sketch has no more to say. With
x values seen in both, p in A alone, q in B alone (n = x + p + q):

- nothing was left out (both sketches complete): r = x/n, c(A, B) = x/(x+p). Exact.
- otherwise the paper takes the same ratios as estimates: of MOD_m, of V_i at the modulus of the longer document, and of
  MIN_s, where it reads the s smallest values of F(A) ∪ F(B). Both sketches are known up to the lower of their largest
  values, which is further (n lies between s and 2s), so we read up to there, for a variance lower by the n/s values
  more.

Those ratios leave out what a sketch also says: how many shingles A and B have. `estimate` is the likeliest
resemblance given those too. With a = |A|/(|A|+|B|), b = |B|/(|A|+|B|) and v = (|A|+|B|)/|A ∪ B|, a value read lies in
both, in A alone or in B alone with probability v-1, 1-bv or 1-av: linear in v, so that the likelihood is concave, and
its maximum is the smaller root of

    n ab v² - (x + p b (1+a) + q a (1+b)) v + (x + p b + q a) = 0;      r = v-1, c(A, B) = r/(a v), c(B, A) = r/(b v)

Its bias is of the order of 1/s, its error lower wherever sizes differ: over 2,843 pairs of real pages with 400 values,
.0143 rms against .0158, lower for every range of r, and the precision at r ≥ .9 is .941 against .917.

Where both documents have a parity, that is taken into account, too (`parity`).

Cost: one merge, O(s): about 1 µs compiled, 30 µs in NumPy (70 µs with parities). Symmetric: a pair's verdict does not
depend on its order. A document without a token resembles nothing, not even another such document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from clusterd_crawler.sketch import Profile, StreamSketch, modulus_exponent, parity_of

from clusterd_consumer.parity import difference, differing

Values = npt.NDArray[np.uint64]


class Estimate(NamedTuple):
    """How alike two documents are: r(A, B), c(A, B) and c(B, A), each from 0 to 1."""

    resemblance: float
    a_in_b: float
    b_in_a: float

    @property
    def containment(self) -> float:
        """The larger of both containments."""
        return max(self.a_in_b, self.b_in_a)

    def turned(self) -> Estimate:
        """Return the same as seen from the other document."""
        return Estimate(self.resemblance, self.b_in_a, self.a_in_b)


NOTHING: Final = Estimate(0.0, 0.0, 0.0)
EQUAL: Final = Estimate(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was seen of A ∪ B: values in both, in A alone, in B alone."""

    common: int
    only_a: int
    only_b: int


def estimate(a: StreamSketch, b: StreamSketch, profile: Profile) -> Estimate:
    """Return the likeliest resemblance and containment of two streams; exact where both sketches are complete."""
    if not a.shingles or not b.shingles:
        return NOTHING
    if a.values == b.values and a.shingles == b.shingles and a.parity == b.parity:
        return EQUAL
    seen = read(a, b, profile)
    if a.complete and b.complete:
        return ratios(seen.common, seen.only_a, seen.only_b)
    found = likeliest(seen.common, seen.only_a, seen.only_b, a.shingles, b.shingles)
    of_a, of_b = (_parity(a), _parity(b)) if a.parity or b.parity else (b"", b"")
    if not (found.resemblance and of_a and of_b):
        return found
    cells = differing(of_a, of_b, parity_of(_of_one(a, b)))
    apart = seen.only_a + seen.only_b
    return refined(found, seen.common + apart, apart, cells, a.shingles, b.shingles)


def _parity(stream: StreamSketch) -> bytes:
    """Return the parity of a stream, of one that is kept entire by its values; empty where it has none."""
    return stream.parity or (parity_of(np.frombuffer(stream.values, "<u8")) if stream.complete else b"")


def likeliest(common: float, only_a: float, only_b: float, shingles_a: int, shingles_b: int) -> Estimate:
    """Return the most likely resemblance and containment of sets of known sizes, given what was seen of their union."""
    if common <= 0:
        return NOTHING
    both = shingles_a + shingles_b
    a, b = shingles_a / both, shingles_b / both
    square = (common + (only_a + only_b)) * (a * b)  # the same whichever is A
    constant = common + (only_a * b + only_b * a)
    linear = constant + (only_a + only_b) * (a * b)
    v = 2 * constant / (linear + sqrt(max(0.0, linear * linear - 4 * square * constant)))
    resemblance = min(max(v - 1, 0.0), 1.0)
    return Estimate(resemblance, min(resemblance / (a * v), 1.0), min(resemblance / (b * v), 1.0))


def refined(found: Estimate, read: float, apart: float, cells: int, shingles_a: int, shingles_b: int) -> Estimate:
    """Return an estimate from so many values read, given what the documents' parities say, too (`difference`)."""
    both = shingles_a + shingles_b
    by_values = both * (1 - found.resemblance) / (1 + found.resemblance)
    differ = difference(by_values, read, apart, cells, shingles_a, shingles_b)
    common = (both - differ) / 2
    return Estimate((both - differ) / (both + differ), min(common / shingles_a, 1.0), min(common / shingles_b, 1.0))


def read(a: StreamSketch, b: StreamSketch, profile: Profile) -> Reading:
    """Read the union of two streams as far as both sketches know it."""
    if profile.kind == "min":
        va, vb = _judged(a, b)
    else:
        va, vb = np.frombuffer(a.values, "<u8"), np.frombuffer(b.values, "<u8")
    if profile.kind == "v":
        shared = max(modulus_exponent(a.shingles, profile.size), modulus_exponent(b.shingles, profile.size))
        va, vb = coarsen(va, shared), coarsen(vb, shared)
    common = common_values(va, vb)
    return Reading(common, len(va) - common, len(vb) - common)


def exact(tokens_a: Sequence[str], tokens_b: Sequence[str], w: int) -> Estimate:
    """Resemblance and containment of two token sequences by their sets of ``w``-shingles, without hashing."""
    a, b = shingle_set(tokens_a, w), shingle_set(tokens_b, w)
    common = len(a & b)
    return ratios(common, len(a) - common, len(b) - common)


def shingle_set(tokens: Sequence[str], w: int) -> set[tuple[str, ...]]:
    """S(D, w); one shingle where the document is shorter than ``w``, none where it is empty."""
    if not tokens:
        return set()
    return {tuple(tokens[i : i + w]) for i in range(max(1, len(tokens) - w + 1))}


def coarsen(values: Values, exponent: int) -> Values:
    """V_j from V_i, j ≥ i: keep the values divisible by 2^exponent."""
    return np.compress((values & np.uint64((1 << exponent) - 1)) == 0, values)


def ratios(common: int, only_a: int, only_b: int) -> Estimate:
    """Resemblance and containment of two sets, from the sizes of their parts."""
    return Estimate(
        _share(common, common + only_a + only_b),
        _share(common, common + only_a),
        _share(common, common + only_b),
    )


def common_values(a: Values, b: Values) -> int:
    """Return how many values two sets have in common, each ascending and without repetitions."""
    both = np.concatenate((a, b))
    both.sort(kind="stable")  # which merges the two: less than half the time of `np.intersect1d`
    return int(np.count_nonzero(both[1:] == both[:-1]))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _of_one(a: StreamSketch, b: StreamSketch) -> Values:
    """MIN_s: the values that were read and are of one document alone."""
    return np.setxor1d(*_judged(a, b), assume_unique=True)


def _judged(a: StreamSketch, b: StreamSketch) -> tuple[Values, Values]:
    """MIN_s: the values of both up to the last one that both sketches can judge."""
    va, vb = np.frombuffer(a.values, "<u8"), np.frombuffer(b.values, "<u8")
    ends = [int(values[-1]) for values, one in ((va, a), (vb, b)) if not one.complete]
    if not ends:
        return va, vb
    end = np.uint64(min(ends))
    return va[: np.searchsorted(va, end, "right")], vb[: np.searchsorted(vb, end, "right")]
