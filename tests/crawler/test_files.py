"""What is no page: rules are learned from pages, and what they say need not hold of files and feeds beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import File
from clusterd_crawler.page import content_identity
from clusterd_crawler.rules import Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.skipping.endings import ending, may_show_file
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.crawling import REST, crawl, publish_rules, published, sid_rule
from tests.crawler.site import Site, answer

HOST = "h.com"
NO_TITLE = (Edit(Key(start=5), "delete"),)


@pytest.mark.parametrize(
    ("linked", "is_skipped"),
    [("a-title", True), ("v1.2", True), ("page.html", True), ("manual.pdf", False), ("feed.RSS", False)],
)
def test_a_file_beside_a_page_is_no_other_url_of_it(linked: str, is_skipped: bool) -> None:
    known = KnownPages(explore=0)
    known.load(RuleSet(HOST, 1, (Rule(rule_id(HOST, (), NO_TITLE), HOST, (), NO_TITLE),)))
    known.fetched(f"http://{HOST}/p/12", 1)
    assert (known.decide(f"http://{HOST}/p/12/{linked}", 2) is not None) is is_skipped


@pytest.mark.parametrize(
    "ends", ["php", "asp", "aspx", "jsp", "do", "cgi", "pl", "dll", "shtml", "xhtml", "md", "yaml"]
)
def test_no_page_is_taken_for_a_file_whichever_python_asks(ends: str) -> None:
    """Python's own list of files has had ``.php`` since 3.14: of 600 skips of a forum 90 were not made."""
    assert ending(f"http://{HOST}/a.b/view.{ends}?id=1.pdf") == ""


@pytest.mark.parametrize("ends", ["pdf", "PNG", "webp", "docx", "odt", "tar.gz", "woff2", "7z", "Z"])
def test_files_are_told_by_their_endings(ends: str) -> None:
    assert ending(f"http://{HOST}/a.b/file.{ends}?v=1.html") == "." + ends.rpartition(".")[2].lower()


def test_what_a_known_page_names_itself_it_may_show() -> None:
    known = "http://h.com/index.php?title=File:Photo.JPG"
    assert may_show_file("http://h.com/wiki/File:Photo.jpg", known)
    assert not may_show_file("http://h.com/wiki/File:Photo.png", known)


@pytest.mark.parametrize("cached", [False, True])
def test_a_file_that_a_rule_says_is_a_page_speaks_against_the_rule(
    cached: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Fetched to watch the rule; not a page itself, and no skip rests on it."""
    drop_all = (Edit(Key(name="file"), "delete"),)
    rule = Rule("r1", site.host, (), drop_all)
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    more = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")} if cached else {}
    image = f"{site.url}/page/1?file=image"
    if cached:
        crawl(tmp_path, [image], settings | more)
    crawl(tmp_path, [f"{site.url}/page/1", REST, image], settings | more | {"CLUSTERD_EXPLORE": 1})
    (told,) = [file for file in files(redis_url, prefix) if file.explored]
    assert (told.url, told.explored, told.instead_of) == (image, "r1", f"{site.url}/page/1")
    assert told.content == content_identity(answer("/page/1?file=image")[2])


def test_a_file_is_told_where_its_url_does_not_say_that_it_is_one(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Rules say nothing of the others; of one that a page's URL leads to they might."""
    paths = ("/page/1", "/page/1?file=image", "/image.png", "/to-image")
    crawled = crawl(tmp_path, [site.url + path for path in paths], settings)
    assert [page.url for page in pages(redis_url, prefix)] == [f"{site.url}/page/1"]
    told = {file.url: file.content for file in files(redis_url, prefix)}
    assert told == {
        f"{site.url}{path}": content_identity(answer(path)[2]) for path in ("/page/1?file=image", "/image.png?led")
    }
    assert (crawled.stat("sketched"), len(crawled.seen)) == (1, len(paths))


def pages(redis_url: str, prefix: str) -> list[Sketch]:
    return [message for message in published(redis_url, prefix) if isinstance(message, Sketch)]


def files(redis_url: str, prefix: str) -> list[File]:
    return [message for message in published(redis_url, prefix) if isinstance(message, File)]


@pytest.mark.parametrize("cached", [False, True])
def test_no_skip_rests_on_a_file(
    cached: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    more = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")} if cached else {}
    steps = [f"{site.url}/image.png", REST, f"{site.url}/image.png?sid=a"]
    for _ in range(1 + cached):
        assert len(crawl(tmp_path, steps, settings | more).seen) == 2


def test_a_page_of_the_http_cache_that_is_to_watch_a_rule_is_told(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Else a crawl from the cache rests on rules that nothing could contradict."""
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    cached = settings | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache"), "CLUSTERD_EXPLORE": 1}
    steps = [f"{site.url}/page/1", REST, f"{site.url}/page/1?sid=a"]
    for times in (1, 2):
        done = crawl(tmp_path, steps, cached)
        assert sum(bool(page.explored) for page in pages(redis_url, prefix)) == times
    assert done.seen[1]["flags"] == ["cached"]
