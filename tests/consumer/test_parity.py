"""Two documents' parities tell in how many shingles they differ: without a lean, and far more exactly than samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusterd_consumer.parity import differing
from clusterd_consumer.postings import judging
from clusterd_consumer.postings import keys as posted
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_consumer.postings.stored import unpack
from clusterd_consumer.resemblance import Estimate, estimate, exact
from clusterd_crawler.sketch import (
    PARITY_BITS,
    PARITY_BYTES,
    TEXT,
    StreamSketch,
    cells_parity,
    sketch_text,
    sketch_values,
)

RUNS = 400


def sketched(values: np.typing.NDArray[np.uint64]) -> StreamSketch:
    every = np.unique(values)
    return sketch_values(every, TEXT, len(every) + 9, 7)


def pair(rng: np.random.Generator, common: int, only_a: int, only_b: int) -> tuple[StreamSketch, StreamSketch]:
    """Two documents with so many shingles in common, and of their own."""
    values = rng.integers(0, 2**40, common + only_a + only_b, np.uint64)
    return sketched(values[: common + only_a]), sketched(np.delete(values, slice(common, common + only_a)))


def errors(common: int, only_a: int, only_b: int) -> tuple[np.typing.NDArray[np.float64], ...]:
    """How far from the truth estimates are from the values alone, and with the parities."""
    rng = np.random.default_rng(common + only_a)
    truth = common / (common + only_a + only_b)
    told = []
    for _ in range(RUNS):
        a, b = pair(rng, common, only_a, only_b)
        by_values = estimate(replace(a, parity=b""), b, TEXT).resemblance
        told.append((by_values - truth, estimate(a, b, TEXT).resemblance - truth))
    return tuple(np.array(told).T)


@pytest.mark.parametrize(
    ("common", "only_a", "only_b", "of"),
    [(947, 53, 53, 0.22), (900, 100, 20, 0.5), (426, 24, 24, 0.2), (1900, 40, 40, 0.2), (7579, 421, 421, 0.65)],
    ids=["r .9", "one nearly within the other", "short", "r .96", "long"],
)
def test_near_one_parities_are_far_more_exact_than_values(common: int, only_a: int, only_b: int, of: float) -> None:
    by_values, by_both = errors(common, only_a, only_b)
    assert abs(by_both.mean()) < 4.5 * by_both.std() / np.sqrt(RUNS) + 0.0008
    assert by_both.std() < of * by_values.std()


@pytest.mark.parametrize(("common", "only_a", "only_b"), [(667, 333, 333), (700, 800, 800), (2000, 4000, 4000)])
def test_where_much_differs_parities_do_no_harm(common: int, only_a: int, only_b: int) -> None:
    by_values, by_both = errors(common, only_a, only_b)
    assert abs(by_both.mean()) < 0.006
    assert by_both.std() < 1.1 * by_values.std()


def test_a_verdict_on_two_stored_sketches_goes_by_their_parities() -> None:
    """Of pages of a thousand words some are changed; exact ratios tell how right both ways are."""
    rng = np.random.default_rng(3)
    far: list[tuple[float, float]] = []
    for _ in range(60):
        page = [f"w{n}" for n in rng.integers(0, 10**6, 1000)]
        other = list(page)
        for at in rng.integers(0, 1000, 5):
            other[at] = "another"
        truth = exact(page, other, TEXT.w).resemblance
        packed = [posted.prepare(sketch_text(" ".join(words), TEXT), TEXT, DEFAULT)[0] for words in (page, other)]
        found = judging.judge(packed[0], packed[1], mantissa(TEXT))
        assert judging.judge(packed[1], packed[0], mantissa(TEXT)) == found.turned()
        sampled = [replace(sketch_text(" ".join(words), TEXT), parity=b"") for words in (page, other)]
        alone = judging.judge(*(posted.prepare(one, TEXT, DEFAULT)[0] for one in sampled), mantissa(TEXT))
        far.append((alone.resemblance - truth, found.resemblance - truth))
    by_values, by_both = np.array(far).T.std(axis=1)
    assert by_both < 0.007 < 0.01 < by_values


def test_a_sketch_without_a_parity_is_judged_by_values() -> None:
    """As of a store that was begun before there were any."""
    a, b = pair(np.random.default_rng(1), 900, 50, 50)
    old = [replace(one, parity=b"") for one in (a, b)]
    stored = [posted.prepare(one, TEXT, DEFAULT)[0] for one in (*old, a, b)]
    alone = judging.judge(stored[0], stored[1], mantissa(TEXT))
    assert judging.judge(stored[0], stored[3], mantissa(TEXT)) == alone
    assert judging.judge(stored[2], stored[3], mantissa(TEXT)) != alone
    assert estimate(old[0], b, TEXT) == estimate(*old, TEXT)


@pytest.mark.parametrize(("common", "only_a", "only_b"), [(380, 10, 25), (395, 3, 8), (370, 20, 35)])
def test_a_document_kept_entire_and_a_longer_one_are_told_as_exactly(common: int, only_a: int, only_b: int) -> None:
    """Of two of which one is just short enough to be kept entire; both whole and as they are stored."""
    rng, truth, far = np.random.default_rng(common), common / (common + only_a + only_b), []
    for _ in range(RUNS // 4):
        a, b = pair(rng, common, only_a, only_b)
        assert (len(a.parity), len(b.parity)) == (0, PARITY_BITS // 8)
        packed = [posted.prepare(one, TEXT, DEFAULT)[0] for one in (a, b)]
        found = judging.judge(packed[0], packed[1], mantissa(TEXT))
        assert judging._verdict(*(unpack(one, mantissa(TEXT)) for one in packed), mantissa(TEXT)) == found
        far.append((estimate(a, b, TEXT).resemblance - truth, found.resemblance - truth))
    assert (np.array(far).std(axis=0) < 0.3 * np.sqrt(truth * (1 - truth) / 192)).all()


@pytest.mark.parametrize(("shingles", "longer"), [(300, 900), (450, 1350), (1000, 1700)])
def test_a_document_within_a_longer_one_is_told_to_be(shingles: int, longer: int) -> None:
    """No value of it is missed, and how the cells fell does not outweigh that; whole and as they are stored."""
    rng, told = np.random.default_rng(shingles), []
    for _ in range(RUNS // 4):
        a, b = pair(rng, shingles, 0, longer - shingles)
        packed = [posted.prepare(one, TEXT, DEFAULT)[0] for one in (a, b)]
        found = judging.judge(packed[0], packed[1], mantissa(TEXT))
        assert judging._verdict(*(unpack(one, mantissa(TEXT)) for one in packed), mantissa(TEXT)) == found
        told.append((estimate(a, b, TEXT).a_in_b, found.a_in_b))
    assert (np.array(told).mean(axis=0) > 0.999).all()


def test_of_documents_mostly_within_a_longer_one_as_many_are_found_as_by_values() -> None:
    rng, told = np.random.default_rng(5), []
    for _ in range(RUNS):
        a, b = pair(rng, 423, 27, 1152)
        told.append([estimate(replace(a, parity=kept), b, TEXT).a_in_b for kept in (b"", a.parity)])
    by_values, by_both = np.array(told).T
    assert abs(by_both.mean() - 0.94) < 0.006
    assert (by_both >= 0.9).sum() >= (by_values >= 0.9).sum()


def test_documents_of_one_sample_that_differ_elsewhere_are_not_equal() -> None:
    a = sketched(np.random.default_rng(1).integers(0, 2**40, 5000, np.uint64))
    cells = np.unpackbits(np.frombuffer(a.parity, np.uint8))
    cells[[3, 900]] ^= 1
    b = replace(a, parity=np.packbits(cells).tobytes())
    told = cells_parity(np.array([2, 9]))
    assert [differing(a.parity, one, told) for one in (a.parity, b.parity)] == [2, 4]
    assert [differing(a.parity, one, bytes(PARITY_BYTES)) for one in (a.parity, b.parity)] == [0, 2]
    assert estimate(a, a, TEXT) == Estimate(1, 1, 1)
    assert 0.999 < estimate(a, b, TEXT).resemblance < 1


def test_parities_that_are_full_say_nothing() -> None:
    """Two documents of which each has twenty times as many shingles of its own as there are cells."""
    a, b = pair(np.random.default_rng(2), 9000, 20 * PARITY_BITS, 20 * PARITY_BITS)
    assert estimate(a, b, TEXT) == pytest.approx(estimate(replace(a, parity=b""), b, TEXT), rel=1e-12)
