"""Known pages on their way to the crawls: the whole evidence when the first rule goes live, then what is new."""

from __future__ import annotations

import pytest
from clusterd.health import Report
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.rulebook.sharing import LATE_MS
from clusterd.services import Services
from clusterd.upkeep import Upkeep
from clusterd_crawler import fetches, topics
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.fetches import Fetch
from clusterd_crawler.message import Failure
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.clusterd.made_up_rules import HOST, SidLearner, duplicates, offered_set, sid_rule, sketch
from tests.services.waiting import wait_until


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


def test_pages_that_came_while_no_rule_was_in_force_are_shared_when_one_is(book: RuleBook) -> None:
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([sketch(p.url, p.content, p.fetched_at, crawl="one") for p in duplicates(at=3)])
    service.learn_due(now=10)
    service.retire(sid_rule().id, at=11)
    service.observe([page(1, 12)])  # type: ignore[list-item]
    service.learn_due(now=13)
    shared.urls()
    service.pin(sid_rule().id, at=14)
    service.observe([page(2, 15)])  # type: ignore[list-item]
    service.learn_due(now=16)
    assert {"new/1", "new/2"} < set(shared.urls())
    service.close()


def test_pages_of_every_mirror_are_shared(book: RuleBook) -> None:
    """A rule that spans hosts is kept under their domain: no host but the one of that name has it as its own."""
    published: list[str] = []

    def publish(topic: str, key: bytes, value: bytes) -> None:
        if topic == topics.KNOWN:
            published.extend(page.url for page in fetches.unpack(value))

    service = RuleService(book, publish)
    sites = ("http://www.example.com", "http://example.com")
    service.observe([sketch(f"{site}/docs/{n}", n, 1, crawl="one") for site in sites for n in range(60)])
    service.learn_due(now=10)
    service.observe([sketch(f"{site}/new", 99, 20, crawl="one") for site in sites])
    service.learn_due(now=30)
    assert sorted(published) == sorted(
        [f"{site}/docs/{n}" for site in sites for n in range(60)] + [f"{site}/new" for site in sites]
    )

    published.clear()
    service.observe([sketch(f"{sites[0]}/newer", 100, 40, crawl="one")])
    service.learn_due(now=50)
    assert published == [f"{sites[0]}/newer"]
    service.close()


def test_what_stands_for_nothing_is_not_shared(book: RuleBook) -> None:
    """Pages of no crawl and error pages; a page that says that there is no page is shared as such."""
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([*duplicates(), page(1, 2, soft_error=True), page(2, 2, status=404), page(3, 2)])  # type: ignore[list-item]
    service.note_failures([Failure(f"http://{HOST}/new/4", 2, 500), Failure("no url", 2, 500, crawl="one")])
    service.learn_due(now=10)
    assert [(fetch.url[-1], fetch.good, fetch.content) for _, fetch in shared.pages] == [
        ("1", False, 0),
        ("3", True, 1003),
    ]
    service.close()


def test_what_failed_for_one_crawler_is_known_by_none(book: RuleBook) -> None:
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    one, two = (f"http://{HOST}/{number}" for number in (1, 2))
    service.observe(duplicates())
    service.learn_due(now=4)
    service.observe([sketch(url, 10 + n, 5, crawl="one") for n, url in ((1, one), (2, two))])
    service.note_failures([Failure(one, 6, 500, crawl="one"), Failure(two, 4, 500, crawl="one")])
    service.learn_due(now=10)
    offered = offered_set(book, HOST)
    assert offered is not None
    other = Decisions(KnownPages(explore=0), 100)
    other.load(offered)
    other.learn_of([(fetch, False) for _, fetch in shared.pages])
    assert other.decide(f"{one}?sid=9", 11) is None
    assert other.decide(f"{two}?sid=9", 11) is not None
    assert {page.url for page in service.pages(HOST)} == {page.url for page in duplicates()} - {one}

    shared.pages.clear()  # what fails later, or is found to say that there is no page, is told too
    service.note_failures([Failure(two, 12, 0, "no answer", crawl="one")])
    service.observe([sketch(one, 11, 13, crawl="one")])
    service.learn_due(now=20)
    other.learn_of([(fetch, False) for _, fetch in shared.pages])
    assert other.decide(f"{two}?sid=9", 21) is None
    assert other.decide(f"{one}?sid=9", 21) is not None
    other.learn_of([(Fetch(two, 11, 12), False)])  # an older good fetch that arrives late does not stand for it
    assert other.decide(f"{two}?sid=9", 21) is None
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


def test_a_worker_that_ends_shares_what_it_has_not_looked_at(book: RuleBook) -> None:
    """A crawl that is paused may go on before another worker has learned anything."""
    shared = Shared()
    service = RuleService(book, shared.publish, make_learner=SidLearner)
    service.observe([*duplicates(), page(0, 5)])  # type: ignore[list-item]
    service.learn_due(now=10)
    shared.urls()
    service.observe([page(1, 11)])  # type: ignore[list-item]
    service.share_rest(now=12)
    assert shared.urls() == ["new/1"]
    assert HOST in book.changed()  # what they say is still to be learned
    service.share_rest(now=13)
    assert shared.urls() == []
    service.close()


def test_upkeep_shares_the_last_pages_when_it_is_stopped(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.upkeep.LEARN_PAUSE", 1000)
    services.rulebook.import_rules([sid_rule()], at=1)
    services.rulebook.observe([page(1, 5)])  # type: ignore[list-item]
    upkeep = Upkeep(services.again(), Report())
    upkeep.start()
    stream = topics.stream(services.config.redis_prefix, topics.KNOWN)
    try:
        wait_until(lambda: services.redis.xlen(stream) == 1)
        services.rulebook.observe([page(2, 6)])  # type: ignore[list-item]
    finally:
        assert upkeep.stop(30)
    blocks = [fields[topics.FIELD_VALUE] for _, fields in services.redis.xrange(stream)]
    assert [fetch.url[-1] for block in blocks for fetch in fetches.unpack(block)] == ["1", "2"]


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
