"""What a WARC file holds beside pages: rules hear of it as of what a crawl fetches, and nothing else does."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from clusterd.cli.commands import run
from clusterd.ingest.beside import Beside
from clusterd.ingest.raw import RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.sketching import Sketching
from clusterd_crawler.message import URL_BYTES, File, Redirect
from clusterd_crawler.page import content_identity
from clusterd_crawler.sketch import TEXT, Sketch

from tests.crawler.site import html, prose

H = "http://w.example"
PDF = b"%PDF-1.7 " + bytes(range(256))
AT = 1769860800000


def record(url: str, body: bytes, *lines: str, status: str = "200 OK", said: Iterable[str] = ()) -> bytes:
    """A response of these header lines, or what else ``said`` says of the record."""
    http = "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode() + body
    kind = () if any(line.startswith("WARC-Type") for line in said) else ("WARC-Type: response",)
    head = ("WARC/1.0", *kind, f"WARC-Target-URI: {url}", "WARC-Date: 2026-01-31T12:00:00Z", *said)
    return "\r\n".join((*head, f"Content-Length: {len(http)}", "", "")).encode() + http + b"\r\n\r\n"


def page(url: str, text: str) -> bytes:
    return record(url, html("page", prose(text), []), "Content-Type: text/html")


def file(url: str, body: bytes = PDF, *lines: str, said: Iterable[str] = ()) -> bytes:
    return record(url, body, "Content-Type: application/pdf", *lines, said=said)


def redirect(url: str, to: str, status: str = "302 Found", said: Iterable[str] = ()) -> bytes:
    return record(url, b"<p>Moved", "Content-Type: text/html", f"Location: {to}", status=status, said=said)


def told(tmp_path: Path, *records: bytes) -> list[tuple[str, int | str]]:
    """What rules hear of the records: URLs, with the contents of files and the targets of redirects."""
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(records))
    assert all(not isinstance(item, (File, Redirect)) for item in read(str(archive)))
    sketching = Sketching(TEXT, crawl="one")
    messages = list(sketching.messages(read(str(archive), beside=sketching.beside)))
    found = [message for message in messages if isinstance(message, (File, Redirect))]
    assert all((message.at, message.crawl) == (AT, "one") for message in found)
    assert sketching.told == len(found) == len(messages) - sketching.sketched
    return [(one.url, one.content if isinstance(one, File) else one.target) for one in found]


CONTENT = content_identity(PDF)


def test_a_file_is_told_where_its_url_does_not_say_that_it_is_one(tmp_path: Path) -> None:
    files = [file(f"{H}/{path}") for path in ("a?as=pdf#top", "a.pdf", "pdf/")]
    assert told(tmp_path, page(f"{H}/a", "a"), *files) == [(f"{H}/a?as=pdf", CONTENT), (f"{H}/pdf/", CONTENT)]


def test_a_file_to_which_a_redirect_leads_is_told_whatever_its_url_says(tmp_path: Path) -> None:
    records = redirect(f"{H}/show?id=7", "/files/7.pdf"), file(f"{H}/files/7.pdf"), file(f"{H}/files/8.pdf")
    assert told(tmp_path, *records) == [(f"{H}/show?id=7", f"{H}/files/7.pdf"), (f"{H}/files/7.pdf", CONTENT)]


def test_what_is_packed_is_told_by_its_bytes(tmp_path: Path) -> None:
    body = PDF + random.Random(1).randbytes(9_000)
    packed = file(f"{H}/a", gzip.compress(body), "Content-Encoding: gzip")
    broken = file(f"{H}/b", gzip.compress(body)[:-8] + bytes(8), "Content-Encoding: gzip")
    assert told(tmp_path, packed, broken) == [(f"{H}/a", content_identity(body))]


def test_what_says_nothing_of_its_url_is_passed_over(tmp_path: Path) -> None:
    """Parts, errors, what archivers made, addresses that are none: nothing is told, and no page is rejected for it."""
    records = (
        file(f"{H}/cut", said=["WARC-Truncated: length"]),
        file("ftp://w.example/a"),
        file(f"{H}/" + "x" * URL_BYTES),
        record(f"{H}/part", PDF, "Content-Type: application/pdf", status="206 Partial Content"),
        record(f"{H}/gone", PDF, "Content-Type: application/pdf", status="404 Not Found"),
        redirect(f"{H}/a", "mailto:a@w.example"),
        redirect(f"{H}/b", "http://[", said=["WARC-Date: yesterday"]),
        redirect(f"{H}/c", "/", status="304 Not Modified"),
        record(f"{H}/d", b"", "Content-Type: text/html", status="302 Found"),
        redirect("http:///e", f"{H}/a"),
        redirect(f"{H}/f", "/" + "x" * URL_BYTES),
    )
    assert told(tmp_path, *records) == []


def test_a_redirect_is_told_also_where_it_is_answered_again(tmp_path: Path) -> None:
    again = ["WARC-Type: revisit", "WARC-Payload-Digest: sha1:A"]
    records = redirect(f"{H}/a", f"{H}/b#c", "301 Moved"), redirect(f"{H}/c", "d e", "308 Permanent", again)
    archive = tmp_path / "a.warc"
    assert told(tmp_path, records[0]) == [(f"{H}/a", f"{H}/b")]
    archive.write_bytes(b"".join(records))
    from clusterd.ingest.revisits import Revisits

    found = list(read(str(archive), revisits=Revisits([str(archive)]), beside=Beside()))
    assert found == [Redirect(f"{H}/a", AT, f"{H}/b"), Redirect(f"{H}/c", AT, f"{H}/d%20e")]


@pytest.mark.parametrize("lines", [[], ["Content-Type: text/html"]])
def test_a_file_with_the_header_of_a_page_is_rejected_and_told(tmp_path: Path, lines: list[str]) -> None:
    """As scripts send it that say nothing of a type."""
    assert told(tmp_path, record(f"{H}/a?as=pdf", PDF, *lines)) == [(f"{H}/a?as=pdf", CONTENT)]
    sketching = Sketching(TEXT, max_page_bytes=len(PDF) - 1)
    (whole,) = sketching.messages(read(str(tmp_path / "a.warc"), beside=sketching.beside))
    assert isinstance(whole, File)
    assert whole.content == CONTENT  # of all of it
    for odd in (RawPage(f"{H}/a", PDF, truncated=True), RawPage(f"{H}/a", PDF, status=404)):
        assert list(Sketching(TEXT).messages([odd])) == []


PAGES = 200


@pytest.fixture
def store(redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use a store of this test's own."""
    monkeypatch.setenv("CLUSTERD_REDIS", redis_url)
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("odd", ["file", "script", "redirect"])
def test_what_is_no_page_for_some_is_no_copy_for_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    """``view`` mostly shows the page once more, and now and then something else; ``sid`` never matters."""
    others = set(random.Random(3).sample(range(PAGES), PAGES // 7))
    records = []
    for n in range(PAGES):
        topic = f"{H}/topic/{n}"
        records += [page(url, topic) for url in (topic, f"{topic}?sid=a{n}")]
        seen, body = f"{topic}?view=1", b"%PDF-1.7 " + str(n).encode()
        if n not in others:
            records.append(page(seen, topic))
        elif odd == "redirect":
            records += [redirect(seen, f"/more/{n}"), page(f"{H}/more/{n}", f"more {n}")]
        else:
            records.append(file(seen, body) if odd == "file" else record(seen, body, "Content-Type: text/html"))
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(random.Random(1).sample(records, len(records))))
    assert run(["ingest", str(archive), "--json"]) == 0
    capsys.readouterr()
    assert run(["rules", "list", "--json"]) == 0
    (rule,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert "?sid" in rule["text"]
    assert "?view" not in rule["text"]


def refresh(url: str, to: str, delay: str = "0") -> bytes:
    head = f'<html><head><meta http-equiv="refresh" content="{delay}; url={to}"></head>'
    return record(url, f"{head}<body><p>{prose('one moment')}</p></body></html>".encode(), "Content-Type: text/html")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("moved", [redirect, refresh])
def test_rules_are_learned_from_the_redirects_of_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], moved: Callable[[str, str], bytes]
) -> None:
    topics = [f"{H}/topic/{n}" for n in range(PAGES)]
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(page(url, url) + moved(f"{url}?old=1", url) for url in topics))
    pages = PAGES if moved is redirect else 2 * PAGES
    assert run(["ingest", str(archive), "--json"]) == 0
    assert f'"pages": {pages}, "sketched": {pages}, "rejected": 0' in capsys.readouterr().out
    assert run(["rules", "list", "--json"]) == 0
    (rule,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert "delete ?old" in rule["text"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("cut", ["by the archiver", "by us"])
def test_pages_of_one_beginning_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cut: str
) -> None:
    """``rev`` was set aside by rules, and what the pages show farther down was never fetched."""
    begins = {n: b"<html><body><p>" + prose(f"topic {n}").encode() for n in range(60)}
    urls = [(f"{H}/topic/{n}?rev={rev}", rev, begin) for n, begin in begins.items() for rev in (1, 2)]
    said = ("Content-Type: text/html",)
    if cut == "by us":
        monkeypatch.setenv("CLUSTERD_MAX_PAGE_BYTES", str(min(map(len, begins.values()))))
        records = [record(url, begin + prose(f"{url} {rev}").encode(), *said) for url, rev, begin in urls]
    else:
        records = [record(url, begin, *said, said=("WARC-Truncated: length",)) for url, _, begin in urls]
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(records))
    assert run(["ingest", str(archive)]) == 0
    assert "120 of 120 pages" in capsys.readouterr().out
    assert run(["rules", "list", "--json"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("store")
def test_pages_that_send_on_to_others_are_not_taken_for_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them show the same words, and each leads to a page of its own."""
    titles = [(n, f"{H}/title-{7919 * n % 1000}") for n in range(PAGES)]
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(page(url, url) + refresh(f"{H}/go?to={n}", url) for n, url in titles))
    assert run(["ingest", str(archive), "--json"]) == 0
    assert run(["cluster", f"{H}/go?to=1", "--policy", "identical", "--json"]) == 0
    assert f'"size": {PAGES}' in capsys.readouterr().out
    assert run(["rules", "list", "--json"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("to", "delay", "leads"),
    [
        ("/b#top", "0", f"{H}/b"),
        ("/b", "99", f"{H}/b"),
        ("/b", "100", None),
        ("mailto:a@w.example", "0", None),
        ("http://[", "0", None),
        (f"{H.upper()}:80/a", "0", None),
    ],
)
def test_a_refresh_is_told_where_it_leads_to_another_page_before_long(
    tmp_path: Path, to: str, delay: str, leads: str | None
) -> None:
    archive = tmp_path / "a.warc"
    archive.write_bytes(refresh(f"{H}/a", to, delay))
    sketch, *told = Sketching(TEXT).messages(read(str(archive)))
    assert isinstance(sketch, Sketch)
    assert (sketch.url, sketch.soft_error) == (f"{H}/a", leads is not None)
    assert told == ([] if leads is None else [Redirect(f"{H}/a", AT + 1, leads)])


@pytest.mark.parametrize(("before", "told"), [(b"", 1), (b" " * 4096, 0)])
def test_a_refresh_is_told_however_it_is_written_where_scrapy_looks_for_it(
    tmp_path: Path, before: bytes, told: int
) -> None:
    archive = tmp_path / "a.warc"
    body = b'<HTML><HEAD>%b<META HTTP-EQUIV="Refresh" CONTENT="0;URL=/b"></HEAD>' % before
    archive.write_bytes(record(f"{H}/a", body + b"one moment", "Content-Type: text/html"))
    messages = Sketching(TEXT).messages(read(str(archive)))
    assert [one.target for one in messages if isinstance(one, Redirect)] == [f"{H}/b"] * told


@pytest.mark.usefixtures("store")
def test_sweeps_that_are_named_as_crawls_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a page showed in the first, its old revision shows in the second: never did both show the same."""
    for crawl, query in (("2025", ""), ("2026", "&rev=1")):
        monkeypatch.setenv("CLUSTERD_CRAWL_ID", crawl)
        archive = tmp_path / f"{crawl}.warc"
        archive.write_bytes(b"".join(page(f"{H}/doc?id={n}{query}", f"doc {n}") for n in range(PAGES)))
        assert run(["ingest", str(archive), "--sweep", crawl]) == 0
    capsys.readouterr()
    assert run(["rules", "list", "--json"]) == 0
    assert capsys.readouterr().out == ""
