"""Documents that are asked with: a URL of the store, a file, a text, standard input."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from clusterd.ingest.contents import is_html
from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.page import sketch_page
from clusterd_crawler.sketch import TEXT

from clusterd import queries
from tests.clusterd.made_up_site import Site, url, words


@pytest.fixture
def site() -> Site:
    return Site()


class TestDocuments:
    def test_html_and_text_are_told_apart_by_content(self, tmp_path: Path) -> None:
        html = b"<html><body><nav><a href=/>home</a></nav><main><p>" + words(1).encode() + b"</p></main></body></html>"
        for name, data in (
            ("page.txt", html),
            ("page.html", words(1).encode()),
            ("page.gz", gzip.compress(html)),
            ("page.zst", zstandard.compress(html[:9]) + zstandard.compress(html[9:])),
        ):
            (tmp_path / name).write_bytes(data)
        found = [queries.document(str(file), None, TEXT) for file in sorted(tmp_path.iterdir())]
        assert len({one.sketch.values for one in found}) == 1
        assert found[0].tokens == tuple(words(1).split())
        assert found[0].sketch == sketch_page("http://a/", html, "text/html", fetched_at=0).main

    @pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
    def test_what_unpacks_to_more_than_a_page_may_have_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
    ) -> None:
        monkeypatch.setattr("clusterd.ingest.contents.MOST", 1000)
        (tmp_path / "page.html").write_bytes(pack(b"<p>" + b"a" * 998))
        with pytest.raises(WrongInput, match=r"page\.html is packed and holds more than 1000 bytes"):
            queries.document(str(tmp_path / "page.html"), None, TEXT)
        (tmp_path / "page.html").write_bytes(pack(b"<p>" + b"a" * 997))
        assert queries.document(str(tmp_path / "page.html"), None, TEXT).text == "a" * 997

    def test_what_has_no_end_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It was read until there was no memory left."""
        monkeypatch.setattr("clusterd.queries.documents.MOST", 1000)
        with pytest.raises(WrongInput, match="/dev/zero holds more than 1000 bytes"):
            queries.document("/dev/zero", None, TEXT)
        with open("/dev/zero", "rb") as zero:
            monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=zero))
            with pytest.raises(WrongInput, match="the input holds more than 1000 bytes"):
                queries.document("-", None, TEXT)

    @pytest.mark.parametrize(
        ("data", "html"),
        [
            (b"<!DOCTYPE html><html>", True),
            ("<p>Größe</p>".encode("utf-16"), True),
            (b"if a < b and c > d", False),
            (b"<note> not a page", False),
            (b"", False),
            (b"<span>one</span><ul><li>two</li></ul>", True),
            (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- " + 3000 * b"licence " + b"-->\n<HTML>", True),
            ("<!-- Größe --><main>".encode("utf-16"), True),
            (b"<!-- a comment that is not closed <p>", True),
            (b"<stdio.h> is included; a < b", False),
            (b"<!-- note --> only words", False),
            (b"<?xml version='1.0'?><svg><text>a drawing</text></svg>", False),
        ],
    )
    def test_is_html(self, data: bytes, html: bool) -> None:
        assert is_html(data) is html

    @pytest.mark.parametrize(
        "data",
        [b"\x89PNG\r\n\x1a\n" + bytes(90), b"%PDF-1.7 words", b"\x1f\x8b\x08 cut", zstandard.compress(b"words")[:-2]],
    )
    def test_a_file_that_is_no_text_is_refused_by_its_name(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "picture.html").write_bytes(data)
        with pytest.raises(WrongInput, match=r"picture\.html.* (no text|broken)"):
            queries.document(str(tmp_path / "picture.html"), None, TEXT)

    def test_a_book_is_asked_with_without_a_list_of_its_words(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That took four times as long as its three sketches, and a hundred bytes a word."""
        site.add(url("book"), words(1))
        monkeypatch.setattr("clusterd.queries.documents.tokens", pytest.fail)
        asked = queries.document("text:" + words(1), site.index, TEXT)
        assert [hit.url for hit in queries.similar(site.index, asked, TEXT)] == [url("book")]
        assert queries.compare(asked, queries.document(url("book"), site.index, TEXT), TEXT).exact is None

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"one two three")))
        assert queries.document("-", None, TEXT).tokens == ("one", "two", "three")

    def test_standard_input_as_a_whole_page(self, monkeypatch: pytest.MonkeyPatch) -> None:
        html = b"<html><body><nav>home and more</nav><main><p>" + words(1).encode() + b"</p></main></body></html>"
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(html)))
        assert queries.document("-", None, TEXT, "whole").tokens == ("home", "and", "more", *words(1).split())

    def test_what_is_not_there(self, site: Site, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match="clusterd ingest"):
            queries.document(url("never"), site.index, TEXT)
        with pytest.raises(WrongInput, match="No such file"):
            queries.document(str(tmp_path / "nothing"), site.index, TEXT)
        with pytest.raises(WrongInput, match=r"^an empty name; give"):
            queries.document("", site.index, TEXT)

    def test_a_url_too_long_for_a_file_name_is_a_url(self, site: Site) -> None:
        with pytest.raises(NotFound):
            queries.document("https://a.example/" + "x/" * 3000, site.index, TEXT)
