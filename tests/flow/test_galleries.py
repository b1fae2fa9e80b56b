"""Pages that have one text and show other pictures, or are made from other data: each of them is fetched."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.crawler.crawling import crawl
from tests.crawler.site import html

PAGES = 240


def picture(page: str) -> str:
    return f"<img src=/{random.Random(page).getrandbits(40):x}.jpg width=800>"


def data(page: str) -> str:
    return f'<div id=root></div><script type="application/json">"{random.Random(page).getrandbits(9_000):x}"</script>'


def nothing(page: str) -> str:
    return "<img src=/none.jpg>"


@contextmanager
def gallery(shown: Callable[[str], str]) -> Iterator[str]:
    """Serve pages that differ in what is shown besides one text."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = html("A gallery", f"<p>Ask before you use any of these.</p>{shown(self.path)}", [])
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def skipped(folder: Path, shown: Callable[[str], str], form: str) -> int:
    """Crawl half of the pages, and the rest after a while; return how many were not fetched."""
    with gallery(shown) as site:
        urls = [site + form.format(n) for n in range(PAGES)]
        random.Random(1).shuffle(urls)
        steps = [*urls[: PAGES // 2], {"pause": 4}, *urls[PAGES // 2 :]]
        crawled = crawl(folder, steps, {"CLUSTERD_EXPLORE": 0.05, "ROBOTSTXT_OBEY": False})
    assert len(crawled.seen) + len(crawled.skipped) == PAGES
    return len(crawled.skipped)


@pytest.mark.parametrize("form", ["/photo.php?id={}", "/comic/{}"])
@pytest.mark.parametrize("shown", [picture, data])
def test_no_picture_is_lost(shown: Callable[[str], str], form: str, tmp_path: Path) -> None:
    assert skipped(tmp_path, shown, form) == 0


def test_pages_that_show_one_picture_are_one_page(tmp_path: Path) -> None:
    assert skipped(tmp_path, nothing, "/photo.php?id={}") > PAGES / 4
