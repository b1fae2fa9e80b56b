from __future__ import annotations

import math

import numpy as np
import pytest
from clusterd_consumer.resemblance import Estimate, estimate, exact, likeliest, ratios, read
from clusterd_crawler.sketch import (
    COMPACT,
    EMPTY,
    SHINGLES_PER_VALUE,
    SHORT,
    TEXT,
    Profile,
    StreamSketch,
    sample,
    sketch_text,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.hashed import sketch_tokens

V = Profile(90, "v", 10, "v", 20)
MOD = Profile(91, "mod", 10, "mod", 25)
MIN = Profile(93, "min", 10, "min", 20)
LONG = Profile(96, "long", 10, "min", 20, most=80)

A = ["a", "rose", "is", "a", "rose", "is", "a", "rose"]
B = ["a", "rose", "is", "a", "flower", "which", "is", "a", "rose"]


@pytest.mark.parametrize(("w", "resemblance"), [(1, 3 / 5), (2, 3 / 6), (3, 3 / 7)])
def test_the_seminars_roses(w: int, resemblance: float) -> None:
    # .6, .5 and .4285 for w = 1, 2, 3
    assert exact(A, B, w).resemblance == pytest.approx(resemblance)
    every = Profile(94, "every", w, "mod", 1)
    assert estimate(sketch_tokens(A, every), sketch_tokens(B, every), every) == exact(A, B, w)
    least = Profile(95, "least", w, "min", 50)
    assert estimate(sketch_tokens(A, least), sketch_tokens(B, least), least) == exact(A, B, w)


@pytest.mark.parametrize("profile", [TEXT, COMPACT, SHORT])
@settings(deadline=None, max_examples=100)
@given(a=st.lists(st.sampled_from("abcd"), max_size=60), b=st.lists(st.sampled_from("abcd"), max_size=60))
def test_complete_sketches_are_exact(profile: Profile, a: list[str], b: list[str]) -> None:
    found = estimate(sketch_tokens(a, profile), sketch_tokens(b, profile), profile)
    assert found == exact(a, b, profile.w)


def test_a_document_resembles_itself_and_nothing_resembles_an_empty_one() -> None:
    long = sketch_text(" ".join(map(str, range(5000))), TEXT)
    assert estimate(long, long, TEXT) == Estimate(1, 1, 1)
    assert estimate(EMPTY, long, TEXT) == estimate(EMPTY, EMPTY, TEXT) == Estimate(0, 0, 0)


def documents(
    rng: np.random.Generator, common: int, only_a: int, only_b: int, profile: Profile
) -> tuple[StreamSketch, StreamSketch]:
    """Two documents with so many shingles, under a random permutation."""
    values = rng.permutation(np.unique(rng.integers(0, 1 << 40, common + only_a + only_b + 9, dtype=np.uint64)))
    a = np.sort(values[: common + only_a])
    b = np.sort(np.concatenate([values[:common], values[common + only_a : common + only_a + only_b]]))
    return tuple(StreamSketch(sample(v, profile).astype("<u8").tobytes(), len(v), len(v) + 9, 1) for v in (a, b))


#: Common shingles, of A alone, of B alone: equal sizes, unequal ones, one sketch complete, one inside the other.
SIZES = [(300, 100, 100), (300, 100, 1000), (15, 2, 60), (900, 50, 50), (200, 0, 400), (100, 300, 300), (12, 8, 90)]
SIZES += [(700, 300, 4000), (3000, 300, 200)]


@pytest.mark.parametrize("profile", [MIN, LONG, V, MOD], ids=lambda profile: profile.name)
@pytest.mark.parametrize(("common", "only_a", "only_b"), SIZES)
def test_estimates_lean_by_less_than_a_tenth_of_a_value(
    profile: Profile, common: int, only_a: int, only_b: int
) -> None:
    rng = np.random.default_rng(abs(hash((profile.size, common, only_a, only_b))) % 1000)
    told: list[list[float]] = [[], [], []]
    for _ in range(1500):
        a, b = documents(rng, common, only_a, only_b, profile)
        if a.values and b.values:  # MOD_m keeps nothing of some short documents, and says nothing of them
            for column, value in zip(told, estimate(a, b, profile), strict=True):
                column.append(value)
    truth = [common / (common + only_a + only_b), common / (common + only_a), common / (common + only_b)]
    for i, column in enumerate(told):
        if i == 1 and _paucity(profile, common + only_a, common + only_b):
            continue  # the paper's "paucity of samples": below the threshold the small document may have no value
        assert abs(np.mean(column) - truth[i]) <= 4.5 * np.std(column) / math.sqrt(len(column)) + 0.1 / profile.size


def _paucity(profile: Profile, a: int, b: int) -> bool:
    """Whether A has so few values where both are known that none at all is likely now and then."""
    kept = max(profile.size, min(max(a, b) // SHINGLES_PER_VALUE, profile.most))
    return profile.kind != "mod" and kept * a / max(a, b) < 9


def test_reading_beyond_the_least_s_of_the_union_is_more_exact_than_the_papers_estimator() -> None:
    rng = np.random.default_rng(8)
    ours, papers = [], []
    for _ in range(1500):
        a, b = documents(rng, 300, 150, 150, MIN)
        ours.append(estimate(a, b, MIN).resemblance)
        f_a, f_b = (set(np.frombuffer(s.values, "<u8").tolist()) for s in (a, b))
        papers.append(len(set(sorted(f_a | f_b)[: MIN.size]) & f_a & f_b) / MIN.size)
    assert np.mean(papers) == pytest.approx(0.5, abs=0.015)
    assert np.var(ours) < 0.9 * np.var(papers)


def share_seen(a: StreamSketch, b: StreamSketch, profile: Profile) -> float:
    """What the paper takes for the resemblance: the share of the values read that are common."""
    seen = read(a, b, profile)
    return ratios(seen.common, seen.only_a, seen.only_b).resemblance


@pytest.mark.parametrize(("common", "only_a", "only_b"), [(900, 20, 80), (900, 50, 50), (600, 100, 300), (300, 0, 900)])
def test_knowing_the_sizes_lowers_the_error(common: int, only_a: int, only_b: int) -> None:
    profile = Profile(97, "min200", 10, "min", 200)
    truth = common / (common + only_a + only_b)
    rng = np.random.default_rng(common + only_a)
    pairs = [documents(rng, common, only_a, only_b, profile) for _ in range(1500)]
    plain = np.array([share_seen(a, b, profile) for a, b in pairs]) - truth
    likely = np.array([estimate(a, b, profile).resemblance for a, b in pairs]) - truth
    assert abs(np.mean(likely)) < 0.004
    # Equal sizes say nothing; a document within the other is known by its size alone.
    assert np.mean(likely**2) < np.mean(plain**2) * (1.05 if only_a == only_b else 0.9 if only_a else 0.01)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 400), st.integers(0, 400), st.integers(0, 400), st.integers(0, 9000), st.integers(0, 9000))
def test_the_likeliest_is_the_most_likely(x: int, p: int, q: int, more_a: int, more_b: int) -> None:
    a, b = x + p + more_a, x + q + more_b
    found = likeliest(x, p, q, a, b)

    def likelihood(common: float) -> float:
        shares = [(x, common), (p, a - common), (q, b - common)]
        if any(n and share <= 0 for n, share in shares):
            return -math.inf
        return sum(n * math.log(share / (a + b - common)) for n, share in shares if n)

    best = likelihood(found.a_in_b * a - 1e-9 * a)
    assert all(likelihood(min(a, b) * share / 50) <= best + 1e-4 for share in range(1, 51))
    assert found.resemblance <= min(a, b) / max(a, b) + 1e-9
    assert found.a_in_b * a == pytest.approx(found.b_in_a * b)


def test_the_likeliest_is_the_same_to_the_last_bit_from_either_side() -> None:
    """What agrees by chance is taken off in fractions, whose sums depend on their order."""
    dice = np.random.default_rng(1)
    for _ in range(200):
        x, p, q = dice.uniform(1, 200, 3)
        a, b = map(int, dice.integers(300, 5000, 2))
        assert likeliest(x, p, q, a, b) == likeliest(x, q, p, b, a).turned()


@pytest.mark.parametrize("profile", [TEXT, COMPACT, V, MOD])
def test_estimates_do_not_depend_on_the_order_of_the_pair(profile: Profile) -> None:
    a = sketch_tokens([str(n) for n in range(3000)], profile)
    b = sketch_tokens([str(n) for n in range(1000, 9000)], profile)
    kept_entire = sketch_tokens([str(n) for n in range(2960, 3020)], profile)
    for other in (b, kept_entire):
        assert estimate(a, other, profile) == estimate(other, a, profile).turned()
    one = estimate(a, b, profile)
    assert one.resemblance == pytest.approx(2 / 9, abs=0.15)
    assert one.a_in_b == pytest.approx(2 / 3, abs=0.3)
