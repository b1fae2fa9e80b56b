"""Callbacks, and what requests carry along for them, are the same where they do and say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any

import pytest
from clusterd_crawler.purpose import Purpose
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.loader import ItemLoader

from tests.crawler.made_purposes import HOST, Reading, purposes


@dataclass
class Product:
    name: str
    page: str = field(default="", repr=False)


class Gathering:
    def __init__(self, number: int) -> None:
        self.number = number


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
