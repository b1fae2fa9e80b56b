"""Records of WARC files, made by hand, and what is read of such a file."""

from __future__ import annotations

from pathlib import Path

from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read


def record(url: str | None, body: bytes, kind: str = "response") -> bytes:
    target = f"WARC-Target-URI: {url}\r\n" if url else ""
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\n{target}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body + b"\r\n\r\n"


def text_record(url: str, kind: str) -> bytes:
    return record(url, b"words", kind).replace(b"\r\n", b"\r\nContent-Type: text/plain\r\n", 1)


def answer(text: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body>" + text.encode() + b"</body></html>"


WHOLE = [record(f"http://w.example/{n}", answer(f"page {n} " + "word " * 40)) for n in range(3)]


def taken(path: Path) -> tuple[list[str], list[str]]:
    items = list(read(str(path)))
    return [i.url for i in items if isinstance(i, RawPage)], [i.reason for i in items if isinstance(i, Broken)]


def sent(body: bytes, *lines: str) -> bytes:
    """An HTTP answer of these header lines, as a record."""
    head = "\r\n".join(("HTTP/1.1 200 OK", *lines)).encode()
    return record("http://w.example/", head + b"\r\n\r\n" + body)
