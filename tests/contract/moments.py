"""A worker at a chosen moment: others act meanwhile, it dies, or it stands still until it is let go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any

from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import Client
from clusterd_consumer.redis_scripts import Calls, Request


class Interrupted(Calls):
    """Calls that let something else happen before a script or command of this name runs for the nth time."""

    def __init__(self, client: Client, name: str, nth: int, act: Callable[[], None], transit: float = 0.0) -> None:
        super().__init__(client, transit)
        self._name, self._left, self._act = name, nth, act

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        replies: list[Any] = []
        asked = 0
        for at, request in enumerate(requests):
            if self._left > 0 and request.name == self._name:
                replies += super().ask(requests[asked:at])
                asked = at
                self._left -= 1
                if self._left == 0:
                    self._act()
        return replies + super().ask(requests[asked:])


def interrupted(url: str, prefix: str, name: str, nth: int, act: Callable[[], None], **options: Any) -> RedisIndex:
    """Return an index with such calls (``options``: others of `RedisIndex`)."""
    return RedisIndex(url, prefix, calls=lambda client: Interrupted(client, name, nth, act), **options)


class Lost(Exception):
    """The worker dies here, and its message with it."""


def die() -> None:
    """Let the worker die at this moment."""
    raise Lost


class StandingStill:
    """A worker in a thread of its own that stands still at a moment, `wait`, until it is let go on."""

    def __init__(self) -> None:
        self._stands, self._goes_on = Event(), Event()
        self._thread: Thread | None = None

    def begin(self, work: Callable[[], object]) -> None:
        """Let it work until it stands still, or to the end where that moment does not come."""
        self._thread = Thread(target=lambda: [work(), self._stands.set()])
        self._thread.start()
        assert self._stands.wait(30)

    def wait(self) -> None:
        """The moment."""
        self._stands.set()
        assert self._goes_on.wait(30)

    def let_go_on(self) -> None:
        """Let it work to the end, if it has not yet."""
        self._goes_on.set()
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()
