"""Links out of the spider's ``allowed_domains``: Scrapy drops them, and clusterd says nothing of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import redis
from clusterd_crawler.rules import RuleSet

from tests.crawler.crawling import ONE_BY_ONE, REST, SELDOM, at, crawl, publish_rules, sid_rule, sid_rules
from tests.crawler.outage import Server
from tests.crawler.site import Site

HOME = {"allowed": ["127.0.0.1"]}


def elsewhere(site: Site, path: str, *, allowed: bool = False) -> dict[str, Any]:
    """Return the step for a page of the same site under a name that the spider is to keep off."""
    meta = {"allow_offsite": True} if allowed else {}
    return {"url": f"{_elsewhere(site.url)}{path}", "options": {"meta": meta}}


def _elsewhere(text: str) -> str:
    return text.replace("127.0.0.1", "localhost")


def its_rules(site: Site) -> RuleSet:
    host = _elsewhere(site.host)
    return RuleSet(host, 1, (sid_rule(host),))


def test_what_scrapy_drops_is_no_skip(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Such links, of a page that is known, were counted as saved, and their errbacks called."""
    publish_rules(redis_url, prefix, its_rules(site))
    links = [elsewhere(site, f"/page/1?sid={name}") for name in "abc"]
    allowed = elsewhere(site, "/page/1?sid=d", allowed=True)
    steps = [site.url, elsewhere(site, "/page/1", allowed=True), REST, *links, allowed]
    done = crawl(tmp_path, steps, settings, **HOME)
    assert [skip[0] for skip in done.skipped] == [allowed["url"]]
    assert (done.stat("skipped"), done.stats["offsite/filtered"]) == (1, 3)


def test_what_scrapy_drops_is_no_trial(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """As many skips rest on a rule as trials of it allow: those of such links were counted, and are never fetched."""
    known = replace(its_rules(site).rules[0], lower_bound=0.5)  # as of 2.7 trials
    publish_rules(redis_url, prefix, RuleSet(known.host, 1, (known,)))
    out = [elsewhere(site, f"/page/1?sid=out{number}") for number in range(8)]
    links = [elsewhere(site, f"/page/1?sid=in{number}", allowed=True) for number in range(8)]
    steps = [site.url, elsewhere(site, "/page/1", allowed=True), REST, *out, *out, REST, *links]
    done = crawl(tmp_path, steps, settings | SELDOM, **HOME)
    assert done.stats["offsite/filtered"] == 16
    assert (done.stat("skipped"), done.stat("explored")) == (8, 0)


def test_no_request_is_rewritten_to_a_link_that_scrapy_dropped(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """What is rewritten is sent with ``dont_filter``: a host was crawled that the spider was to keep off."""
    publish_rules(redis_url, prefix, its_rules(site))
    one = settings | ONE_BY_ONE | {"CLUSTERD_REWRITE": True}
    first, copy = (elsewhere(site, path, allowed=True) for path in ("/page/2", "/page/1?sid=a"))
    done = crawl(tmp_path, [first, REST, elsewhere(site, "/page/1"), copy], one, **HOME)
    assert done.paths() == ["/page/2", "/page/1?sid=a"]
    assert done.stat("rewritten") == 0


def test_hosts_that_are_not_crawled_are_not_asked_for(
    site: Site, settings: dict[str, Any], prefix: str, tmp_path: Path
) -> None:
    server = Server(tmp_path)
    with server.running():
        publish_rules(server.url, prefix, sid_rules(site))
        out = [f"http://h{number}.test/" for number in range(5)]
        steps = [*at(site, ["/", REST]), *out]
        done = crawl(tmp_path, steps, settings | {"CLUSTERD_REDIS": server.url}, **HOME)
        with redis.Redis.from_url(server.url) as client:
            asked = client.info("commandstats")["cmdstat_hmget"]["calls"]
    assert done.stats["offsite/filtered"] == 5
    assert asked == 1
