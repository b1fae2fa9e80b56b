"""A crawl whose Redis is away at the start, dies in the middle, or never comes: not slowed, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.sketch import Sketch

from tests.crawler.crawling import Crawled, Crawling, crawl, published
from tests.crawler.outage import Server
from tests.crawler.site import Site
from tests.services.waiting import wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "server").mkdir()
    made = Server(tmp_path / "server")
    yield made
    made.stop()


def pages(site: Site, count: int, start: int = 0) -> list[Any]:
    return [f"{site.url}/page/{n}" for n in range(start, start + count)]


def settings(server: Server, folder: Path) -> dict[str, Any]:
    return {"CLUSTERD_REDIS": server.url, "CLUSTERD_REDIS_PREFIX": "t:", "CLUSTERD_SPOOL": str(folder / "spool")}


def urls(server: Server) -> set[str]:
    return {page.url for page in published(server.url, "t:") if isinstance(page, Sketch)}


def spread(done: Crawled) -> float:
    """Return the seconds between the first page and the last."""
    times = [page["at"] for page in done.seen]
    return max(times) - min(times)


def test_a_log_that_never_comes_costs_nothing_and_the_next_crawl_brings_its_messages(
    site: Site, server: Server, tmp_path: Path
) -> None:
    done = crawl(tmp_path, pages(site, 60), settings(server, tmp_path))
    assert len(done.seen) == done.stat("sketched") == done.stat("spooled") == 60
    assert done.stat("published") == done.stat("dropped") == 0
    assert spread(done) < 5
    assert "The log takes nothing" in done.log
    server.start()
    again = crawl(tmp_path, pages(site, 1, start=60), settings(server, tmp_path))
    assert again.stat("published") == 61
    assert urls(server) == set(pages(site, 61))


def test_a_log_that_dies_and_comes_back_gets_every_page(site: Site, server: Server, tmp_path: Path) -> None:
    server.start()
    dead, back = tmp_path / "dead", tmp_path / "back"
    steps = [*pages(site, 20), {"file": str(dead)}, *pages(site, 20, start=20), {"file": str(back)}]
    running_crawl = Crawling(tmp_path, [*steps, *pages(site, 20, start=40)], settings(server, tmp_path))
    wait_until(lambda: len(urls(server)) == 20)
    server.stop()
    dead.touch()
    wait_until(lambda: sum(site.hits.values()) == 40 and "The log takes nothing" in running_crawl.log())
    server.start()
    wait_until(lambda: len(urls(server)) == 40)
    back.touch()
    done = running_crawl.result()
    assert urls(server) == set(pages(site, 60))
    assert done.stat("dropped") == 0
    assert done.stat("spooled") >= 1
    assert "The log takes messages again" in done.log


def test_a_full_disk_under_the_spool_is_counted_and_the_crawl_goes_on(
    site: Site, server: Server, tmp_path: Path
) -> None:
    """The spool may hold 20,000 bytes: room for some of the pages, the oldest of which make way."""
    small = {"CLUSTERD_SPOOL_BYTES": 20_000, "CLUSTERD_QUEUE": 1}
    done = crawl(tmp_path, pages(site, 60), settings(server, tmp_path) | small)
    assert len(done.seen) == 60
    assert 0 < done.stat("dropped") < 60
    assert sum(path.stat().st_size for path in (tmp_path / "spool").glob("*.spool")) <= 20_000
    assert "Messages are dropped" in done.log
