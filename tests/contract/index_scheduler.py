"""Several workers on one store, interleaved operation by operation from a seed: a lost race comes back with it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clusterd.clusters.contract import Policy
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.sketch import Sketch


class Crash(Exception):
    """The worker dies here."""


class Scheduler:
    """Lets one worker at a time do one store operation; which one, and who crashes, is a function of the seed."""

    def __init__(self, seed: int, workers: int, crashes: float) -> None:
        self._dice = random.Random(seed)
        self._crashes = crashes
        self._alive = set(range(workers))
        self._waiting: set[int] = set()
        self._chosen: int | None = None
        self._turn = threading.Condition()
        self.running = True

    def operate(self, worker: int, operation: Callable[[], Any]) -> Any:
        """Wait for the worker's turn; do the operation, or crash before or after it."""
        if not self.running:
            return operation()
        with self._turn:
            self._waiting.add(worker)
            self._choose()
            self._turn.wait_for(lambda: self._chosen == worker)
            self._chosen = None
            fate = self._dice.random() / self._crashes if self._crashes else 1.0
        if fate < 0.5:
            raise Crash
        result = operation()
        if fate < 1.0:
            raise Crash
        return result

    def run(self, workers: Sequence[threading.Thread], url: str, prefix: str) -> None:
        """Let workers do all they have to do; then the leases of those that crashed run out, and nobody waits."""
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.running = False
        with connect(url) as client:
            for lease in client.scan_iter(f"{prefix}*:lock", count=10_000):
                client.delete(lease)

    def leave(self, worker: int) -> None:
        """The worker has nothing more to do."""
        with self._turn:
            self._alive.discard(worker)
            self._choose()

    def _choose(self) -> None:
        if self._chosen is None and self._alive and self._waiting >= self._alive:
            self._chosen = self._dice.choice(sorted(self._waiting))
            self._waiting.discard(self._chosen)
            self._turn.notify_all()


class ScheduledCalls(Calls):
    """Store operations that wait for their turn; what is asked together is asked one by one."""

    def __init__(self, client: Client, scheduler: Scheduler, worker: int) -> None:
        super().__init__(client)
        self._scheduler = scheduler
        self._worker = worker

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        return [
            self._scheduler.operate(self._worker, lambda request=request: super(ScheduledCalls, self).ask([request])[0])
            for request in requests
        ]


def work(
    scheduler: Scheduler,
    worker: int,
    index: RedisIndex,
    messages: Sequence[Sketch],
    seed: int,
    later: Iterable[Policy] = (),
) -> None:
    """Read the messages of a partition, batch by batch, settle, add policies ``later``.

    After a crash begin again where the position stands.
    """
    dice = random.Random(seed * 100 + worker)
    policies = list(later)
    at = 0
    while at < len(messages):
        size = dice.randrange(1, 6)
        try:
            index.apply(messages[at : at + size], {str(worker): str(at + size)}, index.position())
            at += size
            if dice.random() < 0.5:
                index.settle(dice.randrange(1, 4))
            while policies and at > len(messages) // 2:
                index.add_policy(policies.pop())
        except Crash:
            at = max(0, at - dice.randrange(0, 2))
    scheduler.leave(worker)
