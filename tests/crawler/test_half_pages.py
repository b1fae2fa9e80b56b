"""Pages of which the crawl has nothing whole: no skip rests on them, and nothing is learned from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import Failure
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Sketch

from tests.crawler.crawling import REST, crawl, publish_rules, published, sid_rule
from tests.crawler.site import Site

CUT_OFF = {
    "cut off by the server": ("/cut", {"DOWNLOAD_FAIL_ON_DATALOSS": False}, "dataloss"),
    "stopped by the spider": ("/page/1", {}, "download_stopped"),
    "a range": ("/range", {}, ""),
}


@pytest.mark.parametrize("why", CUT_OFF)
def test_no_skip_rests_on_a_part_of_a_page(
    why: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    path, more, flag = CUT_OFF[why]
    steps = [site.url + path, REST, site.url + path + "?sid=a"]
    done = crawl(tmp_path, steps, settings | more, stop=flag == "download_stopped")
    assert done.paths() == [path, f"{path}?sid=a"]
    assert [page["flags"] for page in done.seen] == [[flag] if flag else []] * 2
    assert (done.stat("skipped"), done.stat("sketched"), done.stat("rejected")) == (0, 0, 2)
    messages = published(redis_url, prefix)
    assert [(type(message), message.url) for message in messages] == [
        (Failure, site.url + path),
        (Failure, f"{site.url}{path}?sid=a"),
    ]


@pytest.mark.parametrize("cached", [False, True])
def test_no_skip_rests_on_a_page_that_shows_nothing(
    cached: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """An empty answer with status 200: the page may well be there when it is asked for again."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    steps = [site.url + "/empty", REST, site.url + "/empty?sid=a"]
    more = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")} if cached else {}
    for _ in range(1 + cached):
        done = crawl(tmp_path, steps, settings | more)
        assert done.paths() == ["/empty", "/empty?sid=a"]
        assert done.stat("skipped") == 0
    assert all(isinstance(page, Sketch) and page.soft_error for page in published(redis_url, prefix))


@pytest.mark.parametrize("key", ["/soft", "/empty", "/cut"])
def test_a_key_that_brings_no_page_is_asked_for_as_it_was_linked(
    key: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Where requests are rewritten: a page may be missing under its key though the status says that it is there."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    more = {"CLUSTERD_REWRITE": True, "DOWNLOAD_FAIL_ON_DATALOSS": False, "CONCURRENT_REQUESTS": 1}
    linked = {"url": f"{site.url}{key}?sid=a", "options": {"priority": 1}}
    steps = [site.url + "/", REST, {"url": site.url + "/slow/1", "options": {"priority": 2}}]
    done = crawl(tmp_path, [*steps, site.url + key, linked], settings | more)
    assert done.stat("rewritten") == 1
    assert site.hits[f"{key}?sid=a"] == 1
    assert f"{key}?sid=a" in done.paths()
