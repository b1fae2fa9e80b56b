"""Real crawls in which what a crawl may do meets: trials, rewriting, keys that differ, rules that are withdrawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Sketch

from tests.crawler.crawling import Crawling, crawl, publish_rules, published, sid_rule
from tests.crawler.site import Site
from tests.services.waiting import wait_until

#: A bound that one trial or so stands for: the seventh skip is tried.
YOUNG = 0.25
#: A share by which no page is explored by chance.
SELDOM = {"CLUSTERD_EXPLORE": 0.00001}
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1}
REWRITE = {"CLUSTERD_REWRITE": True, **ONE_BY_ONE}


def rules(site: Site, version: int = 1, bound: float = 0.0, name: str = "r1", **fields: Any) -> RuleSet:
    return RuleSet(site.host, version, (replace(sid_rule(site.host, name), lower_bound=bound),), **fields)


def at(site: Site, paths: list[str]) -> list[str]:
    return [site.url + path for path in paths]


def tried(url: str, prefix: str, rule: str = "r1") -> list[str]:
    """Return the URLs that crawls reported as fetched to watch a rule."""
    return [one.url for one in published(url, prefix) if isinstance(one, Sketch) and one.explored == rule]


@pytest.mark.parametrize("fragment", ["", "#top"])
def test_what_is_to_be_tried_further_is_fetched(
    fragment: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A request is decided about when it is scheduled and when it is sent: that it is a trial holds for both."""
    publish_rules(redis_url, prefix, rules(site, bound=YOUNG))
    known = at(site, [f"/page/{n}" for n in range(10)])
    asked = at(site, [f"/page/{n}?sid=a{fragment}" for n in range(10)])
    done = crawl(tmp_path, [*known, {"pause": 1.0}, *asked], settings | SELDOM | ONE_BY_ONE)
    assert site.pages()["a"] == done.stat("explored") == len(tried(redis_url, prefix)) == 1
    assert done.stat("skipped") == 9


def test_what_another_rule_keeps_out_in_place_of_one_that_is_gone_is_tried_further(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """What is queued again for a trial is told as one, and not kept out by the next decision."""
    publish_rules(redis_url, prefix, rules(site))
    go = tmp_path / "go"
    known = at(site, [f"/page/{n}" for n in range(10)])
    asked = at(site, [f"/page/{n}?sid=a" for n in range(10)])
    steps = [*known, {"pause": 1.0}, *asked, {"file": str(go)}]
    running = Crawling(tmp_path, steps, settings | SELDOM | ONE_BY_ONE)
    wait_until(lambda: sum(isinstance(one, SkipReport) for one in published(redis_url, prefix)) == 10)
    publish_rules(redis_url, prefix, rules(site, version=2, bound=YOUNG, name="r2"))
    wait_until(lambda: tried(redis_url, prefix, "r2"))
    go.touch()
    assert running.result().stat("requeued") == site.pages()["a"] == 1
