"""Verdicts: flags in time, signals in any case, and nobody waits for a daemon that is silent or slow."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from clusterd_crawler import topics
from clusterd_crawler.crawling.pages.download_places import DownloadPlaces
from clusterd_crawler.crawling.pages.near_duplicates import LOOK_SECONDS, NearDuplicates
from clusterd_crawler.crawling.pages.verdicts import MISSES, SILENT_SECONDS, Verdicts
from clusterd_crawler.message import decode
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.verdict import Verdict, encode_verdict
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from tests.crawler.crawling import ANSWERED, crawl, tell
from tests.crawler.site import running

PAGE = ("http://a.test/", 5)
VERDICT = Verdict(*PAGE, crawl="c", match="http://a.test/b", resemblance=1.0, cluster="k", policy="near", size=2)


def test_a_silent_daemon_is_not_waited_for() -> None:
    async def scene() -> None:
        verdicts = Verdicts(timeout=5.0)
        verdicts.ask(PAGE)
        assert verdicts.wait(PAGE) is None

    asyncio.run(scene())


def test_a_prompt_daemon_is_waited_for_and_answers() -> None:
    async def scene() -> Verdict | None:
        verdicts = Verdicts(timeout=5.0)
        verdicts.ask(PAGE)
        verdicts.arrived(VERDICT)
        assert verdicts.prompt
        verdicts.ask(PAGE)
        asyncio.get_running_loop().call_later(0.05, verdicts.arrived, VERDICT)
        answer = verdicts.wait(PAGE)
        assert answer is not None
        return await answer

    assert asyncio.run(scene()) == VERDICT


def test_a_version_that_is_asked_about_twice_is_waited_for_once() -> None:
    async def scene() -> Verdict | None:
        verdicts = Verdicts(timeout=5.0)
        verdicts.prompt = True
        verdicts.ask(PAGE)
        answer = verdicts.wait(PAGE)
        verdicts.ask(PAGE)
        assert verdicts.wait(PAGE) is None
        verdicts.arrived(VERDICT)
        assert answer is not None
        return await answer

    assert asyncio.run(scene()) == VERDICT


def test_the_garbage_collector_looks_at_no_page_that_is_outstanding() -> None:
    verdicts = Verdicts(timeout=5.0)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(1000):
        verdicts.ask((f"http://a.test/{number}", number))
    gc.collect()
    assert len(gc.get_objects()) < before + 100


def test_that_no_daemon_has_answered_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(seconds: float, answered: bool) -> int:
        caplog.clear()
        verdicts = Verdicts(timeout=5.0)
        verdicts.ask(PAGE)
        if answered:
            verdicts.arrived(VERDICT)
        verdicts._silent_since -= seconds
        for at in range(MISSES + 1):
            verdicts.ask((PAGE[0], at))
        said = len(caplog.records)
        await verdicts.answered(0)
        assert len(caplog.records) == (not answered)
        return said

    assert asyncio.run(scene(0, answered=False)) == 0  # it may still come: only at the end
    assert asyncio.run(scene(SILENT_SECONDS, answered=False)) == 1
    assert "is one at work (clusterd run)?" in caplog.text
    assert asyncio.run(scene(SILENT_SECONDS, answered=True)) == 0


def test_that_a_daemon_has_fallen_silent_is_said_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """One that died in the first hour of a long crawl was missed by nobody."""

    async def silence(verdicts: Verdicts, pages: int) -> int:
        caplog.clear()
        for at in range(pages):
            verdicts.ask((PAGE[0], at))
            verdicts._silent_since -= SILENT_SECONDS
        await verdicts.answered(0)
        return sum("No daemon has answered for a minute" in one.message for one in caplog.records)

    async def scene() -> None:
        verdicts = Verdicts(timeout=5.0)
        for _ in range(2):
            verdicts.arrived(VERDICT)
            assert await silence(verdicts, MISSES) == 0  # of a slow crawl pages that get no answer are no silence
            verdicts.arrived(VERDICT)
            assert await silence(verdicts, 5 * MISSES) == 1

    asyncio.run(scene())


def test_pages_that_cannot_be_sketched_are_no_silence(caplog: pytest.LogCaptureFixture) -> None:
    """As of a part of a site with a hundred pictures that are sent with the header of a page."""
    verdicts = Verdicts(timeout=5.0)
    verdicts.arrived(VERDICT)
    for at in range(5 * MISSES):
        verdicts.ask((PAGE[0], at))
        verdicts._silent_since -= SILENT_SECONDS
        verdicts.forget((PAGE[0], at))
    assert caplog.text == ""


def test_a_verdict_counts_once_and_for_the_crawler_that_fetched_its_page() -> None:
    """Crawlers of one crawl hear each other's verdicts, and a daemon that goes back in the log says all again."""

    async def scene() -> None:
        verdicts = Verdicts(timeout=5.0)
        verdicts.ask(PAGE)
        other = replace(VERDICT, url="http://a.test/of-another-crawler")
        pages = NearDuplicates(stats, verdicts, DownloadPlaces(crawler), announce, hurry=int)
        pages.answered([other, VERDICT, VERDICT])

    heard: list[str] = []

    def announce(signal: object, **arguments: Any) -> None:
        heard.append(arguments["response_url"])

    crawler = get_crawler(Spider)
    stats = MemoryStatsCollector(crawler)
    asyncio.run(scene())
    assert heard == [PAGE[0]]
    assert stats.get_value("clusterd/near_duplicates") == 1


def test_a_page_that_cannot_be_sketched_waits_no_longer_and_is_no_miss() -> None:
    async def scene() -> None:
        verdicts = Verdicts(timeout=5.0)
        verdicts.prompt = True
        for _ in range(MISSES):
            verdicts.ask(PAGE)
            answer = verdicts.wait(PAGE)
            assert answer is not None
            verdicts.forget(PAGE)
            assert await answer is None
        assert verdicts.prompt
        assert not verdicts._asked

    asyncio.run(scene())


def test_a_daemon_that_falls_silent_is_given_up_and_taken_back() -> None:
    async def scene() -> None:
        verdicts = Verdicts(timeout=0.02)
        verdicts.prompt = True
        for _ in range(MISSES):
            verdicts.ask(PAGE)
            answer = verdicts.wait(PAGE)
            assert answer is not None
            assert await answer is None
        assert not verdicts.prompt
        await asyncio.sleep(0.05)
        verdicts.arrived(VERDICT)  # late: it does not make the daemon prompt
        assert not verdicts.prompt
        verdicts.ask(PAGE)
        verdicts.arrived(VERDICT)
        assert verdicts.prompt
        assert not verdicts._asked

    asyncio.run(scene())


@pytest.mark.parametrize("others", [0, 1])
def test_a_page_that_alone_is_under_way_is_sent_at_once(others: int) -> None:
    """Nothing would join it in the time for which pages are gathered: each of a chain of pages waited that long."""

    async def scene() -> list[Response]:
        verdicts = Verdicts(timeout=5.0)
        verdicts.prompt = True
        verdicts.ask(PAGE)

        def hurry() -> None:
            pages.answered([VERDICT])

        pages = NearDuplicates(MemoryStatsCollector(crawler), verdicts, places, lambda *_, **__: None, hurry)
        response, answer = Response(PAGE[0]), verdicts.wait(PAGE)
        assert answer is not None
        flagged = asyncio.ensure_future(pages.flag(response, answer))
        await asyncio.wait([flagged], timeout=5 * LOOK_SECONDS)
        hurried.append(flagged.done())
        pages.answered([VERDICT])
        await flagged
        pages.close()
        return [response]

    hurried: list[bool] = []
    crawler = get_crawler(Spider)
    downloader = SimpleNamespace(active=[Request(PAGE[0])] * (1 + others), total_concurrency=16)
    crawler.engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
    places = DownloadPlaces(crawler)
    (response,) = asyncio.run(scene())
    assert hurried == [not others]
    assert response.flags == ["near_duplicate"]


@contextmanager
def daemon(url: str, prefix: str, delay: float) -> Iterator[None]:
    """Answer every sketch of the stream after a delay; pages under /near/ resemble each other."""
    stop = threading.Event()
    stream = topics.stream(prefix, topics.SKETCHES)

    def answer() -> None:
        with redis.Redis.from_url(url, protocol=2) as client:
            last = b"0-0"
            while not stop.is_set():
                for _, entries in client.xread({stream: last}, block=20):
                    for offset, fields in entries:
                        last = offset
                        page = decode(fields[topics.FIELD_VALUE])
                        assert isinstance(page, Sketch)
                        stop.wait(delay)
                        tell(client, prefix, topics.VERDICTS, b"k", encode_verdict(verdict(page)))

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def verdict(page: Sketch) -> Verdict:
    if "/near/" not in page.url:
        return Verdict(page.url, page.fetched_at, page.crawl)
    return Verdict(page.url, page.fetched_at, page.crawl, "http://a.test/near/0", 0.97, "k1", "near", 3)


def test_near_duplicates_are_flagged_before_the_callback(redis_url: str, prefix: str, tmp_path: Path) -> None:
    steps: list[Any] = ["/page/1", ANSWERED, "/page/2", ANSWERED, "/near/1", "/near/2"]
    found = crawled(redis_url, prefix, tmp_path, steps, delay=0.0)
    flags = {page["url"].rsplit("/", 2)[1]: page["flags"] for page in found.seen}
    assert flags == {"page": [], "near": ["near_duplicate"]}
    assert found.stat("near_duplicates") == 2
    near = [heard for heard in found.heard if "near" in heard]
    assert {(heard["cluster"], heard["match"], heard["resemblance"]) for heard in near} == {
        ("k1", "http://a.test/near/0", 0.97)
    }
    assert len(near) == 2


def test_late_verdicts_come_as_signals_and_hold_nobody_up(redis_url: str, prefix: str, tmp_path: Path) -> None:
    steps = [f"/near/{n}" for n in range(10)] + [{"heard": 10}]
    settings = {"CLUSTERD_VERDICT_TIMEOUT": 0.2}
    found = crawled(redis_url, prefix, tmp_path, steps, delay=0.5, **settings)
    times = [page["at"] for page in found.seen]
    assert max(times) - min(times) < 0.5
    assert all(page["flags"] == [] for page in found.seen)
    assert found.stat("near_duplicates") == len([heard for heard in found.heard if "near" in heard]) == 10


def test_a_page_is_fetched_while_another_waits_for_its_verdict(redis_url: str, prefix: str, tmp_path: Path) -> None:
    settings = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_VERDICT_TIMEOUT": 5.0}
    with running() as site, daemon(redis_url, prefix, 0.5):
        steps = [f"{site.url}/page/1", ANSWERED, f"{site.url}/page/2", f"{site.url}/page/3"]
        found = crawl(tmp_path, steps, {**settings, "CONCURRENT_REQUESTS": 1})
        seen_at = {page["url"].removeprefix(site.url): page["at"] for page in found.seen}
        assert set(seen_at) == {"/page/1", "/page/2", "/page/3"}
        assert site.asked_at["/page/3"] < seen_at["/page/2"]


def crawled(url: str, prefix: str, folder: Path, steps: list[Any], delay: float, **more: Any) -> Any:
    settings = {"CLUSTERD_REDIS": url, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_VERDICT_TIMEOUT": 2.0, **more}
    with running() as site, daemon(url, prefix, delay):
        placed = [site.url + step if isinstance(step, str) else step for step in steps]
        return crawl(folder, placed, settings)
