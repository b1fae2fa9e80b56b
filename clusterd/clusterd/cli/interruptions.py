"""What may come between while a command works: a store or a broker that stops answering, and Ctrl-C."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from clusterd.cli.invocation import Invocation

#: Seconds after an outage in which another one is part of it: the nodes of a cluster do not come back together.
CALM: Final = 10.0
#: Whole seconds that closing may take after Ctrl-C.
CLOSING: Final = 1


class Outages:
    """Says on standard error that a store or a broker does not answer and is waited for: of each outage once.

    ``patience``: seconds for which it is.
    """

    def __init__(self, invocation: Invocation, patience: float = math.inf) -> None:
        self._invocation = invocation
        self._for = "" if patience == math.inf else f" for {patience:g} s"
        self._away = False
        self._over = -math.inf

    def __call__(self, trouble: str) -> None:
        """Take an attempt that failed, or "" where it is over (`Insisting`)."""
        now = time.monotonic()
        if trouble and not self._away and now - self._over >= CALM:
            self._invocation.hint(f"{' '.join(trouble.split())}; trying again{self._for}")
        self._away = bool(trouble)
        self._over = now


@contextmanager
def ended_soon(kafka: bool) -> Iterator[None]:
    """Let Ctrl-C end this process in time also where a broker is away: Kafka's client waits for it when it closes.

    What is cut off by that is done again, as after a crash.
    """
    if not kafka or signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _is_main_thread():
        yield
        return
    closed = False

    def interrupted(*_: object) -> None:
        signal.alarm(CLOSING)
        raise KeyboardInterrupt

    def too_long(*_: object) -> None:
        for child in multiprocessing.active_children():
            child.kill()
        if not closed:
            print("\x1b[?25h" * sys.stderr.isatty() + "clusterd: stopped", file=sys.stderr, flush=True)
        os._exit(1)

    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        closed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
