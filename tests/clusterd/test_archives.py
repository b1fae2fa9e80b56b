"""ARC files are read as WARC files are; what holds other files, or is packed otherwise, is refused with the way out."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from clusterd.ingest.beside import Beside
from clusterd.ingest.packings import ZSTANDARD
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import kind_of, read
from clusterd.ingest.revisits import Revisits
from clusterd.ingest.warc import ZSTD_DICTIONARY, originals
from clusterd.queries.documents import document
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.message import Redirect
from clusterd_crawler.sketch import TEXT

AT = 1107403506000
PAGE = b"<html><body><p>words of a page</p></body></html>"
VERSION = b"1 1 Archiver\nURL IP-address Archive-date Content-type Archive-length\n"


def record(url: str, block: bytes, media: str = "text/html") -> bytes:
    return f"{url} 192.0.2.1 20050203040506 {media} {len(block)}\n".encode() + block + b"\n"


def answer(body: bytes, status: str = "200 OK", *lines: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", "Content-Type: text/html", *lines, "", "")).encode() + body


ARC = (
    record("filedesc://one.arc", VERSION, "text/plain"),
    record("dns:h.example", b"20050203040506\nh.example. 1 IN A 192.0.2.1\n", "text/dns"),
    record("http://h.example/1", answer(PAGE)),
    record("http://h.example/old", answer(b"", "302 Found", "Location: /1")),
    record("http://h.example/gone", answer(PAGE, "404 Not Found")),
    record("http://h.example/2", answer(gzip.compress(PAGE), "200 OK", "Content-Encoding: gzip")),
)


@pytest.mark.parametrize(
    "data",
    [
        b"".join(ARC),
        b"".join(map(gzip.compress, ARC)),
        gzip.compress(b"".join(ARC)),
        b"".join(gzip.compress(one.removesuffix(b"\n")) for one in ARC),
        b"".join((ARC[0].removesuffix(b"\n"), *ARC[1:])),
    ],
    ids=["plain", "record by record", "as a whole", "no blank lines", "none behind the first record"],
)
def test_an_arc_file_is_read_record_by_record(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "one.arc"
    file.write_bytes(data)
    pages = [(f"http://h.example/{n}", PAGE, AT) for n in (1, 2)]
    told = list(read(str(file), beside=Beside()))
    assert [(one.url, one.body, one.fetched_at) for one in told if isinstance(one, RawPage)] == pages
    assert [one for one in told if not isinstance(one, RawPage)] == [
        Redirect("http://h.example/old", AT, "http://h.example/1")
    ]


def test_the_next_record_of_an_arc_file_is_found_behind_a_wrong_length(tmp_path: Path) -> None:
    file = tmp_path / "one.arc"
    short = record("http://h.example/short", answer(b"<p>one\n\ntwo\n")).replace(b" 56\n", b" 50\n", 1)
    file.write_bytes(b"".join((ARC[0], short, *ARC[2:])))
    told = list(read(str(file)))
    assert [one.url.rpartition("/")[2] for one in told if isinstance(one, RawPage)] == ["short", "1", "2"]
    assert [(one.where, one.ends) for one in told if isinstance(one, Broken)] == [(f"{file} record 2", False)]


def test_a_line_of_more_fields_begins_no_record_of_an_arc_file(tmp_path: Path) -> None:
    """Those of version 2: URL, address and date were the URL of a page of the year 2100."""
    file = tmp_path / "two.arc"
    more = ARC[2].replace(b" text/html ", b" text/html 200 CHECKSUM - 209 two.arc ", 1)
    file.write_bytes(b"".join((ARC[0], more, ARC[5])))
    told = list(read(str(file)))
    assert [one.url for one in told if isinstance(one, RawPage)] == ["http://h.example/2"]
    assert [one.where for one in told if isinstance(one, Broken)] == [f"{file} record 1"]


def test_an_arc_file_that_is_cut_short_gives_what_came_before(tmp_path: Path) -> None:
    file = tmp_path / "one.arc"
    file.write_bytes(b"".join(ARC)[:-20])
    first, last = read(str(file))
    assert isinstance(first, RawPage)
    assert isinstance(last, Broken)
    assert last.reason.startswith("the file is cut short")


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("1.html", "2.html"):
            held = tarfile.TarInfo(name)
            held.size = len(PAGE)
            archive.addfile(held, io.BytesIO(PAGE))
    return packed.getvalue()


def zipped(compression: int = zipfile.ZIP_STORED, **held: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return packed.getvalue()


def warc(kind: str, url: str, block: bytes, *lines: str) -> bytes:
    media = "Content-Type: application/http"
    head = ("WARC/1.1", f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", media, *lines, f"Content-Length: {len(block)}")
    return gzip.compress("\r\n".join((*head, "", "")).encode() + block + b"\r\n\r\n")


def test_the_warc_files_of_a_wacz_are_read_one_after_the_other(tmp_path: Path) -> None:
    """As Browsertrix writes it, with several files; a revisit may refer to a page in a later one."""
    digest = "WARC-Payload-Digest: sha1:A"
    profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    files = {
        "archive/rec-1.warc.gz": warc("revisit", "http://h.example/again", b"", digest, profile),
        "archive/rec-2.warc.gz": warc("response", "http://h.example/1", answer(PAGE), digest),
        "archive/rec-2.cdxj": b"com,h)/1 20260131 {}",
        "screenshots/rec-3.warc.gz": warc("response", "http://h.example/3", answer(PAGE)),
        "pages/pages.jsonl": b'{"format": "json-pages-1.0", "id": "pages"}\n{"url": "http://h.example/1"}\n',
        "datapackage.json": b"{}",
    }
    file = tmp_path / "crawl.wacz"
    file.write_bytes(zipped(**files))
    assert kind_of(str(file)) == "warc"
    revisits, told = Revisits([str(file)]), list[int]()
    pages = [*read(str(file), progress=told.append, revisits=revisits), *originals(revisits)]
    assert [(page.url, page.body) for page in pages if isinstance(page, RawPage)] == [
        ("http://h.example/1", PAGE),
        ("http://h.example/again", PAGE),
    ]
    assert told == sorted(told)
    assert told[-1] == len(files["archive/rec-1.warc.gz"]) + len(files["archive/rec-2.warc.gz"])


def test_a_path_that_cannot_be_looked_at_is_named() -> None:
    """A name that is too long, as a file in a folder that one may not enter, was called a fault of clusterd."""
    with pytest.raises(WrongInput, match="x: File name too long; ingest takes WARC"):
        kind_of("x" * 256)
    with pytest.raises(WrongInput, match="embedded null byte; ingest takes WARC"):
        kind_of("x\0")


def test_a_wacz_that_is_broken_is_named(tmp_path: Path) -> None:
    whole = zipped(**{"archive/rec-1.warc": gzip.decompress(warc("response", "http://h.example/1", answer(PAGE)))})
    file = tmp_path / "crawl.wacz"
    for broken_off in (whole[:-30], whole[:-4] + b"\1" + whole[-3:]):  # the latter's list would lie 64 kB further on
        file.write_bytes(broken_off)
        with pytest.raises(WrongInput, match="is a zip archive that cannot be read"):
            kind_of(str(file))
    named = zipped(**{"archive/\u00fc.warc": PAGE})
    for place in (named.find, named.rfind):  # before what it holds, and in its list
        at = place("\u00fc".encode())
        file.write_bytes(named[:at] + b"\xff" + named[at + 1 :])
        with pytest.raises(WrongInput, match="cannot be read: 'utf-8' codec"):
            kind_of(str(file))
    file.write_bytes(whole.replace(b"words", b"birds"))
    broken = [item for item in read(str(file)) if isinstance(item, Broken)]
    assert [item.where for item in broken] == [f"{file}/archive/rec-1.warc"]
    assert "Bad CRC-32" in broken[0].reason


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_wacz_that_is_packed_and_damaged_is_named(tmp_path: Path, compression: int) -> None:
    """Of LZMA it was called a fault of clusterd."""
    whole = warc("response", "http://h.example/1", answer(os.urandom(9_000).hex().encode()))
    packed = bytearray(zipped(compression, **{"archive/rec-1.warc": gzip.decompress(whole)}))
    packed[200:300] = b"\xff" * 100
    file = tmp_path / "crawl.wacz"
    file.write_bytes(packed)
    broken = [item for item in read(str(file)) if isinstance(item, Broken)]
    assert broken
    assert all(item.where.startswith(f"{file}/archive/rec-1.warc") for item in broken)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (tar(), "is a tar archive"),
        (zipped(**{"pages/1.html": PAGE}), "is a zip archive"),
        (b"\x04\x22\x4d\x18" + PAGE, "is packed with LZ4"),
        (b"From: <Saved by Blink>\r\nMIME-Version: 1.0\r\n\r\n" + PAGE, "is MHTML"),
    ],
    ids=["tar", "zip", "LZ4", "MHTML"],
)
def test_what_holds_other_files_is_no_page(tmp_path: Path, data: bytes, what: str) -> None:
    """As a question its bytes were its words: a page that Chromium had saved as MHTML resembled itself by .17."""
    file = tmp_path / "pages.jsonl"
    file.write_bytes(data)
    with pytest.raises(WrongInput, match=f"{what}.*; unpack it first: ingest takes WARC or ARC"):
        kind_of(str(file))
    with pytest.raises(WrongInput, match=f"{what}.*; give HTML or plain text"):
        document(str(file), None, TEXT)


@pytest.mark.parametrize("begin", [b"WARC/1.0\r\n", b"filedesc://a.arc 0.0.0.0\n"], ids=["WARC", "ARC"])
def test_a_web_archive_is_no_page_to_ask_with(tmp_path: Path, begin: bytes) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(begin + PAGE))
    with pytest.raises(WrongInput, match="is a WARC or ARC file; give HTML"):
        document(str(file), None, TEXT)


def test_an_empty_file_is_said_to_be_so(tmp_path: Path) -> None:
    """A feed of Scrapy's without items is empty, and no fault."""
    (tmp_path / "page.html").touch()
    with pytest.raises(WrongInput, match="is empty; ingest takes"):
        kind_of(str(tmp_path / "page.html"))
    (tmp_path / "items.jl").touch()
    assert kind_of(str(tmp_path / "items.jl")) == "jsonl"


ROW = '{"url": "http://h.example/1", "html": "<html><body><p>words"}'


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("items.csv", "url,html\r\nhttp://h.example/1,<html><body><p>words</p></body></html>\r\n", "of no known kind"),
        ("items.xml", f"<?xml version='1.0'?>\n<items><item><html>{ROW}</html></item></items>", "of no known kind"),
        ("saved.mhtml", "From: <Saved>\r\nContent-Type: multipart/related\r\n\r\n<html><body>", "of no known kind"),
        ("crawl.har", '{\r\n  "log": {"entries": []}\r\n}', r"several lines; .* \(jq -c \. makes them\)"),
        ("items.json", f"[\n{ROW}\n]", r"one JSON array; .* \(jq -c '\.\[\]' makes them\)"),
    ],
)
def test_a_table_that_holds_pages_is_not_one_page(tmp_path: Path, name: str, text: str, why: str) -> None:
    """What Scrapy exports as CSV or XML, and browsers as MHTML or HAR, counted as one page, or failed line by line."""
    file = tmp_path / name
    file.write_bytes(text.encode())
    with pytest.raises(WrongInput, match=why):
        kind_of(str(file))


@pytest.mark.parametrize("name", ["view.php", "item?id=1.5", "page"])
def test_a_page_may_begin_with_a_message_of_its_server(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Warning: no such table\n" + PAGE)
    assert kind_of(str(tmp_path / name)) == "html"


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be"])
def test_lines_in_utf_16_are_refused_as_a_whole(tmp_path: Path, charset: str) -> None:
    """Some of their rows were taken: not the first, nor the last, nor any with a character such as U+4E0A."""
    file = tmp_path / "items.jsonl"
    file.write_bytes(f"{ROW}\n{ROW}\n".encode(charset))
    with pytest.raises(WrongInput, match=r"is in UTF-16; JSON lines are in UTF-8 \(iconv"):
        kind_of(str(file))
    file.write_bytes("\n".join(("<!DOCTYPE html>", PAGE.decode())).encode(charset))
    assert kind_of(str(file.rename(tmp_path / "page.html"))) == "html"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (ROW.encode("utf-16"), "is in UTF-16; JSON lines are in UTF-8"),
        (gzip.compress(b"WARC/1.0\r\n" + bytes(9)), "is a WARC, ARC or Parquet file; give its name"),
        (b"WARC/1.0\r\n" + bytes(9), "is a WARC, ARC or Parquet file; give its name"),
        (b"filedesc://a.arc 0.0.0.0 20260131120000 text/plain 9\n", "is a WARC, ARC or Parquet file; give its name"),
        (b"\x04\x22\x4d\x18" + PAGE, "is packed with LZ4; unpack it first"),
        (f"[\n{ROW},\n{ROW}\n]".encode(), "is one JSON array; JSON lines have one object a line (jq -c '.[]'"),
        (json.dumps([json.loads(ROW)], indent=4).encode(), "is one JSON array"),
        (json.dumps(json.loads(ROW), indent=4).encode(), "has an object over several lines"),
    ],
    ids=["UTF-16", "packed WARC", "WARC", "ARC", "LZ4", "array", "indented array", "indented object"],
)
def test_what_is_no_lines_is_refused_as_a_whole_where_it_comes_through_a_pipe(
    tmp_path: Path, data: bytes, what: str
) -> None:
    """An array, as Scrapy exports, was rejected line by line, but for its last row; each line of an unpacked WARC."""
    command = [sys.executable, "-m", "clusterd", "batch", "cluster", "-"]
    done = subprocess.run(command, input=data, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"clusterd: -: {what}")


def test_an_address_with_a_blank_is_not_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    block = answer(PAGE)
    head = ("WARC/1.0", "WARC-Type: response", "WARC-Target-URI: http://h.example/a b", f"Content-Length: {len(block)}")
    file = tmp_path / "one.warc"
    file.write_bytes("\r\n".join((*head, "", "")).encode() + block + b"\r\n\r\n")
    (page,) = read(str(file))
    assert isinstance(page, RawPage)
    assert page.url == "http://h.example/a%20b"
    assert not caplog.records


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (b"\1", "the file is cut short"),
        (b"\x63\0\0\0half of it", "the file is cut short"),
        (b"\xff\xff\xff\xffhalf of it", "the file is cut short"),
        (b"\4\0\0\0" + ZSTANDARD.marks[0], "error determining"),
    ],
    ids=["in its size", "within", "hostile", "not whole"],
)
def test_a_dictionary_that_cannot_be_read_costs_its_own_file_only(tmp_path: Path, rest: bytes, why: str) -> None:
    file = tmp_path / "one.warc.zst"
    file.write_bytes(ZSTD_DICTIONARY + rest)
    (broken,) = read(str(file))
    assert isinstance(broken, Broken)
    assert (broken.where, broken.ends) == (str(file), True)
    assert re.match(f"its dictionary cannot be read: .*({why})", broken.reason)
