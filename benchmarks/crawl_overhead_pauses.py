"""How long the crawl's loop is kept from its work, and by whom.

Two measures, since a machine that does other things pauses every process now and then:

- A **beat** asks for its turn every `BEAT` seconds. What it comes late is the loop's delay, whoever caused it. What the
  process itself did of that is told by what a busy machine does not change: the processor time of the loop's thread
  meanwhile (callbacks), and how often it gave up the processor of itself, which it does once in a switch interval while
  it waits for the interpreter's lock (native code that holds it, in whatever thread), as far as other threads of the
  process used a processor in that time (one that holds the lock may itself be waiting for a processor).
- The **add-on's own callbacks** are timed by the processor time of the loop's thread: every call that Scrapy, or the
  add-on's threads, make into it, a coroutine step by step.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

#: Seconds from one beat to the next.
BEAT = 0.001
#: How often the loop's thread gives up the processor from one beat to the next when nothing is amiss.
SLEEPS = 2
#: Seconds that count as a pause.
PAUSE = 0.010


class Beat:
    """For the loop's thread."""

    def __init__(self) -> None:
        self._late: list[tuple[float, float]] = []
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to beat."""
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        interval = sys.getswitchinterval()
        before = _spent()
        while True:
            due = time.perf_counter() + BEAT
            await asyncio.sleep(BEAT)
            late = time.perf_counter() - due
            now = _spent()
            own, all_threads, waits = (after - earlier for after, earlier in zip(now, before, strict=True))
            locked = min(interval * max(0.0, waits - SLEEPS), all_threads - own)
            self._late.append((late, min(late, own + locked)))
            before = now

    def end(self) -> dict[str, float]:
        """Stop; return the delays in milliseconds: as they were, and what of them the process itself did."""
        if self._task is None:
            return {}
        self._task.cancel()
        found: dict[str, float] = {}
        for name, delays in zip(
            ("late", "busy"), (sorted(side) for side in zip(*self._late, strict=True)), strict=True
        ):
            found[f"{name}_over"] = sum(delay > PAUSE for delay in delays)
            found[f"{name}_longest_ms"] = 1000 * delays[-1]
            found[f"{name}_99_ms"] = 1000 * delays[int(0.99 * len(delays))]
            found[f"{name}_999_ms"] = 1000 * delays[int(0.999 * len(delays))]
        return found


def _spent() -> tuple[float, float, float]:
    """Return the processor time of this thread and of all, in seconds, and how often this one went to sleep."""
    return time.thread_time(), time.process_time(), resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class _Own:
    """Processor time of the calls into the add-on, in seconds."""

    def __init__(self) -> None:
        self.spent: list[float] = []

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and notes its time; of a coroutine, the time of each step."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.thread_time()
            result = function(*args, **kwargs)
            self.spent.append(time.thread_time() - begun)
            return self.steps(result) if asyncio.iscoroutine(result) else result

        return call

    @types.coroutine
    def steps(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run a coroutine step by step."""
        step: Callable[[], Any] = partial(work.send, None)  # the first of many
        while True:
            begun = time.thread_time()
            try:
                wanted = step()
            except StopIteration as end:
                return end.value
            finally:
                self.spent.append(time.thread_time() - begun)
            try:
                given = yield wanted
            except BaseException as error:
                step = partial(work.throw, error)
            else:
                step = partial(work.send, given)

    def figures(self) -> dict[str, float]:
        """Return the longest call in milliseconds, and how many were pauses."""
        spent = self.spent or [0.0]
        return {"own_longest_ms": 1000 * max(spent), "own_over": sum(one > PAUSE for one in spent)}


@contextmanager
def own_callbacks(switched_on: bool) -> Iterator[Callable[[], dict[str, float]]]:
    """Time the add-on's callbacks for a while; yields what tells the figures."""
    own = _Own()
    if not switched_on:
        yield dict
        return
    from clusterd_crawler.crawling.counting import Counting
    from clusterd_crawler.crawling.crawl import Crawl
    from clusterd_crawler.crawling.event_loop import EventLoop
    from clusterd_crawler.crawling.pages.gathered import Pages

    of_crawl = ("consider", "admit", "fetched", "left_downloader", "ended", "failed", "idle")
    timed: list[tuple[type, str]] = [(Pages, "flush"), (Counting, "count"), *((Crawl, name) for name in of_crawl)]
    kept = [(place, name, getattr(place, name)) for place, name in timed]
    for place, name, before in kept:
        setattr(place, name, own.timed(before))
    call, start = EventLoop.call, EventLoop.start
    kept += [(EventLoop, "call", call), (EventLoop, "start", start)]
    EventLoop.call = lambda loop, function, *args: call(loop, own.timed(function), *args)  # type: ignore[method-assign]
    EventLoop.start = lambda loop, work: start(loop, own.steps(work))  # type: ignore[method-assign, assignment]
    try:
        yield own.figures
    finally:
        for place, name, before in kept:
            setattr(place, name, before)
