"""Signals at a process that starts others: a terminal sends Ctrl-C to all, and none may be left half started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Final

#: What asks a process to end.
ASKING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_back() -> Iterator[None]:
    """Leave Ctrl-C to this process, which ends the others: those that it starts meanwhile never get it.

    What is blocked here is inherited. To ignore it when they have started is too late for one that comes while they do:
    each would end with a traceback. So would one whose start a signal here interrupted: it waits.
    """
    resource_tracker.ensure_running()  # it would be started with the first of them, and take the block off
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with put_off():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def put_off() -> Iterator[None]:
    """Handle what asks this process to end when this is done, where it is handled. It interrupts the main thread alone.

    To block them is not enough, since other threads take them for it; and who is started has to be ended by some.
    """
    handled = {number: signal.getsignal(number) for number in ASKING if callable(signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread() or not handled:
        yield
        return
    come: list[int] = []
    for number in handled:
        signal.signal(number, lambda number, frame: come.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        for late in come:
            signal.raise_signal(late)
