"""A crawl that goes on decides by the rules that there are about what was kept out, also while these are on the way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.meeting import Meeting
from clusterd_crawler.crawling.older_scrapy import run_in_thread
from scrapy import Request


class SlowSubscriber:
    """Hands on what there is of a host when it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.handed_on: list[str] = []

    def meet(self, *hosts: str) -> None:
        assert self.let.wait(10)
        self.handed_on += hosts


def test_what_there_is_of_a_host_that_was_met_just_now_is_waited_for() -> None:
    subscriber = SlowSubscriber()

    async def scenario() -> list[str]:
        meeting = Meeting(EventLoop(), cast(Any, subscriber))
        meeting.meet(Request("http://a.test/queued"))
        waiting = asyncio.ensure_future(meeting.met(Request("http://a.test/kept")))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        subscriber.let.set()
        await waiting
        return list(subscriber.handed_on)

    assert asyncio.run(scenario()) == ["a.test"]


def test_what_is_asked_in_vain_takes_no_thread_from_others() -> None:
    """Of a broad crawl whose Redis did not answer, the end waited for some hundred hosts, ten seconds for each six."""
    subscriber = SlowSubscriber()
    hosts = [f"h{number}.test" for number in range(100)]

    async def scenario() -> None:
        meeting = Meeting(EventLoop(), cast(Any, subscriber))
        for host in hosts:
            meeting.meet(Request(f"http://{host}/"))
        await asyncio.sleep(0.1)
        assert await asyncio.wait_for(run_in_thread(len, hosts), 5) == len(hosts)
        assert subscriber.handed_on == []
        subscriber.let.set()
        await meeting.met(Request("http://last.test/"))
        meeting.close()

    asyncio.run(scenario())
    assert subscriber.handed_on == [*hosts, "last.test"]


def test_at_the_end_of_the_crawl_nobody_waits() -> None:
    subscriber = SlowSubscriber()

    async def scenario() -> None:
        meeting = Meeting(EventLoop(), cast(Any, subscriber))
        waiting = asyncio.ensure_future(meeting.met(Request("http://a.test/")))
        await asyncio.sleep(0.1)
        meeting.close()
        await asyncio.wait_for(waiting, 5)
        await asyncio.wait_for(meeting.met(Request("http://b.test/")), 5)
        subscriber.let.set()

    asyncio.run(scenario())
    assert subscriber.handed_on in ([], ["a.test"])
