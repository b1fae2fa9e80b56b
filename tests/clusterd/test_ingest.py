"""Ways in: every kind of file gives the pages that it holds, and what is broken is named and passed over."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import kind_of, read
from clusterd.ingest.sketching import Sketching
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.page import sketch_page, sketch_plain
from clusterd_crawler.sketch import TEXT

HTML = "<!DOCTYPE html><html><head><title>Größe</title></head><body><p>{} wide seas of words roll on</p></body></html>"


def rows(*given: object) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in given)


def pages_of(path: Path | str) -> list[RawPage]:
    return [item for item in read(str(path)) if isinstance(item, RawPage)]


def broken_of(path: Path | str) -> list[Broken]:
    return [item for item in read(str(path)) if isinstance(item, Broken)]


def write(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    return file


class TestJsonLines:
    def test_each_content_becomes_a_page(self, tmp_path: Path) -> None:
        file = write(
            tmp_path / "pages.jsonl",
            rows(
                {"url": "http://a/1", "html": "<p>x</p>", "fetched_at": "2026-01-31T12:00:00Z", "sweep": "one"},
                {"url": "http://a/2", "html_b64": base64.b64encode(b"\xff\xfe").decode(), "content_type": "text/html"},
                {"url": "http://a/3", "text": "plain", "fetched_at": "2026-01-31"},
            ),
        )
        html, raw, text = pages_of(file)
        assert (html.body, html.sweep, html.fetched_at) == (b"<p>x</p>", "one", 1769860800000)
        assert (raw.body, raw.fetched_at) == (b"\xff\xfe", None)
        assert (text.text, text.body, text.fetched_at) == ("plain", None, 1769817600000)

    def test_html_text_is_not_decoded_by_its_own_meta_charset(self, tmp_path: Path) -> None:
        page = '<html><head><meta charset="iso-8859-1"></head><body>Größe 寸法</body></html>'
        file = write(tmp_path / "p.jsonl", rows({"url": "http://a/", "html": page}))
        (sketch,) = Sketching(TEXT).sketches(read(str(file)))
        assert sketch.main == sketch_plain("http://a/", "Größe 寸法", fetched_at=0).main

    @pytest.mark.parametrize("end", [b"\n", b""])
    def test_a_line_too_long_to_be_held_is_named_and_the_others_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes
    ) -> None:
        first, last = rows({"url": "http://a/1", "text": "x"}), rows({"url": "http://a/2", "text": "y"})
        monkeypatch.setattr("clusterd.ingest.jsonl.LONGEST", len(first))
        monkeypatch.setattr("clusterd.ingest.jsonl.PORTION", 5)
        long = rows({"url": "http://a/long", "text": "z" * 100}).strip()
        file = write(tmp_path / "p.jsonl", first + long + b"\n" + last + long + end)
        assert [page.url for page in pages_of(file)] == ["http://a/1", "http://a/2"]
        assert [broken.where for broken in broken_of(file)] == [f"{file}:2", f"{file}:4"]
        assert f"longer than {len(first)} bytes" in broken_of(file)[0].reason

    @pytest.mark.parametrize("packed", [gzip.compress, zstandard.compress, bytes])
    def test_compression_is_told_by_content(self, tmp_path: Path, packed: type) -> None:
        file = write(tmp_path / "pages", packed(rows({"url": "http://a/", "text": "x"})))
        assert [page.url for page in pages_of(file)] == ["http://a/"]

    @pytest.mark.parametrize(
        ("row", "says"),
        [
            (b"{not json", "not JSON"),
            (b"[1]", "a JSON array"),
            (b"null", "a JSON null where an object"),
            (b'{"url": "http://a/"}', "no content"),
            (b'{"html": "x"}', "url is missing"),
            (b'{"url": 7, "html": "x"}', "url is not text"),
            (b'{"url": "http://a/", "html_b64": "?"}', "not base64"),
            (b'{"url": "http://a/", "text": "x", "fetched_at": "yesterday"}', "ISO 8601"),
            # In UTC it is in no year that has four digits: a message of it would be a dead letter.
            (b'{"url": "http://a/", "text": "x", "fetched_at": "0001-01-01T00:00:00+14:00"}', "ISO 8601"),
            (b'{"url": "http://a/", "text": "x", "status": "ok"}', "HTTP status"),
            (b'{"url": "http://a/", "text": ["x"]}', "text is not text"),
            (b'{"url": "http://a/", "text": "x", "content_type": 5}', "content_type is not text: '5'"),
            (b'{"url": "http://a/", "text": "x", "id": true}', "id is 'True'; it takes text or a whole number"),
            (b"\xff\xfe", "not JSON"),
        ],
    )
    def test_a_broken_row_is_named_and_the_next_is_read(self, tmp_path: Path, row: bytes, says: str) -> None:
        file = write(
            tmp_path / "p.jsonl", rows({"url": "http://a/1", "text": "x"}, row, {"url": "http://a/2", "text": "y"})
        )
        assert [page.url for page in pages_of(file)] == ["http://a/1", "http://a/2"]
        (broken,) = broken_of(file)
        assert broken.where == f"{file}:2"
        assert says in broken.reason

    def test_null_is_as_good_as_nothing(self, tmp_path: Path) -> None:
        """Tables that are written as JSON lines have every column in every row."""
        optional = dict.fromkeys(("id", "html", "html_b64", "content_type", "fetched_at", "sweep", "status"))
        (page,) = pages_of(write(tmp_path / "p.jsonl", rows({"url": "http://a/1", "text": "x", **optional})))
        assert (page.text, page.status) == ("x", 200)

    @pytest.mark.parametrize("first", [b"no JSON <p>", b"[1]", b"null", b"<html>"])
    def test_a_broken_first_line_does_not_make_a_file_another_kind(self, tmp_path: Path, first: bytes) -> None:
        file = write(tmp_path / "p.jsonl", first + b"\n" + rows({"url": "http://a/1", "html": "<p>one</p>"}))
        assert [page.url for page in pages_of(file)] == ["http://a/1"]
        assert [broken.where for broken in broken_of(file)] == [f"{file}:1"]

    def test_a_sweep_may_be_a_number(self, tmp_path: Path) -> None:
        file = write(tmp_path / "p.jsonl", rows({"url": "http://a/", "text": "x", "sweep": 2024}))
        assert [page.sweep for page in pages_of(file)] == ["2024"]

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
    def test_every_line_before_a_wrong_checksum_arrives(self, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
        packed = bytearray(pack(rows(*({"url": f"http://a/{n}", "html": uuid.uuid4().hex} for n in range(3_000)))))
        packed[-5 if pack is gzip.compress else -1] ^= 1
        file = write(tmp_path / "p.jsonl", bytes(packed))
        assert len(pages_of(file)) == 3_000
        (broken,) = broken_of(file)
        assert broken.ends
        assert broken.where == f"{file}:3001"
        assert broken.reason.startswith("the rest of the file cannot be read: ")
        at = int(re.findall(r"\(at byte (\d+) of what is packed\)", broken.reason)[0])
        assert len(packed) - 8 <= at <= len(packed)

    @pytest.mark.parametrize("small", [1, 300])
    def test_every_line_before_the_damage_in_a_gzip_arrives(self, tmp_path: Path, small: int) -> None:
        """As in one of several members: what came in one read with it was lost."""
        first, second = (rows(*({"url": f"http://a/{n}", "text": "x" * n} for n in range(small))) for _ in range(2))
        packed = bytearray(gzip.compress(second))
        packed[-5] ^= 1
        ahead = gzip.compress(first)
        file = write(tmp_path / "p.jsonl.gz", ahead + bytes(packed) + ahead)
        assert len(pages_of(file)) == 2 * small
        (broken,) = broken_of(file)
        assert f"(at byte {len(ahead + packed) - 5} of what is packed)" in broken.reason

    def test_a_json_array_is_refused_with_the_way_out(self, tmp_path: Path) -> None:
        file = write(tmp_path / "p.json", json.dumps([{"url": "http://a/1", "html": "<p>one</p>"}]).encode())
        with pytest.raises(WrongInput, match="one JSON array; JSON lines have one object a line"):
            kind_of(str(file))

    @pytest.mark.parametrize(
        ("behind", "why"), [(b"garbage", "cannot be read"), (bytes(600), ""), (b"\x1f", "cut short")]
    )
    def test_every_line_before_the_end_of_a_gzip_arrives(self, tmp_path: Path, behind: bytes, why: str) -> None:
        data = gzip.compress(rows(*({"url": f"http://a/{n}", "html": uuid.uuid4().hex} for n in range(3_000))))
        file = write(tmp_path / "p.jsonl.gz", data + behind)
        assert len(pages_of(file)) == 3_000
        assert [why in broken.reason for broken in broken_of(file)] == ([True] if why else [])
        cut = data[: len(data) // 2]
        whole_lines = zlib.decompressobj(31).decompress(cut).count(b"\n")
        assert len(pages_of(write(tmp_path / "cut.gz", cut))) == whole_lines

    def test_a_gzip_cut_short_gives_what_came_before(self, tmp_path: Path) -> None:
        lines = rows(*({"url": f"http://a/{n}", "text": str(n) * 50} for n in range(2000)))
        file = write(tmp_path / "p.jsonl.gz", gzip.compress(lines)[:-2000])
        assert len(pages_of(file)) > 100
        assert "the file is cut short" in broken_of(file)[-1].reason


def record(kind: str, url: str, block: bytes, media: str = "application/http; msgtype=response") -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
    head += f"WARC-Date: 2026-01-31T12:00:00Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {media}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(block), block)


def response(url: str, media: str, body: bytes, status: str = "200 OK") -> bytes:
    return record("response", url, f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\n\r\n".encode() + body)


def warc(packed: Callable[[bytes], bytes] = bytes) -> bytes:
    records = [
        record("warcinfo", "urn:x", b"software: test\r\n", "application/warc-fields"),
        response("http://a/1", "text/html; charset=latin-1", HTML.format("one").encode("latin-1")),
        response("http://a/logo.png", "image/png", b"\x89PNG"),
        response("http://a/moved", "text/html", b"gone", "301 Moved"),
        response("http://a/missing", "text/html", b"not here", "404 Not Found"),
        record("resource", "http://a/2", HTML.format("two").encode(), "text/html"),
    ]
    return b"".join(map(packed, records))


def with_dictionary(data: bytes) -> bytes:
    """How Zstandard WARC files carry a dictionary: a skippable frame that holds it, then frames that use it."""
    words = zstandard.train_dictionary(4096, [HTML.format(n).encode() * 3 + str(n * 7919).encode() for n in range(500)])
    packed = zstandard.compress(words.as_bytes())
    frames = zstandard.ZstdCompressor(dict_data=words)
    half = len(data) // 2
    return (
        b"\x5d\x2a\x4d\x18" + len(packed).to_bytes(4, "little") + packed
        + frames.compress(data[:half]) + frames.compress(data[half:])
    )  # fmt: skip


class TestWarc:
    @pytest.fixture(params=["plain", "gzip", "zstd", "zstd-dictionary"])
    def file(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        data = {
            "plain": warc,
            "gzip": lambda: warc(gzip.compress),
            "zstd": lambda: warc(zstandard.compress),
            "zstd-dictionary": lambda: with_dictionary(warc()),
        }[request.param]()
        return write(tmp_path / "crawl.warc", data)

    def test_pages_are_read_and_nothing_else(self, file: Path) -> None:
        first, second = pages_of(file)
        assert (first.url, second.url) == ("http://a/1", "http://a/2")
        assert first.fetched_at == 1769860800000
        assert first.body == HTML.format("one").encode("latin-1")
        assert broken_of(file) == []

    def test_the_server_s_charset_counts(self, file: Path) -> None:
        first, _ = Sketching(TEXT).sketches(read(str(file)))
        assert (
            first.main
            == sketch_page("http://a/1", HTML.format("one").encode(), "text/html; charset=utf-8", fetched_at=0).main
        )

    def test_a_file_cut_short_gives_what_came_before(self, file: Path, tmp_path: Path) -> None:
        cut = write(tmp_path / "cut.warc", file.read_bytes()[:-180])
        items = list(read(str(cut)))
        assert all(isinstance(item, RawPage | Broken) for item in items)
        assert len(items) <= 3

    def test_of_a_page_too_long_to_be_held_the_beginning_is_taken(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("clusterd.ingest.warc.MOST", 30)
        assert [page.body for page in pages_of(file)] == [HTML.encode()[:30], HTML.encode()[:30]]
        assert broken_of(file) == []

    @pytest.mark.parametrize("kind", ["warc", "jsonl"])
    def test_by_its_status_an_answer_is_a_page_as_it_is_to_a_crawl(self, tmp_path: Path, kind: str) -> None:
        statuses = (200, 203, 206, 301, 304, 404, 503)
        if kind == "warc":
            data = b"".join(response(f"http://a/{n}", "text/html", b"<p>one", f"{n} Said") for n in statuses)
        else:
            data = rows(*({"url": f"http://a/{n}", "html": "<p>one", "status": n} for n in statuses))
        made = Sketching(TEXT).sketches(read(str(write(tmp_path / f"p.{kind}", data))))
        assert [(one.url, one.status) for one in made] == [("http://a/200", 200), ("http://a/203", 203)]

    def test_noise_after_the_first_bytes_is_reported(self, tmp_path: Path) -> None:
        file = write(tmp_path / "noise.warc", b"WARC/1.1\r\n" + bytes(range(256)) * 20)
        assert pages_of(file) == []


class TestKinds:
    @pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n", b"a,b\n1,2\n", gzip.compress(b"plain words", mtime=0)])
    def test_an_unknown_kind_is_refused(self, tmp_path: Path, data: bytes) -> None:
        with pytest.raises(WrongInput, match=r"no known kind; ingest takes WARC"):
            kind_of(str(write(tmp_path / "thing.dat", data)))

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (gzip.compress(b"", mtime=0), "is empty"),
            (gzip.compress(b"<html>", mtime=0)[:10], "is packed, and broken: the file is cut short"),
            (
                gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20,
                "is packed, and broken: the rest of the file cannot be read",
            ),
            (zstandard.compress(b"<html>")[:7], "is packed, and broken: the file is cut short"),
        ],
    )
    def test_what_is_packed_and_broken_is_not_called_empty(self, tmp_path: Path, data: bytes, says: str) -> None:
        with pytest.raises(WrongInput, match=f"page.html.gz: {says}"):
            kind_of(str(write(tmp_path / "page.html.gz", data)))

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(WrongInput, match="No such file"):
            kind_of(str(tmp_path / "nothing.jsonl"))

    def test_an_empty_file_of_a_known_name_has_no_pages(self, tmp_path: Path) -> None:
        assert list(read(str(write(tmp_path / "none.jsonl", b"")))) == []


def test_what_comes_through_a_pipe_that_lives_is_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of ``tail -f crawl.jsonl | clusterd ingest -``: no page waits until a buffer is full."""
    reads, writes = os.pipe()
    row = json.dumps({"url": "http://h.example/", "text": "some words"}).encode() + b"\n"
    with os.fdopen(reads) as stdin, os.fdopen(writes, "wb", buffering=0) as crawl:
        monkeypatch.setattr("sys.stdin", stdin)
        found = read("-")
        for part in (row[:2], row[2:]):  # no writer has to think of what tells gzip from text
            crawl.write(part)
        assert isinstance(next(found), RawPage)
        crawl.write(row * 2)
        assert [type(next(found)), type(next(found))] == [RawPage, RawPage]
        crawl.close()
        assert list(found) == []
