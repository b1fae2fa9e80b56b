from __future__ import annotations

import subprocess
import sys
import time
import unicodedata

import mmh3
import numpy as np
import pytest
from clusterd_crawler import sketch, token_classes
from clusterd_crawler.core import compiled
from clusterd_crawler.sketch import TEXT, Profile, bag_identity
from clusterd_crawler.token_hashes import hash_text
from clusterd_crawler.tokens import PIECE, composed, fold, folded_pieces, tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.hashed import hash_tokens, sketch_tokens, token_hash

EVERY = Profile(99, "every", 1, "mod", 1)

SCRIPTS = {
    "latin": "Ｆｕｌｌ width, naïve ﬁancée; STRASSE straße — “quotes”… ½ ² İstanbul",
    "greek": "Ελληνικά ΟΔΥΣΣΕΎΣ ὈΔΥΣΣΕΎΣ σοφός",
    "cyrillic": "Съешь же ещё этих мягких французских булок",
    "arabic": "اللغة العربية نَصٌّ مُشَكَّل می‌خواهم",
    "hebrew": "עברית שָׁלוֹם עולם",
    "devanagari": "हिन्दी में क्षत्रिय लिखना",
    "bengali": "বাংলা ভাষা কো",
    "tamil": "தமிழ் மொழி கொ",
    "thai": "ภาษาไทยไม่มีการเว้นวรรค น้ำ",
    "lao": "ພາສາລາວບໍ່ມີຊ່ອງຫວ່າງ",
    "khmer": "ភាសាខ្មែរមិនមានដកឃ្លា",
    "myanmar": "မြန်မာဘာသာစကား",
    "tibetan": "བོད་སྐད་ཡིག་",
    "han": "漢字仮名交じり文，简体中文",
    "kana": "ひらがなカタカナｶﾀｶﾅ パ゜ザ行々〆",
    "hangul": "한국어는 띄어쓰기가 ᄒᆞᆫ 가",
    "digits": "7 x7 7x ٣٤ १२ব ๔๕ 第４回 ³rd \u0301\u0663 a\u00ad9 \u00ad9 𝟞 ४\u0301 é9 _1",
    "emoji": "family 👨‍👩‍👧 ❤️ thumbs👍🏽up",
    "math": "𝐁𝐨𝐥𝐝 ℌ ™ ㍿ ㌀ ℃ x²",
    "joined": "soft\u00adhyphen zero\u200bwidth a\u034fb",
    "marks": "\u0301start e\u0301 q\u0323\u0307 漢\u0301字 가\u0301",
    "surrogates": "a\ud800b \udfff",
    "beyond": "\U00020000\U0002a6d6\U0001d400\U000e0041\U0010fffd",
}


def without_numbers(text: str) -> int:
    """The identity of the words that do not begin with a digit."""
    return bag_identity(hash_tokens([token for token in tokens(text) if unicodedata.category(token[0]) != "Nd"]))


def by_token(text: str, profile: Profile) -> sketch.StreamSketch:
    """The sketch from tokens that Python cut and hashed one by one."""
    return sketch_tokens(tokens(text), profile)


def both(text: str, profile: Profile = TEXT, *, marked: bool = False) -> tuple[sketch.Streams, sketch.Streams]:
    """The sketches by the compiled core, on older processors as on this one, and by NumPy."""
    made = sketch.sketch_streams(text, profile, marked=marked)
    if compiled.CORE is not None:
        was = compiled.CORE.set_modern(False)
        try:
            assert sketch.sketch_streams(text, profile, marked=marked) == made
        finally:
            assert not compiled.CORE.set_modern(was)
    return made, sketch._sketch_streams(text, profile, marked)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("To be, or NOT to be", ["to", "be", "or", "not", "to", "be"]),
        ("don't stop_it 3.14", ["don", "t", "stop_it", "3", "14"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("ｶﾞｷﾞ", ["ガ", "ギ"]),
        ("한국어 text", ["한", "국", "어", "text"]),
        ("น้ำ", ["น\u0e49\u0e4d", "\u0e32"]),
        ("ខ្មែរ", ["ខ\u17d2", "ម\u17c2", "រ"]),
        ("東京tower東", ["東", "京", "tower", "東"]),
        ("e\u0301té", ["été"]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("ﬁne Ⅷ ½", ["fine", "viii", "1", "2"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("", []),
        (" \n\0\1\2—", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize("script", SCRIPTS)
def test_core_and_fallback_agree_on_every_script(script: str) -> None:
    text = SCRIPTS[script]
    expected = {token_hash(token) >> 0 for token in tokens(text)}
    compiled_streams, fallback = both(text)
    assert compiled_streams == fallback
    assert compiled_streams.whole.tokens == len(tokens(text))
    assert len(expected) <= compiled_streams.whole.tokens
    assert compiled_streams.unnumbered == without_numbers(text)


@settings(deadline=None, max_examples=400)
@given(st.text())
def test_core_and_fallback_agree_on_any_text(text: str) -> None:
    for profile in (TEXT, EVERY):
        compiled_streams, fallback = both(text, profile)
        assert compiled_streams == fallback
        assert fallback.whole == by_token(text, profile)
        if unicodedata.unidata_version == "14.0.0":
            assert fallback.unnumbered == without_numbers(text)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([*"ab_12 <.\1\2\0\xadé漢한กa\u0e49\u0301\u200d", "\u1100\u1161", "word" * 20, "x" * 63]))
)
def test_core_and_fallback_agree_on_marked_text(parts: list[str]) -> None:
    for marked in (True, False):
        compiled_streams, fallback = both("".join(parts), EVERY, marked=marked)
        assert compiled_streams == fallback


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=600))
def test_core_and_fallback_agree_on_random_bytes(data: bytes) -> None:
    for text in (data.decode("latin-1"), data.decode("utf-8", "replace"), data.decode("utf-16-le", "replace")):
        compiled_streams, fallback = both(text, EVERY)
        assert compiled_streams == fallback


@pytest.mark.core
def test_core_and_fallback_agree_on_every_code_point() -> None:
    # Each between letters, so that what joins, splits or vanishes shows.
    for first in range(0, 0x110000, 0x400):
        text = "".join(f"a{chr(code)}b " for code in range(first, first + 0x400))
        compiled_streams, fallback = both(text, EVERY)
        assert compiled_streams == fallback, hex(first)
        assert fallback.whole == by_token(text, EVERY), hex(first)
        numbers = " ".join(f"{chr(code)}b" for code in range(first, first + 0x400))
        compiled_streams, fallback = both(numbers, EVERY)
        assert compiled_streams == fallback, hex(first)
        if unicodedata.unidata_version == "14.0.0":
            assert fallback.unnumbered == without_numbers(numbers), hex(first)


@pytest.mark.core
def test_core_refuses_no_bytes() -> None:
    assert compiled.CORE is not None
    rng = np.random.default_rng(5)
    for size in range(200):
        compiled.CORE.sketch(rng.bytes(size), True, True, 10, 0, 192, 400, 1600, True)


@pytest.mark.core
def test_tables_are_at_hand_once_a_text_has_had_them_made() -> None:
    script = """
from clusterd_crawler.core import compiled
from clusterd_crawler.sketch import TEXT, sketch_text
for text in ("caf\\u00e9", "\\u6f22\\u5b57", "\\U0001f600"):
    before = compiled.CORE.at_hand(text.encode())
    sketch_text(text, TEXT)
    assert (before, compiled.CORE.at_hand(text.encode() + b" and so on")) == (False, True), text
assert compiled.CORE.at_hand(b"") and compiled.CORE.at_hand(b"plain words" * 9)
assert not compiled.CORE.at_hand(b"cut off: \\xe6\\xbc") and not compiled.CORE.at_hand("\\u0416".encode())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.core
def test_what_is_no_table_is_told() -> None:
    script = """
from clusterd_crawler.core import compiled
compiled.CORE.set_fold(lambda first: b"too short")
try:
    compiled.CORE.sketch("caf\u00e9", False, False, 10, 0, 192, 400, 1600, True)
except ValueError as error:
    assert "fold_block" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_code_points_are_folded_alone_only_where_their_neighbours_do_not_matter() -> None:
    texts = "".join(chr(code) for code in range(0xA0, 0x30000) if compiled_entry(code))
    # Python folds the whole string; the core folds it point by point.
    assert composed(texts) == "".join(composed(character) for character in texts)


def compiled_entry(code: int) -> bool:
    from clusterd_crawler.tokens import _folded_entry

    return _folded_entry(code)[0] > 0


def test_a_tokens_hash_is_murmur() -> None:
    assert token_hash("rose") == mmh3.hash64(b"rose", signed=False)[0]


def test_classes_cover_what_unicode_calls_letters() -> None:
    table = token_classes.class_table()
    for code in range(0x80, 0x3000):
        if unicodedata.category(chr(code))[0] == "L" and unicodedata.unidata_version == "14.0.0":
            assert table[code] != token_classes.SEPARATOR or code in (0x115F, 0x1160), hex(code)


def test_fold_is_lower_case_for_ascii() -> None:
    assert fold("MiXed 123") == "mixed 123"


def test_long_text_is_folded_in_pieces_as_a_whole() -> None:
    text = "e\u0301 \u0301a\u0315\u0300\n\u0308\uff76\uff9e \u1100\u1161\u11a8 Straße\n" * 20_000
    assert len(text) > 3 * PIECE
    assert composed(text) == unicodedata.normalize("NFKC", text).casefold()
    assert len(list(folded_pieces(text.encode()))) > 3
    assert "".join(folded_pieces(text.encode())) == composed(text)


@pytest.mark.parametrize("pair", ["\u0301\u0323", "\uff9e\u0323", "\u0e39\u0e48"])
def test_a_page_of_nothing_but_marks_takes_a_moment(pair: str) -> None:
    """NFKC sorts marks in a row, in Python with the square of their number: 40 s for 80,000 of them."""
    text = "a" + pair * 500_000 + " ruhe"
    started = time.process_time()
    folded = composed(text)
    assert time.process_time() - started < 2
    assert fold(text) == folded.replace("\u034f", "")
    assert hash_text(text).tolist() == hash_tokens(tokens(text)).tolist()


@pytest.mark.parametrize("before", ["", "x" * 7, "x" * 31])
def test_as_many_marks_as_any_word_has_are_put_in_order(before: str) -> None:
    text = before + "a" + "\u0301\u0323" * 31 + "b " + "\u0915\u093e" * 100
    assert composed(text) == unicodedata.normalize("NFKC", text).casefold()
