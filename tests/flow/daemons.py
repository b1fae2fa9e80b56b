"""Real daemons for the flow tests: ``python -m clusterd run`` as processes that can be killed, and a made-up crawl."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clusterd.config import Config
from clusterd.services import Services
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import page

WAIT = 60.0


def until(condition: Callable[[], bool], seconds: float = WAIT, say: Callable[[], str] = lambda: "") -> None:
    """Wait for a condition; fail where it does not come true, and say how it is then."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, say() or "waited in vain"
        time.sleep(0.05)


@dataclass
class Daemons:
    """Daemons of one group on one store. ``settings`` are their configuration, by short name."""

    settings: Mapping[str, str]
    logs: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def config(self) -> Config:
        """Return the configuration, as a command on the same store would read it."""
        return Config.load(environment={}, options=self.settings)

    def start(self, command: Sequence[str] = (sys.executable, "-m", "clusterd", "run")) -> subprocess.Popen[bytes]:
        """Start one more."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CLUSTERD_")}
        given = {f"CLUSTERD_{name.upper()}": value for name, value in self.settings.items()}
        with (self.logs / f"daemon{len(self.processes)}.log").open("wb") as said:
            process = subprocess.Popen(list(command), env={**clean, **given}, stdout=said, stderr=said)
        self.processes.append(process)
        return process

    def said(self) -> str:
        """Return all that the daemons logged."""
        return "\n".join(file.read_text() for file in sorted(self.logs.glob("daemon*.log")))

    def stop(self) -> None:
        """Ask all to stop, kill those that do not."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def daemons(settings: Mapping[str, str], logs: Path) -> Iterator[Daemons]:
    """Have daemons, and none left at the end."""
    logs.mkdir(parents=True, exist_ok=True)
    made = Daemons(settings, logs)
    try:
        yield made
    finally:
        made.stop()


def wait_until_done(services: Services) -> None:
    """Wait until nothing is unread and every cluster has settled."""
    until(lambda: services.lag() == 0, say=lambda: f"{services.lag()} messages are still unread")
    until(lambda: services.index.counts()["settling"] == 0, say=lambda: "the clusters do not settle")


def made_up_crawl(pages: int, seed: int) -> list[Sketch]:
    """Pages of a crawl: a quarter the same as one before, a sixth an edited copy, a tenth fetched again changed."""
    chance = random.Random(seed)
    shown: list[list[int]] = []
    urls: list[str] = []
    crawl: list[Sketch] = []
    for n in range(pages):
        if shown and chance.random() < 0.25:
            text = chance.choice(shown)
        elif shown and chance.random() < 0.2:
            text = [*chance.choice(shown)]
            for _ in range(chance.choice([1, 3, 12])):
                text[chance.randrange(len(text))] = chance.randrange(1 << 30)
        else:
            text = [chance.randrange(1 << 30) for _ in range(chance.choice([20, 60, 120]))]
        url = chance.choice(urls) if urls and chance.random() < 0.1 else f"http://site{n % 5}.test/page/{n}"
        shown.append(text)
        urls.append(url)
        crawl.append(page(url, 1_700_000_000_000 + n, text, order=str(len(text))))
    return crawl
