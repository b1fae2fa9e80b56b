"""The compiled core and NumPy give the same bytes, keys and counts; what is stored says what the sketch said."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clusterd_consumer.core.compiled import CORE
from clusterd_consumer.postings import judging, stored
from clusterd_consumer.postings import keys as posted
from clusterd_consumer.postings.scheme import DEFAULT, Scheme, mantissa
from clusterd_consumer.resemblance import Estimate, estimate
from clusterd_crawler.sketch import COMPACT, PROFILES, SHORT, TEXT, Profile, StreamSketch, sketch_values
from hypothesis import given, settings
from hypothesis import strategies as st

V = Profile(code=9, name="v", w=10, kind="v", size=100)
MOD = Profile(code=8, name="mod", w=10, kind="mod", size=25)


def sketch(fingerprints: np.typing.NDArray[np.uint64], profile: Profile) -> StreamSketch:
    every = np.unique(fingerprints)
    return sketch_values(every, profile, len(every), 7)


def document(seed: int, size: int, shared: float = 0.0) -> np.typing.NDArray[np.uint64]:
    """Fingerprints of which the share ``shared`` is the same for every seed."""
    common = np.random.default_rng(0).integers(0, 2**40, int(size * shared), dtype=np.uint64)
    own = np.random.default_rng(seed).integers(0, 2**40, size - len(common), dtype=np.uint64)
    return np.concatenate([common, own])


@pytest.fixture
def pure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posted, "CORE", None)
    monkeypatch.setattr(judging, "CORE", None)


@pytest.mark.parametrize("profile", [TEXT, COMPACT, SHORT, V, MOD])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 399, 400, 401, 5000])
def test_stored_sketches_say_what_was_packed(profile: Profile, size: int) -> None:
    one = sketch(document(size + 1, size), profile)
    bits = mantissa(profile)
    packed, keys = posted.prepare(one, profile, DEFAULT)
    decoded = stored.unpack(packed, bits)
    assert decoded.codes.tolist() == stored.cut(stored.ordered(one, profile), bits).tolist()
    assert decoded.exact == (one.complete and size > 0)
    assert set(keys.tolist()) <= set(posted.every_key(stored.ordered(one, profile), profile, DEFAULT).tolist())
    if profile.code <= SHORT.code:
        assert posted.keys_of(packed, profile.code, DEFAULT).tolist() == keys.tolist()


@pytest.mark.core
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([TEXT, replace(TEXT, entire=0), COMPACT, SHORT, MOD]),
    st.lists(st.integers(0, 2**40 - 1), max_size=500),
    st.lists(st.integers(0, 2**40 - 1), max_size=500),
    st.integers(0, 500),
    st.sampled_from([Scheme(prefix=5, modulus=16), Scheme(candidates="super"), Scheme(candidates="super", run=7)]),
)
def test_compiled_and_numpy_agree(
    profile: Profile, left: list[int], right: list[int], shared: int, scheme: Scheme
) -> None:
    assert CORE is not None
    bits = mantissa(profile)
    a = sketch(np.array(left, np.uint64), profile)
    b = sketch(np.array(right + left[:shared], np.uint64), profile)
    made = [posted.prepare(one, profile, scheme) for one in (a, b)]
    judged = CORE.judge(made[0][0], [made[1][0]], bits)[0]
    core, posted.CORE = posted.CORE, None
    try:
        again = [posted.prepare(one, profile, scheme) for one in (a, b)]
        for packed, keys in made if profile.code in PROFILES else ():
            assert posted.keys_of(packed, profile.code, scheme).tolist() == keys.tolist()
    finally:
        posted.CORE = core
    for (stored_one, keys), (stored_two, keys_two) in zip(made, again, strict=True):
        assert stored_one == stored_two
        assert keys.tolist() == keys_two.tolist()
    counted = judging._count(stored.unpack(made[0][0], bits), stored.unpack(made[1][0], bits), bits)
    assert CORE.counts(made[0][0], [made[1][0]], bits) == [counted[:4]]
    assert Estimate(*judged) == judging._verdict(*(stored.unpack(one, bits) for one, _ in made), bits)


@pytest.mark.core
def test_values_of_damaged_bytes_are_the_same_without_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a code that no value has: one that stands for a number of thousands of bits."""
    bits = mantissa(TEXT)
    packed, _ = posted.prepare(sketch(document(1, 300), TEXT), TEXT, DEFAULT)
    damaged = packed[:4] + b"\xf1\xff\xff\x07" + packed[8:]
    compiled = [stored.values_of(one, bits) for one in (packed, damaged)]
    monkeypatch.setattr(stored, "CORE", None)
    assert [stored.values_of(one, bits) for one in (packed, damaged)] == compiled


@pytest.mark.core
def test_what_millions_of_values_share_by_chance_is_counted_in_full() -> None:
    """As of two documents of four million shingles each at 20 bits: 64 bits do not hold what that comes from."""
    assert CORE is not None
    bits, every = 26, np.arange(2**20, 2**21, 2, dtype=np.uint64)
    unrelated = np.append(every[:4000], every[4000:] + np.uint64(1))
    streams = [sketch(values, SHORT) for values in (every, unrelated)]
    (a, _), (b, _) = CORE.pack(streams, bits, True, SHORT.code, 0, 0, 0, 0)
    counted = judging._count(stored.unpack(a, bits), stored.unpack(b, bits), bits)
    assert counted[:3] == (2**19, 2**19, 4000)
    assert 0.004 < judging._conclude(counted, bits).a_in_b < 0.006  # not the 0.0076 that they share
    assert Estimate(*CORE.judge(a, [b], bits)[0]) == judging._conclude(counted, bits)


@pytest.mark.parametrize("core", [pytest.param(True, marks=pytest.mark.core), False], ids=["compiled", "numpy"])
def test_a_pair_is_judged_the_same_from_both_sides(core: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only one of the two was seen whole: few of its shingles, all among the smallest of the other's."""
    if not core:
        monkeypatch.setattr(judging, "CORE", None)
    bits, every = mantissa(COMPACT), np.sort(document(1, 5000))
    for part in (every[:3], every[:40], every[::50], every[1000:], document(2, 5000, shared=0.6)):
        a, b = (posted.prepare(sketch(values, COMPACT), COMPACT, DEFAULT)[0] for values in (part, every))
        one, other = judging.judge(a, b, bits), judging.judge(b, a, bits)
        assert one == Estimate(other.resemblance, other.b_in_a, other.a_in_b)
    a = posted.prepare(sketch(every[:3], COMPACT), COMPACT, DEFAULT)[0]
    assert judging.judge(a, b, bits).a_in_b == 1.0


def test_a_number_of_shingles_is_kept_to_a_part_in_eight_thousand() -> None:
    for exact in (1, 401, 4095, 4096, 5000, 8191, 8192, 123_457, 10**6, 10**9 + 7, 2**41 + 1):
        code = int(stored.cut(np.array([exact], np.uint64), stored.SIZE_BITS)[0])
        assert stored.size_of(code) == pytest.approx(exact, rel=2**-12)
        if exact > 400:
            packed, _ = posted.prepare(StreamSketch(bytes(range(8)), exact, exact + 9, 7), TEXT, DEFAULT)
            assert stored.unpack(packed, mantissa(TEXT)).shingles == stored.size_of(code)


@pytest.mark.parametrize("scheme", [DEFAULT, Scheme(candidates="super")])
def test_profiles_share_no_keys(scheme: Scheme) -> None:
    values = document(1, 300)
    keys = [set(posted.prepare(sketch(values, one), one, scheme)[1].tolist()) for one in (TEXT, SHORT, COMPACT, V, MOD)]
    assert all(keys)
    assert len(set.union(*keys)) == sum(map(len, keys))


@pytest.mark.core
@pytest.mark.parametrize(
    "values",
    [np.array([5, 2**39, 1, 2**38, 0], "<u8").tobytes(), np.array([1, 0], "<u8").tobytes(), bytes(9), bytes(7)],
)
def test_values_that_do_not_ascend_are_refused(values: bytes) -> None:
    assert CORE is not None
    with pytest.raises(ValueError, match="ascend"):
        CORE.pack([StreamSketch(values, 5, 14, 7)], 11, False, 1, 4, 8, 256, 64)


@pytest.mark.core
def test_a_value_that_comes_again_is_posted_once() -> None:
    assert CORE is not None
    values = np.array([7, 7, 7, 9 << 30, 9 << 30], "<u8").tobytes()
    ((_, keys),) = CORE.pack([StreamSketch(values, 5, 14, 7)], 11, False, 1, 4, 8, 256, 64)
    assert len(keys) == 4 * 2


@pytest.mark.core
@given(st.binary(max_size=200), st.integers(0, 20))
def test_bytes_that_are_no_sketch_are_refused_not_misread(data: bytes, bits: int) -> None:
    assert CORE is not None
    try:
        ((resemblance, a_in_b, b_in_a),) = CORE.judge(data, [data], bits)
    except ValueError:
        return
    assert resemblance in (0.0, 1.0)
    assert a_in_b == b_in_a


@pytest.mark.parametrize("profile", [TEXT, COMPACT])
@pytest.mark.parametrize("shared", [0.0, 0.2, 0.5, 0.67, 0.9, 0.97])
def test_cut_sketches_estimate_like_whole_ones(profile: Profile, shared: float) -> None:
    """Without bias, wherever in an octave a sketch ends: what agrees by chance is taken off, no more and no less."""
    errors = []
    for seed in range(200):
        a, b = (sketch(document(seed + 1 + side, 500 + 17 * seed, shared), profile) for side in (0, 1000))
        packed = [posted.prepare(one, profile, DEFAULT)[0] for one in (a, b)]
        cut = judging.judge(*packed, mantissa(profile)).resemblance
        errors.append(cut - estimate(a, b, profile).resemblance)
    assert abs(float(np.mean(errors))) < (0.0015 if shared else 0.006)  # none is below 0
    assert max(map(abs, errors)) < 0.04


@pytest.mark.parametrize("core", ["compiled", "numpy"])
def test_what_nothing_proposed_counts_beyond_chance_only(core: str, request: pytest.FixtureRequest) -> None:
    """Of 2,000 unrelated documents none; of those that carry all of a short one, or 40 of its 120 shingles, each."""
    if core == "numpy":
        request.getfixturevalue("pure")
    short, bits = document(1, 120), mantissa(TEXT)

    def packed(*parts: np.typing.NDArray[np.uint64]) -> bytes:
        return posted.prepare(sketch(np.concatenate(parts), TEXT), TEXT, DEFAULT)[0]

    unrelated = [packed(document(10 + n, (120, 500, 2000, 5000)[n % 4])) for n in range(2000)]
    whole = [packed(document(5000 + n, 1800), short) for n in range(20)]
    part = [packed(document(6000 + n, 300), short[:40]) for n in range(20)]
    phrase = packed(short[:4])
    assert all(one.a_in_b == 1 for one in judging.judge_unproposed(phrase, part, bits, 400))
    assert judging.judge_unproposed(phrase, unrelated, bits, 2000) == [judging.NOTHING] * 2000
    found = judging.judge_unproposed(packed(short), [*unrelated, *whole, *part], bits, 2040)
    assert found[:2000] == [judging.NOTHING] * 2000
    assert all(0.7 < one.a_in_b <= 1 for one in found[2000:2020])
    assert all(0.2 < one.a_in_b < 0.5 for one in found[2020:])
    by_chance = judging.judge_many(packed(short), unrelated, bits)
    assert sum(one.containment >= judging.PART for one in by_chance) > 50


@pytest.mark.parametrize("core", ["compiled", "numpy"])
def test_eight_values_of_a_chapter_in_a_book_are_no_chance(core: str, request: pytest.FixtureRequest) -> None:
    """Though one in four of an unrelated chapter's agrees with one of the book's 1,600, so close do these stand."""
    if core == "numpy":
        request.getfixturevalue("pure")
    book, bits = document(1, 300_000), mantissa(TEXT)

    def packed(fingerprints: np.typing.NDArray[np.uint64]) -> bytes:
        return posted.prepare(sketch(fingerprints, TEXT), TEXT, DEFAULT)[0]

    chapters = [packed(book[at : at + 1500]) for at in range(0, 300_000, 3000)]
    claimed = [one for one in judging.judge_many(packed(book), chapters, bits) if one.b_in_a]
    found = judging.judge_unproposed(packed(book), chapters, bits, 500)
    assert [one for one in found if one.b_in_a] == claimed
    assert len(claimed) > 40
    unrelated = [packed(document(10 + n, 1500)) for n in range(500)]
    assert judging.judge_unproposed(packed(book), unrelated, bits, 500) == [judging.NOTHING] * 500


@pytest.mark.usefixtures("pure")
def test_a_verdict_is_the_same_from_both_sides() -> None:
    a, b = (
        posted.prepare(sketch(document(side, size, 0.6), TEXT), TEXT, DEFAULT)[0]
        for side, size in ((1, 300), (2, 4000))
    )
    assert judging.judge(a, b, mantissa(TEXT)) == judging.judge(b, a, mantissa(TEXT)).turned()
    assert judging.judge(a, a, mantissa(TEXT)) == Estimate(1.0, 1.0, 1.0)


@pytest.mark.core
@pytest.mark.parametrize("profile", [TEXT, SHORT, V, MOD])
@pytest.mark.parametrize("size", [0, 1, 9, 400, 5000])
def test_values_are_unpacked_alike(profile: Profile, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, _ = posted.prepare(sketch(document(size + 1, size), profile), profile, DEFAULT)
    compiled = stored.values_of(packed, mantissa(profile))
    monkeypatch.setattr(stored, "CORE", None)
    assert stored.values_of(packed, mantissa(profile)) == compiled
    assert len(compiled) == 8 * stored.count_of(packed)


def test_restored_sketches_compare_as_they_did_before() -> None:
    made = [sketch(document(side, 1200, 0.8), TEXT) for side in (1, 2)]
    kept = [
        stored.Restored(posted.prepare(one, TEXT, DEFAULT)[0], TEXT, one.shingles, one.tokens, one.text) for one in made
    ]
    assert estimate(*kept, TEXT).resemblance == pytest.approx(estimate(*made, TEXT).resemblance, abs=0.02)
    assert estimate(kept[0], kept[0], TEXT).resemblance == 1.0
    assert [(one.complete, one.parity) for one in kept] == [(one.complete, one.parity) for one in made]


@pytest.mark.parametrize("scheme", [Scheme(), Scheme(candidates="super")])
def test_similar_documents_share_a_key(scheme: Scheme) -> None:
    missed = 0
    for seed in range(1, 100):
        a, b = (posted.prepare(sketch(document(seed + side, 1500, 0.95), TEXT), TEXT, scheme)[1] for side in (0, 1000))
        missed += not set(a.tolist()) & set(b.tolist())
    assert missed <= (0 if scheme.candidates == "prefix" else 5)


JUDGED = """
from clusterd_consumer.core import compiled
from clusterd_consumer.postings import keys as posted, judging
from clusterd_consumer.postings.scheme import DEFAULT, mantissa
from clusterd_crawler.core import compiled as crawler
from clusterd_crawler.sketch import TEXT, sketch_text
pages = [sketch_text(" ".join(f"w{n}" for n in range(first, first + 900)), TEXT) for first in (0, 300)]
one, two = (posted.prepare(page, TEXT, DEFAULT)[0] for page in pages)
print([core is None for core in (crawler.CORE, compiled.CORE, compiled.BUCKETS, compiled.REPLIES)])
print(one.hex(), two.hex(), judging.judge(one, two, mantissa(TEXT)))
"""


@pytest.mark.core
def test_without_the_cores_the_same_verdicts() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", JUDGED], env={**os.environ, **given}, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for given in ({}, {"CLUSTERD_PURE": "1"})
    ]
    assert [one[0] for one in answers] == [str([False] * 4), str([True] * 4)]
    assert answers[0][1] == answers[1][1]


def unrelated(pages: int) -> np.typing.NDArray[np.uint32]:
    """Return the keys of so many pages that share no shingle, each page's distinct."""
    dice = np.random.default_rng(1)
    found = []
    for _ in range(pages):
        values = np.cumsum(dice.exponential(2.0**40 / dice.integers(400, 6000), 400)).astype(np.uint64)
        page = StreamSketch(values.astype("<u8").tobytes(), 6000, 6009, 7)
        found.append(posted.prepare(page, TEXT, DEFAULT)[1])
    return np.concatenate(found)


def test_pages_that_share_nothing_are_hardly_ever_proposed_to_each_other() -> None:
    keys = unrelated(20_000)
    _, counts = np.unique(keys, return_counts=True)
    pairs = int((counts * (counts - 1) // 2).sum())
    assert len(keys) > 20_000 * 8
    assert pairs < 30  # of 200 million: so one in twenty million; a page among ten million is proposed half a one


@pytest.mark.core
@pytest.mark.parametrize(
    "core",
    [
        "crawler/clusterd_crawler/core/_core.c",
        "consumer/clusterd_consumer/core/_verify.c",
        "clusterd/clusterd/clusters/redis/_versions.c",
    ],
)
def test_a_core_that_takes_bytes_for_numbers_is_for_little_endian_machines(core: str) -> None:
    """On others NumPy takes its place: the core would write the bytes of its words in their order."""
    source = Path(__file__).parents[2] / core
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    flags = ["-fsyntax-only", "-std=c11", f"-I{sysconfig.get_paths()['include']}"]
    big = ["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"]
    subprocess.run([*compiler, *flags, str(source)], check=True)
    refused = subprocess.run([*compiler, *flags, *big, str(source)], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "for little-endian machines" in refused.stderr
