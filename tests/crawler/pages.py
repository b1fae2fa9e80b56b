"""Pages made up for tests of their text, and what is read of them."""

from __future__ import annotations

from unittest import mock

from clusterd_crawler import text
from clusterd_crawler.core import compiled
from clusterd_crawler.page import sketch_page
from clusterd_crawler.sketch import Sketch

URL = "http://example.org/a/b?c=1"


def sketched(body: bytes | str, content_type: str | None = "text/html; charset=utf-8") -> Sketch:
    return sketch_page(URL, body.encode() if isinstance(body, str) else body, content_type, fetched_at=5)


def marked(html: str) -> bytes:
    """Return the marked text of a page, which is the same with the compiled core and without it."""
    found = text.marked_text(html)
    with mock.patch.object(compiled, "CORE", None):
        assert text.marked_text(html) == found
    return found[0]


def shown(html: str) -> str:
    return " ".join(text.plain(marked(html)).split())


def main(html: str) -> str:
    return " ".join(text.main_part(marked(html)).split())


STORY = "<p>" + "The fox that lives behind the old mill came back at dusk and waited there. " * 6 + "</p>"
