"""Sites that redirect: links that only lead to one page are soon not asked for, and what is blocked is not lost."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.crawler.crawling import LEARNED, Crawled, crawl
from tests.crawler.site import html, prose
from tests.flow.serving import serving

PAGES = 240
SETTINGS = {"CLUSTERD_EXPLORE": 0.05, "ROBOTSTXT_OBEY": False}


def halves(folder: Path, urls: list[str], *between: dict[str, bool]) -> Crawled:
    """Crawl half of the pages, and the rest after a while."""
    random.Random(1).shuffle(urls)
    steps = [*urls[: len(urls) // 2], {"pause": 4}, *between, *urls[len(urls) // 2 :]]
    return crawl(folder, steps, SETTINGS)


def test_links_that_lead_to_the_log_in_page_are_soon_not_asked_for(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def page(path: str) -> bytes | str:
        asked[path.split("/")[1].partition("?")[0]] += 1
        if path.startswith(("/edit/", "/watch")):
            return f"/login?next={path}"
        return html("page", prose("" if path.startswith("/login") else path), [])

    with serving(page) as site:
        forms = ("/wiki/{}", "/edit/{}", "/watch?page={}")
        crawled = halves(tmp_path, [site + form.format(n) for n in range(PAGES) for form in forms], LEARNED)
    assert sum("/wiki/" in one["url"] for one in crawled.seen) == asked["wiki"] == PAGES
    for form in ("edit", "watch"):
        assert asked[form] < 0.8 * PAGES
    assert asked["login"] == asked["edit"] + asked["watch"]


def test_what_a_site_blocks_for_a_while_is_fetched_later(tmp_path: Path) -> None:
    """Every page is linked with two sessions, and for a time whatever is asked for leads to another page."""
    served: Counter[str] = Counter()
    blocked: Counter[str] = Counter()

    def page(path: str) -> bytes | str:
        name = path.partition("?")[0]
        if name == "/busy":
            return html("busy", prose("busy"), [])
        if 0.9 * PAGES < served.total() + blocked.total() < 1.2 * PAGES:
            blocked[name] += 1
            return f"/busy?for={name}"
        served[name] += 1
        return html("page", prose(name), [])

    with serving(page) as site:
        forms = ("/topic/{}?sid=a{}", "/topic/{}?sid=b{}")
        crawled = halves(tmp_path, [site + form.format(n, n) for n in range(PAGES) for form in forms])
    assert len(crawled.skipped) > PAGES / 4
    assert {f"/topic/{n}" for n in range(PAGES)} - served.keys() == {name for name in blocked if blocked[name] == 2}
