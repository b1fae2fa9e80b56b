"""Which hosts a worker looks at, and that those whose learners do not fit in memory are not rebuilt for a few pages."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.rulebook import agenda, recall
from clusterd.learning.rulebook.agenda import Agenda
from clusterd.learning.rulebook.recall import LEAST_PAGES
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_crawler.sketch import Sketch

from tests.clusterd.made_up_rules import HOST, SidLearner, contradiction, duplicates, sketch


def test_hosts_in_memory_and_hosts_to_be_rebuilt_take_turns() -> None:
    one = Agenda()
    changed = dict.fromkeys("abcd", 1)
    assert list(one.order(changed, {"a", "b"}, every=False)) == ["a", "c", "b", "d"]
    # The next call goes on where this one was stopped, whatever that had time for.
    assert next(iter(one.order(changed, {"a", "b"}, every=False))) == "a"
    assert next(iter(one.order(changed, {"a", "b"}, every=False))) == "c"
    assert next(iter(one.order(changed, {"a", "b"}, every=False))) == "b"


def test_what_has_grown_most_is_rebuilt_first_and_what_has_grown_little_waits_for_the_rest() -> None:
    one = Agenda()
    for host, pages in {"small": 10, "large": 1_000, "grown": 1_000}.items():
        one.looked_at(host, pages)
    changed = {"small": 5, "large": 50, "grown": 150, "new": 1}
    assert list(one.order(changed, (), every=False)) == ["new", "small", "grown"]
    assert list(one.order(changed, (), every=True)) == ["new", "small", "grown", "large"]
    assert list(one.order({"large": 50, "held": 1}, {"held"}, every=False)) == ["held"]
    assert list(one.order({"large": 50, "small": 0}, {"held"}, every=False)) == ["large"]


def test_a_rule_of_a_host_that_has_grown_little_is_withdrawn_while_another_host_is_busy(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "PAGES_LIMIT", LEAST_PAGES)
    service = RuleService(book, make_learner=SidLearner)
    service.observe(duplicates(30))
    service.learn_due(now=1)
    service.observe([sketch("http://busy.example/0", 500)])
    service.learn_due(now=2)
    # Given one page that speaks against its rule, of 61, and then nothing more of it …
    service.observe([contradiction()])
    for number in range(1, 4):
        service.observe([sketch(f"http://busy.example/{number}", 500 + number)])
        service.learn_due(now=2 + number)
    assert book.load(HOST).rules.rules
    # … then it is looked at when it has waited for its time, though there is always something else.
    monkeypatch.setattr(agenda, "LONGEST", 0.0)
    service.observe([sketch("http://busy.example/9", 509)])
    service.learn_due(now=9)
    assert not book.load(HOST).rules.rules
    service.close()


def test_learners_are_weighed_only_when_one_may_have_grown(book: RuleBook, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon looks five times a second; to weigh the learners of 5,000 hosts takes 12 ms."""
    weighed = 0
    weight = recall._weight

    def counted(one: recall.Recall) -> int:
        nonlocal weighed
        weighed += 1
        return weight(one)

    monkeypatch.setattr(recall, "_weight", counted)
    service = RuleService(book, make_learner=SidLearner)
    service.observe(duplicates(30))
    service.learn_due(now=1)
    assert (before := weighed) > 0
    for now in range(2, 12):
        assert service.learn_due(now) == []
    assert weighed == before
    service.close()


def test_a_host_whose_size_was_forgotten_counts_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agenda, "REMEMBERED", 2)
    one = Agenda()
    for host in ("a", "b", "a", "c"):
        one.looked_at(host, 1_000)
    assert list(one.order({"a": 1, "b": 1, "c": 1}, (), every=False)) == ["b"]


def test_learners_that_do_not_fit_in_memory_are_not_rebuilt_for_a_few_pages(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at in turn, each of twelve hosts was rebuilt whenever a page of it came."""
    shown = 0

    class Counting(SidLearner):
        def observe(self, pages: Iterable[Page]) -> None:
            nonlocal shown
            before = len(self.pages)
            super().observe(pages)
            shown += len(self.pages) - before

    monkeypatch.setattr(recall, "PAGES_LIMIT", 3 * LEAST_PAGES)
    service, dice = RuleService(book, make_learner=Counting), random.Random(1)

    def fetched(number: int) -> Sketch:
        return sketch(f"http://host{dice.randrange(12)}.example/{number}", number, number)

    pages = [fetched(number) for number in range(1, 2_401)]
    for start in range(0, len(pages), 8):
        service.observe(pages[start : start + 8])
        service.learn_due(now=start, seconds=60)
    assert shown < 12 * len(pages)  # 9 times; in turn 69 times
    for _ in range(12):
        service.learn_due(now=len(pages), seconds=60)
    assert book.changed() == {}
    service.close()
