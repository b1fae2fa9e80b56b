"""What rules kept out of a crawl that was paused is not lost with the pause: it is decided anew when the crawl goes on.

Real crawls with a store and a daemon of their own.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import scrapy
from clusterd.cli.commands import run
from clusterd_crawler.crawling.older_scrapy import sleep
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut, unpack
from clusterd_crawler.crawling.requests.paused import FILE, Paused
from clusterd_crawler.middleware import _CRAWLS
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from tests.crawler.changing import held_up
from tests.crawler.crawling import REST, Crawling, crawl
from tests.crawler.site import Site
from tests.crawler.spider import Job
from tests.crawler.test_known import ASKED, SETTINGS, import_rule, urls
from tests.crawler.test_rule_changes import full_beyond


def command(folder: Path, *arguments: str) -> None:
    assert run(["--data", str(folder / ".clusterd"), *arguments]) == 0


@pytest.mark.parametrize("queued", [False, True], ids=["not even queued", "queued before its rule"])
def test_a_skip_is_undone_while_the_crawl_is_paused(queued: bool, site: Site, tmp_path: Path) -> None:
    """Requests that were queued are taken for seen by the resumed scheduler, and no page links to any of them again."""
    job: dict[str, Any] = SETTINGS | {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1 if queued else 4}
    import_rule(site, tmp_path)
    again = urls(site, ASKED, "a")
    paused = crawl(tmp_path, [*urls(site, ASKED), *([] if queued else [REST]), *again], job)
    assert sorted(paused.paths()) == sorted(f"/page/{n}" for n in ASKED)
    assert paused.stat("skipped") == len(ASKED)

    command(tmp_path, "unskip", again[3])
    resumed = crawl(tmp_path, [f"{site.url}/other"], job | {"HTTPERROR_ALLOW_ALL": True})
    assert sorted(resumed.paths()) == ["/other", "/page/3?sid=a3"]
    assert (resumed.stat("requeued"), resumed.stat("forgotten")) == (1, 0)

    command(tmp_path, "rules", "retire", "r1")
    after = crawl(tmp_path, [f"{site.url}/another"], job | {"HTTPERROR_ALLOW_ALL": True})
    left = [f"/page/{n}?sid=a{n}" for n in ASKED if n != 3]
    assert sorted(after.paths()) == sorted(["/another", *left]), after.log[-3000:]
    assert not (tmp_path / "job" / FILE).exists()


def test_what_an_earlier_run_has_fetched_is_not_counted_as_queued_again(site: Site, tmp_path: Path) -> None:
    """The duplicate filter, which remembers the URLs of all runs, lets none of it pass."""
    job: dict[str, Any] = SETTINGS | {"JOBDIR": str(tmp_path / "job")}
    import_rule(site, tmp_path)
    paused = crawl(tmp_path, [*urls(site, ASKED), REST, *urls(site, ASKED, "a")], job)
    assert paused.stat("skipped") == len(ASKED)
    kept_out = (tmp_path / "job" / FILE).read_bytes()
    command(tmp_path, "rules", "retire", "r1")
    for start, queued in (("other", len(ASKED)), ("another", 0)):
        (tmp_path / "job" / FILE).write_bytes(kept_out)  # as where the run before was killed
        resumed = crawl(tmp_path, [f"{site.url}/{start}"], job | {"HTTPERROR_ALLOW_ALL": True})
        assert (len(resumed.paths()), resumed.stat("requeued"), resumed.stat("forgotten")) == (queued + 1, queued, 0)


class SlowToClose(Scheduler):
    """As one that says good-bye to a server."""

    def close(self, reason: str) -> Any:
        super().close(reason)
        return deferred_from_coro(sleep(2))


def test_nothing_is_given_to_a_queue_that_is_closed(site: Site, tmp_path: Path) -> None:
    """Its duplicate filter raised, and with it ended what was being decided about; the rest of that was not kept."""
    job: dict[str, Any] = SETTINGS | {"JOBDIR": str(tmp_path / "job")}
    import_rule(site, tmp_path)
    again = [f"{site.url}/page/{n % 20}?sid={n}" for n in range(2500)]
    paused = crawl(tmp_path, [*urls(site, ASKED), REST, *again], job)
    assert paused.stat("skipped") == len(again)
    command(tmp_path, "rules", "retire", "r1")
    early = {"CLOSESPIDER_PAGECOUNT": 1, "SCHEDULER": "tests.crawler.test_paused.SlowToClose"}
    resumed = crawl(tmp_path, [f"{site.url}/other"], job | early)
    assert resumed.stats["finish_reason"] == "closespider_pagecount"
    waiting = Paused(Job({}), str(tmp_path / "job"))
    kept = []
    while waiting.there:
        some, end = waiting._read()
        kept += [one.request.url for one in some]
        waiting.there, waiting._done = end > waiting._done, end
    queued = resumed.stats.get("scheduler/enqueued/disk", 0) - resumed.stats.get("scheduler/dequeued/disk", 0)
    assert len(kept) == len(set(kept)) > 0
    assert len(kept) + queued + sum("sid=" in path for path in resumed.paths()) == len(again)


class Spider(scrapy.Spider):
    name = "paused"

    def parse_page(self, response: scrapy.http.Response) -> None:
        raise AssertionError("never called")


class Changed(scrapy.Spider):
    name = "paused"


def test_requests_of_a_callback_that_is_gone_are_forgotten_and_counted(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    for number, callback in enumerate((spider.parse_page, None, lambda response: None)):
        kept.add(KeptOut("r1", scrapy.Request(f"http://a.test/{number}", callback=callback), filtered=False))
    paused = Paused(spider, str(tmp_path / "job"))
    paused.keep(kept)
    assert kept.forgotten == 1  # the lambda
    changed = Paused(Changed(), str(tmp_path / "job"))
    assert changed.there
    some, _ = changed._read()
    assert [one.request.url for one in some] == ["http://a.test/1"]
    assert changed.forgotten == 1


def test_what_was_not_decided_about_stays_for_the_next_time(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.add(KeptOut("r1", scrapy.Request("http://a.test/", callback=spider.parse_page), filtered=True))
    Paused(spider, str(tmp_path / "job")).keep(kept)
    again = Paused(spider, str(tmp_path / "job"))
    again.keep(Kept(spider, tmp_path / "spool", disk_bytes=10**6))
    (one,), _ = Paused(spider, str(tmp_path / "job"))._read()
    assert (one.request.url, one.filtered) == ("http://a.test/", True)


def test_a_pause_does_not_read_what_lies_on_the_disk_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 190,000 requests that took over a minute on a busy machine: time to press Ctrl-C once more, and lose them."""
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6, memory=4)
    entries = [KeptOut(f"r{n % 2}", scrapy.Request(f"http://a.test/{n}"), filtered=n % 3 == 0) for n in range(10)]
    assert kept.spill(entries[:8]) == []
    for entry in entries[8:]:
        kept.add(entry)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(pickle, "loads", None)
        Paused(spider, str(tmp_path / "job")).keep(kept)
    some, _ = Paused(spider, str(tmp_path / "job"))._read()
    found = sorted((one.request.url, one.filtered) for one in some)
    assert found == [(entry.request.url, entry.filtered) for entry in entries]
    assert kept.forgotten == 0


def test_a_pause_copies_no_file_while_it_is_written(tmp_path: Path) -> None:
    """What was being decided about when the crawl ended is put to the disk meanwhile."""
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    entries = [KeptOut(f"r{n}", scrapy.Request(f"http://a.test/{n}"), filtered=True) for n in range(300)]
    spilling = Thread(target=lambda: [kept.spill([entry]) for entry in entries])
    spilling.start()
    while spilling.is_alive():
        kept.write(written := BytesIO())
        written.seek(0)
        found = [one.request.url for one in unpack(written, "", spider) if one is not None]
        assert found == [entry.request.url for entry in entries[: len(found)]]
    spilling.join()
    assert len(kept) == 300


def test_a_full_disk_leaves_what_was_kept_before_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What lies on the disk was blamed for it, as not to be read, and what was written ended within a record."""
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.add(KeptOut("r1", scrapy.Request("http://a.test/"), filtered=True))
    Paused(spider, str(tmp_path / "job")).keep(kept)
    written = (tmp_path / "job" / FILE).read_bytes()
    paused = Paused(spider, str(tmp_path / "job"))
    paused.there = False  # all was decided about, and is kept out again
    kept.spill([KeptOut("r1", scrapy.Request(f"http://a.test/{n}"), filtered=True) for n in range(200)])
    with full_beyond(10_000):
        paused.keep(kept)
    assert (tmp_path / "job" / FILE).read_bytes() == written
    assert [file.name for file in (tmp_path / "job").iterdir()] == [FILE]
    (said,) = caplog.messages
    assert "cannot be written for a resume" in said
    assert kept.forgotten == 0


def test_a_crawl_that_ends_before_its_daemon_answers_is_let_go(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.add(KeptOut("r1", scrapy.Request("http://a.test/", callback=spider.parse_page), filtered=True))
    Paused(spider, str(tmp_path / "job")).keep(kept)
    written = (tmp_path / "job" / FILE).read_bytes()

    async def never(_: Any) -> None:
        raise AssertionError("nobody is connected")

    async def scene() -> None:
        paused = Paused(spider, str(tmp_path / "job"))
        resuming = asyncio.create_task(paused.resume(lambda: False, never, never))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(paused.keep, Kept(spider, tmp_path / "spool", disk_bytes=10**6))
        await asyncio.wait_for(resuming, 10)

    asyncio.run(scene())
    assert (tmp_path / "job" / FILE).read_bytes() == written


@contextmanager
def no_file_more() -> Iterator[None]:
    """Let this process open no further file."""
    next_one = os.dup(0)
    os.close(next_one)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_cannot_be_read_for_a_moment_is_not_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As by a crawl that has too many files open: at its end the file was deleted."""
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.add(KeptOut("r1", scrapy.Request("http://a.test/", callback=spider.parse_page), filtered=True))
    Paused(spider, str(tmp_path / "job")).keep(kept)
    paused = Paused(spider, str(tmp_path / "job"))

    async def nothing(_: Any) -> None:
        return

    async def scene() -> None:
        with no_file_more():
            await paused.resume(lambda: True, nothing, nothing)

    asyncio.run(scene())
    assert "cannot be read" in caplog.text
    assert not paused.busy
    paused.keep(Kept(spider, tmp_path / "spool", disk_bytes=10**6))
    (one,), _ = Paused(spider, str(tmp_path / "job"))._read()
    assert one.request.url == "http://a.test/"


def test_what_is_on_the_disk_and_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    """Of a rule that was withdrawn while too many files were open all was forgotten, and the file deleted."""
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.spill([KeptOut("r1", scrapy.Request(f"http://a.test/{n}"), filtered=True) for n in range(3)])
    found: list[KeptOut] = []
    reading = Thread(target=lambda: [found.extend(portion) for portion in kept.read({"r1"})])
    with no_file_more():
        reading.start()
        reading.join(0.2)
        assert reading.is_alive()
    reading.join()
    assert ([one.request.url[-1] for one in found], len(kept), kept.forgotten) == (["0", "1", "2"], 0, 0)


def test_what_cannot_be_opened_for_long_is_left_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clusterd_crawler.crawling.requests.kept.TRIES", 1)
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    kept.spill([KeptOut("r1", scrapy.Request("http://a.test/"), filtered=True)])
    with no_file_more():
        assert list(kept.read({"r1"})) == []
    assert "cannot be read back now, and stays kept" in caplog.text
    assert (len(kept), kept.forgotten) == (1, 0)
    Paused(spider, str(tmp_path / "job")).keep(kept)
    (one,), _ = Paused(spider, str(tmp_path / "job"))._read()
    assert one.request.url == "http://a.test/"


class Broken:
    """An extension by which a part of clusterd fails at the end of the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.signals.connect(self.idle, signal=scrapy.signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Broken:
        return cls(crawler)

    def idle(self) -> None:
        _CRAWLS[self.crawler]._pages._worker.close()

        def never(*_: Any) -> None:
            raise RuntimeError("can't start new thread")

        _CRAWLS[self.crawler]._pages._worker.start = never  # type: ignore[assignment]


def test_a_part_that_fails_at_the_end_takes_no_other_along(site: Site, tmp_path: Path) -> None:
    """What had been kept out was in no file then, and nobody waited for the daemon."""
    import_rule(site, tmp_path)
    job: dict[str, Any] = SETTINGS | {
        "JOBDIR": str(tmp_path / "job"),
        "EXTENSIONS": {"tests.crawler.test_paused.Broken": 1},
    }
    done = Crawling(tmp_path, [*urls(site, ASKED), REST, *urls(site, ASKED, "a")], job).result()
    assert "can't start new thread" in done.log
    assert "clusterd could not end as it should" in done.log
    paused = Paused(Job({}), str(tmp_path / "job"))
    assert len(paused._read()[0]) == done.stat("skipped") == len(ASKED)


@pytest.mark.parametrize("decided", [0, 2])
def test_a_crawl_that_ends_meanwhile_leaves_the_rest_where_it_is(
    decided: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was moved through memory to the spool, and from there back, as long as the crawl took to end."""
    monkeypatch.setattr("clusterd_crawler.crawling.requests.paused.PORTION", 2)
    spider, urls = Spider(), [f"http://a.test/{number}" for number in range(6)]
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6)
    for url in urls:
        kept.add(KeptOut("r1", scrapy.Request(url), filtered=True))
    Paused(spider, str(tmp_path / "job")).keep(kept)
    paused = Paused(spider, str(tmp_path / "job"))

    async def resumed(again: Paused, most: int) -> list[str]:
        """Have it go on until so many were decided about."""
        found: list[str] = []

        async def nothing(_: Any) -> None:
            return

        async def decide(some: list[KeptOut]) -> None:
            found.extend(one.request.url for one in some)
            if len(found) == most:
                again.stop()

        with held_up(again, "_read"):
            going_on = asyncio.create_task(again.resume(lambda: True, nothing, decide))
            await asyncio.sleep(0)
            if not most:  # as soon as the first are being read
                again.stop()
        await going_on
        return found

    assert asyncio.run(resumed(paused, decided)) == urls[:decided]
    paused.keep(Kept(spider, tmp_path / "spool", disk_bytes=10**6))
    assert asyncio.run(resumed(Paused(spider, str(tmp_path / "job")), len(urls) + 1)) == urls[decided:]


def test_what_is_gone_from_the_disk_takes_nothing_else_along(tmp_path: Path) -> None:
    kept = Kept(Spider(), tmp_path / "spool", disk_bytes=10**6)
    for number in range(2):
        kept.add(KeptOut("r1", scrapy.Request(f"http://a.test/{number}"), filtered=False))
    kept.spill([KeptOut("r2", scrapy.Request("http://a.test/gone"), filtered=False)])
    shutil.rmtree(tmp_path / "spool")
    Paused(Spider(), str(tmp_path / "job")).keep(kept)
    some, _ = Paused(Spider(), str(tmp_path / "job"))._read()
    assert [one.request.url for one in some] == ["http://a.test/0", "http://a.test/1"]
    assert kept.forgotten == 1


def test_without_a_jobdir_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = Kept(Spider(), tmp_path / "spool", disk_bytes=10**6)
    kept.add(KeptOut("r1", scrapy.Request("http://a.test/"), filtered=False))
    Paused(Spider(), None).keep(kept)
    assert list(tmp_path.iterdir()) == []
