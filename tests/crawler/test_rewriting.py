"""What a rewriting remembers of links and of the keys that came."""

from __future__ import annotations

from clusterd_crawler.crawling.requests.rewriting import Rewriting
from scrapy import Request


def test_a_key_that_came_is_known_and_what_is_no_url_is_not() -> None:
    rewriting = Rewriting()
    rewriting.linked("http://h.com/a")
    instead = rewriting.rewritten(Request("http://h.com/a?sid=1"), "http://h.com/a")
    assert instead is not None
    rewriting.came(instead, "r1")
    assert rewriting.has_come("http://h.com/a") == "r1"
    assert rewriting.has_come("http://no%20host/") is None
