"""Links out of the spider's ``allowed_domains``: Scrapy drops them, and clusterd says nothing of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import redis
from clusterd_crawler.rules import RuleSet

from tests.crawler.crawling import ONE_BY_ONE, REST, SELDOM, at, crawl, publish_rules, sid_rules
from tests.crawler.outage import Server
from tests.crawler.site import Site

ELSEWHERE = {"allowed": ["elsewhere.test"]}


def allowed(site: Site) -> dict[str, Any]:
    return {"allowed": [site.host.partition(":")[0]]}


def test_what_scrapy_drops_is_no_skip(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Such links of a mirror's, of a page that is known, were counted as saved, and their errbacks called."""
    publish_rules(redis_url, prefix, sid_rules(site))
    links = [f"/page/1?sid={name}" for name in "abc"]
    forced = {"url": "/page/1?sid=d", "options": {"meta": {"allow_offsite": True}}}
    steps = ["/", "/page/1", REST, ELSEWHERE, *links, forced, REST, allowed(site), "/page/1?sid=e"]
    done = crawl(tmp_path, at(site, steps), settings)
    assert [skip[0] for skip in done.skipped] == [f"{site.url}/page/1?sid=d", f"{site.url}/page/1?sid=e"]
    assert (done.stat("skipped"), done.stats["offsite/filtered"]) == (2, 3)


def test_what_scrapy_drops_is_no_trial(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """As many skips rest on a rule as trials of it allow: those of such links were counted, and are never fetched."""
    (rule,) = sid_rules(site).rules
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (replace(rule, lower_bound=0.5),)))  # of 2.7 trials
    out, links = ([f"/page/1?sid={side}{number}" for number in range(8)] for side in ("out", "in"))
    steps = ["/", "/page/1", REST, ELSEWHERE, *out, *out, REST, allowed(site), *links]
    done = crawl(tmp_path, at(site, steps), settings | SELDOM)
    assert done.stats["offsite/filtered"] == 16
    assert (done.stat("skipped"), done.stat("explored")) == (8, 0)


def test_no_request_is_rewritten_to_a_link_that_scrapy_dropped(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """What is rewritten is sent with ``dont_filter``: the other host was crawled though the spider was to keep off."""
    publish_rules(redis_url, prefix, sid_rules(site))
    one = settings | ONE_BY_ONE | {"CLUSTERD_REWRITE": True}
    done = crawl(tmp_path, at(site, ["/", REST, ELSEWHERE, "/page/1", allowed(site), "/page/1?sid=a"]), one)
    assert done.paths() == ["/", "/page/1?sid=a"]
    assert done.stat("rewritten") == 0


def test_hosts_that_are_not_crawled_are_not_asked_for(
    site: Site, settings: dict[str, Any], prefix: str, tmp_path: Path
) -> None:
    server = Server(tmp_path)
    with server.running():
        publish_rules(server.url, prefix, sid_rules(site))
        out = [f"http://h{number}.test/" for number in range(5)]
        steps = [*at(site, ["/", REST, allowed(site)]), *out]
        done = crawl(tmp_path, steps, settings | {"CLUSTERD_REDIS": server.url})
        with redis.Redis.from_url(server.url) as client:
            asked = client.info("commandstats")["cmdstat_hmget"]["calls"]
    assert done.stats["offsite/filtered"] == 5
    assert asked == 1
