"""Rule sets that arrive in a crawl: its decisions and what it has kept out are real, the loop runs what is started."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import scrapy
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut, unpack
from clusterd_crawler.crawling.rule_changes import RuleChanges
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages

HOST = "h.com"


def drop(name: str, rule_id: str) -> Rule:
    key = Key(name=name)
    return Rule(rule_id, HOST, (Condition(key, "any"),), (Edit(key, "delete"),))


class Spider(scrapy.Spider):
    name = "changes"


class Tasks:
    """The crawl's loop: runs what is started."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def done(self) -> None:
        while any(not task.done() for task in self.tasks):
            await asyncio.gather(*self.tasks)


@contextmanager
def held_up(owner: Any, name: str) -> Iterator[None]:
    """Have a method begin when the block ends: its thread may be through with it before who has asked goes on."""
    method, end = getattr(owner, name), threading.Event()

    def later(*arguments: Any) -> Any:
        end.wait(10)
        return method(*arguments)

    setattr(owner, name, later)
    try:
        yield
    finally:
        setattr(owner, name, method)
        end.set()


class Changing:
    """Rule changes over real decisions and kept requests."""

    def __init__(self, folder: Path, memory: int, explore: float = 0) -> None:
        self.loop = Tasks()
        self.known = KnownPages(explore=explore)
        self.kept = Kept(Spider(), folder, disk_bytes=10**6, memory=memory)
        self.fetched: list[str] = []
        self.told: list[tuple[object, dict[str, Any]]] = []
        self.decisions = decisions = Decisions(self.known, 1000)
        self.changes = RuleChanges(
            cast(EventLoop, self.loop),
            decisions,
            self.kept,
            self.fetch,
            lambda signal, **arguments: self.told.append((signal, arguments)),
            lambda kept, counted: decisions.decide(kept.request.url, 5, again=counted),
        )

    def fetch(self, kept: KeptOut) -> scrapy.Request:
        self.fetched.append(kept.request.url)
        return kept.request.copy()

    async def use(self, version: int, *rules: Rule) -> None:
        self.changes.arrived(RuleSet(HOST, version, rules))
        await self.loop.done()

    def kept_urls(self) -> list[str]:
        written = BytesIO()
        self.kept.write(written)
        written.seek(0)
        return [one.request.url for one in unpack(written, "", Spider()) if one is not None]


def kept_out(rule: str, query: str) -> KeptOut:
    return KeptOut(rule, scrapy.Request(f"http://{HOST}/a?{query}"), filtered=False)
