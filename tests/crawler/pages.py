"""Pages made up for tests of their text, and what is read of them."""

from __future__ import annotations

from clusterd_crawler import text
from clusterd_crawler.page import sketch_page
from clusterd_crawler.sketch import Sketch

URL = "http://example.org/a/b?c=1"


def sketched(body: bytes | str, content_type: str | None = "text/html; charset=utf-8") -> Sketch:
    return sketch_page(URL, body.encode() if isinstance(body, str) else body, content_type, fetched_at=5)


def shown(html: str) -> str:
    return " ".join(text.plain(text.marked_text(html)[0]).split())


def main(html: str) -> str:
    return " ".join(text.main_part(text.marked_text(html)[0]).split())


STORY = "<p>" + "The fox that lives behind the old mill came back at dusk and waited there. " * 6 + "</p>"
