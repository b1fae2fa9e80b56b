"""Packed files: every way in which they are packed is taken off, by what they hold, wherever files are read."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from clusterd.cli.commands import run
from clusterd.ingest.frames import CUT_SHORT, PORTION, Frames, trouble
from clusterd.ingest.packings import AT_ONCE, PACKINGS, Packing, without_packing
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import kind_of, read
from clusterd.queries import document
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import TEXT

HTML = b"<!DOCTYPE html><html><body><p>wide seas of words roll on</p></body></html>"
RECORD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + HTML
PACKS = {"gzip": gzip.compress, "Zstandard": zstandard.compress, "bzip2": bz2.compress, "xz": lzma.compress}

Pack = Callable[[bytes], bytes]
packed_by = pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)


def rows(first: int, behind: int) -> bytes:
    """Return JSON lines, of whose texts no packing makes much less."""
    given = ({"url": f"http://a/{number}", "text": os.urandom(99).hex()} for number in range(first, behind))
    return b"".join(json.dumps(row).encode() + b"\n" for row in given)


def pages_of(path: Path) -> list[str]:
    return [item.url for item in read(str(path)) if isinstance(item, RawPage)]


def broken_of(path: Path) -> list[Broken]:
    return [item for item in read(str(path)) if isinstance(item, Broken)]


def test_every_way_is_examined_here() -> None:
    assert [packing.name for packing in PACKINGS] == list(PACKS)
    for packing in PACKINGS:
        assert PACKS[packing.name](b"words").startswith(packing.marks)


@packed_by
def test_lines_are_read_of_one_stream_or_several_with_zeros_behind(tmp_path: Path, pack: Pack) -> None:
    """Scrapy packs its feeds with bzip2 and xz, too: these had to be unpacked first."""
    file = tmp_path / "pages"
    file.write_bytes(pack(rows(0, 600)) + pack(rows(600, 900)) + bytes(8))
    assert pages_of(file) == [f"http://a/{number}" for number in range(900)]
    assert not broken_of(file)


@packed_by
def test_archives_and_pages_are_read(tmp_path: Path, pack: Pack) -> None:
    head = ("WARC/1.0", "WARC-Type: response", "WARC-Target-URI: http://h.example/", f"Content-Length: {len(RECORD)}")
    (tmp_path / "archive").write_bytes(pack("\r\n".join((*head, "", "")).encode() + RECORD + b"\r\n\r\n") * 2)
    (tmp_path / "page").write_bytes(pack(HTML))
    assert pages_of(tmp_path / "archive") == ["http://h.example/"] * 2
    assert pages_of(tmp_path / "page") == [(tmp_path / "page").as_uri()]
    assert document(str(tmp_path / "page"), None, TEXT).text == "wide seas of words roll on\n"


@packed_by
def test_a_page_of_a_folder_has_no_packing_in_its_url(tmp_path: Path, pack: Pack) -> None:
    ending = next(packing.ending for packing in PACKINGS if PACKS[packing.name] is pack)
    (tmp_path / f"a.xhtml{ending}").write_bytes(pack(HTML))
    (tmp_path / f"items.jl{ending}").write_bytes(b"")
    page, broken = read(str(tmp_path), "https://h.example/docs")
    assert isinstance(page, RawPage)
    assert isinstance(broken, Broken)
    assert (page.url, page.content_type) == ("https://h.example/docs/a.xhtml", "application/xhtml+xml")
    assert (broken.where, broken.ends) == (str(tmp_path / f"items.jl{ending}"), False)


def test_an_ending_is_taken_off_in_any_case() -> None:
    assert [without_packing(name) for name in ("a.HTML.GZ", "a.xz.html", "b.Bz2")] == ["a.HTML", "a.xz.html", "b"]


@packed_by
def test_what_is_cut_short_or_damaged_gives_what_came_before(tmp_path: Path, pack: Pack) -> None:
    """Of one stream, up to where it breaks; of several, at least those before."""
    second = pack(rows(300, 600))
    file = tmp_path / "p.jsonl"
    for broken, why in ((second[: len(second) // 2], "is cut short"), (second[:6] + b"\xff" * 300, "cannot be read")):
        file.write_bytes(pack(rows(0, 300)) + broken)
        assert pages_of(file)[:300] == [f"http://a/{number}" for number in range(300)]
        *_, end = broken_of(file)  # a line that breaks off is named before
        assert end.ends
        assert why in end.reason


@pytest.mark.parametrize("length", [10, PORTION - 1, 3 * PORTION])
def test_of_a_gzip_whose_checksum_is_wrong_all_is_given_and_where_it_breaks_is_said(length: int) -> None:
    content = os.urandom(length)
    first, second = gzip.compress(content), bytearray(gzip.compress(content))
    second[-8] ^= 1  # the checksum is read to its end, which is the fourth byte from that on
    read_on = io.BufferedReader(Frames(io.BytesIO(first + second + first), PACKINGS[0].begin))
    assert read_on.read() == 2 * content
    assert f"(at byte {len(first) + len(second) - 5} of what is packed)" in trouble(read_on)


def test_of_a_zstandard_whose_checksum_is_wrong_all_is_given_and_of_a_broken_one_what_came_before() -> None:
    """Its library tells no place: named is where begins what was unpacked together."""
    content = os.urandom(3 * PORTION)
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(content))
    packed[-1] ^= 1
    read_on = io.BufferedReader(Frames(io.BytesIO(packed), PACKINGS[1].begin))
    assert read_on.read() == content
    assert f"(at byte {len(packed) - 4} of what is packed)" in trouble(read_on)
    content = os.urandom(1 << 18)  # more than one block
    packed = bytearray(zstandard.compress(content))
    begins = zstandard.frame_header_size(bytes(packed))
    size = int.from_bytes(packed[begins : begins + 3], "little") >> 3
    behind = begins + 3 + size
    packed[behind] |= 6  # a kind of block that there is not
    read_on = io.BufferedReader(Frames(io.BytesIO(packed), PACKINGS[1].begin))
    given = read_on.read()
    assert content.startswith(given)
    assert size - len(given) < PORTION
    assert f"(at byte {behind // PORTION * PORTION} of what is packed)" in trouble(read_on)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress], ids=["bzip2", "xz"])
def test_a_broken_page_is_named_with_its_packing(tmp_path: Path, pack: Pack) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(pack(HTML)[:-3])
    with pytest.raises(WrongInput, match=f"begins like {'xz' if pack is lzma.compress else 'bzip2'}, but is broken"):
        document(str(file), None, TEXT)


@pytest.mark.parametrize("packing", PACKINGS[2:], ids=[packing.name for packing in PACKINGS[2:]])
def test_what_unpacks_to_much_gives_some_of_it_at_a_time(packing: Packing) -> None:
    """Of bzip2 a few kilobytes, as they are read together, unpacked to gigabytes."""
    packed = PACKS[packing.name](bytes(1 << 25))
    assert len(packed) < 6_000
    assert len(packing.begin().decompress(packed)) == AT_ONCE
    content = io.BufferedReader(Frames(io.BytesIO(packed + packed[:9]), packing.begin))
    assert content.read() == bytes(1 << 25)
    assert trouble(content) == CUT_SHORT


def test_an_xz_that_asks_for_much_memory_is_not_given_it(tmp_path: Path) -> None:
    """By its dictionary, which may have 4 GB for a stream of some bytes."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
    file = tmp_path / "p.jsonl"
    compressor = lzma.LZMACompressor(filters=filters)
    file.write_bytes(compressor.compress(rows(0, 1)) + compressor.flush())
    (broken,) = broken_of(file)
    assert "Memory usage limit" in broken.reason


@pytest.mark.parametrize("module", ["_lzma", "_bz2"])
def test_a_python_without_a_library_takes_what_it_can(tmp_path: Path, module: str) -> None:
    """As one that was compiled where the headers of the library were missing: without bzip2 nothing of ours began."""
    names = {"_lzma": "xz", "_bz2": "bzip2"}
    for name, pack in PACKS.items():
        (tmp_path / name).write_bytes(pack(rows(0, 3)))
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from clusterd_crawler.errors import WrongInput\n"
        "from clusterd.ingest.reading import read\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(len(list(read(name))))\n"
        "    except WrongInput as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *PACKS], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = dict(zip(PACKS, done.stdout.splitlines(), strict=True))
    assert lines.pop(names[module]).startswith(f"{names[module]}: is packed with {names[module]}; unpack it first")
    assert set(lines.values()) == {"3"}


@pytest.mark.parametrize("plugin", ["Bz2Plugin", "LZMAPlugin", "GzipPlugin"])
def test_what_scrapy_packs_is_brought_in(
    tmp_path: Path, plugin: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scrapy.extensions import postprocessing

    with (tmp_path / "feed").open("wb") as feed:
        packing = getattr(postprocessing, plugin)(feed, {})
        packing.write(rows(0, 5))
        packing.close()
    monkeypatch.chdir(tmp_path)
    assert kind_of("feed") == "jsonl"
    assert run(["ingest", "feed", "--json", "--data", "store"]) == 0
    assert json.loads(capsys.readouterr().out)["pages"] == 5
