"""The loop that the crawl runs in: asyncio with a Twisted reactor or without one, or another Twisted reactor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)


class EventLoop:
    """Made in the loop's thread while it runs. `call` may be used from any thread, the rest in the loop's own."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop() if is_asyncio_available() else None
        self._tasks: set[Any] = set()

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Have a function called in the loop's thread, soon. Nothing happens where the loop has ended."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(function, *args)
            except RuntimeError as error:
                logger.debug("The loop has ended: %s", error)
            return
        from twisted.internet import reactor  # asyncio is not there, so this reactor is installed already

        reactor.callFromThread(function, *args)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the crawl; what it raises is logged."""
        if self._loop is not None:
            task = self._loop.create_task(_logged(work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            Deferred.fromCoroutine(_logged(work))


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        logger.exception("clusterd failed beside the crawl; the crawl goes on")
