"""Pages that all show the same may lead to pages that do not: these are to be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.pages.item_files import ItemFiles
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping import leading
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.leading import LATEST
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from tests.crawler.crawling import crawl, publish_rules
from tests.crawler.site import PAGES, Site

HOST = "h.com"
TO = Key(name="to")
CONTEXT = (Condition(TO, "any"),)
#: The two ways to say that all pages are one.
ONE_PAGE = {
    "family": Rule("family", HOST, CONTEXT, (Edit(Key(), "family"),)),
    "no parameter": Rule("dropped", HOST, CONTEXT, (Edit(TO, "delete"),)),
}
WALL = 5


@pytest.fixture(params=ONE_PAGE)
def rule(request: pytest.FixtureRequest) -> Rule:
    return ONE_PAGE[request.param]


@pytest.fixture
def known(rule: Rule) -> KnownPages:
    made = KnownPages(explore=0)
    made.load(RuleSet(HOST, 1, (rule,)))
    return made


def leave(number: int) -> str:
    return f"http://{HOST}/leave?to={number}"


def fetch(known: KnownPages, number: int, leads_on: bool) -> None:
    """Fetch a page that shows what all do, and what it leads to: something new, or what is known."""
    known.fetched(leave(number), number, content=WALL)
    via = leave(number).replace(HOST, f"{HOST}:80")
    known.fetched(f"http://{HOST}/p/{number}", number, content=100 + number if leads_on else WALL, via=via)


def is_skipped(known: KnownPages) -> bool:
    return known.decide(leave(10**6), 10**6) is not None


def test_no_skip_rests_on_pages_that_lead_to_something_new(known: KnownPages, rule: Rule) -> None:
    fetch(known, 1, leads_on=True)
    for version in range(2, 6):  # as where another rule of the host comes, or goes
        assert is_skipped(known)
        known.load(RuleSet(HOST, version, (rule,)))
    assert is_skipped(known)
    assert not known.reopened()
    for number in (2, 3):
        fetch(known, number, leads_on=True)
    assert not is_skipped(known)
    assert known.reopened() == {rule.id}
    assert not known.reopened()


def test_a_family_bears_no_skip_once_two_of_its_latest_pages_lead_on() -> None:
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (ONE_PAGE["family"],)))
    for number in (1, 2):
        assert is_skipped(known) == (number == 2)
        fetch(known, number, leads_on=True)
    assert not is_skipped(known)
    assert known.reopened() == {"family"}


def test_a_page_that_is_told_of_again_counts_once(known: KnownPages) -> None:
    """Crawlers of one crawl hear of their own pages from the daemon, too, and fetch pages that another one fetched."""
    fetch(known, 1, leads_on=True)
    for at in (1, 1, 2, 3):
        known.fetched(leave(1), at, content=WALL)
    assert is_skipped(known)
    assert not known.reopened()


def test_a_rule_that_comes_later_finds_where_its_pages_led(rule: Rule) -> None:
    known = KnownPages(explore=0)
    for number in range(3):
        fetch(known, number, leads_on=True)
    known.load(RuleSet(HOST, 1, (rule,)))
    assert not is_skipped(known)


def test_pages_that_lead_nowhere_are_skipped(known: KnownPages) -> None:
    for number in range(30):
        fetch(known, number, leads_on=False)
    assert is_skipped(known)


def test_who_led_somewhere_first_says_less_the_more_lead_nowhere(known: KnownPages) -> None:
    for number in range(3):
        fetch(known, number, leads_on=True)
    for number in range(3, LATEST + 3):
        fetch(known, number, leads_on=False)
    assert is_skipped(known)


def fetch_lists(known: KnownPages, lists: int, leads_on: bool) -> None:
    """Fetch three pages of each of some lists, which all show one text; the first leads on, the others as said."""
    for number in range(lists):
        for page in range(3):
            url = f"http://{HOST}/list-{number}?to={page}"
            known.fetched(url, page, content=10**6 + number)
            content = 1000 + 10 * number + page if leads_on or not page else WALL
            known.fetched(f"{url.replace('list', 'item')}-x", page, content=content, via=url)


@pytest.mark.parametrize("comes_later", [False, True])
@pytest.mark.parametrize("leads_on", [False, True])
def test_no_skip_rests_on_a_rule_whose_further_pages_lead_to_something_new(leads_on: bool, comes_later: bool) -> None:
    """Also where one page of a key was fetched so far, as the first of each list of pictures."""
    rule = Rule("dropped", HOST, (Condition(TO, "any"), Condition(Key(), "only", ("to",))), (Edit(TO, "delete"),))
    known = KnownPages(explore=0)
    if not comes_later:
        known.load(RuleSet(HOST, 1, (rule,)))
    fetch_lists(known, 4, leads_on)
    if comes_later:
        known.load(RuleSet(HOST, 1, (rule,)))
    else:
        assert known.reopened() == ({rule.id} if leads_on else set())
    known.fetched(f"http://{HOST}/list-9?to=1", 1, content=9)
    for url in (f"http://{HOST}/list-9?to=2", f"http://{HOST}/list-9"):
        assert (known.decide(url, 2) is None) == leads_on


def test_a_page_that_led_somewhere_is_forgotten_with_the_page(rule: Rule) -> None:
    known = KnownPages(explore=0, limit=4)
    known.load(RuleSet(HOST, 1, (rule,)))
    for number in range(100):
        fetch(known, number, leads_on=True)
        (held,) = known._hosts.values()
        assert held.leading is not None
        assert len(held.leading.led) <= 4


def test_keys_that_lead_somewhere_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "KEYS", 3)
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (ONE_PAGE["no parameter"],)))
    for number in range(20):
        page = f"http://{HOST}/{number}"
        known.fetched(page, number, content=WALL)
        known.fetched(f"{page}/next", number, content=100 + number, via=page)
        (held,) = known._hosts.values()
        assert held.leading is not None
        assert len(held.leading._counts) <= 3


@pytest.mark.parametrize("how", ONE_PAGE)
@pytest.mark.parametrize("start", ["/leaves", "/downloads"])
def test_what_alike_pages_lead_to_is_reached(
    start: str, how: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Pages and files. What was skipped before it was known where they lead is asked for after all.

    Several requests are on their way at once, so that some lead on though none is explored.
    """
    rule = Rule(how.split()[0], site.host, CONTEXT, ONE_PAGE[how].transformation)
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    done = crawl(tmp_path, [site.url + start], settings | {"CLUSTERD_EXPLORE": 0}, follow=True)
    led_to = "/page/" if start == "/leaves" else "/image.png?"
    assert sum(path.startswith(led_to) for path in done.paths()) == PAGES
    assert done.stat("requeued") > 0


def test_pages_of_which_the_pipelines_take_files_are_read(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    rule = Rule("dropped", site.host, CONTEXT, (Edit(TO, "delete"),))
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    more = {"CLUSTERD_EXPLORE": 0, "DEPTH_LIMIT": 1}
    done = crawl(tmp_path, [f"{site.url}/downloads"], settings | more, follow=True, files=True)
    assert len(done.seen) == PAGES + 1
    assert done.stat("requeued") > 0


def test_files_that_items_name_are_reached_once() -> None:
    """By the fields of Scrapy's media pipelines, or those that the settings name in their place."""
    led: list[str] = []
    files = ItemFiles(Settings({"FILES_URLS_FIELD": "papers"}), led.append)
    page, other = (HtmlResponse(f"http://{HOST}/{name}#top") for name in ("page", "other"))
    for item in ({"name": "no file"}, {"papers": None}, {"image_urls": ["/1.png"]}, {"papers": ["/1.pdf", "/2.pdf"]}):
        files.scraped(item, page)
    assert led == [f"http://{HOST}/page"] * 2
    files.scraped({"papers": ["/2.pdf"], "image_urls": ["/1.png"]}, other)
    files.scraped({"papers": ["/3.pdf"]}, None)
    files.scraped("no item", other)
    files.scraped({"papers": 2, "image_urls": "/3.png"}, other)
    assert led[2:] == []
    files.scraped({"papers": ["/2.pdf", "/4.pdf"]}, other)
    assert led[2:] == [f"http://{HOST}/other"]
