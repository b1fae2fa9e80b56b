"""Ctrl-C at a process that starts others: a terminal sends it to all of them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def held_back() -> Iterator[None]:
    """Leave Ctrl-C to this process, which ends the others: those that it starts meanwhile never get it.

    What is blocked here is inherited. To ignore it when they have started is too late for one that comes while they do:
    each would end with a traceback.
    """
    resource_tracker.ensure_running()  # it would be started with the first of them, and take the block off
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
