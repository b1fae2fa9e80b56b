"""Of which hosts it is said that pages differ by a few words alone."""

from __future__ import annotations

import pytest
from clusterd_crawler.crawling.pages import nearly_equal
from clusterd_crawler.crawling.pages.nearly_equal import FEWEST, LEAST_SHARE, TOLD, NearlyEqual
from clusterd_crawler.verdict import Verdict
from scrapy import Spider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

#: Pages of which `FEWEST` are just the least share.
PAGES = round(FEWEST / LEAST_SHARE)


def noted(nearly: int, others: int) -> tuple[NearlyEqual, MemoryStatsCollector]:
    stats = MemoryStatsCollector(get_crawler(Spider))
    pages = NearlyEqual(stats)
    note_nearly(pages, nearly)
    for n in range(others):
        pages.note(Verdict(f"http://h.test/other/{n}", n))
    return pages, stats


def note_nearly(pages: NearlyEqual, count: int, host: str = "h.test") -> None:
    for n in range(count):
        match = f"http://{host}/item?id={n}"
        pages.note(Verdict(f"{match}&print=1", n, match=match, resemblance=0.95, cluster="k", nearly=True))


@pytest.mark.parametrize(
    ("nearly", "others", "said"),
    [(FEWEST, PAGES - FEWEST, True), (FEWEST, PAGES - FEWEST + 1, False), (FEWEST - 1, 0, False), (FEWEST, 0, True)],
)
def test_a_host_is_spoken_of_for_so_many_pages_and_such_a_share(
    caplog: pytest.LogCaptureFixture, nearly: int, others: int, said: bool
) -> None:
    caplog.set_level("INFO")
    pages, stats = noted(nearly, others)
    pages.tell()
    lines = [
        f"h.test: {nearly} of {nearly + others} pages",
        "http://h.test/item?id=0&print=1 and http://h.test/item?id=0:",
    ]
    assert all((line in caplog.text) is said for line in lines)
    assert stats.get_value("clusterd/nearly_equal") == nearly


def test_of_more_hosts_than_are_counted_nothing_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(nearly_equal, "HOSTS", 0)
    pages, _ = noted(FEWEST, 0)
    pages.tell()
    assert "pages differ" not in caplog.text


def test_of_many_hosts_those_with_the_most_are_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pages, _ = noted(0, 0)
    for n in range(TOLD + 2):
        note_nearly(pages, FEWEST + n, f"h{n}.test")
    pages.tell()
    told = [record.getMessage().partition(":")[0] for record in caplog.records if record.name == nearly_equal.__name__]
    assert told == [f"h{n}.test" for n in reversed(range(2, TOLD + 2))]
