"""A crawl that goes on decides by the rules that there are about what was kept out, also while these are on the way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.meeting import Meeting
from scrapy import Request


class SlowSubscriber:
    """Hands on what there is of a host when it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.handed_on: list[str] = []

    def meet(self, host: str) -> None:
        assert self.let.wait(10)
        self.handed_on.append(host)


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
