"""Services and daemons over a store of their own, and commands; a rule book, and workers over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.cli.commands import run
from clusterd.config import Config
from clusterd.learning.contract import HostLearner
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.services import Services, open_services

from tests.clusterd.command_line import Typed, page, words, write
from tests.clusterd.made_up_rules import Log, Serve, SidLearner
from tests.flow.daemons import Daemons, daemons


@pytest.fixture
def services(redis_url: str, prefix: str) -> Iterator[Services]:
    with open_services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        yield services


@pytest.fixture
def group(redis_url: str, prefix: str, tmp_path: Path) -> Iterator[Daemons]:
    with daemons({"redis": redis_url, "redis_prefix": prefix, "claim_after": "2"}, tmp_path) as made:
        yield made


@pytest.fixture
def book(client: redis.Redis, prefix: str) -> RuleBook:
    return RuleBook(client, prefix)


@pytest.fixture
def another_book(client: redis.Redis, prefix: str) -> RuleBook:
    """An empty rule book beside the other."""
    return RuleBook(client, f"{prefix}another:")


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def serve(book: RuleBook, log: Log) -> Iterator[Serve]:
    """Return a maker of workers over one book."""
    workers: list[RuleService] = []

    def make(make_learner: Callable[[str], HostLearner] = SidLearner, limit: int = 1000) -> RuleService:
        workers.append(RuleService(book, log.publish, make_learner=make_learner, evidence_limit=limit))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


@pytest.fixture
def own_store(redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands work on a store of this test's own, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUSTERD_REDIS", redis_url)
    monkeypatch.setenv("CLUSTERD_REDIS_PREFIX", prefix)


@pytest.fixture
def typed(own_store: None, capsys: pytest.CaptureFixture[str]) -> Typed:
    """A command line on a store of this test's own; returns status, JSON lines (or text lines) and standard error."""

    def typed(*words: str, json_lines: bool = True) -> tuple[int, list[Any], str]:
        capsys.readouterr()
        status = run([*words, "--json"] if json_lines else list(words))
        out, err = capsys.readouterr()
        return status, [json.loads(line) if json_lines else line for line in out.splitlines()], err

    return typed


@pytest.fixture
def filled(typed: Typed, tmp_path: Path) -> Typed:
    rows = [
        page("a", words(1)),
        page("a?sid=1", words(1)),
        page("b", words(1) + " and a few words more"),
        page("c", words(2)),
        page("d", words(1, 100) + " " + words(3, 200)),
    ]
    status, lines, _ = typed("ingest", str(write(tmp_path / "pages.jsonl.gz", *rows)))
    assert (status, lines[0]["sketched"]) == (0, 5)
    return typed
