"""What a row of a table of pages says, as JSON lines and Parquet have it, and how much of it is taken."""

from __future__ import annotations

import base64
import json
import math
from io import BytesIO

import pytest
from clusterd.ingest.jsonl import read_jsonl
from clusterd.ingest.raw import Broken
from clusterd.ingest.rows import page_of
from clusterd.ingest.sketching import Sketching, beginning
from clusterd_crawler.sketch import TEXT, Sketch

OPTIONAL = ("id", "html_b64", "html", "text", "content_type", "fetched_at", "sweep", "status")


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ({"html_b64": base64.b64encode(b"<p>x").decode()}, "<p>x"),
        ({"html": "<p>x"}, "<p>x"),
        ({"html": b"<p>x"}, "<p>x"),
        ({"text": "x"}, "x"),
        ({}, ""),
    ],
)
def test_an_empty_text_leaves_a_field_open(content: dict[str, object], shown: str) -> None:
    """As in what was made of CSV: such a page had no words, or was refused for its date."""
    row = {"url": "", "metadata": {"url": "http://a/1"}, **dict.fromkeys(OPTIONAL, ""), **content}
    page = page_of(row, "here")
    assert (page.url, page.status, page.fetched_at, page.id, page.sweep) == ("http://a/1", 200, None, None, "")
    assert page.content_type.startswith("text/plain" if page.body is None else "text/html")
    assert ((page.body or b"").decode() or page.text or "") == shown


def test_nan_leaves_a_field_open_as_null_does() -> None:
    """What pandas has for a gap, `json.dumps` writes so: the row was refused, or its sweep was called nan."""
    row = {"url": "http://a/1", "text": "x", "metadata": math.nan, **dict.fromkeys(set(OPTIONAL) - {"text"}, math.nan)}
    (page,) = read_jsonl(BytesIO(json.dumps(row).encode()), "pages")
    assert page == page_of({"url": "http://a/1", "text": "x"}, "pages:1")


def test_base64_may_have_lines() -> None:
    page = b"<p>" + b"more than a line of what base64 writes " * 5
    assert page_of({"url": "http://a/", "html_b64": base64.encodebytes(page).decode()}, "here").body == page


@pytest.mark.parametrize(
    ("text", "most", "begins"),
    [
        *(("words", 20, "words"), ("words", 5, "words"), ("words", 4, "word")),
        *(("\u00e4\u00f6", 4, "\u00e4\u00f6"), ("\u00e4\u00f6", 3, "\u00e4"), ("\u00e4\u00f6x", 4, "\u00e4\u00f6")),
        *(("\u5bf8\u6cd5", 2, ""), ("\U0001f600x", 4, "\U0001f600"), ("a\ud800b", 20, "a\ud800b")),
    ],
)
def test_the_beginning_of_a_text_is_as_much_as_so_many_bytes_hold(text: str, most: int, begins: str) -> None:
    assert beginning(text, most) == begins


@pytest.mark.parametrize("content", [{"text": "words"}, {"html": "<p>words"}])
def test_what_a_run_is_called_is_said_of_each_page(content: dict[str, object]) -> None:
    pages = [page_of({"url": "http://a/", **content, **own}, "here") for own in ({}, {"sweep": "own"})]
    made = Sketching(TEXT, sweep="sweep", crawl="crawl").messages(pages)
    assert [(one.crawl, one.sweep) for one in made if isinstance(one, Sketch)] == [("crawl", "sweep"), ("crawl", "own")]


def test_a_text_that_is_refused_is_no_file() -> None:
    refused: list[Broken] = []
    page = page_of({"url": "http://a/", "text": "x", "sweep": "\ud800"}, "here")
    assert list(Sketching(TEXT, rejecting=refused.append).messages([page])) == []
    assert [one.where for one in refused] == ["here"]


def test_a_line_that_is_nested_without_end_costs_no_other() -> None:
    lines = b"[" * 200_000 + b'\n{"url": "http://a/", "text": "x"}\n'
    broken, page = read_jsonl(BytesIO(lines), "pages")
    assert isinstance(broken, Broken)
    assert (broken.where, broken.ends) == ("pages:1", False)
    assert "not JSON" in broken.reason
    assert not isinstance(page, Broken)
