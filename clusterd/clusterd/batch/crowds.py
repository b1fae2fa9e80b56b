"""Documents of a collection that are made of common shingles, and the pairs among them (`clusterd pairs`).

A shingle of more than 1,000 documents proposes no pair (Broder et al. 1997, section 5.1), and 1,500 pages that differ
in one word each share no other: all their pairs would be lost. A pair that shares nothing else is made of documents
whose shingles are common for the most part: as many as the threshold asks for in both, where it is a resemblance; in
one of them, and some in the other, where it is a containment. They are compared with one another, each with each.

Cost: 4 µs a pair by stored sketches (resemblance), 40 µs one that may be near.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_consumer.postings.posted import prepare
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_consumer.postings.verdict import judge_many
from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.batch.sieve import reaches

log = logging.getLogger(__name__)

#: Most pairs that are compared so: some minutes' work. Beyond, it is said that such pairs are left out.
MOST: Final = 50_000_000
#: How far below the threshold a stored sketch may say a resemblance lies that reaches it (5 deviations of 250 values).
DOUBT: Final = 0.16

Which = npt.NDArray[np.bool_]


class Crowd:
    """The documents of a collection that are made of common shingles: all their pairs are looked at here."""

    def __init__(
        self,
        sketches: Sequence[StreamSketch],
        profiles: Sequence[Profile],
        ignored: Mapping[int, int],
        threshold: float,
        containment: bool,
        common_bound: int,
    ) -> None:
        self._sketches = sketches
        self._profiles = profiles
        self._threshold = threshold
        self._containment = containment
        self._kept: dict[int, bytes] = {}
        sizes = np.array([len(sketch.values) // 8 for sketch in sketches], np.int64)
        common = np.zeros(len(sketches), np.int64)
        common[list(ignored)] = list(ignored.values())
        share = threshold if containment else threshold * threshold  # the other may be longer, and sampled so much less
        #: Documents that may have a partner by common shingles alone, and those that may be one.
        self._made: Which = (common > 0) & reaches(common, sizes, share)
        self._partners: Which = common > 0 if containment else self._made
        if int(self._made.sum()) * int(self._partners.sum()) > 2 * MOST:
            log.warning(
                "pairs of %d documents that share nothing but shingles of more than %d documents are left out",
                self._made.sum(),
                common_bound,
            )
            self._made = self._partners = np.zeros(len(sketches), np.bool_)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        """Whether a pair is one that `pairs` looks at."""
        first, second = pair
        made, partners = self._made, self._partners
        return bool((made[first] and partners[second]) or (made[second] and partners[first]))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield those of its pairs that may reach the threshold."""
        partners = np.flatnonzero(self._partners)
        for first in np.flatnonzero(self._made).tolist():
            code = self._profiles[first].code
            later = partners[(partners > first) | ~self._made[partners]].tolist()
            others = [second for second in later if second != first and self._profiles[second].code == code]
            for second in others if self._containment else self._near(first, others):
                yield min(first, second), max(first, second)

    def _near(self, first: int, others: Sequence[int]) -> Iterator[int]:
        """Yield those whose stored sketches are not far below the threshold."""
        bits = mantissa(self._profiles[first])
        verdicts = judge_many(self._stored(first), list(map(self._stored, others)), bits)
        for second, verdict in zip(others, verdicts, strict=True):
            if verdict.resemblance >= self._threshold - DOUBT:
                yield second

    def _stored(self, number: int) -> bytes:
        kept = self._kept.get(number)
        if kept is None:
            kept = self._kept[number] = prepare(self._sketches[number], self._profiles[number], DEFAULT)[0]
        return kept
