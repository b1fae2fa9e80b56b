"""Pages in WARC files come as they were packed, and in chunks or taken out of these."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from clusterd.ingest.coding import decoded
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read

from tests.clusterd.warc_records import WHOLE, sent


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "zstd": zstandard.compress,
    "br": lambda data: pytest.importorskip("brotli").compress(data),
    "gzip, br": lambda data: pytest.importorskip("brotli").compress(gzip.compress(data)),
    "identity": bytes,
    "utf-8": bytes,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_page_is_unpacked_whatever_it_was_packed_with(tmp_path: Path, coding: str, chunked: bool) -> None:
    page = b"<html><body>" + b"page of words " * 900
    file = tmp_path / "a.warc"
    said = ["Content-Type: text/html", f"Content-Encoding: {coding}"] + ["Transfer-Encoding: chunked"] * chunked
    for body in (CODINGS[coding](page), page):  # the second: many an archive keeps the header and unpacks the body
        in_chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
        file.write_bytes(sent(in_chunks, *said) + WHOLE[1])
        (taken_page, other) = read(str(file))
        assert isinstance(taken_page, RawPage)
        assert taken_page.body == page
        assert isinstance(other, RawPage)


def test_a_coding_in_two_headers_is_one_in_a_list(tmp_path: Path) -> None:
    page = b"<html><body>" + b"page of words " * 900
    file = tmp_path / "a.warc"
    both = ("Content-Type: text/html", "Content-Encoding: gzip", "content-encoding: zstd")
    file.write_bytes(sent(zstandard.compress(gzip.compress(page)), *both))
    assert [item.body for item in read(str(file)) if isinstance(item, RawPage)] == [page]


def test_brotli_unpacks_no_more_at_a_time_than_a_page_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3 kB that a site had packed 8 GB of memory were taken."""
    packed = pytest.importorskip("brotli").compress(bytes(1 << 28), quality=1)
    monkeypatch.setattr("clusterd.ingest.coding.MOST", 1 << 20)
    tracemalloc.start()
    assert decoded(packed, "br") == bytes(1 << 20)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 23


def in_chunks(data: bytes, size: int = 30) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def body_of(tmp_path: Path, answered: bytes) -> bytes | None:
    """The body of the page in one record, after which another is read."""
    file = tmp_path / "a.warc"
    file.write_bytes(answered + WHOLE[1])
    page, other = read(str(file))
    assert isinstance(page, RawPage)
    assert isinstance(other, RawPage)
    return page.body


TEXT_LINE = "Content-Type: text/html"


CHUNKED = "Transfer-Encoding: chunked"


def test_chunks_end_with_the_empty_one_and_the_first_may_lack_its_end(tmp_path: Path) -> None:
    page = b"<p>wide seas of words roll on"
    first = b"%x\r\n%s" % (len(page), page)
    for answered in (first + b"\r\n0\r\n\r\n" + in_chunks(b"what another answered"), first, first + b"\r"):
        assert body_of(tmp_path, sent(answered, TEXT_LINE, CHUNKED)) == page


@pytest.mark.parametrize("cut", [0, 1, 3, 4, 20, 34, 35, 36])
def test_of_chunks_that_are_cut_short_what_came_before_is_taken(tmp_path: Path, cut: int) -> None:
    """The size of the last was taken for text where its end is missing; what was packed could not be unpacked then."""
    page = " ".join(f"word{n * 7919 % 1000}" for n in range(900)).encode()
    whole = 20 * 36 + cut  # a chunk has 4 bytes of size, 30 of text, 2 at its end
    body = body_of(tmp_path, sent(in_chunks(page)[:whole], TEXT_LINE, CHUNKED))
    assert body == page[: 600 + min(max(cut - 4, 0), 30)]
    packed = in_chunks(gzip.compress(page))[:whole]
    unpacked = body_of(tmp_path, sent(packed, TEXT_LINE, CHUNKED, "Content-Encoding: gzip"))
    assert unpacked
    assert page.startswith(unpacked)


def test_sizes_of_chunks_may_say_more_and_trailers_may_follow(tmp_path: Path) -> None:
    body = b"5;signature=ab\r\n<p>on\r\n003 \r\ne x\r\n0;last\r\nExpires: now\r\n\r\n"
    assert body_of(tmp_path, sent(body, TEXT_LINE, CHUNKED)) == b"<p>one x"


@pytest.mark.parametrize("text", [b"2026\nis a year", b"2026\r\nis a year" + b" " * 9000, b"0\r\nand one", b"words"])
def test_a_text_that_was_taken_out_of_its_chunks_stays(tmp_path: Path, text: bytes) -> None:
    assert body_of(tmp_path, sent(text, TEXT_LINE, CHUNKED)) == text


def test_what_was_packed_for_the_transfer_is_unpacked(tmp_path: Path) -> None:
    page = b"<html><body>" + b"page of words " * 90
    for lines, body in (("gzip, chunked", in_chunks(gzip.compress(page))), ("gzip", gzip.compress(page))):
        assert body_of(tmp_path, sent(body, TEXT_LINE, f"Transfer-Encoding: {lines}")) == page


@pytest.mark.parametrize("coding", ["gzip", "deflate", "Deflate", "zstd"])
def test_an_answer_of_nothing_that_was_packed_is_nothing(coding: str) -> None:
    assert decoded(CODINGS[coding](b""), coding) == b""


def test_a_page_in_brotli_names_what_would_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "brotli", None)  # as if it was not installed
    file = tmp_path / "a.warc"
    file.write_bytes(sent(b"packed", TEXT_LINE, "Content-Encoding: br") + WHOLE[1])
    broken, other = read(str(file))
    assert isinstance(broken, Broken)
    assert broken.reason == "its content is packed with brotli; pip install 'brotli>=1.2' to read it"
    assert isinstance(other, RawPage)
