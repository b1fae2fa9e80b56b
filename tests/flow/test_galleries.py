"""Pages that have one text and show other pictures, or are made from other data: each of them is fetched."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crawler.crawling import LEARNED, crawl
from tests.crawler.site import html
from tests.flow.serving import serving

PAGES = 240


def picture(page: str) -> str:
    return f"<img src=/{random.Random(page).getrandbits(40):x}.jpg width=800>"


def data(page: str) -> str:
    return f'<div id=root></div><script type="application/json">"{random.Random(page).getrandbits(9_000):x}"</script>'


def nothing(page: str) -> str:
    return "<img src=/none.jpg>"


def skipped(folder: Path, shown: Callable[[str], str], form: str) -> int:
    """Crawl half of the pages, and the rest after a while; return how many were not fetched.

    Where sixty pages were judged before there were 105, a rule says "nothing new in this crawl", and some of the pages
    that it kept out are fetched in the last look.
    """

    def page(path: str) -> bytes:
        return html("A gallery", f"<p>Ask before you use any of these.</p>{shown(path)}", [])

    with serving(page) as site:
        urls = [site + form.format(n) for n in range(PAGES)]
        random.Random(1).shuffle(urls)
        learned = [LEARNED] if shown is nothing else []
        steps = [*urls[: PAGES // 2], {"pause": 4}, *learned, *urls[PAGES // 2 :]]
        crawled = crawl(folder, steps, {"CLUSTERD_EXPLORE": 0.05, "ROBOTSTXT_OBEY": False})
    seen = {page["url"] for page in crawled.seen}
    assert len(seen) == len(crawled.seen)
    assert seen | {entry[0] for entry in crawled.skipped} == set(urls)
    return PAGES - len(seen)


@pytest.mark.parametrize("form", ["/photo.php?id={}", "/comic/{}"])
@pytest.mark.parametrize("shown", [picture, data])
def test_no_picture_is_lost(shown: Callable[[str], str], form: str, tmp_path: Path) -> None:
    assert skipped(tmp_path, shown, form) == 0


def test_pages_that_show_one_picture_are_one_page(tmp_path: Path) -> None:
    assert skipped(tmp_path, nothing, "/photo.php?id={}") > PAGES / 4
