"""The nearest of a set of pages, against the formula of the module's docstring, summed value by value."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain, count

import numpy as np
import pytest
from clusterd.queries.addresses import SAME_NAME, address_bonus
from clusterd.queries.nearest import COPIES, Nearest, values
from clusterd.queries.nearness import (
    DEVIATIONS_OF_NAMESAKES,
    NEAR,
    PLAIN,
    SAME,
    STRAY,
    TAKEN_IN,
    WHOLE,
    Match,
    Page,
    beyond_chance,
    is_chance,
)
from clusterd_consumer.postings.keys import prepare
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_consumer.postings.stored import Restored
from clusterd_crawler.sketch import COMPACT, EMPTY, SHORT, TEXT, Profile, StreamSketch, sample


def kept(page: Page) -> list[int]:
    return values(page.sketch).tolist()


def end(page: Page, profile: Profile) -> int:
    """The value up to which a sketch knows what its document holds."""
    return 1 << 62 if page.sketch.complete else kept(page)[-1]


def chance(weights: dict[int, float], theirs: Sequence[int], upto: int, cells: int) -> float:
    """The weight that a page shares by chance with a query: in each octave that of so many pairs in its cells."""
    there = Counter(value.bit_length() for value in theirs)
    found = 0.0
    for value, weight in weights.items():
        octave = value.bit_length()
        begin = 1 << (octave - 1)
        share = 1.0 if upto.bit_length() > octave else min(1.0, (upto - begin) / begin + 1 / cells)
        found += weight * there[octave] / cells / share
    return found


def weighed(pages: Sequence[Page], profile: Profile) -> dict[int, float]:
    """What each value of a set counts, by the texts that carry it beyond chance, of those that are seen so far."""
    cells = 1 << mantissa(profile)
    different = list({page.sketch.text: page for page in pages}.values())
    carried = Counter(chain(*map(kept, different)))
    octaves = Counter(value.bit_length() for page in different for value in kept(page))
    others, weight = len(different) - 1, {}
    for value, texts in carried.items():
        seen = sum(end(page, profile) >= value for page in different) - 1
        beside = max(0.0, texts - octaves[value.bit_length()] / cells - 1)
        weight[value] = 1 / (1 + (beside / seen * others if seen else beside * others))
    return weight


def compared(pages: Sequence[Page], query: Page, weight: dict[int, float], profile: Profile) -> list[Match]:
    """How near each page is to the query, the near ones in their order."""
    cells = 1 << mantissa(profile)
    others = max(1, len({page.sketch.text for page in pages}) - 1)
    found = []
    for page in pages:
        upto = min(end(query, profile), end(page, profile))
        asked = {value: weight.get(value, 1.0) for value in kept(query) if value <= upto}
        theirs = {value: weight[value] for value in kept(page) if value <= upto}
        common = asked.keys() & theirs.keys()
        by_chance = chance(asked, list(theirs), upto, cells)
        both = max(0.0, sum(asked[value] for value in common) - by_chance)
        union = sum(asked.values()) + sum(theirs.values()) - both
        address = address_bonus(page.url, query.url)
        doubt = beyond_chance(by_chance, *((1, DEVIATIONS_OF_NAMESAKES) if address else (len(pages),)))
        alike = len(common) >= SAME * len(asked.keys() | theirs.keys())
        template = 0.0 if alike else sum(1 - one for one in asked.values()) / others
        counted = len(common) * by_chance / (both + by_chance) if both else len(common)
        stray = both - template < NEAR * union or is_chance(len(common), counted, len(pages))
        stray = stray and page.sketch.text != query.sketch.text
        held = both / sum(asked.values()) if asked else 0.0
        found.append(Match(page, both / union, both, address, doubt + template, stray, held))
    near = [match for match in found if match.near]
    return sorted(near, key=lambda one: (-one.score, one.page.sketch.text != query.sketch.text, one.page.url))


class Site:
    """Pages made of a template, of passages that some share, and of what is their own, shorter and longer ones."""

    def __init__(self, seed: int, profile: Profile, restored: bool) -> None:
        self._dice = random.Random(seed)
        self._profile = profile
        self._restored = restored
        self._template = self._some(self._dice.choice((0, 5, 60)))
        self._passages = [self._some(size) for size in (1, 4, 15, 60, 150, 600)]

    def _some(self, count: int) -> set[int]:
        return set(self._dice.sample(range(1 << 40), count))

    def page(self, url: str) -> Page:
        text = self._template | self._some(self._dice.choice((0, 1, 8, 30, 150, 700)))
        for passage in self._dice.sample(self._passages, self._dice.randrange(1, 4)):
            text |= set(self._dice.sample(sorted(passage), self._dice.randrange(1, len(passage) + 1)))
        return Page(url, self._sketch(text))

    def _sketch(self, text: set[int]) -> StreamSketch:
        distinct = np.array(sorted(text), np.uint64)
        kept = sample(distinct, self._profile).astype("<u8").tobytes()
        made = StreamSketch(kept, len(text), len(text) + 9, hash(frozenset(text)) & 0xFFFFFFFF)
        if not self._restored:
            return made
        stored, _ = prepare(made, self._profile, DEFAULT)
        return Restored(stored, self._profile, made.shingles, made.tokens, made.text)


@pytest.mark.parametrize("profile", [TEXT, COMPACT, SHORT])
@pytest.mark.parametrize("restored", [False, True])
def test_the_nearest_are_those_of_the_formula(profile: Profile, restored: bool) -> None:
    for seed in range(5):
        site = Site(seed, profile, restored)
        pages = [site.page(f"http://a/new/{n % 7}/{n}") for n in range(12)]
        pages += [Page(f"http://a/copy/{n}", pages[n % 3].sketch) for n in range(4)]
        random.Random(seed).shuffle(pages)
        sweep, weight = Nearest(pages, profile), weighed(pages, profile)
        for query in [*(site.page(f"http://a/old/{n}/{n}") for n in range(4)), Page("http://a/0", pages[0].sketch)]:
            found = sweep.matches(query, limit=len(pages))
            expected = compared(pages, query, weight, profile)
            assert [one.page.url for one in found] == [one.page.url for one in expected]
            for one, other in zip(found, expected, strict=True):
                assert one.stray == other.stray
                figures = (one.text, one.shared, one.address, one.doubt, one.held)
                assert figures == pytest.approx(
                    (other.text, other.shared, other.address, other.doubt, other.held), 1e-4
                )


def test_of_many_copies_the_first_by_their_urls_are_taken() -> None:
    """Whatever the order in which a store lists the pages."""
    sketch = Site(0, TEXT, restored=False).page("http://a/").sketch
    numbers = random.Random(1).sample(range(10), 10)
    sweep = Nearest([Page(f"http://a/copy/{n}", sketch) for n in numbers], TEXT)
    found = sweep.matches(Page("http://a/gone", sketch), limit=10)
    assert [match.page.url for match in found] == [f"http://a/copy/{n}" for n in range(COPIES)]
    asked = np.array([place for place, n in enumerate(numbers) if n > 5])
    found = sweep.matches(Page("http://a/gone", sketch), among=asked)
    assert [match.page.url for match in found] == ["http://a/copy/6", "http://a/copy/7"]


def test_a_namesake_that_is_not_asked_is_no_match() -> None:
    site = Site(0, TEXT, restored=False)
    query = site.page("http://a/old/name")
    pages = [site.page("http://a/new/name"), Page("http://a/new/other", query.sketch)]
    sweep = Nearest(pages, TEXT)
    assert {match.page.url for match in sweep.matches(query)} == {page.url for page in pages}
    assert [match.page for match in sweep.matches(query, among=np.array([1]))] == [pages[1]]


@pytest.mark.parametrize("expected", [0.001, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("pages", [1, 100, 10_000])
def test_what_is_no_chance_is_so_by_poisson_s_distribution(pages: int, expected: float) -> None:
    """Chernoff's bound is not far off it."""

    def chances(shared: int) -> float:
        several = range(shared, shared + 300)
        return pages * sum(math.exp(n * math.log(expected) - expected - math.lgamma(n + 1)) for n in several)

    first = next(shared for shared in count() if not is_chance(shared, expected, pages))
    assert chances(first) <= STRAY < 15 * chances(first - 1)
    assert is_chance(0, 0, pages)
    assert not is_chance(1, 0, pages)


@pytest.mark.parametrize(
    ("text", "shared", "address", "doubt", "stray", "held", "near", "score"),
    [
        # By their texts: what is certain of what they share, and which share that is of both.
        *((NEAR, 4.0, 0.0, 1.0, True, 0.5, True, NEAR), (NEAR, 4.0, 0.0, 1.1, True, 0.5, False, NEAR)),
        *((0.04, 4.0, 0.0, 1.0, True, 0.5, False, 0.04), (0.01, 7.0, 0.0, 1.0, True, 0.5, True, 0.01)),
        *((0.01, 7.0, 0.0, 1.1, True, 0.5, False, 0.01), (0.009, 7.0, 0.0, 1.0, True, 0.5, False, 0.009)),
        *((PLAIN, 1.0, 0.0, 2.0, False, 0.5, True, PLAIN), (PLAIN, 1.0, 0.0, 2.0, True, 0.5, False, PLAIN)),
        (0.21, 1.0, 0.0, 2.0, False, 0.5, False, 0.21),
        # One holds the other.
        *((0.002, 4.0, 0.0, 1.0, True, WHOLE, True, TAKEN_IN), (0.002, 4.0, 0.0, 1.1, True, WHOLE, False, 0.002)),
        (0.6, 4.0, 0.0, 1.0, True, WHOLE, True, 0.6),
        # By their addresses: one name, and in one place.
        *((0.002, 0.6, SAME_NAME, 0.5, True, 0.1, True, 0.032), (0.002, 0.6, SAME_NAME, 0.6, True, 0.1, False, 0.032)),
        *((0.0, 0.5, SAME_NAME, 0.0, True, 0.1, False, 0.03), (0.0, 0.0, 0.05, 9.0, True, 0.0, True, 0.05)),
    ],
)
def test_what_counts_as_near(
    text: float, shared: float, address: float, doubt: float, stray: bool, held: float, near: bool, score: float
) -> None:
    match = Match(Page("http://a/", EMPTY), text, shared, address, doubt, stray, held)
    assert (match.near, match.score) == (near, pytest.approx(score))
