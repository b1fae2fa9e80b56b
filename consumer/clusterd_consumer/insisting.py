"""Work that a store or a log which does not answer keeps from being done: it is done again after growing pauses.

The work must be repeatable: what failed may have arrived all the same.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.redis_errors import unreachable

from clusterd_consumer.redis_connection import unable

log = logging.getLogger(__name__)

#: Seconds before asking a store again that does not answer: doubled each time, up to the second.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0

Answer = TypeVar("Answer")


class StopFlag:
    """Asks a worker to stop. Takes no lock, so that a signal handler may set it whatever the thread is doing."""

    #: Seconds after which a wait sees that the flag was set.
    SLICE: Final = 0.05

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Ask to stop."""
        self._set = True

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the flag is set; return whether it is."""
        until = time.monotonic() + seconds
        while not self._set and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.SLICE))
        return self._set


class Stopped(Exception):
    """The worker was asked to stop while it waited for a store or a log that does not answer."""


class Insist(Protocol):
    """Does work and returns its answer, in whatever number of attempts."""

    def __call__(self, work: Callable[[], Answer], /) -> Answer:
        """Do the work."""
        ...


def once(work: Callable[[], Answer], /) -> Answer:
    """Do the work, and leave it where it fails (an `Insist`)."""
    return work()


class Insisting:
    """Does work again while the store or the log does not answer (an `Insist`).

    ``on_trouble`` hears of every attempt that fails, and "" when it is over; the log does at ``level``. `Stopped` where
    ``stopping`` is set meanwhile, `Unreachable` where one piece of work has failed for ``patience`` seconds.
    """

    def __init__(
        self,
        on_trouble: Callable[[str], None] | None = None,
        stopping: StopFlag | None = None,
        patience: float = math.inf,
        level: int = logging.WARNING,
    ) -> None:
        self._on_trouble = on_trouble or (lambda _: None)
        self._stopping = stopping or StopFlag()
        self._patience = patience
        self._level = level

    def __call__(self, work: Callable[[], Answer], /) -> Answer:
        """Do the work."""
        pause, deadline = FIRST_PAUSE, math.inf
        while True:
            try:
                answer = work()
            except Exception as error:
                if not isinstance(error, Unreachable) and not unable(error):
                    self._over(pause)  # it answers, if not as hoped
                    raise
                now = time.monotonic()
                deadline = min(deadline, now + self._patience)
                if now >= deadline:
                    if isinstance(error, Unreachable):
                        raise
                    raise unreachable(error) from error
                log.log(self._level, "%s; trying again in %.2g s", error, pause)
                self._on_trouble(str(error))
                if self._stopping.wait(min(pause, deadline - now)):
                    raise Stopped from error
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._over(pause)
                return answer

    def _over(self, pause: float) -> None:
        """Say that the trouble is over, where there was some."""
        if pause > FIRST_PAUSE:
            self._on_trouble("")
