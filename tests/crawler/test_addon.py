"""Real crawls over loopback: what is published, what is skipped, and what the add-on leaves alone.

The daemon's side is played by the test, on a real Redis: it reads the stream and publishes rule sets and verdicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler import Addon
from clusterd_crawler.crawling.requests.admission import UNFILTERED
from clusterd_crawler.message import Failure, File, SkipReport
from clusterd_crawler.middleware import ClusterdPages
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Sketch
from scrapy.settings import Settings

from tests.crawler.crawling import (
    MODES,
    ONE_BY_ONE,
    REST,
    SELDOM,
    Crawled,
    Crawling,
    at,
    crawl,
    publish_rules,
    published,
    sid_rule,
    sid_rules,
)
from tests.crawler.site import LONG, ODD, PAGES, Site
from tests.services.waiting import wait_until

#: The page that is known once it is fetched, and the URL that a rule would skip.
SID = ["/page/1", REST, "/page/1?sid=a"]


@pytest.mark.parametrize("mode", MODES)
def test_pages_are_published_and_duplicates_skipped(
    mode: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    done = crawl(tmp_path, at(site, ["/"]), settings | MODES[mode] | ONE_BY_ONE, follow=True)
    messages = published(redis_url, prefix)
    pages = [message for message in messages if isinstance(message, Sketch)]
    skips = [message for message in messages if isinstance(message, SkipReport)]
    assert sorted(page.url for page in pages) == sorted(page["url"] for page in done.seen)
    assert len({page.crawl for page in pages}) == 1
    assert all(page.main.shingles > 100 and page.wants_verdict and page.status == 200 for page in pages)
    assert done.stat("sketched") == len(pages) == done.stat("published") - len(skips)
    # Each content once: the start, the second list, and every page under one of its two URLs.
    assert len(pages) == PAGES + 2
    assert sum(site.pages().values()) == PAGES
    assert len(skips) == done.stat("skipped") == done.stat("skipped/r1") == PAGES
    assert all(skip.rule == "r1" and skip.known_url.split("?")[0] == skip.url.split("?")[0] for skip in skips)
    assert Counter(heard["rule"] for heard in done.heard if "skip" in heard) == {"r1": PAGES}
    assert [heard["learned"] for heard in done.heard if "learned" in heard] == ["r1"]
    assert done.stat("dropped") == done.stat("spooled") == 0


def test_a_request_queued_before_its_rule_ends_in_its_errback(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """One at a time, so that the second waits in the scheduler while the first is fetched."""
    publish_rules(redis_url, prefix, sid_rules(site))
    slow = settings | {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.3}
    # The rule is to arrive before the two are asked for.
    done = crawl(tmp_path, at(site, ["/", REST, "/page/1", "/page/1?sid=a"]), slow)
    assert done.paths() == ["/", "/page/1"]
    assert done.skipped == [[f"{site.url}/page/1?sid=a", "r1", done.skipped[0][2], f"{site.url}/page/1"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_request_that_is_not_even_queued_ends_in_its_errback(
    mode: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Once, however often it is linked: as with requests that the duplicate filter drops."""
    publish_rules(redis_url, prefix, sid_rules(site))
    skipped = "/page/1?sid=a"
    done = crawl(tmp_path, at(site, ["/page/1", REST, skipped, skipped]), settings | MODES[mode])
    assert done.paths() == ["/page/1"]
    assert done.skipped == [[site.url + skipped, "r1", done.skipped[0][2], f"{site.url}/page/1"]]
    assert done.stats["scheduler/enqueued"] == done.stat("skipped") == 1


def test_what_must_be_sent_is_sent(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    steps = [
        "/page/1",
        REST,
        SELDOM,
        {"url": "/page/1?sid=a", "options": {"dont_filter": True}},
        {"url": "/redir/1?sid=b"},
        {"url": "/page/1?sid=c", "options": {"method": "POST"}},
        {"url": "/page/1?sid=d", "options": {"method": "HEAD"}},
        {"url": "/page/1?sid=e", "options": {"body": "a question"}},
    ]
    done = crawl(tmp_path, at(site, steps), settings | {"HTTPERROR_ALLOW_ALL": True})
    assert sorted(done.paths()) == ["/page/1", *(f"/page/1?sid={sid}" for sid in "abcde")]
    assert done.stat("skipped") == 0
    assert done.stat("sketched") == 3


def test_the_http_cache_keeps_its_own_counsel(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """The second crawl is served from the cache: not sketched anew, and a skip may still rest on it."""
    publish_rules(redis_url, prefix, sid_rules(site))
    cached = settings | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    first = crawl(tmp_path, at(site, SID), cached)
    second = crawl(tmp_path, at(site, SID), cached)
    for done in (first, second):
        assert done.paths() == ["/page/1"]
        assert done.stat("skipped") == 1
    assert (first.stat("sketched"), second.stat("sketched")) == (1, 0)
    said = "Pages of the HTTP cache are not sketched again"
    assert (first.log.count(said), second.log.count(said)) == (0, 1)
    assert second.seen[0]["flags"] == ["cached"]
    assert site.hits["/page/1"] == 1


def test_a_page_of_the_http_cache_is_there_in_its_sweep(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Else each page that the server says is unchanged (304) would be lost to ``clusterd find-lost``."""
    cached = settings | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for sweep in ("may", "june"):
        crawl(tmp_path, at(site, ["/page/1", "/gone"]), cached | {"CLUSTERD_SWEEP": sweep})
    pages = [message for message in published(redis_url, prefix) if isinstance(message, Sketch)]
    assert [(page.sweep, page.url) for page in pages] == [(s, f"{site.url}/page/1") for s in ("may", "june")]
    assert site.hits["/page/1"] == 1


@pytest.mark.parametrize("error", ["/slow/1?bad=1", "/soft?bad=1"])
def test_no_skip_rests_on_an_error_page_of_the_http_cache(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path, error: str
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    cached = settings | {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    steps = [error, REST, f"{error}&sid=a"]
    for _ in range(2):
        done = crawl(tmp_path, at(site, steps), cached | {"HTTPERROR_ALLOW_ALL": True})
        assert len(done.paths()) == 2
        assert done.stat("skipped") == 0
    assert done.seen[1]["flags"] == ["cached"]


def test_robots_txt_and_media_are_not_pages(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    more = {
        "ROBOTSTXT_OBEY": True,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "files"),
        "FILES_URLS_FIELD": "image_urls",
    }
    done = crawl(tmp_path, at(site, ["/page/1", "/private"]), settings | more, images=True)
    assert done.paths() == ["/page/1"]
    assert site.hits["/robots.txt"] == site.hits["/image.png"] == 1
    assert [message.url for message in published(redis_url, prefix)] == [f"{site.url}/page/1"]


def test_with_the_scheduler_of_scrapy_redis(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    more = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_KEY": f"{prefix}queue",
        "SCHEDULER_DUPEFILTER_KEY": f"{prefix}seen",
        "REDIS_URL": redis_url,
    }
    done = crawl(tmp_path, at(site, ["/"]), settings | more | ONE_BY_ONE, follow=True)
    assert len(done.seen) == PAGES + 2
    assert done.stat("skipped") == PAGES


def test_a_fault_of_ours_costs_no_page(site: Site, redis_url: str, prefix: str, tmp_path: Path) -> None:
    settings = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix, "DEPTH_LIMIT": 5}
    steps = [{"url": f"{site.url}/page/1", "options": {"meta": {"depth": "no number"}}}, f"{site.url}/page/2"]
    done = Crawling(tmp_path, steps, settings).result()
    assert sorted(page["url"] for page in done.seen) == [f"{site.url}/page/1", f"{site.url}/page/2"]
    assert f"clusterd failed on {site.url}/page/1; the crawl goes on with it" in done.log


def test_failed_pages_justify_no_skip(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    more = {"RETRY_TIMES": 1, "HTTPERROR_ALLOW_ALL": True}
    steps = ["/broken", "/soft", "/gone", REST, "/broken?sid=a", "/soft?sid=a", "/gone?sid=a"]
    done = crawl(tmp_path, at(site, steps), settings | more)
    assert len(done.seen) == 6
    assert done.stat("skipped") == 0
    failures = [message for message in published(redis_url, prefix) if isinstance(message, Failure)]
    assert sorted((failure.url.rsplit("/", 1)[1], failure.status) for failure in failures) == [
        ("broken", 500),
        ("broken?sid=a", 500),
        ("gone", 404),
        ("gone?sid=a", 404),
    ]


def test_odd_pages_and_urls_are_sketched_or_counted(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text("<p>a file</p>")
    steps = at(site, [*ODD, LONG, "/page/1?%zz=%", "/page/1?é=ü", "/page/1?x=%FF"])
    steps += ["data:text/html,<p>hello", (tmp_path / "page.html").as_uri(), site.url.replace("127.0.0.1", "localhost")]
    done = crawl(tmp_path, steps, settings | {"URLLENGTH_LIMIT": 0})
    assert len(done.seen) == len(steps)
    assert done.stat("rejected") >= 5
    assert done.stat("sketched") + done.stat("rejected") == len(steps)
    told = published(redis_url, prefix)
    files = {message.url for message in told if isinstance(message, File)}
    assert files == {f"{site.url}/odd/{name}" for name in ("binary", "png")}
    assert done.stat("sketched") == sum(isinstance(message, Sketch) for message in told)
    assert done.stat("published") == done.stat("sketched") + len(files) == len(told)


@pytest.mark.parametrize("unfiltered", [UNFILTERED, UNFILTERED - 1])
def test_it_is_said_where_no_request_may_be_skipped(
    unfiltered: int, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A spider that is fed asks with ``dont_filter``."""
    urls = [f"/page/{n % PAGES}?n={n}" for n in range(UNFILTERED)]
    steps = [{"url": url, "options": {"dont_filter": n < unfiltered}} for n, url in enumerate(urls)]
    log = crawl(tmp_path, at(site, steps), settings | {"LOG_LEVEL": "INFO"}).log
    assert log.count("requests all have dont_filter") == (unfiltered == UNFILTERED)


def two_kept_out(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, folder: Path
) -> tuple[Crawling, Path]:
    """Begin a crawl of which a rule has kept out two requests; it goes on when the file is there."""
    publish_rules(redis_url, prefix, sid_rules(site))
    go = folder / "go"
    steps = ["/page/1", "/page/2", REST, "/page/1?sid=a", "/page/2?sid=b", {"file": str(go)}, "/page/3"]
    running_crawl = Crawling(folder, at(site, steps), settings)
    wait_until(lambda: sum(isinstance(message, SkipReport) for message in published(redis_url, prefix)) == 2)
    return running_crawl, go


def test_what_a_withdrawn_rule_kept_out_is_fetched_after_all(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    running_crawl, go = two_kept_out(site, settings, redis_url, prefix, tmp_path)
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, (), retired=(("r1", "it was wrong"),)))
    wait_until(lambda: site.hits["/page/1?sid=a"] and site.hits["/page/2?sid=b"])
    go.touch()
    done = running_crawl.result()
    assert {"/page/1?sid=a", "/page/2?sid=b"} < set(done.paths())
    assert done.stats["clusterd/requeued"] == 2
    assert [heard for heard in done.heard if "retired" in heard] == [
        {"retired": "r1", "reason": "it was wrong", "host": site.host}
    ]


@pytest.mark.parametrize("tried", [False, True], ids=["its rule was withdrawn", "it was a trial of another"])
def test_what_was_queued_and_linked_again_is_fetched_once(
    tried: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """The duplicate filter knows the request that was queued, which is skipped after the one that is kept.

    Of a rule of so little evidence the second of its would-be skips is a trial.
    """
    go = tmp_path / "go"
    twice = "/page/1?sid=a"
    queued = [{"url": url, "options": {"priority": priority}} for url, priority in ((twice, -1), ("/page/2", -2))]
    before = ["/page/1", "/page/3", REST, "/slow/1", "/slow/2", *queued, {"heard": 1}]
    steps = [*before, *(["/page/3?sid=b"] if tried else []), twice, {"file": str(go)}]
    running = Crawling(tmp_path, at(site, steps), settings | ONE_BY_ONE | SELDOM)
    wait_until(lambda: site.hits["/slow/1"])
    publish_rules(redis_url, prefix, sid_rules(site))
    wait_until(lambda: site.hits["/page/2"])
    other = replace(sid_rule(site.host, "r2"), lower_bound=0.05)
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, (other,) if tried else ()))
    wait_until(lambda: site.hits[twice])
    go.touch()
    done = running.result()
    assert (site.hits[twice], done.stat("skipped"), done.stat("explored")) == (1, 1 + tried, tried)
    # What is made of it, by a redirect or by the spider, passes the duplicate filter as what is made of others does.
    assert not any(page["dont_filter"] for page in done.seen)


def test_what_is_fetched_after_all_while_its_errback_still_works_ends_as_any_other(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Scrapy counts the requests that it is busy with by object: one object twice would be an error."""
    publish_rules(redis_url, prefix, sid_rules(site))
    go = tmp_path / "go"
    asked = {"url": f"{site.url}/page/1?sid=a", "options": {"errback": "fail_slowly"}}
    running = Crawling(tmp_path, [f"{site.url}/page/1", REST, asked, {"file": str(go)}], settings)
    wait_until(lambda: any(isinstance(message, SkipReport) for message in published(redis_url, prefix)))
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, ()))
    wait_until(lambda: site.hits["/page/1?sid=a"])
    go.touch()
    done = running.result()
    assert done.stat("requeued") == site.hits["/page/1?sid=a"] == len(done.skipped) == 1
    assert "Traceback" not in done.log, done.log[-3000:]


def test_an_unskipped_url_is_fetched_and_no_other(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    running_crawl, go = two_kept_out(site, settings, redis_url, prefix, tmp_path)
    publish_rules(redis_url, prefix, sid_rules(site, version=2, unskip=(f"{site.url}/page/1?sid=a",)))
    wait_until(lambda: site.hits["/page/1?sid=a"])
    go.touch()
    done = running_crawl.result()
    assert set(done.paths()) == {"/page/1", "/page/2", "/page/3", "/page/1?sid=a"}
    assert done.stat("skipped") == 2


@pytest.mark.parametrize(("guard", "least", "most"), [("report", 260, 260), ("sample", 200, 240), ("cut", 200, 235)])
def test_a_calendar_without_end_is_a_trap(
    guard: str, least: int, most: int, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Without any rule: 260 days that all show the same."""
    steps = at(site, [f"/calendar/2026-{month}-{day}" for month in range(1, 11) for day in range(1, 27)])
    done = crawl(tmp_path, steps, settings | {"CLUSTERD_TRAP_GUARD": guard})
    assert least <= len(done.seen) <= most
    assert done.stat("trapped") == 1
    assert len(done.seen) + done.stat("skipped") == 260
    assert f"{site.host}/calendar/N-N-N looks like a crawler trap" in done.log


def test_what_is_said_of_a_trap_is_short_however_long_its_urls_are(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    days = (f"/calendar/2026-{month}-{day}" for month in range(1, 11) for day in range(1, 27))
    log = crawl(tmp_path, at(site, [f"{day}?{'v' * 1900}=1" for day in days]), settings).log
    (line,) = (line for line in log.splitlines() if "looks like a crawler trap" in line)
    assert len(line) < 2000


def test_a_middleware_may_import_the_reactor(site: Site, settings: dict[str, Any], tmp_path: Path) -> None:
    """In a script the crawl installs it, before the middlewares are imported."""
    (tmp_path / "theirs.py").write_text("from twisted.internet import reactor\n\nclass Theirs:\n    pass\n")
    done = crawl(tmp_path, at(site, ["/page/1"]), settings | {"DOWNLOADER_MIDDLEWARES": {"theirs.Theirs": 500}})
    assert done.stat("sketched") == 1


def test_a_middleware_stays_where_the_project_has_placed_it() -> None:
    name, path = "DOWNLOADER_MIDDLEWARES", "clusterd_crawler.middleware.ClusterdPages"
    for key in (path, ClusterdPages):
        settings = Settings({name: {key: -2000, "theirs.Theirs": 500}})
        Addon().update_settings(settings)
        placed = settings.getdict(name)
        assert placed[key] == -2000
        assert len(placed) == 5


def test_switched_off_it_is_not_there(site: Site, settings: dict[str, Any], tmp_path: Path) -> None:
    done = crawl(tmp_path, at(site, ["/page/1"]), settings | {"CLUSTERD_ENABLED": False})
    assert [name for name in done.stats if name.startswith("clusterd/")] == []


def test_skipping_may_be_switched_off_alone(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, sid_rules(site))
    done = crawl(tmp_path, at(site, SID), settings | {"CLUSTERD_SKIP": False})
    assert len(done.seen) == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"CLUSTERD_REDDIS": "redis://x"}, "there is no setting CLUSTERD_REDDIS; did you mean CLUSTERD_REDIS"),
        ({"CLUSTERD_EXPLORE": "often"}, "CLUSTERD_EXPLORE = 'often' is not accepted; it takes a number, 0 to 1"),
        (
            {"CLUSTERD_REDIS": "http://x"},
            "CLUSTERD_REDIS = 'http://x' is not accepted: an address begins with redis://",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(
    wrong: dict[str, Any], says: str, site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    done = failing(tmp_path, at(site, ["/page/1"]), settings | wrong)
    assert says in done.log
    assert site.hits["/page/1"] == 0


def failing(folder: Path, steps: list[Any], settings: dict[str, Any]) -> Crawled:
    done = Crawling(folder, steps, settings).result()
    assert done.code != 0
    return done
