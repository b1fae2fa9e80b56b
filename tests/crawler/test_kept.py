"""What rules kept out: bounded memory, the disk beyond it, and everything found again."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from clusterd_crawler.crawling.requests.admission import Admission
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import PORTION, Kept, KeptOut, pack, unpack
from clusterd_crawler.crawling.requests.purposes import Purposes
from clusterd_crawler.crawling.requests.under_way import UnderWay
from clusterd_crawler.crawling.skipped import SkippedDuplicate
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.skip import Skip
from scrapy.utils.test import get_crawler

from tests.crawler.changing import HOST, drop


class Spider(scrapy.Spider):
    name = "kept"

    def parse_page(self, response: scrapy.http.Response) -> None:
        raise AssertionError("never called")


def kept_out(spider: Spider, number: int, rule: str = "r1") -> KeptOut:
    request = scrapy.Request(f"http://a.test/{number}", callback=spider.parse_page, cb_kwargs={"n": number})
    return KeptOut(rule, request, filtered=number % 2 == 0)


def fill(kept: Kept, spider: Spider, count: int) -> None:
    for number in range(count):
        old = kept.add(kept_out(spider, number, rule=f"r{number % 3}"))
        if old:
            kept.hold(kept.spill(old))


def read_back(kept: Kept, *rules: str) -> list[KeptOut]:
    return [entry for portion in kept.read(rules) for entry in portion]


def test_all_are_found_again_wherever_they_lie(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path / "spool", disk_bytes=10**6, memory=20)
    fill(kept, spider, 100)
    assert len(kept) == 100
    assert kept.has_spilled({"r1"})
    found = read_back(kept, "r1") + kept.take({"r1"})
    assert [entry.request.url for entry in found] == [f"http://a.test/{n}" for n in range(1, 100, 3)]
    assert all(entry.request.callback == spider.parse_page for entry in found)
    assert all(entry.request.cb_kwargs == {"n": 1 + 3 * at} for at, entry in enumerate(found))
    assert [entry.filtered for entry in found] == [n % 2 == 0 for n in range(1, 100, 3)]
    assert read_back(kept, "r1") == kept.take({"r1"}) == []
    assert len(kept) == 100 - 33
    kept.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_beyond_the_disk_they_are_forgotten_and_counted(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path, disk_bytes=2000, memory=10, unwritten=10)
    fill(kept, spider, 100)
    assert kept.forgotten > 0
    assert len(kept) + kept.forgotten == 100
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.requests")) < 2500
    kept.close()


def test_what_is_still_to_be_read_back_counts_as_kept(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path, disk_bytes=10**7, memory=1)
    kept.spill([kept_out(spider, number) for number in range(PORTION + 1)])
    portions = kept.read(["r1"])
    assert [len(kept), len(next(portions)), len(kept)] == [PORTION + 1, PORTION, 1]
    kept.write(written := BytesIO())  # for the crawl's next run: what was read back has been decided about
    written.seek(0)
    assert [one and one.request.url for one in unpack(written, "", spider)] == [f"http://a.test/{PORTION}"]
    assert [len(next(portions)), len(kept)] == [1, 0]
    kept.close()


def test_the_disk_is_free_again_of_what_was_read_back(tmp_path: Path) -> None:
    spider = Spider()
    entries = [kept_out(spider, number) for number in range(3)]
    kept = Kept(spider, tmp_path, disk_bytes=sum(len(pack(entry, spider) or b"") for entry in entries), memory=1)
    for _ in range(3):
        kept.spill(entries)
        assert len(read_back(kept, "r1")) == 3
    assert kept.forgotten == 0
    kept.close()


def test_what_is_read_back_and_kept_out_again_is_never_in_memory_as_a_whole_and_finds_its_room(tmp_path: Path) -> None:
    spider = Spider()
    entries = [kept_out(spider, number) for number in range(2 * PORTION + 1)]
    room = sum(len(pack(entry, spider) or b"") for entry in entries)
    kept = Kept(spider, tmp_path, disk_bytes=room, memory=1)
    kept.spill(entries)
    for portion in kept.read({"r1"}):
        assert len(portion) <= PORTION
        kept.spill(portion)
    assert (len(kept), kept.forgotten) == (len(entries), 0)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.requests*")) == room
    assert [found.request.url for found in read_back(kept, "r1")] == [entry.request.url for entry in entries]
    kept.close()


def test_what_cannot_be_written_stays_in_memory_up_to_a_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """That the oldest are forgotten is said when it begins, once."""
    spider = Spider()
    kept = Kept(spider, tmp_path, disk_bytes=10**6, memory=2, unwritten=3)
    odd = [scrapy.Request(f"http://a.test/{number}", callback=lambda response: None) for number in range(7)]
    for number, request in enumerate(odd):
        kept.hold(kept.spill(kept.add(KeptOut(f"r{number % 2}", request, filtered=False))))
        assert len(caplog.messages) == min(kept.forgotten, 1)
    assert "and 3 are in memory: the oldest are forgotten" in caplog.text
    assert (len(kept), kept.forgotten, kept.by_rule()) == (5, 2, {"r0": 3, "r1": 2})
    assert [entry.request for entry in kept.take({"r0"})] == odd[2::2]
    assert [entry.request for entry in kept.take({"r1"})] == odd[3::2]
    assert len(kept) == 0
    kept.close()


def test_the_garbage_collector_looks_at_few_of_very_many(tmp_path: Path) -> None:
    """Of a crawl that skips much they would be most of what there is: it stands still while they are gone through."""
    spider = Spider()
    kept = Kept(spider, tmp_path, disk_bytes=10**8)
    gc.collect()
    before = len(gc.get_objects())
    fill(kept, spider, 5_000)
    gc.collect()
    assert len(kept) == 5_000
    assert len(gc.get_objects()) - before < 15_000
    kept.close()


class Unreadable:
    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("no number",)


def test_what_cannot_be_read_back_is_counted_and_takes_nothing_else_along(tmp_path: Path) -> None:
    spider = Spider()
    bad = KeptOut("r1", scrapy.Request("http://a.test/bad", meta={"made": Unreadable()}), filtered=False)
    entries = [kept_out(spider, 1), bad, kept_out(spider, 2), bad]
    kept = Kept(spider, tmp_path, disk_bytes=sum(len(pack(entry, spider) or b"") for entry in entries), memory=1)
    assert kept.spill(entries) == []
    assert [entry.request.url for entry in read_back(kept, "r1")] == ["http://a.test/1", "http://a.test/2"]
    assert kept.forgotten == 2
    assert kept.spill(entries) == []  # there is room again
    kept.close()


class Unwritable:
    def __reduce__(self) -> tuple[type, tuple[str]]:
        raise NotImplementedError("a connection cannot be pickled")


def test_what_cannot_be_written_stays_in_memory_and_takes_nothing_else_along(tmp_path: Path) -> None:
    spider = Spider()
    kept = Kept(spider, tmp_path, disk_bytes=10**6, memory=1)
    bad = KeptOut("r1", scrapy.Request("http://a.test/bad", meta={"made": Unwritable()}), filtered=False)
    assert kept.spill([kept_out(spider, 1), bad, kept_out(spider, 2)]) == [bad]
    assert [entry.request.url for entry in read_back(kept, "r1")] == ["http://a.test/1", "http://a.test/2"]
    kept.hold([bad])
    kept.write(BytesIO())
    assert kept.forgotten == 1
    kept.close()


def test_another_rule_may_take_over(tmp_path: Path) -> None:
    spider = Spider()
    entry = kept_out(spider, 1)
    kept = Kept(spider, tmp_path, disk_bytes=10)
    kept.add(replace(entry, rule="r2"))
    assert kept.take({"r1"}) == []
    assert [found.request for found in kept.take({"r2"})] == [entry.request]


def test_what_is_kept_out_again_after_it_was_queued_again_is_kept_and_counted_again() -> None:
    """Its second rule may be withdrawn, too."""
    crawler: Any = get_crawler(Spider)
    crawler.engine = SimpleNamespace(crawl=lambda request: None)
    decisions, kept = Decisions(KnownPages(explore=0), 100), list[tuple[str, KeptOut]]()

    def note(url: str, skip: Skip, kept_out: KeptOut) -> None:
        kept.append((skip.rule, kept_out))

    purposes, under_way = Purposes(Spider(), crawler.settings), UnderWay(8)
    admission = Admission(crawler, decisions, purposes, None, under_way, note, lambda kept_out: None, 0)
    decisions.fetched(f"http://{HOST}/a", 1)
    request = scrapy.Request(f"http://{HOST}/a?s=1")
    for version, rule in enumerate(("one", "two"), 1):
        decisions.load(RuleSet(HOST, version, (drop("s", rule),)))
        with pytest.raises(SkippedDuplicate):
            admission.consider(request, filtered=True)
        assert kept.pop() == (rule, KeptOut(rule, request, filtered=True))
        queued = admission.fetch_again(KeptOut(rule, request, filtered=True))
        assert queued is not None
        request = queued


KILLED = """
import os, sys
from pathlib import Path
from tests.crawler.test_kept import Kept, Spider, fill
spider = Spider()
fill(Kept(spider, Path(sys.argv[1]), disk_bytes=10**6, memory=2), spider, 20)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_crawl_leaves_is_deleted_by_the_next_and_nothing_of_one_that_lives(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    opened = len(os.listdir("/dev/fd"))
    spider = Spider()
    both = [Kept(spider, tmp_path, disk_bytes=10**6, memory=2) for _ in range(2)]
    for kept in both:
        fill(kept, spider, 20)
        assert not left.exists()
    rules = ("r0", "r1", "r2")
    assert [len(read_back(kept, *rules)) + len(kept.take(rules)) for kept in both] == [20, 20]
    for kept in both:
        kept.close()
        late = [kept_out(spider, 1)]
        assert kept.spill(late) == late  # by a thread that was late
        kept.close()
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/dev/fd")) == opened
