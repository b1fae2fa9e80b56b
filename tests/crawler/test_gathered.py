"""Pages that come together are sketched together: soon, in order, all of them, and none of them twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.pages import reporter
from clusterd_crawler.crawling.pages.gathered import GATHER_SECONDS, PAGES, Pages
from clusterd_crawler.crawling.pages.reporter import AT_ONCE, Page, Reporter, Seen
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.message import decode
from clusterd_crawler.publish.spool import Entry
from clusterd_crawler.settings import Settings
from clusterd_crawler.sketch import Sketch
from scrapy import Request
from scrapy.http import HtmlResponse

PNG = b"\x89PNG\r\n"


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this machine is, it sketches in the loop what another would."""
    monkeypatch.setattr(reporter, "NOW_SECONDS", 60.0)


class Scene:
    """What becomes of pages."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self._waiting: list[Entry] = []
        self.noted: list[str] = []
        self.refused: list[str] = []
        writer = Reporter(Settings(), "c")
        writer.publisher = self  # type: ignore[assignment]
        self.pages = Pages(EventLoop(), writer, self.note, self.refuse)

    def offer(self, key: bytes, value: bytes) -> None:
        self.offer_together([(key, value)])

    def offer_together(self, entries: Iterable[Entry], more: bool = False) -> None:
        self._waiting += entries
        if self._waiting and not more:
            messages = [decode(value) for _, value in self._waiting]
            self.sent.append([message.url for message in messages if isinstance(message, Sketch)])
            self._waiting = []

    def note(self, page: Page, seen: Seen) -> None:
        assert (seen.content != 0, seen.good) == (True, True)
        self.noted.append(page.url)

    def refuse(self, page: Page, error: ClusterdError) -> None:
        self.refused.append(page.url)


def page(name: str, size: int = 500, head: bytes = b"") -> Page:
    url = f"http://h.com/{name}"
    body = head + b"<html><body><p>" + f"word{name} ".encode() * (size // 8)
    return Page(url, 1, Request(url), HtmlResponse(url, body=body))


def urls(*names: object) -> list[str]:
    return [f"http://h.com/{name}" for name in names]


def play(act: Callable[[Scene], Coroutine[Any, Any, None]]) -> Scene:
    async def played() -> Scene:
        scene = Scene()
        await act(scene)
        await scene.pages.close()
        return scene

    return asyncio.run(played())


def test_pages_of_a_moment_are_sent_together() -> None:
    async def act(scene: Scene) -> None:
        for number in range(3):
            scene.pages.gather(page(str(number)))
        assert scene.noted == []
        await asyncio.sleep(2 * GATHER_SECONDS)
        assert scene.noted == urls(0, 1, 2)

    assert play(act).sent == [urls(0, 1, 2)]


@pytest.mark.core  # without it all pages are sketched in a thread
@pytest.mark.parametrize(("count", "size"), [(PAGES, 500), (3, AT_ONCE - 1000)], ids=["pages", "bytes"])
def test_many_pages_wait_no_longer(count: int, size: int) -> None:
    async def act(scene: Scene) -> None:
        for number in range(count):
            scene.pages.gather(page(str(number), size))
        assert scene.noted == urls(*range(count))

    assert play(act).sent == [urls(*range(count))]


@pytest.mark.core
def test_large_pages_go_with_the_others_and_the_end_waits_for_them() -> None:
    async def act(scene: Scene) -> None:
        scene.pages.gather(page("a"))
        scene.pages.gather(page("large", 2 * AT_ONCE))
        scene.pages.gather(page("b"))

    scene = play(act)
    assert scene.sent == [urls("a", "b", "large")]
    assert scene.noted == urls("a", "b", "large")


def test_what_takes_too_long_goes_on_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(reporter, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(reporter, "NOW_SECONDS", 2.5)

    async def act(scene: Scene) -> None:
        for number in range(5):
            scene.pages.gather(page(str(number)))
        await asyncio.sleep(2 * GATHER_SECONDS)

    scene = play(act)
    assert scene.sent == [urls(0, 1, 2, 3, 4)]
    assert scene.noted == urls(0, 1, 2, 3, 4)
    assert next(clock) == 6


def test_what_is_no_page_is_refused_alone() -> None:
    async def act(scene: Scene) -> None:
        scene.pages.gather(page("a"))
        scene.pages.gather(page("picture", head=PNG))
        scene.pages.gather(page("large-picture", 2 * AT_ONCE, head=PNG))

    scene = play(act)
    assert scene.sent == [urls("a")]
    assert (scene.noted, scene.refused) == (urls("a"), urls("picture", "large-picture"))


@pytest.mark.parametrize("size", [500, 2 * AT_ONCE])
def test_a_page_that_is_taken_alone_is_noted_after_those_before_it(size: int) -> None:
    async def act(scene: Scene) -> None:
        scene.pages.gather(page("a"))
        await scene.pages.take(page("b", size))
        assert scene.noted == urls("a", "b")

    assert play(act).sent == [urls("a"), urls("b")]
