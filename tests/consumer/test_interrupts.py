"""Signals that come while a process is started: none is lost, and none leaves it half started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from clusterd_consumer.interrupts import held_back

#: What a process has blocked, and how it takes SIGTERM and SIGHUP.
TOLD = """
import signal
print(*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))
print(*(int(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP)))
"""


@pytest.fixture
def come() -> Iterator[list[int]]:
    """The signals that have been handled."""
    handled: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda number, frame: handled.append(number)) for number in numbers]
    yield handled
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_process_waits_until_another_is_started(number: signal.Signals, come: list[int]) -> None:
    with held_back():
        os.kill(os.getpid(), number)
        assert come == []
    assert come == [number]
    os.kill(os.getpid(), number)
    assert come == [number, number]


def test_ctrl_c_waits_too() -> None:
    def hold() -> None:
        with held_back():
            # At this thread: another one, which has not blocked it, may come to take it when the test is over.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            reached.append(True)

    reached: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        hold()
    assert reached


def test_who_is_started_can_be_ended_and_never_gets_ctrl_c(come: list[int]) -> None:
    with held_back():
        told = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, check=True).stdout.split()
    assert told == [str(int(number)) for number in (signal.SIGINT, signal.SIG_DFL, signal.SIG_DFL)]


def test_a_signal_that_is_ignored_stays_so(come: list[int]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with held_back():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
