"""Mercurial's web interface over a repository that we make: each file under many addresses, revisions by two names."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.live_sites.process import free_port, running, wait_for

CHANGES = 10
FILES = 5
ENVIRONMENT = os.environ | {"HGPLAIN": "1", "HGUSER": "someone", "HGRCPATH": ""}


@contextmanager
def hgweb(folder: Path) -> Iterator[str]:
    """Serve the repository; yield the start page's URL."""
    repository = folder / "repository"
    _make(repository)
    port = free_port()
    command = ["hg", "-R", str(repository), "serve", "-a", "127.0.0.1", "-p", str(port)]
    with running(command, folder / "hg.log", ENVIRONMENT):
        wait_for(f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/"


def _make(repository: Path) -> None:
    chance = random.Random(7)
    _hg("init", str(repository))
    words = [f"word{n}" for n in range(300)]
    for change in range(CHANGES):
        for number in range(FILES):
            if change == 0 or chance.random() < 0.4:
                text = "\n".join(" ".join(chance.choices(words, k=9)) for _ in range(25))
                (repository / f"file{number}.txt").write_text(text, encoding="utf-8")
        _hg("-R", str(repository), "commit", "-A", "-m", f"Change number {change}", "-d", f"{change * 86400} 0")


def _hg(*words: str) -> None:
    subprocess.run(["hg", *words], check=True, capture_output=True, env=ENVIRONMENT)
