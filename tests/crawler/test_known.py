"""What crawls of one host know of each other: crawlers of one crawl, a crawl after another, a crawl that is resumed.

Real crawls with a store and a daemon of their own, which publishes the pages of the host as soon as it has a rule.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from clusterd.config import Config
from clusterd.services import open_services

from tests.crawler.crawling import REST, Crawling, crawl, sid_rule
from tests.crawler.site import Site
from tests.services.waiting import wait_until

#: Pages that the crawls ask for.
ASKED = range(20)


def urls(site: Site, numbers: range, sid: str = "") -> list[str]:
    return [f"{site.url}/page/{n}" + (f"?sid={sid}{n}" if sid else "") for n in numbers]


def import_rule(site: Site, folder: Path) -> None:
    """Enter the rule on ``sid`` into the store of a project."""
    with open_services(Config(data=str(folder / ".clusterd"))) as services:
        services.rulebook.import_rules([sid_rule(site.host)], at=1)
        services.publisher.flush(10)


def read_otherwise(site: Site, numbers: range) -> list[dict[str, Any]]:
    """Ask for pages that another callback is to read."""
    return [{"url": url, "options": {"callback": "read_otherwise"}} for url in urls(site, numbers, "o")]


SETTINGS: dict[str, Any] = {"CLUSTERD_EXPLORE": 0, "CONCURRENT_REQUESTS": 4}


def test_crawlers_of_one_crawl_skip_what_the_other_fetched(site: Site, tmp_path: Path) -> None:
    shared = SETTINGS | {"CLUSTERD_CRAWL_ID": "one"}
    import_rule(site, tmp_path)
    go = tmp_path / "go"
    steps = [*urls(site, ASKED), {"file": str(go)}, REST, *urls(site, range(50, 60), "c")]
    one = Crawling(tmp_path, steps, shared)
    wait_until(lambda: sum(site.pages().values()) == len(ASKED), seconds=40)
    later = urls(site, range(50, 60))
    other = read_otherwise(site, range(3))
    two = crawl(tmp_path, [f"{site.url}/", {"pause": 4}, *urls(site, ASKED, "b"), *other, *later], shared)
    go.touch()
    back = one.result()
    known = {skip["known_url"] for skip in two.heard if "skip" in skip}
    assert known >= set(urls(site, ASKED)), two.log[-3000:]
    assert two.stat("skipped") + back.stat("skipped") == len(ASKED) + len(later)
    # Each content was fetched once for a callback, the later pages by the other crawler.
    fetched = [path.partition("?")[0] for path in two.paths() + back.paths()]
    assert sorted(fetched) == sorted(["/", *(f"/page/{n}" for n in (*ASKED, *range(50, 60), *range(3)))])
    assert {path for path in two.paths() if "?sid=o" in path} == {f"/page/{n}?sid=o{n}" for n in range(3)}


def test_what_another_crawler_fetched_twice_is_not_fetched_twice_again(site: Site, tmp_path: Path) -> None:
    """That one of the same crawl met both addresses before it had the rule: they are known, and of one key."""
    shared = SETTINGS | {"CLUSTERD_CRAWL_ID": "one", "CONCURRENT_REQUESTS": 1}
    asked = [*urls(site, ASKED, "a"), *urls(site, ASKED, "b")]
    assert len(crawl(tmp_path, asked, shared).seen) == len(asked)
    import_rule(site, tmp_path)
    back = crawl(tmp_path, [f"{site.url}/", {"pause": 4}, *asked, REST, *asked], shared)
    assert sorted(path.partition("?")[0] for path in back.paths()) == sorted(["/", *(f"/page/{n}" for n in ASKED)])
    assert back.stat("skipped") == len(ASKED), back.log[-3000:]


def test_the_next_crawl_fetches_each_content_once_more_or_not_at_all(site: Site, tmp_path: Path) -> None:
    import_rule(site, tmp_path)
    crawl(tmp_path, urls(site, ASKED), SETTINGS)
    steps = [f"{site.url}/", REST, *urls(site, ASKED), REST, *urls(site, ASKED, "c")]
    within = crawl(tmp_path, steps, SETTINGS | {"CLUSTERD_SKIP_WITHIN": 86_400})
    assert within.paths() == ["/"], within.log[-3000:]
    assert within.stat("skipped") == 2 * len(ASKED)
    default = crawl(tmp_path, steps, SETTINGS)
    assert sorted(default.paths()) == sorted(["/", *(f"/page/{n}" for n in ASKED)])
    time.sleep(1)
    long_ago = crawl(tmp_path, urls(site, ASKED), SETTINGS | {"CLUSTERD_SKIP_WITHIN": 0.5})
    assert len(long_ago.seen) == len(ASKED)


def test_a_crawl_that_is_resumed_knows_what_it_fetched(site: Site, tmp_path: Path) -> None:
    job = SETTINGS | {"JOBDIR": str(tmp_path / "job")}
    import_rule(site, tmp_path)
    crawl(tmp_path, urls(site, ASKED), job)
    other = read_otherwise(site, range(1))
    resumed = crawl(tmp_path, [f"{site.url}/", REST, *urls(site, ASKED, "d"), *other], job)
    assert resumed.paths() == ["/", "/page/0?sid=o0"], resumed.log[-3000:]
    assert resumed.stat("skipped") == len(ASKED)
