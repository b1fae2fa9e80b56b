"""Requests that are rewritten to a key that was linked; what is remembered of links and of the keys that came."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.pages.reporter import Page, Seen
from clusterd_crawler.crawling.pages.rewritten import Rewritten
from clusterd_crawler.crawling.requests.kinds import LED, READ
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.crawling.requests.rewriting import META, Rewriting, is_rewritten, original
from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from tests.crawler.changing import Changing, Spider
from tests.crawler.crawling import ALL_STATUS, ONE_BY_ONE, REST, Crawling, at, crawl, publish_rules, sid_rules
from tests.crawler.site import Site


def test_a_key_that_came_is_known_and_what_is_no_url_is_not() -> None:
    rewriting = Rewriting()
    rewriting.linked("http://h.com/a")
    instead = rewriting.rewritten(Request("http://h.com/a?sid=1"), "http://h.com/a")
    assert instead is not None
    rewriting.came(instead, "r1")
    assert rewriting.has_come("http://h.com/a") == "r1"
    assert rewriting.has_come("http://no%20host/") is None
    rewriting.broke_off(instead)
    assert rewriting.has_come("http://h.com/a") is None


def test_what_the_spider_has_put_into_the_meta_of_a_rewritten_request_stays() -> None:
    rewriting = Rewriting()
    rewriting.linked("http://h.com/a")
    own = {"redirect_to": "basket"}
    instead = rewriting.rewritten(
        Request("http://h.com/a?sid=1", meta={**own, "redirect_urls": ["/"]}), "http://h.com/a"
    )
    assert instead is not None
    assert instead.meta == {**own, META: "http://h.com/a?sid=1"}
    linked = original(instead)
    assert linked is not None
    assert linked.meta == {**own, META: ""}


P, Q, K = (f"http://h.com/{name}" for name in "pqk")


@pytest.mark.parametrize(
    ("url", "meta", "rewritten"),
    [
        (P, {}, True),
        (P, {"redirect_urls": [K]}, True),
        # The spider has read its page, and asks for it again, …
        (P, {READ: P}, True),
        (P, {READ: P, LED: [K], "redirect_urls": [K]}, True),
        (Q, {READ: P, LED: [K], "redirect_urls": [K, P]}, True),
        # … or for another one with its meta, which may lead back.
        (Q, {READ: P}, False),
        (P, {READ: P, LED: [K], "redirect_urls": [K, Q]}, False),
    ],
)
def test_which_request_was_rewritten(url: str, meta: dict[str, Any], rewritten: bool) -> None:
    assert is_rewritten(Request(url, meta={META: "/p?sid=1", **meta})) is rewritten


def test_the_crawl_does_not_end_while_it_is_decided_about_a_link_whose_page_came(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing, rewriting = Changing(tmp_path, memory=10), Rewriting()
        purposes = Purposes(Spider(), Settings())
        rewritten = Rewritten(rewriting, changing.decisions, purposes, changing.changes, lambda url, skip: True)
        rewriting.linked("http://h.com/a")
        instead = rewriting.rewritten(Request("http://h.com/a?sid=1"), "http://h.com/a")
        assert instead is not None
        page = Page("http://h.com/a", 1, instead, HtmlResponse("http://h.com/a"))
        linked = rewritten.linked(page, Seen((), 7, good=True))
        assert linked is not None
        deciding = rewritten.came(page, linked)
        assert rewritten.busy
        await deciding
        assert (rewritten.busy, changing.fetched) == (False, ["http://h.com/a?sid=1"])

    asyncio.run(scenario())


def test_a_request_is_rewritten_to_a_key_that_was_linked(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """The key's own request, still queued, is spared; a key that nobody linked is never asked for."""
    publish_rules(redis_url, prefix, sid_rules(site))
    one = settings | ONE_BY_ONE | ALL_STATUS | {"CLUSTERD_REWRITE": True, "DOWNLOAD_DELAY": 0.3}
    missing = {"url": "/missing?sid=bad", "options": {"priority": 1}}
    first = {"url": "/page/1?sid=a", "options": {"priority": 2}}
    # The rule is to arrive before the others are asked for; /page/3 holds the slot until all are queued.
    steps = ["/", REST, "/page/3", first, "/page/1", "/page/2?sid=b", missing, "/missing"]
    done = crawl(tmp_path, at(site, steps), one)
    assert sorted(done.paths()) == sorted(["/", "/page/3", "/page/1", "/page/2?sid=b", "/missing?sid=bad", "/missing"])
    assert site.hits["/page/1"] == 1
    assert site.hits["/page/2"] == site.hits["/page/1?sid=a"] == 0
    assert done.stat("rewritten") == 2
    assert [skip[:2] for skip in done.skipped] == [[f"{site.url}/page/1", "r1"]]


def test_the_own_request_of_a_key_waits_for_one_that_was_rewritten_to_it(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    two = settings | {"CLUSTERD_REWRITE": True, "CONCURRENT_REQUESTS": 2}
    # Two hold the slots until all are queued; the key's own request is sent while the other's page is on its way.
    between = [f"/page/{n}" for n in range(5)]
    queued = [{"url": url, "options": {"priority": -n}} for n, url in enumerate(["/slow/1?sid=a", *between, "/slow/1"])]
    done = crawl(tmp_path, at(site, ["/", REST, "/slow/8", "/slow/9", *queued]), two)
    assert (site.hits["/slow/1"], site.hits["/slow/1?sid=a"]) == (1, 0)
    assert (done.stat("rewritten"), done.stat("awaited"), done.stat("skipped")) == (1, 1, 1)


def test_an_unskipped_url_is_rewritten_to_no_other(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site, unskip=(f"{site.url}/page/1?sid=a",)))
    one = settings | ONE_BY_ONE | {"CLUSTERD_REWRITE": True, "DOWNLOAD_DELAY": 0.3}
    first = [{"url": f"/page/{n}?sid=a", "options": {"priority": 2}} for n in (1, 2)]
    done = crawl(tmp_path, at(site, ["/", REST, "/page/3", *first, "/page/1", "/page/2"]), one)
    assert sorted(done.paths()) == ["/", "/page/1?sid=a", "/page/2", "/page/3"]
    assert done.stat("rewritten") == 1


def test_a_key_whose_page_broke_off_keeps_nothing_out(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Nobody knows yet whether what was linked in its place shows the same."""
    publish_rules(redis_url, prefix, sid_rules(site))
    one = settings | ONE_BY_ONE | {"CLUSTERD_REWRITE": True, "DOWNLOAD_DELAY": 0.3}
    options = {"callback": "break_off", "priority": 2}
    first, key = {"url": "/page/1?sid=a", "options": options}, {"url": "/page/1", "options": {**options, "priority": 0}}
    # What is missing holds the slot until all are queued.
    done = Crawling(tmp_path, at(site, ["/", REST, "/missing", first, key]), one).result()
    assert done.paths() == ["/", "/page/1", "/page/1?sid=a", "/page/1"]
