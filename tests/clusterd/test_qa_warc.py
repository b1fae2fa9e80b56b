"""WARC files that are broken: what is whole is taken, what is not is named, and nothing is lost in silence."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read


def record(url: str | None, body: bytes, kind: str = "response") -> bytes:
    target = f"WARC-Target-URI: {url}\r\n" if url else ""
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\n{target}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body + b"\r\n\r\n"


def answer(text: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>" + text.encode() + b"</body></html>"


WHOLE = [record(f"http://w.example/{n}", answer(f"page {n} " + "word " * 40)) for n in range(3)]


def taken(path: Path) -> tuple[list[str], list[str]]:
    items = list(read(str(path)))
    return [i.url for i in items if isinstance(i, RawPage)], [i.reason for i in items if isinstance(i, Broken)]


def test_a_record_without_an_address_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(WHOLE[0] + record(None, answer("x")) + record("http://w.example/b", b"") + WHOLE[1])
    urls, reasons = taken(file)
    assert urls == ["http://w.example/0", "http://w.example/1"]
    assert reasons == ["WARC-Target-URI is missing"]


@pytest.mark.parametrize("kind", ["plain", "gzip", "whole gzip", "zstd"])
def test_a_file_that_is_cut_short_says_so(tmp_path: Path, kind: str) -> None:
    whole = {
        "plain": b"".join(WHOLE),
        "gzip": b"".join(map(gzip.compress, WHOLE)),
        "whole gzip": gzip.compress(b"".join(WHOLE)),
        "zstd": b"".join(map(zstandard.compress, WHOLE)),
    }[kind]
    file = tmp_path / "a.warc"
    file.write_bytes(whole)
    assert taken(file) == ([f"http://w.example/{n}" for n in range(3)], [])
    file.write_bytes(whole[:-30])
    urls, reasons = taken(file)
    assert urls == ["http://w.example/0", "http://w.example/1"][: 1 if kind == "whole gzip" else 2]
    assert len(reasons) == 1
    assert "cut short" in reasons[0]


def test_zstandard_lines_that_are_cut_short_say_so(tmp_path: Path) -> None:
    frame = zstandard.compress(b'{"url": "http://j.example/", "text": "some words"}\n' * 50)
    file = tmp_path / "p.jsonl.zst"
    file.write_bytes(frame + frame)
    assert len(taken(file)[0]) == 100
    file.write_bytes(frame + frame[:-10])
    urls, reasons = taken(file)
    assert len(urls) >= 50
    assert "cut short" in reasons[-1]


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


def sent(body: bytes, *lines: str) -> bytes:
    """An HTTP answer of these header lines, as a record."""
    head = "\r\n".join(("HTTP/1.1 200 OK", *lines)).encode()
    return record("http://w.example/", head + b"\r\n\r\n" + body)


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


def test_a_damaged_body_costs_no_other_page(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(random.Random(5).randbytes(30_000).hex().encode()))
    packed[20_000:20_040] = bytes(40)
    file = tmp_path / "a.warc"
    file.write_bytes(sent(bytes(packed), "Content-Type: text/html", "Content-Encoding: gzip") + WHOLE[1])
    urls, reasons = taken(file)
    assert urls == ["http://w.example/1"]
    assert reasons[0].startswith("its content is no whole gzip")


def test_a_content_type_that_was_sent_twice_is_one(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(sent(b"<p>x", "Content-Type: text/html, text/html; charset=utf-8"))
    assert taken(file) == (["http://w.example/"], [])
