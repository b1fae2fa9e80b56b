"""Services and daemons over a store of their own; a rule book on either store, and workers over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusterd.config import Config
from clusterd.learning.contract import HostLearner
from clusterd.learning.rulebook.contract import RuleBook
from clusterd.learning.rulebook.memory import MemoryRuleBook
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.services import Services, open_services
from clusterd_consumer.redis_connection import connect

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


@pytest.fixture(params=["memory", "redis"])
def book(request: pytest.FixtureRequest, prefix: str) -> Iterator[RuleBook]:
    if request.param == "memory":
        yield MemoryRuleBook()
        return
    client = connect(request.getfixturevalue("redis_url"))
    yield RedisRuleBook(client, prefix)
    client.close()


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
