"""The benchmark of pauses times the add-on's callbacks by their names: each is still one, and is put back."""

from __future__ import annotations

from clusterd_crawler.crawling.crawl import Crawl

from benchmarks.crawl_overhead_pauses import own_callbacks


def test_every_callback_that_is_timed_is_one_and_is_put_back() -> None:
    before = Crawl.consider
    with own_callbacks(switched_on=True) as figures:
        assert Crawl.consider is not before
        assert figures() == {"own_longest_ms": 0.0, "own_over": 0}
    assert Crawl.consider is before
