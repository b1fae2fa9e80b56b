"""Two URLs of one key are two pages where different callbacks read them, or different sessions ask for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.skips import KnownPages
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider
from scrapy.spiders import Rule as LinkRule
from scrapy.utils.test import get_crawler

from tests.crawler.crawling import crawl, publish_rules, sid_rule
from tests.crawler.site import Site

HOST = "h.com"
ONE_AFTER_THE_OTHER = {"CONCURRENT_REQUESTS": 1, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}

SHORTLINK = (Condition(Key(name="p"), "any"),)
BY_NAME = Rule(rule_id(HOST, SHORTLINK, (), name="shortlink"), HOST, SHORTLINK, (), kind="name", name="shortlink")
DROP_SORT = (Edit(Key(name="sort"), "delete"),)
SHOWN = Rule(rule_id(HOST, (), DROP_SORT, shows=77), HOST, (), DROP_SORT, shows=77)

#: Name → how the page is asked for that is known, how another URL of it, whether that has been served.
ASKED: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "as the other": ({}, {}, True),
    "by another callback": ({}, {"callback": "read_otherwise"}, False),
    "by the same of two callbacks": ({"callback": "read_otherwise"}, {"callback": "read_otherwise"}, True),
    "with something to add to it": ({"cb_kwargs": {"item": 1}}, {"cb_kwargs": {"item": 2}}, False),
    "with the same to add": ({"cb_kwargs": {"item": 1}}, {"cb_kwargs": {"item": 1}}, True),
    "with an item in its meta": ({}, {"meta": {"item": {"name": "a"}}}, False),
    "with a text in its meta": ({"meta": {"kind": "a"}}, {"meta": {"kind": "b"}}, False),
    "with the same text": ({"meta": {"kind": "a"}}, {"meta": {"kind": "a"}}, True),
    "with texts in its meta": ({}, {"meta": {"names": ["a"]}}, False),
    "with meta of components": (
        {},
        {"meta": {"download_timeout": 9, "_tries": 3, "proxy": None, "proxy_retry_times": 1}},
        True,
    ),
    "with its own jar": ({"meta": {"cookiejar": 1}}, {"meta": {"cookiejar": 2}}, False),
    "with the same jar": ({"meta": {"cookiejar": 1}}, {"meta": {"cookiejar": 1}}, True),
    "without the jar's cookies": ({}, {"meta": {"dont_merge_cookies": True}}, False),
    "with a cookie": ({}, {"cookies": {"currency": "EUR"}}, False),
    "in another language": ({}, {"headers": {"Accept-Language": "de"}}, False),
    "in the usual language": ({}, {"headers": {"Accept-Language": "en"}}, True),
    "by a script": ({}, {"headers": {"X-Requested-With": "XMLHttpRequest"}}, False),
    "by another browser": ({}, {"headers": {"User-Agent": "other", "Referer": "http://h.com/"}}, True),
}


@pytest.mark.parametrize("queued", [False, True])
def test_a_page_is_known_to_those_whom_it_has_served(
    queued: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Whether it is decided when the request is scheduled, or when it is about to be sent."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    first = [{"url": f"{site.url}/page/{n}", "options": one} for n, (one, _, _) in enumerate(ASKED.values())]
    second = [{"url": f"{site.url}/page/{n}?sid=a", "options": two} for n, (_, two, _) in enumerate(ASKED.values())]
    served = {how for how, (_, _, known) in ASKED.items() if known}
    # The first pause lets the rule arrive, the second the pages, where the others are not to wait in the scheduler.
    pauses = [{"pause": 1.0}, {"pause": 0 if queued else 1.5}]
    done = crawl(tmp_path, [f"{site.url}/", pauses[0], *first, pauses[1], *second], settings | ONE_AFTER_THE_OTHER)
    assert {how for n, how in enumerate(ASKED) if not site.hits[f"/page/{n}?sid=a"]} == served
    assert done.stat("skipped") == len(served)


def test_a_page_that_a_callback_awaits_itself_is_always_sent(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A skip would end the callback, and what it has gathered would be lost. To others such a page is unread."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    more = [f"{site.url}/page/1?sid=a", f"{site.url}/page/2?sid=a"]
    steps = [
        f"{site.url}/",
        {"pause": 1.0},
        f"{site.url}/page/1",
        {"pause": 1.0},
        {"url": f"{site.url}/page/3", "options": {"callback": "await_more"}},
        {"pause": 1.5},
        f"{site.url}/page/2",
    ]
    done = crawl(tmp_path, steps, settings, more=more)
    assert done.paths() == ["/", "/page/1", "/page/3", "/page/2"]
    assert site.hits["/page/1?sid=a"] == site.hits["/page/2?sid=a"] == 1
    assert done.stat("skipped") == 0


def test_what_a_redirect_leads_to_is_awaited_too(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """The callback has read it, and the spider's ``parse`` has not."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [
        f"{site.url}/",
        {"pause": 1.0},
        {"url": f"{site.url}/page/3", "options": {"callback": "await_more"}},
        {"pause": 1.5},
        f"{site.url}/page/2?x=1&sid=a",
    ]
    done = crawl(tmp_path, steps, settings, more=[f"{site.url}/redir/2?x=1"])
    assert done.paths() == ["/", "/page/3", "/page/2?x=1&sid=a"]


def test_a_link_leads_to_what_the_crawl_began_with(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Scrapy notes in a request's meta that the crawl begins with it; it is fetched for the same all the same."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [f"{site.url}/page/0", {"pause": 1.0}, f"{site.url}/page/1", {"pause": 0.5}, f"{site.url}/second"]
    done = crawl(tmp_path, steps, settings, follow=True)
    assert not site.hits["/page/1?sid=s1"]
    assert site.hits["/page/2?sid=s2"] == 1
    assert done.stat("skipped") == 2


class Reading(Spider):
    name = "reading"

    def parse_item(self, response: Response) -> None:
        pass


class Following(CrawlSpider):
    name = "following"
    rules = (
        LinkRule(LinkExtractor("/list/")),
        LinkRule(LinkExtractor("/item/"), callback="parse_item"),
        LinkRule(LinkExtractor("/product/"), callback="parse_item"),
        LinkRule(LinkExtractor("/offer/"), callback="parse_item", cb_kwargs={"price": True}),
    )

    def parse_item(self, response: Response) -> None:
        pass


def purposes(kind: type[Spider], **settings: Any) -> tuple[Purposes, Any]:
    crawler = get_crawler(kind, settings)
    spider = crawler._create_spider()
    return Purposes(spider, crawler.settings), spider


def test_a_callback_is_the_same_however_it_is_made() -> None:
    made, spider = purposes(Reading)

    def of(callback: Any) -> Purpose:
        return made.of(Request(f"http://{HOST}/", callback=callback))

    def one(item: dict[str, int]) -> Purpose:
        return of(lambda response: spider.parse_item(response, item))

    assert of(None) == of(spider.parse) != of(spider.parse_item) == of(spider.parse_item)
    assert of(partial(spider.parse, item=1)) == of(partial(spider.parse, item=1)) != of(partial(spider.parse, item=2))
    assert one({"a": 1}) == one({"a": 1}) != one({"a": 2})


def test_a_callback_is_what_is_said_of_its_arguments() -> None:
    """As by scrapy-poet, which gives it a page object of the class that is named there, whatever its code."""
    made, _ = purposes(Reading)

    def of(page: Any, item: int = 0) -> Purpose:
        def read(*args: Any, page: Any, item: int = item) -> None:
            pass

        read.__annotations__["page"] = page  # in this module they are texts
        return made.of(Request(f"http://{HOST}/", callback=read))

    assert of(Product) == of(Product) != of(Reading)
    assert of(list[str]) == of(list[str]) != of(list[int])
    assert of(Product, 1) != of(Product, 2)


def test_a_function_or_a_class_in_the_meta_is_for_the_callback() -> None:
    """By the one a callback dispatches, by the other scrapy-poet makes what it asks for."""
    made, spider = purposes(Reading)

    def of(**meta: Any) -> Purpose:
        return made.of(Request(f"http://{HOST}/", meta=meta))

    assert of(read=spider.parse) == of(read=spider.parse) != of(read=spider.parse_item) != of()
    assert of(inject=[Product]) == of(inject=[Product]) != of(inject=[Product, Reading])


#: Callbacks, and whether crawlers in other processes mean the same by them.
MADE = """
from functools import partial
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler
from clusterd_crawler.crawling.requests.purposes import Purposes

class Reading(Spider):
    name = "reading"
    def parse_item(self, response, item=None): pass
    def made(self, item):
        return lambda response: [one for one in self.parse_item(response, item) if one in {"a", "b", "c", "d"}]

class Called:
    def __call__(self, response): pass

crawler = get_crawler(Reading, {})
spider = crawler._create_spider()
purposes = Purposes(spider, crawler.settings)
asked = [
    {"callback": spider.parse_item},
    {"callback": spider.made("x")},
    {"callback": partial(spider.parse_item, item="x")},
    {"callback": spider.parse_item, "cb_kwargs": {"item": 1}, "headers": {"Accept-Language": "de"}},
    {"callback": spider.parse_item, "meta": {"item": {"name": "a"}, "cookiejar": 3}, "cookies": {"a": "b"}},
    {"callback": Called()},
]
for one in asked:
    print(*purposes.of(Request("http://h.com/", **one)))
"""


def test_a_method_is_the_same_whatever_it_gathers() -> None:
    """Of a spider that is made in a function, as tests and scripts make it."""
    seen = []

    class Gathering(Spider):
        name = "gathering"

        def parse(self, response: Response) -> None:
            seen.append(response.url)

    made, spider = purposes(Gathering)
    request = Request(f"http://{HOST}/", callback=spider.parse)
    before = made.of(request)
    spider.parse(Response(f"http://{HOST}/"))
    assert seen
    assert made.of(request) == before


def test_crawlers_in_other_processes_mean_the_same() -> None:
    """Whatever the seed of Python's hashes, and wherever things lie; but for what has no other name than its place."""
    told = [
        subprocess.run(
            [sys.executable, "-c", MADE], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.splitlines()
        for seed in "12"
    ]
    assert len(set(told[0])) == 6
    assert told[0][:-1] == told[1][:-1]
    assert told[0][-1] != told[1][-1]


def test_of_two_lambdas_in_a_line_each_is_its_own() -> None:
    made, spider = purposes(Reading)
    one, other = (lambda response: spider.parse(response, 1)), (lambda response: spider.parse(response, 2))
    assert made.of(Request(f"http://{HOST}/", callback=one)) != made.of(Request(f"http://{HOST}/", callback=other))


class Hostile:
    """As a proxy of something that is gone: raises whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise ReferenceError("what this stands for exists no more")


def test_no_request_fails_by_what_it_carries() -> None:
    """Scrapy sends it; what cannot be looked at is for the callback, and for this request alone."""
    made, _ = purposes(Reading)
    within: list[Any] = []
    within.append(within)

    def of(value: Any) -> Purpose:
        return made.of(Request(f"http://{HOST}/", meta={"carried": value}))

    for one, other in ((Hostile(), Hostile()), ([Hostile()], [Hostile()])):
        assert of(one) == of(one) != of(other)
    assert of(within) != of([within])


class PageMethod:
    """As scrapy-playwright has it: what the browser is to do on a page, with a place for what came of it."""

    def __init__(self, method: str, *args: Any, **kwargs: Any) -> None:
        self.method, self.args, self.kwargs = method, args, kwargs
        self.result: Any = None


def test_what_a_browser_does_on_a_page_makes_the_form_of_it() -> None:
    """A list that is asked for with one more click shows more. Each request has objects of its own for that."""
    made, _ = purposes(Reading)

    def of(given: Any) -> Purpose:
        return made.of(Request(f"http://{HOST}/", meta={"playwright": True, "playwright_page_methods": given}))

    wait, click = ("wait_for_selector", "#list"), ("click", "#more")
    asked = [[wait], [wait, click], [wait, click, click], [("click", "#less")]]
    for container in (list, lambda methods: dict(enumerate(methods))):
        forms = [of(container([PageMethod(*one) for one in methods])) for methods in asked for _ in range(2)]
        assert forms[::2] == forms[1::2]
        assert len(set(forms)) == len(asked)
    done = PageMethod("screenshot", path="a.png")
    before = of([done])
    done.result = b"a picture"
    assert of([done]) == before != of([PageMethod("screenshot", path="b.png")])
    assert of([]) == of(None)


@dataclass
class Product:
    name: str
    page: str = field(default="", repr=False)


class Gathering:
    def __init__(self, number: int) -> None:
        self.number = number


ROWS = b"".join(b"<tr><td>Rows that begin with the very same words, the %d-th</td></tr>" % n for n in range(3))
TABLE = HtmlResponse("http://h.com/", body=b"<table>" + ROWS + b"</table>")
#: What is carried along, made anew for each request and gone with it, as the spider's callbacks do.
CARRIED: dict[str, Callable[[int], Any]] = {
    "a loader": lambda n: ItemLoader({"number": n}),
    "a selector": lambda n: TABLE.css("tr")[n],
    "selectors": lambda n: [TABLE.css("tr")[n]],
    "an item that does not show all of itself": lambda n: Product("one", str(n)),
    "items": lambda n: [{"number": n}],
    "what makes one, of a class of the project's": lambda n: Gathering(n),
}


@pytest.mark.parametrize("what", CARRIED)
def test_what_prints_the_same_need_not_be_the_same(what: str) -> None:
    made, spider = purposes(Reading)

    def of(n: int, how: str) -> Purpose:
        value = CARRIED[what](n)
        if how == "closed over":
            return made.of(Request(f"http://{HOST}/", callback=lambda response: spider.parse_item(response, value)))
        return made.of(Request(f"http://{HOST}/", **{how: {"value": value}}))

    for how in ("cb_kwargs", "meta", "closed over"):
        assert len({of(n, how) for n in range(3)}) == 3, how


def test_the_same_is_the_same_however_often_it_is_made() -> None:
    made, _ = purposes(Reading)
    shared = ItemLoader({"number": 1})
    for make in (lambda: shared, lambda: Product("one"), lambda: date(2026, 1, 2), lambda: {"a": [1, {"b"}, (None,)]}):
        assert len({made.of(Request(f"http://{HOST}/", cb_kwargs={"value": make()})) for _ in range(3)}) == 1
    ring: list[Any] = []
    ring.append(ring)
    made.of(Request(f"http://{HOST}/", cb_kwargs={"value": ring}))


def test_rules_of_a_spider_that_do_the_same_are_one_reader() -> None:
    made, spider = purposes(Following)
    follow, item, product, offer = (
        made.of(Request(f"http://{HOST}/", callback=spider._callback, meta={"rule": rule, "link_text": f"link {rule}"}))
        for rule in range(4)
    )
    assert item == product
    assert len({follow, item, offer, made.of(Request(f"http://{HOST}/"))}) == 4


def test_what_every_request_of_the_spider_says_makes_no_session() -> None:
    made, _ = purposes(Reading, DEFAULT_REQUEST_HEADERS={"accept-language": "de"})
    plain = made.of(Request(f"http://{HOST}/"))
    assert plain == made.of(Request(f"http://{HOST}/", headers={"Accept-Language": "de"}))
    assert plain != made.of(Request(f"http://{HOST}/", headers={"Accept-Language": "en"}))
    assert plain == made.of(Request(f"http://{HOST}/", headers={"Cookie": "of the jar"}))
    made, _ = purposes(Reading, COOKIES_ENABLED=False)
    assert plain != made.of(Request(f"http://{HOST}/", headers={"Cookie": "its own"}))


def test_pages_of_unknown_purpose_are_known_to_every_callback_without_a_session() -> None:
    """An older crawler did not tell what reads them; as whom they are asked for is mostly the same."""
    known = KnownPages(explore=0, within=60)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    known.fetched(f"http://{HOST}/a?sid=1", 1, earlier=True)
    for url in (f"http://{HOST}/a?sid=1", f"http://{HOST}/a?sid=2"):
        assert known.decide(url, 2, Purpose(reader=5)) is not None
        assert known.decide(url, 2, Purpose(reader=5, session=7)) is None
    known.fetched(f"http://{HOST}/a?sid=3", 3, purpose=Purpose(reader=6))
    assert known.decide(f"http://{HOST}/a?sid=2", 4, Purpose(reader=5)) is not None
    known.fetched(f"http://{HOST}/a?sid=1", 5, good=False)
    assert known.decide(f"http://{HOST}/a?sid=2", 6, Purpose(reader=5)) is None
    assert known.decide(f"http://{HOST}/a?sid=2", 6, Purpose(reader=6)) is not None


def test_a_name_or_a_content_that_answers_has_served_the_same_purpose() -> None:
    one, other = Purpose(reader=1), Purpose(reader=2)
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (BY_NAME, SHOWN)))
    known.fetched(f"http://{HOST}/slug", 1, parse_names(f"shortlink=http://{HOST}/?p=5"), purpose=one)
    known.fetched(f"http://{HOST}/list?sort=a", 1, content=77, purpose=one)
    for url in (f"http://{HOST}/?p=5", f"http://{HOST}/list?sort=b"):
        assert known.decide(url, 2, one) is not None
        assert known.decide(url, 2, other) is None


def test_what_was_read_before_takes_no_more_room_than_pages() -> None:
    known = KnownPages(explore=0, limit=10)
    known.load(RuleSet(HOST, 1, (sid_rule(HOST),)))
    for number in range(1000):
        known.fetched(f"http://{HOST}/a?sid={number % 3}", number, content=1, purpose=Purpose(reader=number + 1))
        (held,) = known._hosts.values()
        assert len(held.read_before) <= 10


def test_a_page_at_which_a_crawl_ends_is_read_again_where_the_crawl_goes_on(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Of a page at ``DEPTH_LIMIT`` no link is followed, nor of those before it as far: nearer to the start more is."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [f"{site.url}/", {"pause": 2.0}, f"{site.url}/page/1?sid=a"]
    for limit in (0, 1):
        done = crawl(tmp_path, steps, settings | ONE_AFTER_THE_OTHER | {"DEPTH_LIMIT": limit}, follow=True)
        assert ("/page/1?sid=a" in done.paths()) is (limit == 1)
