"""Revisit records of WARC files: the page that they refer to is another version, or another URL, of what was there."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import zstandard
from clusterd.cli.commands import run
from clusterd.ingest.beside import Beside
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.revisits import Revisits
from clusterd.ingest.sketching import Sketching
from clusterd.ingest.warc import originals
from clusterd_crawler.sketch import TEXT
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

PAGE = b"<html><head><link rel=canonical href=here></head><body>" + b"wide seas of words roll on " * 20
HTML = [("Content-Type", "text/html")]
FIRST, SECOND, THIRD = "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z", "2025-03-01T00:00:00Z"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


class Warc:
    """A WARC file that is written record by record."""

    def __init__(self, file: Path, packed: Callable[[bytes], bytes] = bytes) -> None:
        self._file = file
        self._packed = packed
        self._out = io.BytesIO()
        self._writer = WARCWriter(self._out, gzip=False, warc_version="1.1")

    def _write(self, record: Any) -> dict[str, str]:
        self._writer.write_record(record)
        record.raw_stream.close()
        return dict(record.rec_headers.headers)

    def answer(
        self, url: str, date: str, body: bytes = PAGE, headers: Any = HTML, status: str = "200 OK"
    ) -> dict[str, str]:
        http = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
        given = {"WARC-Date": date}
        record = self._writer.create_warc_record(
            url, "response", io.BytesIO(body), http_headers=http, warc_headers_dict=given
        )
        return self._write(record)

    def revisit(
        self, url: str, date: str, headers: Any = HTML, status: str = "200 OK", profile: str = "", **said: str
    ) -> dict[str, str]:
        """Say that a URL was answered as before; what names the answer: ``digest``, ``record``, ``uri`` and ``at``."""
        http = None if headers is None else StatusAndHeaders(status, headers, protocol="HTTP/1.1")
        refers = {"WARC-Refers-To": said.get("record"), "WARC-Refers-To-Target-URI": said.get("uri")}
        refers |= {"WARC-Refers-To-Date": said.get("at"), "WARC-Payload-Digest": said.get("digest")}
        record = self._writer.create_revisit_record(url, "unused", "", "", http, {"WARC-Date": date})
        for name, value in refers.items():
            record.rec_headers.remove_header(name)
            if value:
                record.rec_headers.add_header(name, value)
        if profile:
            record.rec_headers.replace_header("WARC-Profile", profile)
        return self._write(record)

    def done(self) -> Path:
        self._file.write_bytes(self._packed(self._out.getvalue()))
        return self._file


@pytest.fixture
def warc(tmp_path: Path) -> Warc:
    return Warc(tmp_path / "a.warc")


def brought(*files: Path) -> tuple[list[RawPage], Revisits]:
    """What a run of these files brings in beside what they hold themselves, and what it gave up."""
    revisits = Revisits([str(file) for file in files])
    for file in files:
        for item in read(str(file), revisits=revisits):
            assert isinstance(item, RawPage), item
    return list(originals(revisits)), revisits


def days(pages: list[RawPage]) -> list[tuple[str, int]]:
    return sorted((page.url, (page.fetched_at or 0) // 86_400_000 - 20089) for page in pages)


PACKED: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "whole": gzip.compress, "zstd": zstandard.compress}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("first", ["answers", "revisits"])
def test_a_revisit_is_the_page_whose_digest_it_has(tmp_path: Path, packed: str, first: str) -> None:
    old, new = (Warc(tmp_path / name, PACKED[packed]) for name in ("old.warc", "new.warc"))
    digest = old.answer("http://h/a", FIRST)["WARC-Payload-Digest"]
    old.answer("http://h/b", FIRST, b"other words")
    new.revisit("http://h/a", SECOND, digest=digest)
    new.revisit("http://h/copy", SECOND, digest=digest)
    files = [old.done(), new.done()]
    pages, revisits = brought(*(files if first == "answers" else files[::-1]))
    assert days(pages) == [("http://h/a", 31), ("http://h/copy", 31)]
    assert [page.body for page in pages] == [PAGE, PAGE]
    assert revisits.unresolved == 0
    assert [page.where for page in pages] == [f"{tmp_path}/new.warc record 1", f"{tmp_path}/new.warc record 2"]


def test_a_page_that_was_not_modified_is_named_by_url_and_date_or_by_its_record(warc: Warc) -> None:
    other = warc.answer("http://h/a", THIRD, b"words that came later")
    answer = warc.answer("http://h/a", FIRST.replace("Z", ".123456Z"))
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED, uri="http://h/a", at=FIRST)
    warc.revisit("http://h/a", THIRD, [], "304 Not Modified", NOT_MODIFIED, record=answer["WARC-Record-ID"])
    warc.revisit("http://h/b", THIRD, None, "", NOT_MODIFIED, record=other["WARC-Record-ID"])
    pages, revisits = brought(warc.done())
    assert [(page.body, page.status, page.content_type) for page in pages] == [
        (b"words that came later", 200, "text/html"),
        (PAGE, 200, "text/html"),
        (PAGE, 200, "text/html"),
    ]
    assert revisits.unresolved == 0


def test_a_page_behind_a_redirect_to_itself_is_the_one_that_was_not_modified(warc: Warc) -> None:
    """Both have the URL and, in seconds, the date that the revisit names."""
    warc.answer("http://h/a", FIRST, b"", [("Location", "http://h/a")], "302 Found")
    warc.answer("http://h/a", FIRST)
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED, uri="http://h/a", at=FIRST)
    assert [page.body for page in brought(warc.done())[0]] == [PAGE]


@pytest.mark.parametrize("beside", [None, Beside()])
def test_a_revisit_of_what_is_no_page_costs_no_other(warc: Warc, beside: Beside | None) -> None:
    warc.answer("http://h/a", FIRST)
    warc.revisit("http://h/to", SECOND, [("Location", "/a")], "302 Found", digest="sha1:X")
    warc.revisit("http://h/picture", SECOND, [("Content-Type", "image/png")], digest="sha1:X")
    warc.revisit("http://h/robots.txt", SECOND, None, digest="sha1:X")
    revisits = Revisits([str(warc.done())])
    items = list(read(revisits.files[0], revisits=revisits, beside=beside))
    redirects = [] if beside is None else ["http://h/to"]
    assert [item.url for item in items if not isinstance(item, Broken)] == ["http://h/a", *redirects]
    assert (len(items), revisits.held) == (1 + len(redirects), 0)


def test_files_are_not_read_again_for_revisits_that_name_nothing(warc: Warc, monkeypatch: pytest.MonkeyPatch) -> None:
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED)
    file = str(warc.done())
    revisits = Revisits([file])
    assert list(read(file, revisits=revisits)) == []
    monkeypatch.setattr(Path, "open", None)
    assert (list(originals(revisits)), revisits.unresolved) == ([], 1)


def test_a_file_that_is_gone_at_the_second_reading_costs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone, there = Warc(tmp_path / "gone.warc"), Warc(tmp_path / "there.warc")
    lost = gone.answer("http://h/a", FIRST, b"words that are gone")["WARC-Payload-Digest"]
    found = there.answer("http://h/b", FIRST)["WARC-Payload-Digest"]
    for url, digest in (("http://h/a", lost), ("http://h/b", found)):
        there.revisit(url, SECOND, digest=digest)
    files = [str(gone.done()), str(there.done())]
    revisits = Revisits(files)
    assert len([item for file in files for item in read(file, revisits=revisits)]) == 2
    os.unlink(files[0])
    assert [page.url for page in originals(revisits)] == ["http://h/b"]
    assert (revisits.unresolved, len(caplog.messages)) == (1, 1)
    assert f"{files[0]} cannot be read once more" in caplog.messages[0]


def test_a_revisit_of_a_revisit_is_the_page_at_their_end(warc: Warc) -> None:
    warc.revisit("http://h/a", THIRD, [], "304 Not Modified", NOT_MODIFIED, uri="http://h/a", at=SECOND)
    digest = warc.answer("http://h/b", FIRST)["WARC-Payload-Digest"]
    warc.revisit("http://h/a", SECOND, digest=digest)
    assert days(brought(warc.done())[0]) == [("http://h/a", 31), ("http://h/a", 59)]


def test_a_digest_counts_for_more_than_other_references(warc: Warc) -> None:
    wrong = warc.answer("http://h/a", FIRST, b"other words")["WARC-Record-ID"]
    digest = "sha1:" + "A" * 32
    warc.revisit("http://h/a", SECOND, digest=digest, record=wrong, uri="http://h/a", at=FIRST)
    pages, revisits = brought(warc.done())
    assert (pages, revisits.unresolved) == ([], 1)


def test_not_modified_without_a_payload_is_no_empty_page(warc: Warc) -> None:
    empty = warc.answer("http://h/empty", FIRST, b"")["WARC-Payload-Digest"]
    said = {"uri": "http://h/a", "at": FIRST, "digest": empty}
    warc.answer("http://h/a", FIRST)
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED, **said)
    assert [page.body for page in brought(warc.done())[0]] == [PAGE]


def test_what_is_no_page_is_none_when_it_comes_again_and_is_not_told_as_missing(warc: Warc) -> None:
    image = warc.answer("http://h/i.png", FIRST, b"\x89PNG", [("Content-Type", "image/png")])
    for status in ("200 OK", "304 Not Modified"):
        warc.revisit("http://h/i.png", SECOND, [], status, record=image["WARC-Record-ID"])
    warc.revisit("http://h/j.png", SECOND, [("Content-Type", "image/png")], digest="sha1:X")
    warc.revisit("http://h/gone", SECOND, HTML, "404 Not Found", digest="sha1:Y")
    pages, revisits = brought(warc.done())
    assert (pages, revisits.unresolved) == ([], 0)


def test_what_says_where_robots_may_go_is_no_page_nor_when_it_comes_again(warc: Warc) -> None:
    plain = [("Content-Type", "text/plain")]
    robots = warc.answer("https://h.example/robots.txt", FIRST, b"User-agent: *\nDisallow:\n", plain)
    warc.revisit("https://h.example/robots.txt", SECOND, plain, digest=robots["WARC-Payload-Digest"])
    warc.revisit("https://h.example/robots.txt", THIRD, [], "304 Not Modified", NOT_MODIFIED)
    warc.answer("https://h.example/docs/robots.txt", THIRD, b"What a robots.txt is for", plain)
    file = warc.done()
    assert [item.url for item in read(str(file)) if isinstance(item, RawPage)] == ["https://h.example/docs/robots.txt"]
    pages, revisits = brought(file)
    assert (pages, revisits.unresolved) == ([], 0)


def test_a_revisit_has_its_own_content_type_and_the_codings_of_the_answer(warc: Warc) -> None:
    coded = [*HTML, ("Content-Encoding", "gzip")]
    digest = warc.answer("http://h/a", FIRST, gzip.compress(PAGE), coded)["WARC-Payload-Digest"]
    warc.revisit("http://h/b", SECOND, [("Content-Type", "text/html; charset=latin-1")], digest=digest)
    warc.revisit("http://h/c", SECOND, None, digest=digest)
    pages, _ = brought(warc.done())
    assert [(p.body, p.content_type) for p in pages] == [(PAGE, "text/html; charset=latin-1"), (PAGE, "text/html")]


def test_what_a_page_calls_itself_is_relative_to_the_url_of_the_revisit(warc: Warc) -> None:
    digest = warc.answer("http://h/a/x", FIRST)["WARC-Payload-Digest"]
    warc.revisit("http://h/b/x", FIRST, digest=digest)
    file = str(warc.done())
    revisits = Revisits([file])
    first, other = Sketching(TEXT).sketches([*read(file, revisits=revisits), *originals(revisits)])
    assert (first.main, first.content) == (other.main, other.content)
    assert first.names != other.names


def test_what_is_in_none_of_the_files_is_counted(warc: Warc) -> None:
    warc.answer("http://h/a", FIRST)
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED)  # names nothing
    warc.revisit("http://h/a", SECOND, [], "304 Not Modified", NOT_MODIFIED, uri="http://h/a", at=THIRD)
    warc.revisit("http://h/b", SECOND, digest="sha1:Z")
    pages, revisits = brought(warc.done())
    assert (pages, revisits.unresolved, revisits.held) == ([], 3, 0)


def test_few_wait_at_a_time_and_all_are_found(warc: Warc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.ingest.revisits.HELD", 3)
    monkeypatch.setattr(Revisits, "add", bounded(Revisits.add))
    digest = ""
    for n in range(8):
        digest = digest or warc.answer("http://h/a", FIRST)["WARC-Payload-Digest"]
        warc.revisit(f"http://h/{n}", SECOND, digest=digest)
        warc.revisit(f"http://h/none/{n}", SECOND, digest=f"sha1:{n}")
    file = warc.done()
    revisits = Revisits([str(file)])
    pages = [item for item in read(str(file), revisits=revisits) if isinstance(item, RawPage)]
    pages += originals(revisits)
    assert sorted(page.url for page in pages) == sorted(["http://h/a", *(f"http://h/{n}" for n in range(8))])
    assert revisits.unresolved == 8


def bounded(add: Callable[[Revisits, Any], None]) -> Callable[[Revisits, Any], None]:
    def checked(self: Revisits, revisit: Any) -> None:
        add(self, revisit)
        assert self.held <= 3

    return checked


def test_many_revisits_of_one_page_are_found(warc: Warc) -> None:
    digest = warc.answer("http://h/a", FIRST)["WARC-Payload-Digest"]
    for n in range(4000):
        warc.revisit(f"http://h/{n}", SECOND, None, digest=digest)
    assert len(brought(warc.done())[0]) == 4000


@pytest.mark.parametrize("together", [False, True])
def test_a_page_that_did_not_change_has_not_vanished(
    tmp_path: Path,
    redis_url: str,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    together: bool,
) -> None:
    for name, value in {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}.items():
        monkeypatch.setenv(name, value)
    old, new = Warc(tmp_path / "old.warc"), Warc(tmp_path / "new.warc")
    digest = old.answer("http://h.example/a", FIRST)["WARC-Payload-Digest"]
    new.revisit("http://h.example/a", SECOND, digest=digest)
    new.revisit("http://h.example/copy", SECOND, digest=digest)
    first, second = str(old.done()), str(new.done())
    assert run(["ingest", "--sweep", "1", first, "--json"]) == 0
    capsys.readouterr()
    assert run(["ingest", "--sweep", "2", *([first] if together else []), second, "--json"]) == 0
    out, err = capsys.readouterr()
    if not together:
        assert '"pages": 0, "sketched": 0, "rejected": 0' in out
        assert "of 2 pages it is only said that they were as before" in err
        return
    assert '"pages": 3, "sketched": 3, "rejected": 0' in out
    assert err == ""
    assert run(["changes", "--json"]) == 0
    changes = capsys.readouterr().out
    assert '"from": "1", "to": "2", "unchanged": 1, "revised": 0' in changes
    assert '"vanished": 0, "appeared": 0' in changes or '"moved": 0, "vanished": 0' in changes
    assert run(["clusters", "--policy", "identical", "--json"]) == 0
    assert '"members": ["http://h.example/a", "http://h.example/copy"]' in capsys.readouterr().out


@pytest.mark.parametrize("command", ["pairs", "batch"])
def test_whole_files_hold_the_pages_that_their_revisits_refer_to(
    warc: Warc, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    digest = warc.answer("http://h.example/a", FIRST)["WARC-Payload-Digest"]
    warc.revisit("http://h.example/copy", SECOND, digest=digest)
    warc.revisit("http://h.example/gone", SECOND, digest="sha1:unknown")
    asked = {"pairs": ["pairs", "--threshold", "1"], "batch": ["batch", "cluster"]}
    assert run([*asked[command], str(warc.done()), "--json"]) == 0
    out, err = capsys.readouterr()
    (found,) = map(json.loads, out.splitlines())
    assert (found["members"] if command == "batch" else [found["a"], found["b"]]) == [
        "http://h.example/a",
        "http://h.example/copy",
    ]
    assert "of 1 page it is only said" in err


@pytest.fixture
def site() -> Iterator[str]:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = b"<a href=/copy>here</a>" if self.path == "/" else b"one"
            page += b" wide seas of words roll on"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(shutil.which("wget") is None and os.environ.get("CI") != "true", reason="Wget is not installed")
def test_what_wget_has_not_written_twice_is_found(tmp_path: Path, site: str) -> None:
    wget = ["wget", "-q", "-r", "-e", "robots=off", "--delete-after", f"{site}/"]
    subprocess.run([*wget, "--warc-file=one", "--warc-cdx"], cwd=tmp_path, check=True)
    subprocess.run([*wget, "--warc-file=two", "--warc-dedup=one.cdx"], cwd=tmp_path, check=True)
    urls = [f"{site}/", f"{site}/copy"]
    first, second = tmp_path / "one.warc.gz", tmp_path / "two.warc.gz"
    assert [item.url for item in read(str(first)) if isinstance(item, RawPage)] == urls  # and not its log
    assert list(read(str(second))) == []
    pages, revisits = brought(first, second)
    assert ([page.url for page in pages], revisits.unresolved) == (urls, 0)
