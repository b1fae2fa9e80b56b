"""Sketching on several cores: pages go in chunks to processes of their own, and their sketches come back in order.

A small input starts no process: its pages are sketched here. At most `AHEAD` chunks for each process are under way, so
memory is bounded whatever the input. Where a process is killed, what it had and all that follows is sketched here;
where this process is killed, the others end.
Cost: some 50 µs a page to cross, where sketching takes 1 ms; a process takes half a second to start, once.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clusterd_consumer.interrupts import held_back
from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.message import File, Redirect
from clusterd_crawler.page import sketch_page, sketch_plain
from clusterd_crawler.sketch import Profile, Sketch

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

log = logging.getLogger(__name__)

#: Bytes of pages (or so many pages) that are sketched here before processes are started: about a second's work.
ALONE_BYTES: Final = 30_000_000
ALONE_PAGES: Final = 3_000
#: Pages of a chunk, and bytes after which it is full before.
CHUNK: Final = 64
CHUNK_BYTES: Final = 1_000_000
#: Chunks under way for each process.
AHEAD: Final = 3
#: Seconds after which processes are looked after while an answer is waited for.
LOOK: Final = 1.0

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Task:
    """A page that is to be sketched. One of ``body`` and ``text`` is set."""

    url: str
    profile: Profile
    fetched_at: int
    body: bytes | None = None
    text: str | None = None
    content_type: str = ""
    status: int = 200
    crawl: str = ""
    sweep: str = ""

    def done(self) -> Sketch | str:
        """Return the sketch, or why there is none."""
        url, profile, at, crawl, sweep = self.url, self.profile, self.fetched_at, self.crawl, self.sweep
        try:
            if self.text is not None:
                return sketch_plain(url, self.text, profile=profile, fetched_at=at, crawl=crawl, sweep=sweep)
            body, kind, status = self.body or b"", self.content_type, self.status
            return sketch_page(url, body, kind, profile=profile, fetched_at=at, status=status, crawl=crawl, sweep=sweep)
        except ClusterdError as error:
            return str(error)
        except Exception as error:  # as in a crawl, a page costs no other
            log.debug("%s could not be sketched", url, exc_info=True)
            return f"could not be sketched: {type(error).__name__}: {error} (a fault of clusterd; --debug shows where)"


#: What becomes of a page: its sketch, or why there is none. What is no page is a message already.
Made = Sketch | str | File | Redirect
#: Something, and its page as a task, or what has become of it before.
Asked = tuple[Item, Task | Made]


def sketch_all(asked: Iterable[Asked[Item]], jobs: int) -> Generator[tuple[Item, Made]]:
    """Yield what becomes of each task, in order, made by up to so many processes; what is no task stays as it is."""
    rest = iter(asked)
    size = pages = 0
    for item, task in rest:
        size, pages = size + _size(task), pages + 1
        yield item, _done(task)
        if jobs > 1 and (size >= ALONE_BYTES or pages == ALONE_PAGES):
            yield from _together(_chunks(rest), jobs)


def _together(chunks: Iterator[Sequence[Asked[Item]]], jobs: int) -> Iterator[tuple[Item, Made]]:
    processes = _Processes(ProcessPoolExecutor(jobs, get_context("spawn"), _ending_with_parent))
    under_way: deque[tuple[Sequence[Asked[Item]], Future[list[Made]] | None]] = deque()
    try:
        for chunk in chunks:
            under_way.append((chunk, processes.hand([task for _, task in chunk])))
            if len(under_way) > AHEAD * jobs:
                yield from processes.take(*under_way.popleft())
        while under_way:
            yield from processes.take(*under_way.popleft())
    finally:
        processes.free()
        processes.pool.shutdown(cancel_futures=True)


@dataclass(slots=True)
class _Processes:
    """The processes; once one of them was killed they are no more, which is told once."""

    pool: ProcessPoolExecutor
    lost: bool = False

    def hand(self, tasks: list[Task | Made]) -> Future[list[Made]] | None:
        """Hand tasks to them; None where they are no more."""
        try:
            with held_back():  # this may start a process
                return self.pool.submit(_all_done, tasks)
        except BrokenProcessPool:
            self._lose()
            return None

    def take(self, chunk: Sequence[Asked[Item]], future: Future[list[Made]] | None) -> Iterator[tuple[Item, Made]]:
        """Yield what has become of a chunk; what they had is sketched here."""
        made: list[Made] | None = None
        if future is not None:
            try:
                made = self._result(future)
            except BrokenProcessPool:
                self._lose()
        if made is None:
            made = _all_done([task for _, task in chunk])
        yield from ((item, one) for (item, _), one in zip(chunk, made, strict=True))

    def _result(self, future: Future[list[Made]]) -> list[Made]:
        while True:
            try:
                return future.result(LOOK)
            except TimeoutError:
                self.free()

    def free(self) -> None:
        """End all of them where one was killed in the middle of an answer: the pool would wait for the rest of it."""
        pool: Any = self.pool  # it has no other way out
        every = list((pool._processes or {}).values())
        if any(process.exitcode is not None for process in every):
            for process in every:
                process.kill()
            with suppress(AttributeError, OSError):  # the pool has seen it by itself
                pool._result_queue._writer.close()

    def _lose(self) -> None:
        if not self.lost:
            log.warning("a process that sketched pages was killed (out of memory?); going on in this one")
        self.lost = True


def _ending_with_parent() -> None:
    """End this process when the one that started it is killed: each holds the queue open that the others wait on."""
    Thread(target=_end_after, args=(parent_process(),), daemon=True).start()


def _end_after(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)


def _chunks(rest: Iterator[Asked[Item]]) -> Iterator[list[Asked[Item]]]:
    chunk: list[Asked[Item]] = []
    size = 0
    for one in rest:
        chunk.append(one)
        size += _size(one[1])
        if len(chunk) == CHUNK or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _size(task: Task | Made) -> int:
    """Return the length of what is to be read."""
    return len(task.body or task.text or "") if isinstance(task, Task) else 0


def _done(task: Task | Made) -> Made:
    return task.done() if isinstance(task, Task) else task


def _all_done(tasks: Sequence[Task | Made]) -> list[Made]:
    return [_done(task) for task in tasks]
