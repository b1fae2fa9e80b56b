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
from clusterd_consumer.postings.judging import judge_many
from clusterd_consumer.postings.keys import prepare
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.batch.sieve import reaches

log = logging.getLogger(__name__)

#: Most pairs that are compared so: some minutes' work. Beyond, it is said that such pairs are left out.
MOST: Final = 50_000_000
#: How far below the threshold a stored sketch may say a resemblance lies that reaches it (5 deviations of 192 values).
DOUBT: Final = 0.18

#: Pairs that are counted, at most, to know how many of them are to be compared: some seconds' work.
COUNTED: Final = 4_000_000_000
#: What floating point may take from a product that is a whole number.
ROUNDING: Final = 1e-6

Which = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


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
        #: Values of each sketch, those of them that are common, and whether it holds every shingle.
        self._sizes = np.array([len(sketch.values) // 8 for sketch in sketches], np.int64)
        self._common = np.zeros(len(sketches), np.int64)
        self._common[list(ignored)] = list(ignored.values())
        self._complete = np.array([sketch.complete for sketch in sketches], np.bool_)
        share = threshold if containment else threshold * threshold  # the other may be longer, and sampled so much less
        #: Documents that may have a partner by common shingles alone, and those that may be one.
        self._made: Which = (self._common > 0) & reaches(self._common, self._sizes, share)
        self._partners: Which = self._common > 0 if containment else self._made
        if self._is_too_large():
            log.warning(
                "pairs of %d documents that share nothing but shingles of more than %d documents are left out",
                self._made.sum(),
                common_bound,
            )
            self._made = self._partners = np.zeros(len(sketches), np.bool_)

    def holds(self, firsts: Numbers, seconds: Numbers) -> Which:
        """Return which pairs are looked at here: those that may reach the threshold by common shingles alone."""
        common = np.minimum(self._common[firsts], self._common[seconds])
        a, b = self._sizes[firsts], self._sizes[seconds]
        made, also = self._made[firsts], self._made[seconds]
        if self._containment:
            exactly = common >= self._threshold * np.minimum(a, b)
            about = (made | also) & (common > 0)
        else:
            exactly = common * (1 + self._threshold) >= self._threshold * (a + b) - ROUNDING
            about = made & also
        complete = self._complete[firsts] & self._complete[seconds]
        return np.asarray(about & (exactly | ~complete))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield those of its pairs that may reach the threshold."""
        for first, seconds in self._rows():
            code = self._profiles[first].code
            others = [second for second in seconds.tolist() if self._profiles[second].code == code]
            for second in others if self._containment else self._near(first, others):
                yield min(first, second), max(first, second)

    def _rows(self) -> Iterator[tuple[int, Numbers]]:
        """Yield each document that is made of common shingles with those that it is to be compared with."""
        partners = np.flatnonzero(self._partners)
        for first in np.flatnonzero(self._made).tolist():
            later = partners[(partners > first) | ~self._made[partners]]
            yield first, later[self.holds(np.full(len(later), first), later)]

    def _is_too_large(self) -> bool:
        at_most = int(self._made.sum()) * int(self._partners.sum())
        return at_most > 2 * MOST and (at_most > COUNTED or sum(len(row) for _, row in self._rows()) > MOST)

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
