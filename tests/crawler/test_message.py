"""The wire contract: round trips, damage, newer versions, and the bytes as the module documents them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from clusterd_crawler.core import compiled
from clusterd_crawler.errors import MessageError, WrongInput
from clusterd_crawler.message import (
    LONGEST_URL,
    PARITY_BYTES,
    YEAR_1,
    YEAR_10000,
    Failure,
    File,
    Message,
    Redirect,
    SkipReport,
    _packed,
    decode,
    encode,
)
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.sketch import TEXT as PROFILE
from clusterd_crawler.sketch import Name, Sketch, StreamSketch, sketch_text
from hypothesis import given, settings
from hypothesis import strategies as st

U64 = st.integers(0, 2**64 - 1)
TIME = st.integers(YEAR_1, YEAR_10000 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@st.composite
def streams(draw: st.DrawFn) -> StreamSketch:
    values = sorted(draw(st.sets(st.integers(0, 2**40 - 1), max_size=30)))
    packed = np.array(values, dtype="<u8").tobytes()
    more = draw(st.integers(0, 10_000))
    parity = draw(st.binary(min_size=PARITY_BYTES, max_size=PARITY_BYTES)) if more and draw(st.booleans()) else b""
    return StreamSketch(packed, len(values) + more, draw(st.integers(0, 2**40)), draw(U64), parity)


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    main = draw(streams())
    kinds = st.sampled_from(("canonical", "shortlink", "og", "anchor"))
    names = draw(st.lists(st.builds(Name, kinds, U64), max_size=5))
    return Sketch(
        url=draw(TEXT),
        fetched_at=draw(TIME),
        profile=draw(st.sampled_from((1, 2, 3))),
        content=draw(U64),
        main=main,
        whole=draw(st.one_of(st.just(main), streams())),
        bag=draw(U64),
        unnumbered=draw(st.one_of(st.just(0), U64)),
        embedded=draw(st.one_of(st.just(0), U64)),
        status=draw(st.integers(0, 65535)),
        crawl=draw(TEXT),
        sweep=draw(TEXT),
        names=tuple(names),
        explored=draw(TEXT),
        instead_of=draw(TEXT),
        wants_verdict=draw(st.booleans()),
        purpose=draw(st.builds(Purpose, U64, U64, st.integers(0, 2**32 - 1))),
    )


MESSAGES = st.one_of(
    sketches(),
    st.builds(SkipReport, TEXT, TEXT, TEXT, TEXT, TIME, TEXT),
    st.builds(Failure, TEXT, TIME, st.integers(0, 65535), TEXT, TEXT),
    st.builds(Redirect, TEXT, TIME, TEXT, TEXT, TEXT, TEXT),
    st.builds(File, TEXT, TIME, U64, TEXT, TEXT, TEXT),
)

PAGE = Sketch(
    url="http://a.test/é",
    fetched_at=1_700_000_000_000,
    profile=1,
    content=7,
    main=StreamSketch(np.array([1, 2**40 - 1], dtype="<u8").tobytes(), 300, 309, 9, bytes(range(128))),
    whole=StreamSketch(b"", 0, 0, 0),
    bag=8,
    names=(Name("og", 5),),
    crawl="c",
)


@settings(deadline=None, max_examples=150)
@given(MESSAGES)
def test_a_message_comes_back_as_it_went(message: Message) -> None:
    assert decode(encode(message)) == message


@settings(deadline=None, max_examples=40)
@given(MESSAGES, st.data())
def test_a_damaged_message_is_refused_and_kept(message: Message, data: st.DataObject) -> None:
    raw = encode(message)
    cut = data.draw(st.integers(0, len(raw) - 1))
    flipped = bytearray(raw)
    flipped[cut] ^= data.draw(st.integers(1, 255))
    for damaged in (raw[:cut], bytes(flipped), raw + b"\0"):
        with pytest.raises(MessageError) as error:
            decode(damaged)
        assert error.value.raw == damaged


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
def test_a_body_of_any_bytes_is_refused_or_means_itself(body: bytes) -> None:
    """Even with a sound frame: what is read is what would be written, up to the width of its varints."""
    for kind in range(6):
        framed = bytes((0xC1, 1, kind)) + body
        framed += struct.pack("<I", zlib.crc32(framed))
        try:
            message = decode(framed)
        except MessageError:
            continue
        assert decode(encode(message)) == message


def test_what_follows_a_message_within_its_frame_is_refused() -> None:
    """It may be a field of a version to come: what is read without it would mean something else."""
    longer = encode(PAGE)[:-4] + b"x"
    with pytest.raises(MessageError, match="1 bytes too many"):
        decode(longer + struct.pack("<I", zlib.crc32(longer)))


def test_every_truncation_is_refused() -> None:
    raw = encode(PAGE)
    for size in range(len(raw)):
        with pytest.raises(MessageError):
            decode(raw[:size])


def test_more_shingles_than_there_are_fingerprints_are_refused() -> None:
    for shingles in (2**40, 2**40 + 1, 2**63):
        main = replace(PAGE.main, shingles=shingles)
        raw = encode(replace(PAGE, main=main, whole=main))
        if shingles > 2**40:
            with pytest.raises(MessageError, match=f"of {shingles} shingles"):
                decode(raw)
        else:
            assert decode(raw) == replace(PAGE, main=main, whole=main)


@pytest.mark.parametrize("at", [2**62, YEAR_10000, YEAR_1 - 1])
def test_a_time_that_nobody_can_write_is_refused(at: int) -> None:
    """One such skip, and `clusterd skips` listed none any more: "year 146140482 is out of range"."""
    for message in (SkipReport("http://h/", "r", "k", "http://h/a", at), Failure("http://h/", at)):
        with pytest.raises(MessageError, match=r"is no time"):
            decode(encode(message))


def test_a_url_that_a_store_has_no_room_for_is_refused() -> None:
    """Twelve are kept in a block: with nine of 2 MB others of the block were lost."""
    longest = Failure("http://h/".ljust(LONGEST_URL, "x"), 1)
    assert decode(encode(longest)) == longest
    with pytest.raises(MessageError, match="a URL of 262145 characters; 262144 are the most"):
        decode(encode(replace(longest, url=f"{longest.url}x")))


def test_a_newer_version_is_refused_by_name() -> None:
    raw = bytearray(encode(PAGE))
    raw[1] = 2
    with pytest.raises(MessageError, match="version 2; this clusterd reads version 1"):
        decode(bytes(raw))


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"{}", b"<html>", b"\x00" * 40])
def test_what_is_no_message_is_refused(raw: bytes) -> None:
    with pytest.raises(MessageError):
        decode(raw)


def framed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def test_the_bytes_are_those_of_the_documentation() -> None:
    """Written by hand from the module's docstring, as a reader in another language would."""
    numbers = (200, 1_700_000_000_000, 7, 8)
    head = struct.pack("<BBHqQQ", 1, 32, *numbers)
    texts = b"\x10http://a.test/\xc3\xa9" + b"\x01c" + b"\0" + b"\0" + b"\0"
    names = b"\x01" + b"\x03" + struct.pack("<Q", 5)
    values = b"\x02" + b"\x01\0\0\0\0" + b"\xff" * 5
    main, parity = b"\xac\x02" + b"\xb5\x02" + struct.pack("<Q", 9) + values, b"\x80\x01" + bytes(range(128))
    whole, none = b"\0" + b"\0" + struct.pack("<Q", 0) + b"\0", b"\0"
    assert encode(PAGE) == framed(b"\xc1\x01\x01" + head + texts + names + main + parity + whole + none)
    assert encode(replace(PAGE, whole=PAGE.main, wants_verdict=True))[4] == 35
    plain = b"\xc1\x01\x01" + struct.pack("<BBHqQQ", 1, 0, *numbers) + texts + names + main + whole
    assert decode(framed(plain)) == replace(PAGE, main=replace(PAGE.main, parity=b""))  # as before there were parities
    skip = b"\xc1\x01\x02" + struct.pack("<q", -1) + b"\x01u\x01r\x01k\x01w\x01c"
    assert encode(SkipReport("u", "r", "k", "w", -1, "c")) == framed(skip)
    failure = b"\xc1\x01\x03" + struct.pack("<qH", 5, 404) + b"\x01u\x01x\x01c"
    assert encode(Failure("u", 5, 404, "x", "c")) == framed(failure)


@pytest.mark.parametrize(
    "body",
    [
        b"\xc1\x01\x09",
        b"\xc1\x01\x01" + struct.pack("<BBHqQQ", 77, 0, 200, 0, 0, 0) + b"\0" * 40,
        b"\xc1\x01\x01" + struct.pack("<BBHqQQ", 1, 64, 200, 0, 0, 0) + b"\0" * 40,
        b"\xc1\x01\x03" + struct.pack("<qH", 5, 404) + b"\x01\xff\0\0",
        b"\xc1\x01\x03" + struct.pack("<qH", 5, 404) + b"\xff" * 11,
        b"\xc1\x01\x03" + struct.pack("<qH", 5, 404) + b"\xff\xff\xff\xff\x0f\0\0",
    ],
    ids=["kind", "profile", "flags", "not UTF-8", "long varint", "length beyond the end"],
)
def test_unknown_or_impossible_fields_are_refused(body: bytes) -> None:
    with pytest.raises(MessageError):
        decode(framed(body))


@pytest.mark.parametrize(
    ("part", "instead", "says"),
    [
        (b"\x01\x03" + struct.pack("<Q", 5), b"\x01\x09" + struct.pack("<Q", 5), "a name of the unknown kind 9"),
        (b"\x01\x03" + struct.pack("<Q", 5), b"\xff\x01", r"255 names in \d+ bytes"),
        (b"\x01\0\0\0\0" + b"\xff" * 5, b"\xff" * 5 + b"\x01\0\0\0\0", "the values of a sketch do not ascend"),
        (b"\x01\0\0\0\0" + b"\xff" * 5, b"\xff" * 10, "the values of a sketch do not ascend"),
        (b"\x10http", b"\xff" * 9 + b"\x02http", "a varint of more than 64 bits"),
        (b"\x10http", b"\xff" * 9 + b"\x01http", f"{2**64 - 1} bytes wanted where"),
    ],
)
def test_a_page_that_says_what_cannot_be_is_refused_by_name(part: bytes, instead: bytes, says: str) -> None:
    body = encode(PAGE)[:-4]
    assert body.count(part) == 1
    with pytest.raises(MessageError, match=says):
        decode(framed(body.replace(part, instead)))


@pytest.mark.parametrize("tokens", [-1, 2**64])
def test_a_number_that_has_no_bytes_is_not_written(tokens: int) -> None:
    with pytest.raises(WrongInput, match=f"{tokens} is not between 0 and 2"):
        encode(replace(PAGE, main=replace(PAGE.main, tokens=tokens)))


@pytest.mark.core
@given(sketches())
@settings(deadline=None)
def test_the_core_writes_what_the_fallback_writes(page: Sketch) -> None:
    assert compiled.CORE is not None
    for stream in (page.main, page.whole):
        assert compiled.CORE.pack(stream.values) == _packed(stream.values)


@pytest.mark.parametrize("with_core", [True, False])
@pytest.mark.parametrize("values", [[2, 1], [1, 1], [2**40]])
def test_values_that_do_not_ascend_or_are_too_wide_are_not_written(
    values: list[int], with_core: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_core:
        monkeypatch.setattr(compiled, "CORE", None)
    stream = StreamSketch(np.array(values, dtype="<u8").tobytes(), 9, 9, 1)
    with pytest.raises(WrongInput):
        encode(replace(PAGE, main=stream))


@pytest.mark.parametrize(("shingles", "parity"), [(9, bytes(127)), (9, bytes(129)), (2, bytes(128))])
def test_a_parity_of_another_length_or_of_a_document_kept_entire_is_not_written(shingles: int, parity: bytes) -> None:
    stream = StreamSketch(np.array([1, 2], dtype="<u8").tobytes(), shingles, 9, 1, parity)
    with pytest.raises(WrongInput, match="parity"):
        encode(replace(PAGE, main=stream))


def test_a_parity_of_another_length_is_refused() -> None:
    raw = encode(PAGE)
    at = raw.index(b"\x80\x01" + bytes(range(128)))
    with pytest.raises(MessageError, match="a parity of 127 bytes beside 2 values of 300 shingles"):
        decode(framed(raw[:at] + b"\x7f" + raw[at + 2 : -4]))


def test_a_url_that_is_not_unicode_is_refused_by_the_writer() -> None:
    with pytest.raises(WrongInput, match="cannot be written"):
        encode(replace(PAGE, url="http://a.test/\udcff"))


def test_a_default_page_stays_small() -> None:
    stream = sketch_text(" ".join(map(str, range(1000))), PROFILE)
    assert len(encode(replace(PAGE, main=stream, whole=stream))) < 1_200
