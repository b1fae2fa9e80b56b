from __future__ import annotations

import math

import numpy as np
import pytest
from clusterd_crawler.core import compiled
from clusterd_crawler.fingerprints import FINGERPRINT_BITS, MULTIPLIER, fingerprints
from clusterd_crawler.sketch import (
    COMPACT,
    EMPTY,
    PARITY_BITS,
    SHORT,
    TEXT,
    Profile,
    StreamSketch,
    bag_identity,
    modulus_exponent,
    parity_of,
    sample,
    sketch_hashes,
    sketch_text,
)
from clusterd_crawler.token_hashes import fmix64, hash_text
from clusterd_crawler.tokens import tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.hashed import hash_tokens, sketch_tokens, token_hash

V = Profile(90, "v", 10, "v", 50)
MOD = Profile(91, "mod", 10, "mod", 25)
MASK = (1 << 64) - 1


def values(sketch: StreamSketch) -> list[int]:
    return np.frombuffer(sketch.values, "<u8").tolist()


def words(count: int, seed: int = 0) -> list[str]:
    return [f"w{n}" for n in np.random.default_rng(seed).integers(0, 5000, count)]


def test_fingerprint_as_the_module_defines_it() -> None:
    sequence = ["a", "rose", "is", "a"]
    total = 0
    for token in sequence:
        total = (total * MULTIPLIER + token_hash(token)) & MASK
    for step in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        total = ((total ^ total >> 33) * step) & MASK
    total ^= total >> 33
    assert values(sketch_tokens(sequence, SHORT)) == [total >> 24]
    assert values(sketch_text("A rose is a", SHORT)) == [total >> 24]


def test_four_shingling_of_a_rose() -> None:
    # Broder et al., section 2: (a,rose,is,a), (rose,is,a,rose), (is,a,rose,is)
    sketch = sketch_text("a rose is a rose is a rose", SHORT)
    assert (sketch.shingles, sketch.tokens) == (3, 8)
    expected = [sketch_text(shingle, SHORT) for shingle in ("a rose is a", "rose is a rose", "is a rose is")]
    assert values(sketch) == sorted(values(one)[0] for one in expected)
    assert sketch.complete


def test_four_shingling_of_hamlet() -> None:
    # phpir: seven shingles, none twice
    sketch = sketch_text("to be or not to be, that is the question", SHORT)
    shingles = [
        "to be or not", "be or not to", "or not to be", "not to be that", "to be that is", "be that is the",
        "that is the question",
    ]  # fmt: skip
    assert values(sketch) == sorted(values(sketch_text(shingle, SHORT))[0] for shingle in shingles)


def test_min_s_of_a_union_from_the_two_min_s() -> None:
    # The seminar's example with {x, m, t, r} and {x, m, e, r}, and the same on fingerprints.
    least = Profile(92, "min3", 1, "min", 3)
    a, b = list("xmtr"), list("xmer")
    f_a, f_b = values(sketch_tokens(a, least)), values(sketch_tokens(b, least))
    assert sorted({*f_a, *f_b})[:3] == values(sketch_tokens(a + b, least))
    assert sorted(set(sorted("xmtr")[:3]) | set(sorted("xmer")[:3]))[:3] == ["e", "m", "r"]


@pytest.mark.parametrize(
    ("shingles", "kept"),
    [
        *((400, 400), (401, 192), (1929, 192), (1930, 193), (4000, 400)),
        *((25_663, 400), (25_664, 401), (64_000, 1000), (150_000, 1600)),
    ],
)
def test_a_book_keeps_more_than_a_page_and_a_short_page_all(shingles: int, kept: int) -> None:
    book = " ".join(map(str, range(shingles + 9)))
    sketch = sketch_text(book, TEXT)
    assert (sketch.shingles, len(values(sketch))) == (shingles, kept)
    assert sketch == sketch_hashes(hash_text(book), TEXT)


def test_the_parity_says_of_each_cell_whether_an_odd_number_of_shingles_lie_in_it() -> None:
    page = words(1500)
    told, held = sketch_tokens(page, TEXT).parity, [0] * PARITY_BITS
    for value in set(fingerprints(hash_tokens(page), TEXT.w).tolist()):
        held[value >> value.bit_length() - 11 & 1023] += 1
    assert [told[cell // 8] >> cell % 8 & 1 for cell in range(PARITY_BITS)] == [many % 2 for many in held]
    assert sketch_tokens(page[:400], TEXT).parity == sketch_tokens(page, MOD).parity == b""


def test_the_cell_of_a_fingerprint_is_the_ten_bits_below_its_highest_and_of_a_small_one_all_but_its_last() -> None:
    edges = [(1 << bits) + near for bits in range(1, FINGERPRINT_BITS) for near in (-1, 0, 1)] + [MASK >> 24]
    for value in {0, *range(5000), *edges}:
        cell = (value >> max(value.bit_length() - 11, 1)) & (PARITY_BITS - 1)
        assert int.from_bytes(parity_of(np.array([value], np.uint64)), "little") == 1 << cell


def test_v_of_the_next_modulus_from_v() -> None:
    for count in (120, 1000, 5000):
        distinct = np.unique(fingerprints(hash_tokens(words(count)), 10))
        v = sample(distinct, V)
        i = modulus_exponent(len(distinct), V.size)
        assert v.tolist() == [value for value in distinct.tolist() if value % 2**i == 0]
        after = [value for value in distinct.tolist() if value % 2 ** (i + 1) == 0]
        assert [value for value in v.tolist() if value % 2 ** (i + 1) == 0] == after


@pytest.mark.parametrize(("shingles", "exponent"), [(1, 0), (99, 0), (100, 1), (199, 1), (200, 2), (102400, 11)])
def test_the_modulus_of_v_keeps_one_to_two_times_its_size(shingles: int, exponent: int) -> None:
    assert modulus_exponent(shingles, 50) == exponent
    assert shingles / 2**exponent < 100


def test_mod_25_keeps_a_twenty_fifth() -> None:
    sketch = sketch_tokens([str(n) for n in range(50_000)], MOD)
    assert all(value % 25 == 0 for value in values(sketch))
    assert len(values(sketch)) == pytest.approx(2000, abs=5 * math.sqrt(2000))


def test_a_short_document_has_one_shingle_and_an_empty_one_none() -> None:
    assert sketch_text("just three words", TEXT).shingles == 1
    assert sketch_text("just three words", TEXT) != sketch_text("just three other", TEXT)
    assert sketch_text(" .. ", TEXT) == EMPTY


@pytest.mark.parametrize("profile", [TEXT, COMPACT, SHORT, V, MOD])
@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=300))
def test_compiled_and_numpy_sketch_alike(profile: Profile, sequence: list[str]) -> None:
    assert sketch_text(" ".join(sequence), profile) == sketch_tokens(sequence, profile)


def test_compiled_and_numpy_sketch_a_long_text_alike() -> None:
    sequence = words(60_000) + words(30_000)
    for profile in (TEXT, SHORT, V, MOD):
        assert sketch_text(" ".join(sequence), profile) == sketch_tokens(sequence, profile)


def test_values_that_fall_into_one_bucket_are_sorted() -> None:
    # One word repeated: every shingle is the same; then a document with few distinct shingles many times over.
    for sequence in (["x"] * 5000, ["x", "y"] * 5000, words(40) * 300):
        assert sketch_text(" ".join(sequence), TEXT) == sketch_tokens(sequence, TEXT)


def test_values_that_differ_in_their_last_bits_only_are_sorted() -> None:
    # Descending, of one shingle a word: more moves than the sort by insertion makes.
    found = fingerprints(hash_text(" ".join(map(str, range(1 << 18)))), 1)
    upper = (found >> np.uint64(FINGERPRINT_BITS - 16)).astype(np.int64)
    of_most = np.flatnonzero(upper == np.bincount(upper).argmax())
    sequence = [str(number) for number in of_most[np.argsort(found[of_most])[::-1]].tolist()]
    assert len(sequence) > 12
    profile = Profile(92, "words", 1, "min", 50)
    assert sketch_text(" ".join(sequence), profile) == sketch_tokens(sequence, profile)


@pytest.mark.parametrize("shingles", [99, 100, 101, 199, 200, 201])
def test_compiled_and_numpy_take_one_modulus_of_v(shingles: int) -> None:
    sequence = [str(number) for number in range(shingles + 9)]
    assert sketch_text(" ".join(sequence), V) == sketch_tokens(sequence, V)


@pytest.mark.core
@pytest.mark.parametrize(("w", "kind", "size"), [(0, 0, 9), (9, 0, 0), (9, -1, 9), (9, 3, 9)])
def test_what_is_no_profile_is_told(w: int, kind: int, size: int) -> None:
    assert compiled.CORE is not None
    with pytest.raises(ValueError, match="at least 1"):
        compiled.CORE.sketch("some text", False, False, w, kind, size, 0, 0, False)


def test_identities() -> None:
    one, other = sketch_text("alpha beta gamma", TEXT), sketch_text("gamma beta alpha", TEXT)
    assert one.text != other.text
    assert sketch_text("ALPHA,  beta gamma!", TEXT).text == one.text
    hashes = [hash_tokens(tokens(text)) for text in ("alpha beta gamma", "gamma beta alpha", "alpha beta gamma gamma")]
    bags = [bag_identity(sequence) for sequence in hashes]
    assert bags[0] == bags[1] != bags[2]


def test_the_text_identity_is_not_fooled_by_the_thue_morse_sequence() -> None:
    # Sums of powers modulo 2^64 are: two complementary Thue-Morse words of 2^11 letters have the same sum.
    bits = [bin(n).count("1") % 2 for n in range(2048)]
    one = sketch_tokens(["ab"[bit] for bit in bits], TEXT)
    assert one.text != sketch_tokens(["ba"[bit] for bit in bits], TEXT).text


def _shingle_values(count: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Fingerprints of the shingles of running text: neighbours share nine words of ten."""
    return np.unique(fingerprints(hash_tokens(words(count, seed)), 10))


def test_fingerprints_are_uniform() -> None:
    distinct = _shingle_values(200_000, 1)
    for bits in (distinct >> np.uint64(FINGERPRINT_BITS - 8), distinct & np.uint64(255), distinct % np.uint64(25)):
        counts = np.bincount(bits.astype(int))
        expected = len(distinct) / len(counts)
        chi2 = float(((counts - expected) ** 2 / expected).sum())
        freedom = len(counts) - 1
        assert abs(chi2 - freedom) < 5 * math.sqrt(2 * freedom)


def test_no_more_collisions_than_chance() -> None:
    made = fingerprints(hash_tokens([str(n) for n in range(1_000_000)]), 10)
    expected = len(made) ** 2 / 2 / 2**FINGERPRINT_BITS  # about half a pair
    assert len(made) - len(np.unique(made)) <= expected + 5 * math.sqrt(expected) + 1


def test_every_shingle_is_as_likely_the_least() -> None:
    # Min-wise independence: in documents that differ in one word, each of 20 positions holds the minimum as often.
    rng = np.random.default_rng(3)
    trials, positions = 6000, 20
    least = np.zeros(positions)
    for _ in range(trials):
        sequence = [f"{n}" for n in rng.integers(0, 2**40, positions + 9)]
        least[int(np.argmin(fingerprints(hash_tokens(sequence), 10)))] += 1
    chi2 = float(((least - trials / positions) ** 2 / (trials / positions)).sum())
    assert chi2 < (positions - 1) + 5 * math.sqrt(2 * (positions - 1))


def test_one_changed_bit_changes_half_of_the_fingerprint() -> None:
    rng = np.random.default_rng(4)
    sums = rng.integers(0, 2**63, 2000, dtype=np.uint64)
    for bit in range(64):
        changed = (fmix64(sums) ^ fmix64(sums ^ np.uint64(1 << bit))) >> np.uint64(24)
        flipped = np.unpackbits(changed.view(np.uint8)).sum() / (2000 * FINGERPRINT_BITS)
        assert 0.47 < flipped < 0.53
