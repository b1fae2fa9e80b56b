"""A rule book on either store, and workers over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from clusterd.learning.contract import HostLearner
from clusterd.learning.rulebook.contract import RuleBook
from clusterd.learning.rulebook.memory import MemoryRuleBook
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_consumer.redis_connection import connect

from tests.clusterd.made_up_rules import Log, Serve, SidLearner


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
