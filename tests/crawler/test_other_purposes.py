"""Where requests that rules would skip are sent, since each is for something else, the log says what differs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.crawling.requests.other_purposes import MANY
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.rules import RuleSet
from scrapy import Request

from tests.crawler.crawling import REST, crawl, publish_rules, sid_rule
from tests.crawler.made_purposes import HOST, Reading, purposes
from tests.crawler.site import Site


class Timing:
    """As many projects have one: writes into each request when it was sent."""

    def process_request(self, request: Request) -> None:
        request.meta["start_time"] = time.time()


TIMED = {"DOWNLOADER_MIDDLEWARES": {"tests.crawler.test_other_purposes.Timing": 100}}


@pytest.mark.parametrize(
    ("options", "others", "differs"),
    [
        ({}, TIMED, "meta['start_time']"),
        ({"meta": {"place": None}}, {}, "meta['place']"),
        ({"cb_kwargs": {"place": None}}, {}, "cb_kwargs"),
        ({"cookies": {"place": None}}, {}, "cookies or headers"),
    ],
)
def test_that_each_request_carries_something_else_is_told_once(
    options: dict[str, Any],
    others: dict[str, Any],
    differs: str,
    site: Site,
    settings: dict[str, Any],
    redis_url: str,
    prefix: str,
    tmp_path: Path,
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps: list[Any] = [f"{site.url}/", REST]
    for number in range(MANY + 3):
        own = {name: {key: str(number) for key in values} for name, values in options.items()}
        steps += [{"url": f"{site.url}/page/1?sid=s{number}", "options": own}, *([REST] if not number else [])]
    done = crawl(tmp_path, steps, settings | others | {"LOG_LEVEL": "INFO"})
    assert done.stat("skipped") == 0
    assert done.stat("other_purpose") == MANY + 2
    (line,) = (line for line in done.log.splitlines() if "another purpose" in line)
    assert f"{MANY} requests that rules would skip were sent" in line
    assert f"what differs: {differs} (docs/rules.md)" in line


def test_it_is_told_where_a_project_keeps_no_stats(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Each such request was a fault of ours in the log."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    asked = [
        {"url": f"{site.url}/page/1?sid=s{number}", "options": {"cb_kwargs": {"place": number}}}
        for number in range(MANY + 3)
    ]
    steps = [f"{site.url}/", REST, asked[0], REST, *asked[1:]]
    none = {"STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector", "LOG_LEVEL": "INFO"}
    done = crawl(tmp_path, steps, settings | none)
    assert len(done.seen) == len(asked) + 1
    assert done.log.count("another purpose") == 1
    assert "clusterd failed" not in done.log


def test_what_differs_of_two_purposes() -> None:
    made, spider = purposes(Reading, DEPTH_LIMIT=3)
    known = Request(f"http://{HOST}/", callback=spider.parse_item, cb_kwargs={"a": 1}, meta={"b": 1, "depth": 1})
    asked = made.of(known)

    def difference(**changed: Any) -> str:
        return made.difference(known.replace(**changed), asked)

    assert difference(callback=spider.parse) == "callback"
    assert difference(cb_kwargs={}, meta={"b": 2, "c": 1, "depth": 1}) == "cb_kwargs, meta['b'], meta['c']"
    assert difference(headers={"Accept-Language": "de"}) == "cookies or headers"
    assert difference(meta={"b": 1, "depth": 2}) == "depth"
    assert made.difference(known, Purpose(7)) == "callback, cb_kwargs or meta"
