"""Requests in WARC files: what was not asked for by GET is no version of the page that its URL shows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from clusterd.ingest.beside import Beside
from clusterd.ingest.raw import RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.revisits import Revisits
from clusterd.ingest.warc import originals
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

URL = "http://w.example/a"
PAGE = b"<html><body>wide seas of words roll on</body></html>"


class Recorded:
    """A WARC file of exchanges: the request before its answer, or behind it; with metadata between them, or without."""

    def __init__(self, file: Path, first: str, between: bool) -> None:
        self._first = first
        self._between = between
        self._file = file
        self._out = io.BytesIO()
        self._writer = WARCWriter(self._out, gzip=False)

    def exchange(self, method: str, body: bytes, status: str = "200 OK", kind: str = "response") -> None:
        answer = self._answer(body, status, kind)
        line = StatusAndHeaders(f"{method} /a HTTP/1.1", [("Host", "w.example")], is_http_request=True)
        request = self._writer.create_warc_record(URL, "request", http_headers=line)
        first, second = (request, answer) if self._first == "request" else (answer, request)
        second.rec_headers.add_header("WARC-Concurrent-To", first.rec_headers.get_header("WARC-Record-ID"))
        between = [self._metadata(first)] if self._between else []
        for record in (first, *between, second):
            self._writer.write_record(record)
            record.raw_stream.close()

    def _metadata(self, record: Any) -> Any:
        said = {"WARC-Concurrent-To": record.rec_headers.get_header("WARC-Record-ID")}
        return self._writer.create_warc_record(URL, "metadata", io.BytesIO(b"via: /"), warc_headers_dict=said)

    def _answer(self, body: bytes, status: str, kind: str) -> Any:
        http = StatusAndHeaders(status, [("Content-Type", "text/html"), ("Location", "/b")], protocol="HTTP/1.1")
        if kind == "revisit":
            digest = "sha1:4STUNZPUOF2YIR2DCHLBG7Y77VMVUJRJ"
            return self._writer.create_revisit_record(URL, digest, URL, "2025-01-01T00:00:00Z", http)
        return self._writer.create_warc_record(URL, kind, io.BytesIO(body), http_headers=http)

    def held(self) -> list[Any]:
        """What a run of this file brings in."""
        self._file.write_bytes(self._out.getvalue())
        revisits = Revisits([str(self._file)])
        items = [*read(str(self._file), revisits=revisits, beside=Beside()), *originals(revisits)]
        assert not revisits.unresolved
        return [item.body if isinstance(item, RawPage) else item for item in items]


@pytest.fixture(params=["request", "answer", "request, metadata", "answer, metadata"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    first, between, _ = request.param.partition(",")
    return Recorded(tmp_path / "a.warc", first, bool(between))


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS"])
def test_a_page_is_what_get_brings(recorded: Recorded, method: str) -> None:
    recorded.exchange(method, b"")
    recorded.exchange("GET", PAGE)
    recorded.exchange(method, b"<html><body>thank you</body></html>")
    recorded.exchange("GET", PAGE)
    recorded.exchange(method, b"")
    assert recorded.held() == [PAGE, PAGE]


def test_what_is_answered_again_to_another_method_is_no_page_either(recorded: Recorded) -> None:
    recorded.exchange("GET", PAGE)
    recorded.exchange("POST", b"", kind="revisit")
    assert recorded.held() == [PAGE]


def test_a_redirect_that_follows_a_form_is_none_of_its_url(recorded: Recorded) -> None:
    recorded.exchange("POST", b"", status="303 See Other")
    assert recorded.held() == []
    recorded.exchange("GET", b"", status="303 See Other")
    assert [item.target for item in recorded.held()] == ["http://w.example/b"]
