"""Downloader middlewares of other packages, and of the project, see nothing of a skip that they would take for more.

And a scheduler that fails now and then costs no request but the one that it refuses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import RuleSet
from scrapy import Request
from scrapy.core.scheduler import Scheduler

from tests.crawler.crawling import REST, Crawling, at, crawl, publish_rules, published, sid_rule, sid_rules
from tests.crawler.site import Site
from tests.services.waiting import wait_until

ONE_AFTER_THE_OTHER = {"CONCURRENT_REQUESTS": 1, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}


class Blaming:
    """As scrapy-proxies: takes a proxy out of use whatever a request ended in; without one, no request is sent."""

    def __init__(self) -> None:
        self._proxies = 1

    def process_request(self, request: Request) -> None:
        if not self._proxies:
            raise ValueError("all proxies are unusable")

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._proxies = 0


class Trying:
    """Asks for whatever failed once more, past the duplicate filter."""

    def process_exception(self, request: Request, exception: Exception) -> Request:
        return request.replace(dont_filter=True)


@pytest.mark.parametrize("place", [100, 543, 800])
@pytest.mark.parametrize("other", ["Blaming", "Trying"])
def test_a_skip_is_no_failure_to_other_middlewares(
    other: str, place: int, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (sid_rule(site.host),)))
    others = {"DOWNLOADER_MIDDLEWARES": {f"tests.crawler.test_beside_others.{other}": place}}
    # The rule is to arrive first, and what it skips while the page that shows the same is in the queue before it.
    steps = [f"{site.url}/", REST, f"{site.url}/page/1", f"{site.url}/page/1?sid=a", f"{site.url}/page/2"]
    done = crawl(tmp_path, steps, settings | ONE_AFTER_THE_OTHER | others)
    assert done.paths() == ["/", "/page/1", "/page/2"]
    assert [url for url, *_ in done.skipped] == [f"{site.url}/page/1?sid=a"]
    assert "downloader/exception_count" not in done.stats


class OnFullDisk(Scheduler):
    """Takes no request of one session, as where the disk has no room for its queue."""

    def enqueue_request(self, request: Request) -> bool:
        if request.url.endswith("sid=a"):
            raise OSError("No space left on device")
        return super().enqueue_request(request)


def test_what_the_queue_refuses_takes_nothing_else_along_that_is_fetched_after_all(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """All that was decided about together was lost, in memory and on the disk."""
    publish_rules(redis_url, prefix, sid_rules(site))
    go = tmp_path / "go"
    again = [f"/page/{number}?sid={sid}" for number, sid in enumerate("abcd")]
    steps = [*(f"/page/{number}" for number in range(4)), REST, *again, {"file": str(go)}]
    queue = {"SCHEDULER": "tests.crawler.test_beside_others.OnFullDisk"}
    running = Crawling(tmp_path, at(site, steps), settings | queue)
    wait_until(lambda: sum(isinstance(message, SkipReport) for message in published(redis_url, prefix)) == 4)
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, ()))
    wait_until(lambda: site.hits[again[3]])
    go.touch()
    done = running.result()
    assert {path for path in done.paths() if "sid" in path} == {*again[1:]}
    assert done.stat("requeued") == 3
    assert f"<GET {site.url}{again[0]}> cannot be queued again, and stays kept out: No space left" in done.log
    assert "Traceback" not in done.log
