"""A Redis that a test starts, freezes and kills."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.services.redis_server import binary, free_port
from tests.services.waiting import wait_until


class Server:
    """A Redis that a test starts, freezes and kills; its data stay in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--appendonly", "yes"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([binary(), *options], stdout=log, stderr=log)
        wait_until(self.answers)

    def answers(self) -> bool:
        with redis.Redis.from_url(self.url) as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    def send_signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start it, and stop it at the end whatever comes of the test."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        if self.process is not None:
            self.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(20)
            self.process = None
