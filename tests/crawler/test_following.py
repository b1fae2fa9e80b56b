"""What a withdrawn rule has kept out and lies on the disk follows no faster than it is sent, and is lost nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import scrapy
from clusterd_crawler.crawling.requests.kept import PORTION, KeptOut, level
from clusterd_crawler.crawling.rule_changes import AHEAD
from clusterd_crawler.rules import RuleSet

from tests.crawler.changing import HOST, Changing, drop

#: Requests that a rule has kept out.
MANY = 4 * PORTION
#: Requests that may be in the queue at once, with those that were in memory when the rule was withdrawn.
MOST = AHEAD + PORTION + 10


class Queueing(Changing):
    """With a scheduler that keeps its queue in memory."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, memory=10)
        self.queue: list[scrapy.Request] = []

    def fetch(self, kept: KeptOut) -> scrapy.Request:
        self.queue.append(super().fetch(kept))
        return self.queue[-1]

    def send(self) -> None:
        """Send all that is queued."""
        for request in self.queue:
            self.changes.sent(request)
        self.queue.clear()

    async def keep_out(self, *priorities: int) -> list[str]:
        """Have rule "one" keep out so many of each priority; return their URLs."""
        self.known.fetched(f"http://{HOST}/a", 1)
        await self.use(1, drop("s", "one"))
        urls = [f"http://{HOST}/a?s={priority}.{n}" for priority in priorities for n in range(MANY)]
        for url in urls:
            priority = int(url.partition("=")[2].partition(".")[0])
            await self.changes.keep(KeptOut("one", scrapy.Request(url, priority=priority), filtered=False))
        return sorted(urls)

    async def withdraw(self) -> None:
        """Have no rule from now on."""
        self.changes.arrived(RuleSet(HOST, 2, ()))
        await self.changes.settled()

    async def at_rest(self) -> None:
        """Wait until nothing more follows."""
        before = -1
        while before < len(self.fetched) or self.changes._moving:
            before = len(self.fetched)
            await asyncio.sleep(0.2)


def test_what_follows_waits_on_the_disk_for_what_is_queued(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Queueing(tmp_path)
        everything = await changing.keep_out(0)
        await changing.withdraw()
        most = 0
        while changing.changes.busy:
            await changing.at_rest()
            assert len(changing.fetched) + len(changing.kept) == MANY
            most = max(most, len(changing.queue))
            changing.send()
        assert AHEAD <= most <= MOST
        assert sorted(changing.fetched) == everything
        assert not list(tmp_path.rglob("*.requests*"))

    asyncio.run(scenario())


def test_a_rule_that_comes_back_keeps_out_what_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Queueing(tmp_path)
        everything = await changing.keep_out(0)
        await changing.withdraw()
        await changing.at_rest()
        changing.changes.arrived(RuleSet(HOST, 3, (drop("s", "two"),)))
        await changing.changes.settled()
        changing.send()
        await changing.loop.done()
        assert len(changing.fetched) <= MOST
        assert sorted(changing.fetched + changing.kept_urls()) == everything
        assert changing.kept.by_rule() == {"two": MANY - len(changing.fetched)}

    asyncio.run(scenario())


def test_what_waits_when_the_crawl_closes_stays_kept_and_is_not_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Queueing(tmp_path)
        everything = await changing.keep_out(0)
        await changing.withdraw()
        await changing.at_rest()
        (waits,) = tmp_path.rglob("*.requests-*")
        written = waits.stat()
        await changing.changes.close()
        assert not changing.changes.busy
        assert (waits.stat().st_size, waits.stat().st_mtime_ns) == (written.st_size, written.st_mtime_ns)
        assert not list(tmp_path.rglob("*.requests"))
        assert sorted(changing.fetched + changing.kept_urls()) == everything
        assert len(changing.fetched) <= MOST

    asyncio.run(scenario())


def test_what_another_middleware_drops_holds_nothing_back(tmp_path: Path) -> None:
    """It may keep what it drops; the queue is empty then, and the crawl idle."""

    async def scenario() -> None:
        changing = Queueing(tmp_path)
        everything = await changing.keep_out(0)
        await changing.withdraw()
        while changing.changes.busy:
            await changing.at_rest()
            changing.changes.all_sent()
        assert sorted(changing.fetched) == everything

    asyncio.run(scenario())


def test_a_queue_that_holds_no_requests_in_memory_is_given_all_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        await changing.use(1, drop("s", "one"))
        for number in range(MANY):
            request = scrapy.Request(f"http://{HOST}/a?s={number}")
            await changing.changes.keep(KeptOut("one", request, filtered=False))
        await changing.use(2)
        assert len(changing.fetched) == MANY

    asyncio.run(scenario())


def test_what_is_urgent_waits_for_nothing_that_is_less_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Queueing(tmp_path)
        everything = await changing.keep_out(-1, 5)
        await changing.withdraw()
        urgent = 0
        while urgent < MANY:
            await changing.at_rest()
            sent = [request for request in changing.queue if request.priority == 5]
            assert sent
            urgent += len(sent)
            for request in sent:
                changing.changes.sent(request)
                changing.queue.remove(request)
        while changing.changes.busy:
            await changing.at_rest()
            changing.send()
        assert sorted(changing.fetched) == everything

    asyncio.run(scenario())


def test_there_are_few_levels_however_many_priorities() -> None:
    priorities = range(-1000, 1001)
    levels = [level(priority) for priority in priorities]
    assert levels == sorted(levels)
    assert len(set(levels)) == 21
    assert [priority for priority in priorities if level(priority) == 0] == [0]
