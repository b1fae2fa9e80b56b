"""A page that waits for its verdict lends its place among the downloads, within bounds, and takes it back."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from clusterd_crawler.crawling.pages.download_places import LENT, DownloadPlaces
from scrapy import Spider
from scrapy.utils.test import get_crawler


@dataclass
class Engine:
    """What of Scrapy's engine is used."""

    total_concurrency: int
    nudged: int = 0
    _slot: Any = field(init=False)

    def __post_init__(self) -> None:
        self._slot = self.nextcall = self.downloader = self

    def schedule(self) -> None:
        self.nudged += 1


def places(engine: Engine) -> DownloadPlaces:
    crawler = get_crawler(Spider, {"CONCURRENT_REQUESTS": engine.total_concurrency})
    crawler.engine = engine  # type: ignore[assignment]
    return DownloadPlaces(crawler)


@pytest.mark.parametrize(("own", "most"), [(1, 1 + LENT), (3, 3 + LENT), (100, 200)])
def test_there_are_more_places_while_pages_wait(own: int, most: int) -> None:
    """At most twice as many, but for a crawl of few requests at once, which would wait for each verdict."""
    engine = Engine(own)
    lending = places(engine)
    with ExitStack() as waiting:
        for number in range(1, most):
            waiting.enter_context(lending.lent())
            assert engine.total_concurrency == min(own + number, most)
        waiting.enter_context(lending.lent())
        assert engine.total_concurrency == most
        assert engine.nudged == most - own
    assert engine.total_concurrency == own


def test_a_place_comes_back_when_the_wait_is_cancelled() -> None:
    engine = Engine(3)
    with pytest.raises(KeyboardInterrupt), places(engine).lent():
        raise KeyboardInterrupt
    assert engine.total_concurrency == 3


def test_what_others_change_meanwhile_stays() -> None:
    engine = Engine(3)
    with places(engine).lent():
        engine.total_concurrency += 5
    assert engine.total_concurrency == 8


def test_no_limit_stays_no_limit() -> None:
    engine = Engine(0)
    with places(engine).lent():
        assert engine.total_concurrency == 0
