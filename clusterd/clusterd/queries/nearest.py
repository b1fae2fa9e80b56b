"""The nearest of a set of pages, found by best match rather than by a threshold (paper, section 6.2: lost & found).

A fixed resemblance asks too much of a page that moved and was rewritten on the way: of 157 pages of a manual that moved
between two versions 59 pass r ≥ .5, and 156 are right by best match. What separates a rewritten page from an unrelated
one is not how much they share but *what*: a shingle that stands on every page of a site is its template. So pages are
ranked by a weighted resemblance over the sketches,

    score(A, B) = Σ w(x), x in A ∩ B  /  Σ w(x), x in A ∪ B        w(x) = 1 / number of the set's texts that carry x

read up to the lower end of the two sketches, as `clusterd_consumer.resemblance` does. How many carry it is told by
those whose sketches reach that far: else a long page would make of a template what few pages have. In a set of a dozen
pages a long template has the weight of many shingles all the same: what a page shares with all of them on the average
makes none of them near, unless it resembles the query by half, as versions of one page do.

An index stores values cut to `mantissa` bits an octave, so that different values agree by chance: what is expected of
it is taken off the counts and off what two pages share. That makes short pages match well under the default 10-word
profile too, because a short page's sketch leaves nothing out: of the 581 pages of a collection of 30–90 words that
moved, the best match is right for 98 % (by 4-word shingles: the same), so that no other profile need be chosen for
them.

What counts as near is in `nearness`, what the addresses of two pages add to their score in `addresses`.

Cost: building, a sort of the values of `PORTION` pages at a time; a query, the postings of its rare values, `ROWS` at
most, an exact reading of the `READ` best texts, and a few additions for each page of the set. Memory: 8 bytes a value
beside the sketches, and 24 for each different value. Of an index, which cuts them, that is some 80,000 of millions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from clusterd_consumer.postings.scheme import mantissa
from clusterd_crawler.fingerprints import FINGERPRINT_BITS
from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.queries.addresses import address_bonus, page_name, spots
from clusterd.queries.nearness import DEVIATIONS_OF_NAMESAKES, NEAR, SAME, Match, Page, beyond_chance, is_chance

#: A shingle on more pages than this proposes nothing (paper, section 5.1: common shingles).
COMMON: Final = 1000
#: Candidates of different texts that are read in full for one query, and of each text so many: of those under other
#: addresses each is as near as the next.
READ: Final = 32
COPIES: Final = 4
#: Entries of the postings that one query reads, those of its shortest lists: of 50,000 pages thousands carry a value by
#: chance. The longest lists are those of the largest values, which hold most of the chance and half of the sample.
ROWS: Final = 100_000
#: Bit lengths that a fingerprint can have.
OCTAVES: Final = FINGERPRINT_BITS + 2
#: Pages whose values are sorted at a time.
PORTION: Final = 512
#: What a sketch knows that leaves nothing out, and no place of a value among those that are known.
EVERYTHING: Final = 1 << 62
NOWHERE: Final = 0xFFFFFFFF

Values = npt.NDArray[np.uint64]
Weights = npt.NDArray[np.float64]
#: Places of pages in the set.
Owners = npt.NDArray[np.intp]
#: Places of values among those that are known of the set.
Ranks = npt.NDArray[np.uint32]


class Asked(NamedTuple):
    """A page that is asked for, and its values: where each is known of the set, whether it is, and w(x)."""

    page: Page
    own: Values
    at: npt.NDArray[np.intp]
    there: npt.NDArray[np.bool_]
    weights: Weights


class Shared(NamedTuple):
    """What a query and a page have in common, read up to the lower end of the two: values, all else in weights."""

    common: float
    both: float
    union: float
    #: What the query has up to there.
    sought: float
    #: What chance brings (taken off ``both``) and, unless the two are alike, the template of a small set.
    chance: float
    template: float


class Nearest:
    """A set of pages that are searched for the nearest to a query."""

    def __init__(self, pages: Sequence[Page], profile: Profile) -> None:
        self.pages = pages
        self._profile = profile
        self._cells = float(1 << mantissa(profile))
        #: Octave → how many values each page has in it.
        self._octaves = np.zeros((OCTAVES, len(pages)), np.float32)
        #: The value up to which each page's sketch knows what it holds, and where its values begin in `_ranks`.
        self._ends = np.full(len(pages), EVERYTHING, np.uint64)
        self._begins = np.zeros(len(pages) + 1, np.int64)
        #: The different values, ascending, and of each page, one behind the other, the places of its values there.
        self._known, self._ranks = self._ranked()
        counts = np.bincount(self._ranks, minlength=len(self._known))
        #: Where the owners of each known value begin; at last, where they end.
        self._starts = np.append(0, np.cumsum(counts)).astype(np.uint32)
        self._owners = self._by_value()
        #: Of each page the first one that has its text; of that all that have it, where these are several, by URL.
        firsts: dict[int, int] = {}
        self._first = np.array([firsts.setdefault(page.sketch.text, n) for n, page in enumerate(pages)], np.intp)
        self._copies: dict[int, list[int]] = {}
        for number in np.flatnonzero(self._first != np.arange(len(pages))).tolist():
            first = int(self._first[number])
            self._copies.setdefault(first, [first]).append(number)
        for copies in self._copies.values():
            copies.sort(key=lambda number: pages[number].url)
        #: On how many pages of different texts each known value is: what is there under thirty session ids is none of
        #: the template for that.
        different = self._first == np.arange(len(pages))
        self._others = max(1, np.count_nonzero(different) - 1)
        carried = np.maximum(self._carried(different) - self._chance_of_known(different), 1.0)
        self._counts = carried.astype(np.float32)
        self._weight_of = (1 / self._of_all(carried, different)).astype(np.float32)
        #: The pages of each name; of those of very many pages which of them differ in a part of their paths at most.
        self._namesakes: dict[str, list[int]] = {}
        self._in_place: dict[str, dict[int, list[int]]] = {}
        self._names = [page_name(page.url) for page in pages]
        for number, name in enumerate(self._names):
            self._namesakes.setdefault(name, []).append(number)

    def _ranked(self) -> tuple[Values, Ranks]:
        """Unpack the sketches; return the different values and the places of all."""
        parts: list[tuple[Values, Ranks]] = []
        for begin in range(0, len(self.pages), PORTION):
            several = [values(page.sketch) for page in self.pages[begin : begin + PORTION]]
            for number, own in enumerate(several, begin):
                self._begins[number + 1] = self._begins[number] + len(own)
                self._octaves[:, number] = np.bincount(octave(own), minlength=OCTAVES)
                self._ends[number] = last(self.pages[number].sketch, own, self._profile)
            different, inverse = np.unique(np.concatenate(several), return_inverse=True)
            parts.append((different, inverse.astype(np.uint32)))
        known = np.unique(np.concatenate([np.empty(0, np.uint64), *(different for different, _ in parts)]))
        ranks, end = np.empty(self._begins[-1], np.uint32), 0
        for different, places in _taken(parts):
            begin, end = end, end + len(places)
            ranks[begin:end] = np.searchsorted(known, different).astype(np.uint32)[places]
        return known, ranks

    def _by_value(self) -> npt.NDArray[np.int32]:
        """Return the owners of the first known value, those of the second and so on, each ascending."""
        owners, free = np.empty(len(self._ranks), np.int32), self._starts[:-1].astype(np.int64)
        for begin in range(0, len(self.pages), PORTION):
            end = min(begin + PORTION, len(self.pages))
            ranks = self._ranks[self._begins[begin] : self._begins[end]]
            order = np.argsort(ranks, kind="stable")
            counts = np.bincount(ranks, minlength=len(free))
            ahead = free - np.cumsum(counts) + counts
            sizes = np.diff(self._begins[begin : end + 1])
            places = np.arange(len(ranks)) + ahead[ranks[order]]
            owners[places] = np.repeat(np.arange(begin, end, dtype=np.int32), sizes)[order]
            free += counts
        return owners

    def _carried(self, pages: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return on how many of these pages each known value is."""
        counts = np.zeros(len(self._known), np.int64)
        for begin in range(0, len(self.pages), PORTION):
            bounds = self._begins[begin : begin + PORTION + 1]
            taken = np.repeat(pages[begin : begin + PORTION], np.diff(bounds))
            counts += np.bincount(self._ranks[bounds[0] : bounds[-1]][taken], minlength=len(counts))
        return counts

    def _chance_of_known(self, pages: npt.NDArray[np.bool_]) -> Weights:
        """Return on how many of these pages each known value is expected by chance."""
        ends = np.searchsorted(self._known, np.left_shift(np.uint64(1), np.arange(OCTAVES, dtype=np.uint64)))
        by_chance = self._octaves[:, pages].sum(axis=1, dtype=np.float64) / self._cells
        return np.repeat(by_chance, np.diff(ends, prepend=0))

    def _of_all(self, carried: Weights, pages: npt.NDArray[np.bool_]) -> Weights:
        """Return on how many of these pages each known value may be, given on how many it is seen.

        A long page's sketch ends before most of a template: whether it has the rest is told by pages that are seen so
        far, those beside the one that carries it.
        """
        ends = np.sort(self._ends[pages])
        seen = len(ends) - np.searchsorted(ends, self._known)
        return 1 + (carried - 1) * (len(ends) - 1) / np.maximum(seen - 1, 1)

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
        asked = self._asked(query, own)
        found = self._read(asked, self._candidates(asked, among), len(self.pages) if fitting is None else fitting)
        found = sorted((match for match in found if match.near), key=partial(_rank, query.sketch.text))
        best: list[Match] = []
        for match in found:
            if len(best) < limit and fits(match):
                best.append(match)
        return best

    def _asked(self, page: Page, own: Values) -> Asked:
        """Weigh a page's values; one that no page of the set carries weighs 1."""
        at = np.minimum(np.searchsorted(self._known, own), len(self._known) - 1)
        there = self._known[at] == own
        weights = np.ones(len(own))
        weights[there] = self._weight_of[at[there]]
        return Asked(page, own, at, there, weights)

    def _candidates(self, query: Asked, among: Owners | None) -> list[int]:
        """Return the pages that share more weight with the query than by chance, the most first, and its namesakes."""
        _, own, at, there, weights = query
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
        return self._most(shared, among, self._named(query.page.url))

    def _named(self, url: str) -> Iterable[int]:
        """Return the pages that have a URL's name; of very many those in its place first, of the rarest kinds."""
        name = page_name(url)
        namesakes = self._namesakes.get(name, [])
        if len(namesakes) <= READ:
            return namesakes
        if name not in self._in_place:
            known = self._in_place[name] = {}
            for number in namesakes:
                for place in spots(self.pages[number].url):
                    known.setdefault(place, []).append(number)
        kinds = [self._in_place[name].get(place, []) for place in spots(url)]
        return chain(*sorted(kinds, key=len), namesakes)

    def _most(self, shared: Weights, among: Owners | None, named: Iterable[int]) -> list[int]:
        """Return the pages that share the most, `COPIES` of each of `READ` texts, and `READ` of those of a name."""
        among = np.arange(len(self.pages)) if among is None else among
        asked, texts = np.zeros((2, len(self.pages)), np.bool_)
        asked[among] = texts[self._first[among]] = True
        best = np.flatnonzero(texts)
        if len(best) > READ:
            least = np.partition(shared[best], len(best) - READ)[len(best) - READ]
            best = best[shared[best] >= least]
        best = best[np.argsort(-shared[best], kind="stable")][:READ]
        chosen: list[int] = []
        for first in best[shared[best] > 0].tolist():
            chosen += islice((one for one in self._copies.get(first, [first]) if asked[one]), COPIES)
        chosen += islice((one for one in named if asked[one]), READ)
        return list(dict.fromkeys(chosen))

    def _by_chance(self, own: Values, weights: Weights) -> Weights:
        """Return, for one value of another page in each octave, the weight that it shares with the query by chance."""
        return np.bincount(octave(own), weights, OCTAVES) / self._cells

    def _read(self, query: Asked, owners: Sequence[int], fitting: int) -> list[Match]:
        """Compare the query with some pages, all of them at once: the values of one behind those of the other."""
        if not owners:
            return []
        page, own, at, there, weights = query
        ends = np.minimum(self._ends[owners], np.uint64(last(page.sketch, own, self._profile)))
        several = [self._ranks[self._begins[owner] : self._begins[owner + 1]] for owner in owners]
        theirs = np.concatenate(several)
        of_page = np.repeat(np.arange(len(owners)), [len(ranks) for ranks in several])
        seen = theirs < np.searchsorted(self._known, ends, "right")[of_page]
        sought_ranks = np.append(at[there], NOWHERE).astype(np.uint32)
        place = np.searchsorted(sought_ranks, theirs)

        def added(numbers: Weights | npt.NDArray[np.bool_]) -> Weights:
            return np.bincount(of_page, numbers, len(owners)).astype(np.float64)

        upto = np.searchsorted(own, ends, "right")
        sought = np.append(0.0, np.cumsum(weights))[upto]
        chances = self._chances(query, owners, ends, sought, added(seen))
        common = seen & (sought_ranks[place] == theirs)
        both = np.maximum(0.0, added(np.where(common, np.append(weights[there], 0.0)[place], 0.0)) - chances)
        unions = sought + added(np.where(seen, self._weight_of[theirs], 0.0)) - both
        alike = added(common) >= SAME * (upto + added(seen) - added(common))
        template = np.where(alike, 0.0, np.append(0.0, np.cumsum(1 - weights))[upto] / self._others)
        columns = added(common), both, unions, sought, chances, template
        figures = zip(*(column.tolist() for column in columns), strict=True)
        return [self._match(page, owner, fitting, Shared(*of)) for owner, of in zip(owners, figures, strict=True)]

    def _chances(self, query: Asked, owners: Sequence[int], ends: Values, sought: Weights, theirs: Weights) -> Weights:
        """Return the weight that each page shares with the query by chance, up to the value where each ends.

        ``sought``, ``theirs``: the query's weight and the page's number of values up to there. Octaves below the one of
        the end are whole; of that what lies up to the end meets in so many fewer cells.
        """
        octaves = self._octaves[:, list(owners)].astype(np.float64)
        chance = self._by_chance(query.own, query.weights)
        columns, tops = np.arange(len(owners)), np.minimum(octave(ends), OCTAVES)
        whole = _below(chance[:, None] * octaves)[tops, columns]
        begins = np.ldexp(1.0, np.maximum(tops - 1, 0))
        shares = np.minimum(1.0, np.maximum(0.0, ends - begins) / begins + 1 / self._cells)
        query_part = sought / self._cells - _below(chance[:, None])[tops, 0]
        page_part = theirs - _below(octaves)[tops, columns]
        return np.asarray(whole + np.maximum(0.0, query_part) * page_part / shares)

    def _match(self, query: Page, owner: int, fitting: int, shared: Shared) -> Match:
        common, both, union, sought, chance, template = shared
        page = self.pages[owner]
        is_namesake = self._names[owner] == page_name(query.url)
        address = address_bonus(page.url, query.url) if is_namesake else 0.0
        doubt = beyond_chance(chance, 1, DEVIATIONS_OF_NAMESAKES) if address else beyond_chance(chance, fitting)
        by_chance = common * chance / (both + chance) if both else common  # in values, as chance is in weights
        little = both - template < NEAR * union or is_chance(common, by_chance, fitting)
        stray = little and page.sketch.text != query.sketch.text
        return Match(page, both / union, both, address, doubt + template, stray, both / sought if sought else 0.0)


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


def last(sketch: StreamSketch, own: Values, profile: Profile) -> int:
    """Return the value up to which a sketch knows what the document holds (of MIN_s; the other kinds sample evenly).

    ``own``: its values.
    """
    if profile.kind != "min" or sketch.complete:
        return EVERYTHING
    return int(own[-1])


def _taken(parts: list[tuple[Values, Ranks]]) -> Iterator[tuple[Values, Ranks]]:
    """Yield the parts of a list, which lets go of each, so that it is freed as soon as it was used."""
    parts.reverse()
    while parts:
        yield parts.pop()
