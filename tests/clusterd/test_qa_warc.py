"""WARC files that are broken: what is whole is taken, what is not is named, and nothing is lost in silence."""

from __future__ import annotations

import gzip
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


def test_a_page_that_was_sent_with_zstandard_is_unpacked(tmp_path: Path) -> None:
    head, _, body = answer("page").partition(b"\r\n\r\n")
    sent = head + b"\r\nContent-Encoding: zstd\r\n\r\n" + zstandard.compress(body)
    file = tmp_path / "a.warc"
    file.write_bytes(record("http://w.example/", sent))
    (page,) = read(str(file))
    assert isinstance(page, RawPage)
    assert page.body == body
