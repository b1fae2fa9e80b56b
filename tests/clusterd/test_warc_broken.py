"""WARC files that are broken: what is whole is taken, what is not is named, and nothing is lost in silence."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from clusterd.ingest.archive import HEADER_LINES, HEADERS
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read
from clusterd.ingest.sketching import Sketching
from clusterd_crawler.sketch import TEXT

from tests.clusterd.warc_records import WHOLE, answer, record, sent, taken, text_record

NO_NUMBER = "it does not say how long it is: its Content-Length is no number, or the file is cut short"


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


@pytest.mark.parametrize("kept", [60, 30, 15])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_that_is_cut_short_inside_the_headers_of_a_record_says_so(
    tmp_path: Path, pack: Callable[[bytes], bytes], kept: int
) -> None:
    """It was told that the record has no Content-Length, or no address, as if these were not in the other half."""
    file = tmp_path / "a.warc"
    file.write_bytes(pack(WHOLE[0]) + pack(WHOLE[1])[:kept])
    urls, (reason,) = taken(file)
    assert urls == ["http://w.example/0"]
    assert "the file is cut short" in reason


def test_zstandard_lines_that_are_cut_short_say_so(tmp_path: Path) -> None:
    frame = zstandard.compress(b'{"url": "http://j.example/", "text": "some words"}\n' * 50)
    file = tmp_path / "p.jsonl.zst"
    file.write_bytes(frame + frame)
    assert len(taken(file)[0]) == 100
    file.write_bytes(frame + frame[:-10])
    urls, reasons = taken(file)
    assert len(urls) >= 50
    assert "cut short" in reasons[-1]


def test_headers_in_advance_of_an_answer_are_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    advance = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n"
    other = b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05Hello"
    file.write_bytes(record("http://w.example/a", advance + answer("one")) + record("http://w.example/b", other))
    (page,) = read(str(file))
    assert isinstance(page, RawPage)
    assert (page.status, page.content_type, page.body) == (200, "text/html", b"<html><body>one</body></html>")


def test_what_an_archiver_keeps_for_itself_is_no_page(tmp_path: Path) -> None:
    """Wget's log and arguments were pages of gnu.org."""
    own = ("metadata://gnu.org/software/wget/warc/wget.log", "urn:text:http://w.example/", "http://w.example/2")
    file = tmp_path / "a.warc"
    file.write_bytes(b"".join(text_record(url, "resource") for url in own))
    assert taken(file) == (["http://w.example/2"], [])


def test_texts_stand_for_their_pages_where_these_are_not_in_the_file(tmp_path: Path) -> None:
    """Of Common Crawl's WET files "no page is in" them was said; beside its page a text would be a second version."""
    texts = [text_record(f"http://w.example/{n}", "conversion") for n in range(2)]
    described = record(None, b"software: x", "warcinfo") + record("http://w.example/0", b"{}", "metadata")
    file = tmp_path / "a.warc.wet.gz"
    file.write_bytes(gzip.compress(described + b"".join(texts)))
    assert taken(file) == (["http://w.example/0", "http://w.example/1"], [])
    file.write_bytes(gzip.compress(described + WHOLE[2] + b"".join(texts)))
    assert taken(file) == (["http://w.example/2"], [])


@pytest.mark.parametrize("line", ["WARC-Truncated: length", "WARC-Segment-Number: 1"])
def test_of_how_many_pages_an_archiver_kept_the_beginning_only_is_counted(tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(WHOLE[0].replace(b"\r\n", f"\r\n{line}\r\n".encode(), 1) + WHOLE[1])
    run = Sketching(TEXT)
    assert len(list(run.sketches(read(str(file))))) == 2
    assert (run.truncated, run.shortened) == (1, 0)


@pytest.mark.parametrize(
    ("headers", "cut"),
    [
        (["Content-Length: 99"], True),
        (["Content-Length: 90"], False),
        (["Content-Length: 9"], False),
        (["Content-Length: 99", "Transfer-Encoding: chunked"], False),
        (["Content-Length: many"], False),
        ([f"Content-Length: {'9' * 5000}"], False),
    ],
)
def test_a_page_is_cut_short_where_its_connection_broke(tmp_path: Path, headers: list[str], cut: bool) -> None:
    """Archivers keep what had come, and do not say that it is not all: to a crawl it is no page."""
    file = tmp_path / "a.warc"
    head = "\r\n".join(("HTTP/1.1 200 OK", "Content-Type: text/html", *headers, "", "")).encode()
    file.write_bytes(record("http://w.example/", head + b"<p>" + b"words of it " * 7 + b"end"))
    (page,) = read(str(file))
    assert isinstance(page, RawPage)
    assert page.truncated is cut


def test_a_scheme_in_capitals_is_one(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(record("HTTP://w.example/", answer("x")))
    assert taken(file) == (["HTTP://w.example/"], [])


def dated(date: str) -> bytes:
    return WHOLE[0].replace(b"\r\n", f"\r\nWARC-Date: {date}\r\n".encode(), 1)


@pytest.mark.parametrize(
    ("date", "at"),
    [
        ("2026", 1767225600000),
        ("2026-01", 1767225600000),
        ("2026-01-31", 1769817600000),
        ("2026-01-31T12:00Z", 1769860800000),
        ("2026-01-31T12:00:00.123456789Z", 1769860800123),
    ],
)
def test_a_date_may_leave_out_its_end_or_have_fractions(tmp_path: Path, date: str, at: int) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(dated(date).replace(b"WARC/1.0", b"WARC/1.1"))
    (page,) = read(str(file))
    assert isinstance(page, RawPage)
    assert page.fetched_at == at


def test_a_date_that_is_none_is_named_as_the_file_has_it(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(dated("yesterday") + WHOLE[1])
    urls, (reason,) = taken(file)
    assert urls == ["http://w.example/1"]
    assert reason.startswith("WARC-Date is 'yesterday'")


def test_a_record_that_is_longer_than_it_says_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What stood behind it was shown on standard error, of whatever length."""
    says_less = WHOLE[0].replace(b"Content-Length: ", b"Content-Length: 90\r\nX: ")
    file = tmp_path / "a.warc"
    file.write_bytes(says_less + WHOLE[1])
    assert taken(file)[0] == ["http://w.example/0", "http://w.example/1"]
    (broken,) = (item for item in read(str(file)) if isinstance(item, Broken))
    assert (broken.where, broken.ends) == (f"{file} record 1", False)
    assert "Content-Length" in broken.reason
    assert capfd.readouterr() == ("", "")


def test_behind_records_whose_lengths_are_wrong_the_next_ones_are_found(tmp_path: Path) -> None:
    """As where characters are counted for bytes. The second line behind a record was taken for the next one's first."""
    text = "\n".join(f"Länge {line} ohne Ende äöü" for line in range(9))
    body = answer(text)
    counted = record("http://w.example/counted", body).replace(str(len(body)).encode(), b"%d" % len(body.decode()), 1)
    none = WHOLE[1].replace(b"Content-Length: ", b"Content-Length: -")
    file = tmp_path / "a.warc"
    file.write_bytes(counted + none + WHOLE[2])
    urls, reasons = taken(file)
    assert urls == ["http://w.example/counted", "http://w.example/2"]
    assert reasons == ["it goes on behind its end: its Content-Length is wrong", NO_NUMBER]


@pytest.mark.parametrize("kind", ["conversion", "resource"])
@pytest.mark.parametrize("said", [b"", b" ", b" many", b" -5"], ids=repr)
def test_a_text_whose_length_is_no_number_is_no_page_without_a_word(tmp_path: Path, kind: str, said: bytes) -> None:
    """It was, and took the place of the page's text: in a file cut short just there, too, of which nothing was said."""
    file = tmp_path / "a.warc.wet"
    texts = [text_record(f"http://w.example/{n}", kind) for n in range(3)]
    head, mark, rest = texts[1].partition(b"Content-Length:")
    file.write_bytes(texts[0] + head + mark + said)
    assert taken(file) == (["http://w.example/0"], [NO_NUMBER])
    file.write_bytes(texts[0] + head + mark + said + rest.removeprefix(b" 5") + texts[2])
    assert taken(file) == (["http://w.example/0", "http://w.example/2"], [NO_NUMBER])


def test_records_whose_lengths_count_the_blank_lines_behind_them_are_whole(tmp_path: Path) -> None:
    """As the Internet Archive's ia-web-commons writes its ``warcinfo``: all that followed was lost."""
    file = tmp_path / "a.warc.gz"
    file.write_bytes(b"".join(gzip.compress(one.removesuffix(b"\r\n\r\n")) for one in WHOLE))
    assert taken(file) == ([f"http://w.example/{n}" for n in range(3)], [])


def test_a_record_that_does_not_say_how_long_it_is_ends_the_file(tmp_path: Path) -> None:
    """All that followed was taken for a part of its page, without a word."""
    file = tmp_path / "a.warc"
    file.write_bytes(WHOLE[0] + WHOLE[1].replace(b"Content-Length", b"X-Length") + WHOLE[2])
    urls, (reason,) = taken(file)
    assert urls == ["http://w.example/0"]
    assert "does not say how long it is" in reason


@pytest.mark.parametrize("body", [b"<html><body>words of a page", b"200 OK\r\nContent-Type: text/html\r\n\r\nwords"])
def test_a_page_without_an_http_status_is_named(tmp_path: Path, body: bytes) -> None:
    """Its first word was taken for a status of no page, without a word."""
    file = tmp_path / "a.warc"
    file.write_bytes(record("http://w.example/bare", body) + WHOLE[1])
    assert taken(file) == (["http://w.example/1"], ["it does not begin with an HTTP status and headers"])


def test_a_status_of_more_digits_than_python_reads_costs_no_other_page(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    odd = answer("x").replace(b" 200 ", b" %s " % (b"9" * 5000))
    file.write_bytes(WHOLE[0] + record("http://w.example/odd", odd) + WHOLE[1])
    urls, reasons = taken(file)
    assert urls == ["http://w.example/0", "http://w.example/1"]
    assert reasons == ["it does not begin with an HTTP status and headers"]


def test_what_has_no_end_of_a_line_is_passed_over_in_its_length(tmp_path: Path) -> None:
    file = tmp_path / "a.warc"
    file.write_bytes(WHOLE[0] + bytes(50_000_000) + b"\n" + WHOLE[1])
    began = time.process_time()
    assert taken(file)[0] == ["http://w.example/0", "http://w.example/1"]
    assert time.process_time() - began < 4  # .3 s; 10 s where each 16 KB copied all before them


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(b"X: " + b"y" * HEADERS, f"longer than {HEADERS} bytes", id="a line"),
        pytest.param((b"X: " + b"y" * 1000 + b"\r\n") * (HEADERS // 1000), f"longer than {HEADERS} bytes", id="lines"),
        pytest.param(b"X: y\r\n" + b" y\r\n" * HEADER_LINES, f"more than {HEADER_LINES} lines", id="short lines"),
    ],
)
def test_headers_without_an_end_are_not_held_in_memory(tmp_path: Path, lines: bytes, said: str) -> None:
    """A file of 1.5 MB unpacked to a header of 1.5 GB, and took 4.7 GB; one of 4 KB to many lines, and took 107 s."""
    file = tmp_path / "a.warc"
    hostile = record("http://w.example/", answer("x").replace(b"\r\n", b"\r\n" + lines + b"\r\n", 1))
    file.write_bytes(WHOLE[0] + hostile + WHOLE[1])
    urls, (reason,) = taken(file)
    assert urls == ["http://w.example/0", "http://w.example/1"]
    assert reason in {f"its headers are {said}", f"its headers have {said}"}
    file.write_bytes(gzip.compress(WHOLE[0] + WHOLE[1].replace(b"\r\n", b"\r\n" + lines + b"\r\n", 1) + WHOLE[2]))
    assert taken(file) == (["http://w.example/0"], [f"the rest of the file cannot be read: {reason}"])


def test_a_length_beyond_all_counting_costs_the_rest_of_its_file_only(tmp_path: Path) -> None:
    """It ended the run as a fault of clusterd."""
    file = tmp_path / "a.warc"
    file.write_bytes(WHOLE[0] + WHOLE[1].replace(b"Content-Length: ", b"Content-Length: " + b"9" * 30))
    urls, (reason,) = taken(file)
    assert urls == ["http://w.example/0"]
    assert "bytes of the record are missing" in reason


@pytest.mark.parametrize("line", ["HTTP/2 200", "HTTP/2 200 ", "HTTP/3.0 200 OK", "HTTP/1.0 200"])
@pytest.mark.parametrize("version", ["0.17", "0.18", "1.1"])
def test_versions_of_the_two_formats_and_header_names_in_any_case(tmp_path: Path, line: str, version: str) -> None:
    _, _, rest = WHOLE[0].partition(b"\r\n")
    names, _, block = rest.partition(b"\r\n\r\n")
    names = b"\r\n".join(
        name.lower() + b":" + value for name, _, value in (n.partition(b":") for n in names.split(b"\r\n"))
    )
    said = block.replace(b"HTTP/1.1 200 OK", line.encode().ljust(len(b"HTTP/1.1 200 OK")))
    file = tmp_path / "a.warc"
    file.write_bytes(b"WARC/" + version.encode() + b"\r\n" + names + b"\r\n\r\n" + said)
    assert taken(file) == (["http://w.example/0"], [])


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


@pytest.mark.parametrize("members", [1, 60])
def test_what_lies_before_a_broken_member_is_taken(tmp_path: Path, members: int) -> None:
    draw = random.Random(1)
    pages = [answer(f"page {n} " + " ".join(f"{draw.getrandbits(64):x}" for _ in range(60))) for n in range(60)]
    records = [record(f"http://w.example/{n}", page) for n, page in enumerate(pages)]
    parts = [gzip.compress(one) for one in records] if members > 1 else [gzip.compress(b"".join(records))]
    packed = bytearray(b"".join(parts))
    at = sum(map(len, parts[:50])) + 300 if members > 1 else len(packed) * 5 // 6
    packed[at : at + 60] = bytes(60)
    file = tmp_path / "a.warc.gz"
    file.write_bytes(packed)
    urls, reasons = taken(file)
    assert len(urls) >= (49 if members > 1 else 45)
    assert "cannot be read" in reasons[-1]


def test_an_answer_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Where the file was cut short before it, it was called empty."""
    file = tmp_path / "a.warc"
    advance = record("http://w.example/a", b"HTTP/1.1 100 Continue\r\n\r\n")
    head = record("http://w.example/b", b"").replace(b"Length: 0", b"Length: 100").removesuffix(b"\r\n\r\n")
    file.write_bytes(advance + WHOLE[1] + head)
    urls, reasons = taken(file)
    assert urls == ["http://w.example/1"]
    assert reasons == [
        "it does not begin with an HTTP status and headers: it is empty",
        "the file is cut short: 100 bytes of the record are missing",
    ]
