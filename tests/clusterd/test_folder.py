"""Folders of HTML files: which files are pages, what their URLs are, and what is not read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from clusterd.ingest.folder import HOSTLESS
from clusterd.ingest.raw import Broken, RawPage
from clusterd.ingest.reading import read
from clusterd.queries.documents import document
from clusterd_crawler.sketch import TEXT

HTML = "<html><body><p>{}</p></body></html>"
path_open = Path.open


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def pages_of(path: Path) -> list[RawPage]:
    return [item for item in read(str(path)) if isinstance(item, RawPage)]


def test_pages_are_found_by_content_and_named_by_their_path(tmp_path: Path) -> None:
    (tmp_path / "sub dir").mkdir()
    write(tmp_path / "index.html", HTML.format("one").encode())
    write(tmp_path / "sub dir" / "view.php", HTML.format("two").encode())
    write(tmp_path / "sub dir" / "plain", b"no markup here")
    write(tmp_path / "logo.png", HTML.encode())
    write(tmp_path / ".hidden.html", HTML.encode())
    (tmp_path / ".git").mkdir()
    write(tmp_path / ".git" / "index.html", HTML.encode())
    write(tmp_path / "packed.html.gz", gzip.compress(HTML.format("three").encode()))
    write(tmp_path / "packed.gz", gzip.compress(b"no markup here"))
    write(tmp_path / "NOTES.HTM", b"no markup here")
    urls = [item.url for item in read(str(tmp_path), "https://example.com/docs/") if isinstance(item, RawPage)]
    assert urls == [
        "https://example.com/docs/NOTES.HTM",
        "https://example.com/docs/index.html",
        "https://example.com/docs/packed.html",
        "https://example.com/docs/sub%20dir/view.php",
    ]
    assert pages_of(tmp_path)[1].url == (tmp_path / "index.html").as_uri()


@pytest.mark.parametrize(
    "name",
    ["St._Louis", "v1.2", "view.cgi", "go.jsp;jsessionid=1", "view.php@id=1", "index.html.1", "index.html.en", "a.do"],
)
def test_a_page_may_end_as_its_url_did(tmp_path: Path, name: str) -> None:
    """Mirrors keep what a path ended with: such pages were passed over without a word."""
    write(tmp_path / name, HTML.format("one").encode())
    write(tmp_path / f"packed-{name}", gzip.compress(HTML.format("two").encode()))
    write(tmp_path / f"notes-{name}", b"see <p> and <table>")
    for other in (".orig", "~", ".js", ".gz"):
        write(tmp_path / f"{name}{other}", HTML.encode())
    assert [Path(page.where).name for page in pages_of(tmp_path)] == sorted([name, f"packed-{name}"])


@pytest.mark.parametrize(
    "name",
    ["crawl-00000.warc.gz", "Crawl.WACZ", "old.arc.gz", "CC-1.warc.wet.gz", "items.jsonl", "items.jl.gz", "0.parquet"],
)
def test_what_holds_many_pages_in_a_folder_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path / "index.html", HTML.encode())
    write(tmp_path / name, b"")
    write(tmp_path / f".{name}", b"")
    page, broken = sorted(read(str(tmp_path)), key=lambda item: isinstance(item, Broken))
    assert isinstance(page, RawPage)
    assert isinstance(broken, Broken)
    assert (broken.where, broken.ends) == (str(tmp_path / name), False)


def test_a_mirror_keeps_its_queries_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    file = write(tmp_path / "view.php?id=3&s=1", HTML.encode())
    os.mkfifo(tmp_path / "pipe.html")
    items = [*read(str(tmp_path), "https://example.com/docs"), *read(str(tmp_path))]
    assert all(isinstance(item, RawPage) for item in items)
    assert [i.url for i in items if isinstance(i, RawPage)] == [
        "https://example.com/docs/view.php?id=3&s=1",
        file.as_uri().replace("%26", "&").replace("%3D", "="),
    ]


def test_an_address_without_a_host_takes_folders_for_hosts(tmp_path: Path) -> None:
    (tmp_path / "h.example:8080" / "docs").mkdir(parents=True)
    write(tmp_path / "h.example:8080" / "docs" / "go?to=http:%2F%2Fe.example%2F", HTML.encode())
    assert [item.url for item in read(str(tmp_path), "https://") if isinstance(item, RawPage)] == [
        "https://h.example:8080/docs/go?to=http:%2F%2Fe.example%2F"
    ]


def test_a_page_beside_the_folders_of_hosts_is_named(tmp_path: Path) -> None:
    """HTTrack's own index was a page of the host ``index.html``."""
    write(tmp_path / "index.html", HTML.encode())
    (broken,) = read(str(tmp_path), "https://")
    assert broken == Broken(str(tmp_path / "index.html"), HOSTLESS.format("https://"))


def test_of_what_is_no_page_no_more_is_read_than_tells_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk image ended the run for want of memory, and a file of the kernel's was waited for."""
    write(tmp_path / "one", HTML.encode())
    write(tmp_path / "waits", b"")
    for name in ("image", "image.html"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 40)
    monkeypatch.setattr("clusterd.ingest.folder.MOST", 1 << 20)
    opened: list[str] = []
    monkeypatch.setattr(Path, "open", lambda path, mode: opened.append(path.name) or path_open(path, mode))
    image, page = pages_of(tmp_path)
    assert (Path(image.where).name, len(image.body or b"")) == ("image.html", 1 << 20)
    assert page.body == HTML.encode()
    assert sorted(opened) == ["image", "image.html", "one"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "one.html", HTML.encode())
    (tmp_path / "locked").mkdir()
    scandir = os.scandir

    def locked(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)
    page, broken = read(str(tmp_path))
    assert isinstance(page, RawPage)
    assert broken == Broken(str(tmp_path / "locked"), "cannot be read: Permission denied")


def test_what_is_packed_and_broken_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(HTML.encode())[:-9])
    (broken,) = read(str(tmp_path))
    assert isinstance(broken, Broken)
    assert (broken.where, broken.reason.partition(":")[0]) == (
        str(tmp_path / "a.html.gz"),
        "it begins like gzip, but is broken",
    )


def test_a_page_about_an_archive_keeps_the_end_of_its_url(tmp_path: Path) -> None:
    """Three of them were one URL, three times fetched: endings of packed files were left out of what is not packed."""
    names = [f"get.php?file=a.tar{ending}" for ending in (".bz2", ".gz", ".xz")]
    for name in names:
        write(tmp_path / name, HTML.format(name).encode())
    urls = [item.url for item in read(str(tmp_path), "http://h.example") if isinstance(item, RawPage)]
    assert urls == [f"http://h.example/{name}" for name in names]
    file = write(tmp_path / "one.html", HTML.format("one").encode())
    (page,) = read(str(file), "http://h.example/a.tar.xz")
    assert isinstance(page, RawPage)
    assert page.url == "http://h.example/a.tar.xz"


def test_xhtml_is_told_by_its_name(tmp_path: Path) -> None:
    file = write(tmp_path / "one.xhtml", b'<html><head><script src="x"/></head><body><p>seen</p></body></html>')
    write(tmp_path / "two.xhtml.gz", gzip.compress(file.read_bytes()))
    assert [page.content_type for page in pages_of(tmp_path)] == ["application/xhtml+xml"] * 2
    assert document(str(file), None, TEXT).text == "seen\n"


def test_a_single_page(tmp_path: Path) -> None:
    file = write(tmp_path / "one.html", HTML.format("one").encode())
    assert [page.url for page in pages_of(file)] == [file.as_uri()]


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone.html").symlink_to("absent.html")
    (tmp_path / "gone.png").symlink_to("absent.png")
    assert list(read(str(tmp_path))) == [
        Broken(str(tmp_path / "gone.html"), "cannot be read: No such file or directory")
    ]


def test_a_packed_page_that_is_damaged_within_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(9_000), 0))
    packed[-6] ^= 1  # of the checksum, far behind what is unpacked at first
    write(tmp_path / "a.html", bytes(packed))
    (broken,) = read(str(tmp_path))
    assert isinstance(broken, Broken)
    assert broken.reason.startswith("it begins like gzip, but is broken: Error -3")
