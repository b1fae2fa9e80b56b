"""Leaving an embedded store while others start its server, or leave as well: it runs on for nobody."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
from pathlib import Path

import pytest
from clusterd_consumer.embedded import SERVER_OPTIONS, Embedded, embedded

from tests.consumer.test_embedded import SLOWLY, fill, server_pid
from tests.services.locks import is_free
from tests.services.redis_server import binary
from tests.services.waiting import wait_until


def test_who_leaves_while_another_starts_the_server_again_does_not_wait_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it reads its data; who starts it uses it, and ends it when it leaves in its turn."""
    monkeypatch.setattr("clusterd_consumer.embedded.SERVER_OPTIONS", (*SERVER_OPTIONS, *SLOWLY))
    log = tmp_path / "redis.log"
    first, second = Embedded(tmp_path), Embedded(tmp_path)
    fill(first.url, 3_000)
    os.kill(server_pid(first.url), signal.SIGKILL)
    wait_until(lambda: "Loading RDB" in log.read_text())
    # Which of the two reads it is not known; the one that waits for it leaves first.
    starter, waiting = (first, second) if first._server and first._server.poll() is None else (second, first)
    waiting.close()
    assert not is_free(tmp_path / "redis.server.lock")
    starter.close()
    assert "DB loaded" not in log.read_text()
    assert is_free(tmp_path / "redis.server.lock")


def test_who_leaves_without_the_lock_is_counted_no_more_by_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each took the other for one that stays, and the server ran on for nobody."""
    monkeypatch.setattr("clusterd_consumer.embedded.LEAVE_SECONDS", 0.1)
    caplog.set_level(logging.DEBUG, "clusterd_consumer.embedded")
    first, last = Embedded(tmp_path), Embedded(tmp_path)
    with (tmp_path / "redis.start.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        class Leaving(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                """Leave at the moment at which the first one has given up."""
                if "still use" in record.getMessage() and not lock.closed:
                    lock.close()
                    last.close()

        (log := logging.getLogger("clusterd_consumer.embedded")).addHandler(handler := Leaving())
        first.close()
        log.removeHandler(handler)
    free = is_free(tmp_path / "redis.server.lock")
    with embedded(tmp_path):  # ends it in any case
        assert free


def test_the_last_one_ends_a_server_that_another_has_only_just_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was at its socket yet: who left waited for two minutes, and it ran on for nobody."""
    first, second = Embedded(tmp_path), Embedded(tmp_path)
    slow = tmp_path / "redis-server"
    slow.write_text(f'#!/bin/sh\ntest "$1" = --version && echo \'v=7.0.0\' || {{ sleep 2; exec {binary()} "$@"; }}\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("clusterd_consumer.embedded.STOP_TIMEOUT", 10.0)
    os.kill(pid := server_pid(first.url), signal.SIGKILL)
    both = first, second
    wait_until(lambda: any(one._server and one._server.pid != pid for one in both))
    starter = next(one for one in both if one._server and one._server.pid != pid)
    starter.close()
    both[starter is first].close()
    assert is_free(tmp_path / "redis.server.lock")
