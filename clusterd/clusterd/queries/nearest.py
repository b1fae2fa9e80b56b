"""The nearest of a set of pages, found by best match rather than by a threshold (paper, section 6.2: lost & found).

A fixed resemblance asks too much of a page that moved and was rewritten on the way: of 157 pages of a manual that moved
between two versions 59 pass r ≥ .5, and 156 are right by best match. What separates a rewritten page from an unrelated
one is not how much they share but *what*: a shingle that stands on every page of a site is its template. So pages are
ranked by a weighted resemblance over the sketches,

    score(A, B) = Σ w(x), x in A ∩ B  /  Σ w(x), x in A ∪ B        w(x) = 1 / number of the set's pages that carry x

read up to the lower end of the two sketches, as `clusterd_consumer.resemblance` does. An index stores values cut to
`mantissa` bits an octave, so that different values agree by chance: what is expected of it is taken off the counts and
off what two pages share. That makes short pages match well under the default 10-word profile too, because a short
page's sketch leaves nothing out: of the 581 pages of a collection of 30–90 words that moved, the best match is right
for 98 % (by 4-word shingles: the same), so that no other profile need be chosen for them.

What counts as near is in `nearness`, what the addresses of two pages add to their score in `addresses`.

Cost: building, a sort of all values; a query, the postings of its rare values, `ROWS` at most, an exact reading of the
`READ` best, and a few additions for each page of the set. Memory: some 25 bytes a value beside the sketches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_consumer.postings.scheme import mantissa
from clusterd_crawler.fingerprints import FINGERPRINT_BITS
from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.queries.addresses import address_bonus, page_name
from clusterd.queries.nearness import DEVIATIONS_OF_NAMESAKES, Match, Page, beyond_chance, is_chance

#: A shingle on more pages than this proposes nothing (paper, section 5.1: common shingles).
COMMON: Final = 1000
#: Candidates that are read in full for one query.
READ: Final = 32
#: Entries of the postings that one query reads, those of its shortest lists: of 50,000 pages thousands carry a value by
#: chance. The longest lists are those of the largest values, which hold most of the chance and half of the sample.
ROWS: Final = 100_000
#: Bit lengths that a fingerprint can have.
OCTAVES: Final = FINGERPRINT_BITS + 2

Values = npt.NDArray[np.uint64]
Weights = npt.NDArray[np.float64]
#: Places of pages in the set.
Owners = npt.NDArray[np.intp]


class Nearest:
    """A set of pages that are searched for the nearest to a query."""

    def __init__(self, pages: Sequence[Page], profile: Profile) -> None:
        self.pages = pages
        self._profile = profile
        self._cells = float(1 << mantissa(profile))
        self._sketches = [values(page.sketch) for page in pages]
        sizes = np.array([len(v) for v in self._sketches], np.int64)
        #: Octave → how many values each page has in it.
        self._octaves = np.zeros((OCTAVES, len(pages)), np.float32)
        for number, own in enumerate(self._sketches):
            self._octaves[:, number] = np.bincount(octave(own), minlength=OCTAVES)
        everything = np.concatenate([np.empty(0, np.uint64), *self._sketches])
        order = np.argsort(everything, kind="stable")
        self._owners = np.repeat(np.arange(len(pages), dtype=np.int32), sizes)[order]
        everything = everything[order]
        begins = np.flatnonzero(np.append(True, everything[1:] != everything[:-1])[: len(everything)])
        self._known = everything[begins]
        #: Where the owners of each known value begin; at last, where they end.
        self._starts = np.append(begins, len(everything)).astype(np.uint32)
        counts = np.diff(np.append(begins, len(everything)))
        self._counts = np.maximum(counts - self._chance_of_known(), 1.0).astype(np.float32)
        #: The weights of all pages' values, one page behind the other, and where those of each begin.
        self._weighed = np.empty(len(everything), np.float32)
        self._weighed[order] = np.repeat(1 / self._counts, counts)
        self._begins = np.cumsum(sizes) - sizes
        self._namesakes: dict[str, list[int]] = {}
        self._names = [page_name(page.url) for page in pages]
        for number, name in enumerate(self._names):
            self._namesakes.setdefault(name, []).append(number)

    def _chance_of_known(self) -> Weights:
        """Return on how many pages each known value is expected by chance."""
        ends = np.searchsorted(self._known, np.left_shift(np.uint64(1), np.arange(OCTAVES, dtype=np.uint64)))
        by_chance = self._octaves.sum(axis=1, dtype=np.float64) / self._cells
        return np.repeat(by_chance, np.diff(ends, prepend=0))

    def matches(
        self,
        query: Page,
        limit: int = 2,
        fits: Callable[[Match], bool] = lambda match: True,
        fitting: int | None = None,
        among: Owners | None = None,
    ) -> list[Match]:
        """Return the nearest pages that fit, best first; none where nothing is near.

        ``fitting``: about how many of the pages may fit, where not all do: so many have their chance. ``among``: the
        places in ``pages`` of those that are asked, where not all are.
        """
        own = values(query.sketch)
        if not len(own) or not len(self._known) or (among is not None and not len(among)):
            return []
        weights = self._weights(own)
        most = len(self.pages) if fitting is None else fitting
        found = self._read(query, own, weights, self._candidates(query, own, weights, among), most)
        found = sorted((match for match in found if match.near), key=partial(_rank, query.sketch.text))
        best: list[Match] = []
        for match in found:
            if len(best) < limit and fits(match):
                best.append(match)
        return best

    def _places(self, own: Values) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        at = np.minimum(np.searchsorted(self._known, own), len(self._known) - 1)
        return at, self._known[at] == own

    def _weights(self, own: Values) -> Weights:
        """Return w(x) of each value; one that no page of the set carries weighs 1."""
        at, there = self._places(own)
        weights = np.ones(len(own))
        weights[there] /= self._counts[at[there]]
        return weights

    def _candidates(self, query: Page, own: Values, weights: Weights, among: Owners | None) -> list[int]:
        """Return the pages that share more weight with the query than by chance, the most first, and its namesakes."""
        at, there = self._places(own)
        used = np.flatnonzero(there & (self._counts[at] <= COMMON))
        starts = self._starts[at].astype(np.int64)
        counts = self._starts[at + 1] - starts
        expected = np.ones(len(own), np.bool_)
        if counts[used].sum() > ROWS:
            shortest = used[np.argsort(counts[used], kind="stable")]
            used = shortest[np.cumsum(counts[shortest]) <= ROWS]
            expected[np.setdiff1d(shortest, used, assume_unique=True)] = False
        starts, counts = starts[used], counts[used]
        rows = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        carried = np.bincount(self._owners[rows], np.repeat(weights[used], counts), len(self.pages))
        by_chance = self._by_chance(own[expected], weights[expected]).astype(np.float32)
        some = np.flatnonzero(by_chance)
        shared = carried - np.einsum("i,ij->j", by_chance[some], self._octaves[some])  # no BLAS: its threads wait
        namesakes = self._namesakes.get(page_name(query.url), [])
        if among is not None:
            asked = set(among.tolist()) if namesakes else set()
            namesakes = [owner for owner in namesakes if owner in asked]
            shared = shared[among]
        if len(shared) > READ:
            least = np.partition(shared, len(shared) - READ)[len(shared) - READ]
            best = np.flatnonzero(shared >= least)
        else:
            best = np.arange(len(shared))
        best = best[np.argsort(-shared[best], kind="stable")][:READ]
        best = best[shared[best] > 0]
        chosen = dict.fromkeys((best if among is None else among[best]).tolist())
        chosen.update(dict.fromkeys(namesakes[:READ]))
        return list(chosen)

    def _by_chance(self, own: Values, weights: Weights) -> Weights:
        """Return, for one value of another page in each octave, the weight that it shares with the query by chance."""
        return np.bincount(octave(own), weights, OCTAVES) / self._cells

    def _read(self, query: Page, own: Values, weights: Weights, owners: Sequence[int], fitting: int) -> list[Match]:
        """Compare the query with some pages, all of them at once: the values of one behind those of the other."""
        if not owners:
            return []
        pages = [self.pages[owner] for owner in owners]
        known = last(query.sketch, self._profile)
        ends = np.array([min(known, last(page.sketch, self._profile)) for page in pages], np.uint64)
        theirs = np.concatenate([self._sketches[owner] for owner in owners])
        of_page = np.repeat(np.arange(len(owners)), [len(self._sketches[owner]) for owner in owners])
        seen = theirs <= ends[of_page]
        at = np.minimum(np.searchsorted(own, theirs), len(own) - 1)

        def added(numbers: Weights | npt.NDArray[np.bool_]) -> Weights:
            return np.bincount(of_page, numbers, len(owners)).astype(np.float64)

        sought = np.append(0.0, np.cumsum(weights))[np.searchsorted(own, ends, "right")]
        chances = self._chances(own, weights, owners, ends, sought, added(seen))
        common = seen & (own[at] == theirs)
        both = np.maximum(0.0, added(np.where(common, weights[at], 0.0)) - chances)
        unions = sought + added(np.where(seen, self._weights_of(owners), 0.0)) - both
        columns = added(common), both, unions, sought, chances
        figures = zip(*(column.tolist() for column in columns), strict=True)
        return [self._match(query, owner, fitting, *of) for owner, of in zip(owners, figures, strict=True)]

    def _weights_of(self, owners: Sequence[int]) -> Weights:
        """Return the weights of some pages' values, one page behind the other."""
        begins = [int(self._begins[owner]) for owner in owners]
        ends = [begin + len(self._sketches[owner]) for begin, owner in zip(begins, owners, strict=True)]
        return np.concatenate([self._weighed[begin:end] for begin, end in zip(begins, ends, strict=True)])

    def _chances(
        self, own: Values, weights: Weights, owners: Sequence[int], ends: Values, sought: Weights, theirs: Weights
    ) -> Weights:
        """Return the weight that each page shares with the query by chance, up to the value where each ends.

        ``sought``, ``theirs``: the query's weight and the page's number of values up to there. Octaves below the one of
        the end are whole; of that what lies up to the end meets in so many fewer cells.
        """
        octaves = self._octaves[:, list(owners)].astype(np.float64)
        chance = self._by_chance(own, weights)
        columns, tops = np.arange(len(owners)), np.minimum(octave(ends), OCTAVES)
        whole = _below(chance[:, None] * octaves)[tops, columns]
        begins = np.ldexp(1.0, np.maximum(tops - 1, 0))
        shares = np.minimum(1.0, np.maximum(0.0, ends - begins) / begins + 1 / self._cells)
        query_part = sought / self._cells - _below(chance[:, None])[tops, 0]
        page_part = theirs - _below(octaves)[tops, columns]
        return np.asarray(whole + np.maximum(0.0, query_part) * page_part / shares)

    def _match(
        self,
        query: Page,
        owner: int,
        fitting: int,
        common: float,
        both: float,
        union: float,
        sought: float,
        chance: float,
    ) -> Match:
        page = self.pages[owner]
        text = both / union if union else 0.0
        is_namesake = self._names[owner] == page_name(query.url)
        address = address_bonus(page.url, query.url) if is_namesake else 0.0
        doubt = beyond_chance(chance, 1, DEVIATIONS_OF_NAMESAKES) if address else beyond_chance(chance, fitting)
        by_chance = common * chance / (both + chance) if both else common  # in values, as chance is in weights
        stray = page.sketch.text != query.sketch.text and is_chance(common, by_chance, fitting)
        return Match(page, text, both, address, doubt, stray, both / sought if sought else 0.0)


def _below(numbers: Weights) -> Weights:
    """Return the sums of the rows before each row, and of all at last."""
    return np.concatenate([np.zeros((1, numbers.shape[1])), np.cumsum(numbers, axis=0)])


def _rank(text: int, match: Match) -> tuple[float, bool, str]:
    """Return what matches are sorted by, best first; of a book two sketches may be alike and the texts not."""
    return -match.score, match.page.sketch.text != text, match.page.url


def values(sketch: StreamSketch) -> Values:
    """Return the kept fingerprints of a sketch, ascending."""
    return np.frombuffer(sketch.values, "<u8")


def octave(numbers: Values) -> npt.NDArray[np.int64]:
    """Return the bit length of each value: values of one octave are cut to the same number of cells."""
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)


def last(sketch: StreamSketch, profile: Profile) -> int:
    """Return the value up to which a sketch knows what the document holds (of MIN_s; the other kinds sample evenly)."""
    if sketch.complete or profile.kind != "min" or not sketch.values:
        return 1 << 62
    return int.from_bytes(sketch.values[-8:], "little")
