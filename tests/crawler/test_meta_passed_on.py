"""Spiders that give each request the whole meta of the page before: what is said there was true of that page alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.crawler.crawling import ALL_STATUS, ONE_BY_ONE, REST, crawl, publish_rules, sid_rules
from tests.crawler.site import Site


def passing(site: Site, path: str) -> dict[str, Any]:
    return {"url": site.url + path, "options": {"callback": "pass_meta_on"}}


def test_what_follows_a_redirected_page_is_skipped_as_else(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    steps = [f"{site.url}/page/1", REST, passing(site, "/redir/2")]
    more = [f"{site.url}/page/1?sid=a", f"{site.url}/page/3?sid=a"]
    done = crawl(tmp_path, steps, settings | ONE_BY_ONE, more=more)
    assert done.paths() == ["/page/1", "/page/2", "/page/3?sid=a"]
    assert [skip[0] for skip in done.skipped] == more[:1]


def test_what_such_a_request_is_led_to_is_fetched(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    steps = [f"{site.url}/page/3?sid=a", REST, passing(site, "/redir/2")]
    done = crawl(tmp_path, steps, settings | ONE_BY_ONE, more=[f"{site.url}/redir/3"])
    assert (done.paths(), done.skipped) == (["/page/3?sid=a", "/page/2", "/page/3"], [])


def test_a_page_that_such_a_request_leads_back_to_is_not_asked_for_again(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Past the duplicate filter, as Scrapy asks for a spider's first URLs: an exception may be made of a page then."""
    publish_rules(redis_url, prefix, sid_rules(site))
    first = passing(site, "/page/2")
    first["options"]["dont_filter"] = True
    steps = [first, REST, f"{site.url}/page/2?sid=a"]
    done = crawl(tmp_path, steps, settings | ONE_BY_ONE, more=[f"{site.url}/redir/2"])
    assert done.paths() == ["/page/2", "/page/2"]
    assert [skip[0] for skip in done.skipped] == steps[2:]


def test_a_request_that_says_of_no_redirect_is_skipped_as_else(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """As where a spider hands on ``response.meta.get("redirect_urls")``."""
    publish_rules(redis_url, prefix, sid_rules(site))
    linked = {"url": f"{site.url}/page/1?sid=a", "options": {"meta": {"redirect_urls": None}}}
    done = crawl(tmp_path, [f"{site.url}/page/1", REST, linked], settings | ONE_BY_ONE)
    assert [skip[0] for skip in done.skipped] == [linked["url"]]


def test_what_follows_a_rewritten_request_is_not_taken_for_it(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Where it fails, it does; nothing else is fetched in its place, nor once it has come."""
    publish_rules(redis_url, prefix, sid_rules(site))
    one = settings | ONE_BY_ONE | ALL_STATUS | {"CLUSTERD_REWRITE": True, "DOWNLOAD_DELAY": 0.3}
    first = passing(site, "/page/1?sid=a")
    first["options"]["priority"] = 2
    steps = [f"{site.url}/page/4", REST, f"{site.url}/page/3", first, passing(site, "/page/1")]
    done = crawl(tmp_path, steps, one, more=[f"{site.url}/missing", f"{site.url}/page/5"])
    assert done.stat("rewritten") == 1
    assert sorted(done.paths()) == ["/missing", "/page/1", "/page/3", "/page/4", "/page/5"]
    assert site.hits["/page/1?sid=a"] == 0
