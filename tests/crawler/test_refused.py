"""Pages that come and that the spider is not given: other middlewares refuse them, or put others in their place."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd_crawler import fetches, topics
from clusterd_crawler.crawling.pages.reporter import Page, Reporter, Seen
from clusterd_crawler.crawling.pages.unread import Unread
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.message import Failure
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import Sketch
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from tests.crawler.crawling import REST, Crawling, crawl, publish_rules, published, sid_rule, tell
from tests.crawler.site import Site, html, prose
from tests.services.waiting import wait_until


class Refusing:
    """A downloader middleware between ours and the engine that lets nobody see the first page."""

    def process_response(self, request: Request, response: Response) -> Response | Request:
        return self.refuse(request, response) if request.url.endswith("/page/1") else response

    def refuse(self, request: Request, response: Response) -> Response | Request:
        raise IgnoreRequest("not wanted")


class Asking(Refusing):
    """… and asks for another page first."""

    def refuse(self, request: Request, response: Response) -> Response | Request:
        return request.replace(url=request.url.replace("/page/1", "/page/2"), dont_filter=True)


class Replacing(Refusing):
    """… and shows another page in its place."""

    def refuse(self, request: Request, response: Response) -> Response | Request:
        return response.replace(body=html("another", prose("another"), []))


class Walling:
    """A downloader middleware that shows the log-in form to some sessions."""

    def process_response(self, request: Request, response: Response) -> Response:
        return response.replace(body=html("members", "log in", [])) if request.url.endswith("?sid=bad") else response


class Raising:
    """A spider middleware."""

    def process_spider_input(self, response: Response) -> None:
        if response.url.endswith("/page/1"):
            raise IgnoreRequest("not wanted")


#: How the first page is refused → the setting, and the pages that the spider sees.
REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "ignored": ({"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_refused.Refusing": 100}}, []),
    "another asked for": ({"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_refused.Asking": 100}}, ["/page/2"]),
    "another shown": ({"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_refused.Replacing": 100}}, ["/page/1"]),
    "by the spider's side": ({"SPIDER_MIDDLEWARES": {"tests.crawler.test_refused.Raising": 900}}, []),
}


@pytest.mark.parametrize("times", [0, 1])
def test_a_page_that_the_spider_asks_for_again_keeps_no_other_out(
    times: int, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Whether it is given up at last is not said. One that the spider may not ask for again is a page as any other."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    asked = [{"url": f"{site.url}/page/1?sid={sid}", "options": {"callback": "ask_again"}} for sid in ("bad", "b")]
    steps = [f"{site.url}/page/0", REST, asked[0], REST, asked[1]]
    done = crawl(tmp_path, steps, settings | {"RETRY_TIMES": times, "LOG_LEVEL": "INFO"})
    assert done.paths() == ["/page/0", *["/page/1?sid=bad"] * (1 + times), *["/page/1?sid=b"] * times]
    bad = [type(one) for one in published(redis_url, prefix) if one.url == f"{site.url}/page/1?sid=bad"]
    # Others are told as soon as it is asked for, which may be long before it comes.
    assert bad == [Sketch, *[Failure, Failure, Sketch] * times]


def test_a_page_whose_form_goes_to_its_own_address_is_a_page_as_any_other(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    asked = [{"url": f"{site.url}/page/1{sid}", "options": {"callback": "post_back"}} for sid in ("", "?sid=a")]
    done = crawl(tmp_path, [f"{site.url}/", REST, asked[0], REST, asked[1]], settings)
    assert done.stat("skipped") == 1
    assert not [one for one in published(redis_url, prefix) if isinstance(one, Failure)]


@pytest.mark.parametrize(
    ("how", "cached"),
    [("ignored", False), ("another asked for", False), ("by the spider's side", False), ("by the spider's side", True)],
)
def test_a_page_that_the_spider_is_not_given_keeps_no_other_out(
    how: str, cached: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    refusing, instead = REFUSED[how]
    steps = [f"{site.url}/", REST, f"{site.url}/page/1", REST, f"{site.url}/page/1?sid=a"]
    steps += [REST, f"{site.url}/page/1?sid=b"]
    if cached:
        refusing = refusing | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for _ in range(1 + cached):
        done = crawl(tmp_path, steps, settings | refusing)
        assert done.paths() == ["/", *instead, "/page/1?sid=a"]
        assert done.stat("skipped") == 1


@pytest.mark.parametrize("how", ["ignored", "by the spider's side"])
def test_those_who_wait_for_a_page_that_is_refused_go_on(
    how: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Of two that wait, one is fetched then, and the other skipped."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    first, *others = (f"{site.url}/slow/page/1{query}" for query in ("", "?sid=a", "?sid=b"))
    done = crawl(tmp_path, [f"{site.url}/", REST, first, *others], settings | REFUSED[how][0])
    assert (done.stat("awaited"), done.stat("skipped")) == (2, 1)
    assert done.stats["elapsed_time_seconds"] < 60


def test_a_page_is_what_the_spider_is_shown(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Also where a middleware near the engine makes it, as those do that render pages in a browser."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    replacing, instead = REFUSED["another shown"]
    done = crawl(tmp_path, [f"{site.url}/", REST, f"{site.url}/page/1"], settings | replacing)
    assert done.paths() == ["/", *instead]
    crawl(tmp_path, [f"{site.url}/page/1"], settings)
    _, replaced, plain = published(redis_url, prefix)
    assert isinstance(replaced, Sketch)
    assert isinstance(plain, Sketch)
    assert replaced.url == plain.url
    assert replaced.main.text != plain.main.text


@pytest.mark.parametrize("rules", [False, True])
def test_others_are_told_of_a_page_that_the_spider_was_not_given(
    rules: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Crawlers of the crawl, and the crawl itself where it goes on: the page was published when it came."""
    if rules:
        publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    refusing, _ = REFUSED["by the spider's side"]
    crawl(tmp_path, [f"{site.url}/", REST, f"{site.url}/page/1"], settings | refusing)
    _, page, failure = published(redis_url, prefix)
    assert isinstance(page, Sketch)
    assert isinstance(failure, Failure)
    assert page.url == failure.url == f"{site.url}/page/1"
    assert failure.at > page.fetched_at


@pytest.mark.parametrize("late", [False, True], ids=["with rules", "before its rules"])
def test_a_page_whose_callback_raises_keeps_no_other_out(
    late: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """What it had not brought by then another URL of it brings; that serves for all further ones."""
    rules = RuleSet(site.host, 1, (sid_rule(site.host),))
    if not late:
        publish_rules(redis_url, prefix, rules)
    go = tmp_path / "go"
    urls = [f"{site.url}/page/1{query}" for query in ("", "?sid=a", "?sid=b")]
    first, second, third = ({"url": url, "options": {"callback": "break_off"}} for url in urls)
    running = Crawling(
        tmp_path,
        [f"{site.url}/", REST, first, {"file": str(go)}, {"heard": 1}, REST, second, REST, third],
        settings,
    )
    wait_until(lambda: site.hits["/page/1"])
    if late:
        publish_rules(redis_url, prefix, rules)
    go.touch()
    done = running.result()
    assert done.paths() == ["/", "/page/1", "/page/1?sid=a"]
    assert (done.stat("skipped"), done.stats["spider_exceptions/KeyError"]) == (1, 1)
    (failure,) = (message for message in published(redis_url, prefix) if isinstance(message, Failure))
    (page,) = (page for page in published(redis_url, prefix) if isinstance(page, Sketch) and page.url == failure.url)
    assert (failure.url, failure.at > page.fetched_at) == (urls[0], True)


class RaisingLater:
    """A spider middleware, and an item pipeline, that raises of the second page's item."""

    def __init__(self) -> None:
        self.taken = 0

    def take(self, item: Any) -> Any:
        self.taken += 1
        if self.taken == 2:
            raise KeyError("a fault of the project")
        return item

    def process_item(self, item: Any) -> Any:
        return self.take(item)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            yield self.take(one)


@pytest.mark.parametrize("place", ["SPIDER_MIDDLEWARES", "ITEM_PIPELINES"])
def test_a_page_whose_items_are_lost_behind_the_callback_keeps_no_other_out(
    place: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    raising = settings | {place: {"tests.crawler.test_refused.RaisingLater": 500}}
    steps = [step for query in ("", "?sid=a", "?sid=b") for step in (f"{site.url}/page/1{query}", REST)]
    done = Crawling(tmp_path, [f"{site.url}/near/1", REST, *steps], raising, files=True).result()
    assert done.paths()[1:] == ["/page/1", "/page/1?sid=a"]
    assert done.stat("skipped") == 1
    assert sum(isinstance(message, Failure) for message in published(redis_url, prefix)) == 1


def test_what_rested_on_a_page_of_another_crawler_is_fetched_where_that_fails(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Its callback raised there after it was known here."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    now, unused = time.time_ns() // 1_000_000, Key(name="unused")
    steps = [f"{site.url}/", REST, f"{site.url}/page/1?sid=a", {"heard": 3}]
    page, key = Fetch(f"{site.url}/page/1", now), fetches.key(site.host, "one")
    with redis.Redis.from_url(redis_url) as client:
        tell(client, prefix, topics.KNOWN, key, fetches.pack([page]))
        running = Crawling(tmp_path, steps, settings | {"CLUSTERD_CRAWL_ID": "one"})
        wait_until(lambda: "Skipped " in running.log())
        tell(client, prefix, topics.KNOWN, key, fetches.pack([replace(page, at=now + 1, good=False)]))
    # That it fails is looked at when the crawl would end: not before it is told, as is a rule that is told after it.
    more = Rule("r2", site.host, (Condition(unused, "any"),), (Edit(unused, "delete"),))
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, (sid_rule(site.host), more)))
    done = running.result()
    assert done.paths() == ["/", "/page/1?sid=a"]
    assert (done.stat("skipped"), done.stat("requeued")) == (1, 1)


def test_what_waited_for_a_page_whose_callback_raises_is_fetched(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """It was skipped when the page was given to the callback, which raised later."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    urls = [f"{site.url}/slow/page/1{query}" for query in ("", "?sid=a")]
    both = [{"url": url, "options": {"callback": "break_off"}} for url in urls]
    done = Crawling(tmp_path, [f"{site.url}/", REST, *both], settings).result()
    assert sorted(done.paths()) == ["/", "/slow/page/1", "/slow/page/1?sid=a"]
    assert (done.stat("skipped"), done.stat("requeued")) == (1, 1)


@pytest.mark.parametrize(("callback", "meanwhile"), [("read_strictly", REST), ("read_late", {"pause": 0.6})])
def test_what_a_spider_raises_on_speaks_against_no_rule(
    callback: str,
    meanwhile: dict[str, Any],
    site: Site,
    settings: dict[str, Any],
    redis_url: str,
    prefix: str,
    tmp_path: Path,
) -> None:
    """From the second such page of a crawl on: it does not count until the callback has had time to raise.

    However late it does, as far as others did so late.
    """
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    strictly = {"callback": callback, "dont_filter": True}
    walls = [{"url": f"{site.url}/page/{n}?sid=bad", "options": strictly} for n in (0, 1)]
    pages = [{"url": f"{site.url}/page/1{sid}", "options": {"callback": callback}} for sid in ("", "?sid=a")]
    steps = [f"{site.url}/", REST, walls[0], REST, pages[0], REST, walls[1], meanwhile, pages[1]]
    walling = {"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_refused.Walling": 100}}
    done = Crawling(tmp_path, steps, settings | walling).result()
    assert done.paths() == ["/", "/page/0?sid=bad", "/page/1", "/page/1?sid=bad"]
    assert [url for url, *_ in done.skipped] == [f"{site.url}/page/1?sid=a"]


def test_a_page_may_wait_for_its_verdict_for_as_long_as_is_allowed() -> None:
    """Others that come meanwhile do not make it one that was refused."""
    known: list[str] = []
    unread = Unread(lambda page, seen: known.append(page.url), lambda *_: False, Reporter(Settings(), "c"), waiting=60)
    pages = [Page(f"http://h.com/{at}", at, Request("http://h.com/"), Response("http://h.com/")) for at in (0, 70_000)]
    for page in pages:
        unread.came(page, awaited=False)
        unread.seen(page, Seen((), 1, True))
    for page in pages:
        unread.read(page.response)
    assert known == ["http://h.com/0", "http://h.com/70000"]
