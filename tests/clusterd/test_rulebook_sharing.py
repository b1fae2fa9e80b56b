"""Known pages on their way to the crawls: the whole evidence when the first rule goes live, then what is new."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterd.learning.rulebook.contract import RuleBook
from clusterd.learning.rulebook.memory import MemoryRuleBook
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.rulebook.sharing import LATE_MS
from clusterd_consumer.redis_connection import connect
from clusterd_crawler import fetches, topics
from clusterd_crawler.fetches import Fetch

from tests.clusterd.test_rulebook import HOST, SidLearner, duplicates, sid_rule, sketch


class Shared:
    """What crawls would read: pages by crawl, in the order in which they were published."""

    def __init__(self) -> None:
        self.pages: list[tuple[str, Fetch]] = []

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        if topic == topics.KNOWN:
            host, crawl = fetches.host_and_crawl(key)
            assert host == HOST
            self.pages += [(crawl, page) for page in fetches.unpack(value)]

    def urls(self) -> list[str]:
        found = [page.url.removeprefix(f"http://{HOST}/") for _, page in self.pages]
        self.pages.clear()
        return found


@pytest.fixture(params=["memory", "redis"])
def book(request: pytest.FixtureRequest, prefix: str) -> Iterator[RuleBook]:
    if request.param == "memory":
        yield MemoryRuleBook()
        return
    client = connect(request.getfixturevalue("redis_url"))
    yield RedisRuleBook(client, prefix)
    client.close()


def page(number: int, at: int, **changes: object) -> object:
    return sketch(f"http://{HOST}/new/{number}", 1000 + number, at, crawl="one", **changes)


def test_pages_are_shared_from_the_first_rule_on(book: RuleBook) -> None:
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([page(0, 1)])  # type: ignore[list-item]
    service.learn_due(now=2)
    assert shared.urls() == []
    service.observe([sketch(p.url, p.content, p.fetched_at, crawl="one") for p in duplicates(at=3)])
    service.learn_due(now=10)
    assert [crawl for crawl, _ in shared.pages] == ["one"] * 7
    assert sorted(shared.urls()) == sorted(["0", "1", "2", "0?sid=x0", "1?sid=x1", "2?sid=x2", "new/0"])
    service.observe([page(1, 11), page(2, 12)])  # type: ignore[list-item]
    service.learn_due(now=20)
    assert shared.urls() == ["new/1", "new/2"]
    service.learn_due(now=30)
    assert shared.urls() == []
    service.close()


def test_what_stands_for_nothing_is_not_shared(book: RuleBook) -> None:
    """Pages of no crawl, error pages, and pages that say that there is no page."""
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([*duplicates(), page(1, 2, soft_error=True), page(2, 2, status=404), page(3, 2)])  # type: ignore[list-item]
    service.learn_due(now=10)
    assert shared.urls() == ["new/3"]
    service.close()


def test_another_worker_goes_on_where_the_first_left(book: RuleBook) -> None:
    shared = Shared()
    first = RuleService(book, shared.publish, make_learner=SidLearner)
    first.observe([*duplicates(), page(0, 5), page(1, 10 + LATE_MS)])  # type: ignore[list-item]
    first.learn_due(now=20 + LATE_MS)
    assert shared.urls() == ["new/0", "new/1"]
    first.close()
    second = RuleService(book, shared.publish, make_learner=SidLearner)
    second.observe([page(2, 30 + LATE_MS)])  # type: ignore[list-item]
    second.learn_due(now=40 + LATE_MS)
    assert shared.urls() == ["new/1", "new/2"]
    second.close()


def test_retired_rules_end_the_sharing(book: RuleBook) -> None:
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([*duplicates(), page(0, 5)])  # type: ignore[list-item]
    service.learn_due(now=10)
    service.retire(sid_rule().id, 11)
    shared.urls()
    service.observe([page(1, 12)])  # type: ignore[list-item]
    service.learn_due(now=20)
    assert shared.urls() == []
    service.close()
