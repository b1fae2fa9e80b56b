"""Who waits for a page of the same key, and until when: also where a middleware makes another request of a request."""

from __future__ import annotations

import asyncio
import weakref
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.requests.under_way import LEFT_SECONDS, NOTED, UnderWay
from clusterd_crawler.rules import RuleSet
from scrapy import Request

from tests.crawler.crawling import ALL_STATUS, MODES, REST, at, crawl, publish_rules, sid_rule, sid_rules
from tests.crawler.site import Site


class Replacing:
    """A downloader middleware, as those that sign URLs or log in: it answers a request with another one."""

    async def process_request(self, request: Request) -> Request | None:
        from clusterd_crawler.crawling.older_scrapy import sleep

        if "/page/" not in request.url or request.url.endswith("&signed=1"):
            return None
        await sleep(0.5)
        return request.replace(url=f"{request.url}&signed=1")


@pytest.mark.parametrize("mode", MODES)
def test_two_urls_of_one_key_at_once_are_fetched_once(
    mode: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    slow: list[Any] = [f"/slow/{n}?sid={sid}" for n in range(3) for sid in "ab"]
    # Scrapy takes a timeout of None for none that is stated.
    slow += [{"url": f"/slow/{n}?sid=c", "options": {"meta": {"download_timeout": None}}} for n in range(3)]
    done = crawl(tmp_path, at(site, ["/", REST, *slow]), settings | MODES[mode])
    assert sorted(path.partition("?")[0] for path in done.paths()) == ["/", "/slow/0", "/slow/1", "/slow/2"]
    assert done.stat("skipped") == 6
    assert done.stat("awaited") == 6
    assert done.stats["elapsed_time_seconds"] < 60


def test_a_page_waited_for_that_fails_is_fetched_under_the_other_url(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """By an error, and by a redirect, which never comes back to where the others wait."""
    publish_rules(redis_url, prefix, sid_rules(site))
    steps = ["/", REST, "/slow/1?sid=bad", {"pause": 0.3}, "/slow/1?sid=a", "/slow/1?sid=b"]
    steps += ["/slow/redir?sid=a", {"pause": 0.3}, "/slow/redir?sid=b"]
    done = crawl(tmp_path, at(site, steps), settings | ALL_STATUS)
    assert site.hits["/slow/1?sid=bad"] == site.hits["/slow/1?sid=a"] + site.hits["/slow/1?sid=b"] == 1
    assert site.hits["/slow/redir?sid=a"] == site.hits["/slow/redir?sid=b"] == 1
    assert done.stat("awaited") == 3
    assert done.stats["elapsed_time_seconds"] < 60


def test_few_wait_so_that_the_crawl_goes_on(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    slow = [f"/slow/0?sid={n}" for n in range(8)]
    few = settings | {"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
    done = crawl(tmp_path, at(site, ["/", REST, *slow]), few)
    assert 2 <= done.stat("awaited") <= 7
    assert 2 <= sum(hits for path, hits in site.hits.items() if path.startswith("/slow/")) <= 3
    assert len(done.seen) + done.stat("skipped") == 9


@pytest.mark.parametrize("pause", [0.2, 1.5])
def test_nobody_waits_for_a_request_that_was_replaced(
    pause: float, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    replacing = {"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_under_way.Replacing": 600}}
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    start, one, two = f"{site.url}/", f"{site.url}/page/1?sid=a", f"{site.url}/page/1?sid=b"
    done = crawl(tmp_path, [start, REST, one, {"pause": pause}, two], settings | replacing)
    assert done.stat("skipped") == 1
    assert sum(hits for path, hits in site.hits.items() if path.startswith("/page/")) == 1
    assert done.stats["elapsed_time_seconds"] < 60


def test_a_request_that_is_sent_again_under_another_key_leaves_the_first_one() -> None:
    downloading: set[Request] = set()
    under_way = UnderWay(8, downloading.__contains__)
    request = Request("http://h.com/?sid=1")
    downloading.add(request)
    assert under_way.begin("http://h.com/?sid=1", request)
    assert under_way.begin("http://h.com/", request)
    downloading.clear()
    under_way.end(request)
    assert under_way.begin("http://h.com/?sid=1", Request("http://h.com/?sid=2"))


def test_however_few_may_wait_all_do_for_a_page_that_is_here() -> None:
    """It waits for its verdict, and has lent its place among the downloads: one at a time (``CONCURRENT_REQUESTS``)."""

    async def wait(arrived: bool) -> bool:
        under_way, request = UnderWay(0), Request("http://h.com/?sid=1")
        assert under_way.begin("http://h.com/", request)
        if arrived:
            under_way.arrived(request)
        waiting = asyncio.create_task(under_way.ended("http://h.com/", 5))
        await asyncio.sleep(0)
        under_way.end(request)
        return await waiting

    assert asyncio.run(wait(arrived=True))
    assert not asyncio.run(wait(arrived=False))


def test_a_page_that_is_here_is_waited_for_until_it_is_read() -> None:
    """However long its verdict takes: that it had left the downloader says nothing any more."""

    async def is_waited_for() -> bool:
        under_way, request = UnderWay(8), Request("http://h.com/?sid=1")
        assert under_way.begin("http://h.com/", request)
        under_way.left(request)
        under_way.arrived(request)
        await asyncio.sleep(LEFT_SECONDS + 0.2)
        return not under_way.begin("http://h.com/", Request("http://h.com/?sid=2"))

    assert asyncio.run(is_waited_for())


def test_half_of_the_requests_may_wait_for_one_page_and_three_quarters_in_all() -> None:
    async def wait(*keys: str) -> list[bool]:
        under_way, requests = UnderWay(8), [Request(f"http://h.com/{key}") for key in "abcd"]
        for key, request in zip("abcd", requests, strict=True):
            assert under_way.begin(key, request)
        waiting = [asyncio.create_task(under_way.ended(key, 5)) for key in keys]
        await asyncio.sleep(0)
        for request in requests:
            under_way.end(request)
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(wait(*"aaaaab")) == [True] * 4 + [False, True]
    assert asyncio.run(wait(*"aabbccdd")) == [True] * 6 + [False] * 2


def test_as_many_may_wait_after_others_have() -> None:
    """Whatever became of their waiting: the page came, it took too long, or the crawl ended it."""

    async def wait() -> list[bool]:
        under_way, came = UnderWay(4), []
        for number in range(8):
            request = Request(f"http://h.com/{number}")
            assert under_way.begin("key", request)
            cancelled = asyncio.create_task(under_way.ended("key", 5))
            late = await under_way.ended("key", 0.001)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            waiting = [asyncio.create_task(under_way.ended("key", 5)) for _ in range(2)]
            await asyncio.sleep(0)
            under_way.end(request)
            came += [not late, *await asyncio.gather(*waiting)]
        return came

    assert asyncio.run(wait()) == [True] * 24


def test_requests_that_were_replaced_are_not_kept() -> None:
    downloading: set[Request] = set()
    under_way = UnderWay(8, downloading.__contains__)
    first = Request("http://h.com/first")
    downloading.add(first)
    assert under_way.begin("first", first)
    seen = []
    for number in range(3 * NOTED):
        request = Request(f"http://h.com/{number}")
        seen.append(weakref.ref(request))
        assert under_way.begin(str(number), request)
    del request
    assert sum(one() is not None for one in seen) <= NOTED
    assert not under_way.begin("first", Request("http://h.com/first?again"))


def test_nobody_waits_for_a_page_that_is_for_another_purpose(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """It would be sent all the same, only later. Two of one purpose are fetched once, whoever else has the key."""
    publish_rules(redis_url, prefix, sid_rules(site))
    urls = [(f"{site.url}/slow/1?sid={who}{n}", who) for n in range(2) for who in "abc"]
    slow = [{"url": url, "options": {"meta": {"cookiejar": who}}} for url, who in urls]
    done = crawl(tmp_path, [f"{site.url}/", REST, *slow], settings)
    assert sum(hits for path, hits in site.hits.items() if path.startswith("/slow/")) == 3
    assert done.stat("awaited") == done.stat("skipped") == 3
