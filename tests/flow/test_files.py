"""Sites where some of a parameter's URLs are files: pages of the others say nothing of these."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.crawler.crawling import LEARNED, crawl
from tests.crawler.site import html, prose
from tests.flow.serving import serving

PAGES = 200
SETTINGS = {"ROBOTSTXT_OBEY": False}


def test_files_beside_pages_are_fetched(tmp_path: Path) -> None:
    """``view`` mostly shows the page once more, and now and then a file; ``sid`` never matters."""
    files = set(random.Random(3).sample(range(PAGES), PAGES // 7))
    served: Counter[str] = Counter()

    def page(path: str) -> bytes:
        name, _, query = path.partition("?")
        number = int(name.rpartition("/")[2])
        if "view" in query and number in files:
            served[f"file {number}"] += 1
            return b"%PDF-1.7 " + prose(f"file {number}").encode()
        served[f"page {number}"] += 1
        return html("page", prose(name), [])

    with serving(page) as site:
        forms = ("/topic/{}", "/topic/{}?view=1", "/topic/{}?sid=a{}")
        urls = [site + form.format(n, n) for n in range(PAGES) for form in forms]
        random.Random(1).shuffle(urls)
        pause = {"pause": 3}
        quarter = len(urls) // 4
        steps = [step for at in range(0, 3 * quarter, quarter) for step in (*urls[at : at + quarter], pause)]
        steps += [LEARNED, *urls[3 * quarter :]]
        crawled = crawl(tmp_path, steps, SETTINGS)
    skipped = [url for url, *_ in crawled.skipped]
    assert len(served) == PAGES + len(files)
    assert not any("view" in url for url in skipped)
    assert any("sid" in url for url in skipped)
