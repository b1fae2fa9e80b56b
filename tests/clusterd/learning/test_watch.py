"""The watch: contradicting pages retire a rule, agreeing ones keep it, its record outlives the growth of its values."""

from __future__ import annotations

from dataclasses import replace

from clusterd.learning.contract import Page
from clusterd.learning.families.exhausted import MANY
from clusterd.learning.learner import Learner
from clusterd.learning.watch import AGREEMENTS, RUN_AGAIN, STRIKES, Watch, signature
from clusterd_crawler.rules import Condition, Edit, Key, Rule

SID = Key(name="sid")


def rule(*values: str) -> Rule:
    return Rule("-".join(values), "h.com", (Condition(SID, "within", values),), (Edit(SID, "delete"),))


def test_the_stated_number_of_contradictions_retires_a_rule() -> None:
    watch = Watch()
    watch.publish((rule("1"),))
    assert [watch.explored("1", agreed=False) for _ in range(STRIKES)] == [False] * (STRIKES - 1) + [True]
    assert not watch.admits(rule("1"), 100)
    assert watch.reason("1") == f"{STRIKES} of {STRIKES} explored pages contradicted it"


def test_enough_agreements_outweigh_contradictions() -> None:
    watch = Watch()
    watch.publish((rule("1"),))
    for _ in range(STRIKES * AGREEMENTS):
        watch.explored("1", agreed=True)
    assert not any(watch.explored("1", agreed=False) for _ in range(STRIKES))
    assert watch.admits(rule("1"), 100)


def test_a_record_does_not_start_anew_with_a_new_value() -> None:
    watch = Watch()
    assert signature(rule("1")) == signature(rule("1", "2"))
    watch.publish((rule("1"), rule("1", "2")))
    for known in ("1", "1-2", "1"):
        watch.explored(known, agreed=False)
    assert not watch.admits(rule("1", "2", "3"), 100)


def test_a_retired_rule_may_come_back_when_the_evidence_has_doubled() -> None:
    watch = Watch()
    watch.publish((rule("1"),))
    for _ in range(STRIKES):
        watch.explored("1", agreed=False)
    assert not watch.admits(rule("1"), 100)
    assert not watch.admits(rule("1"), 199)
    assert watch.admits(rule("1"), 200)


def test_a_family_that_was_contradicted_has_to_run_the_longer() -> None:
    # Given: a family that brings a crawl nothing new, and one page of it that did.
    watch = Watch()
    family = replace(rule("1"), crawl="crawl", support=60)
    watch.publish((family,))
    assert watch.admits(family, 100)
    watch.explored("1", agreed=False)
    # When, then
    assert not watch.admits(replace(family, support=RUN_AGAIN - 1), 100)
    assert watch.admits(replace(family, support=RUN_AGAIN), 100)
    assert watch.admits(replace(family, crawl=""), 100)
    assert watch.admits(family, MANY)


def test_pages_explored_for_a_rule_that_was_never_published_count_for_nothing() -> None:
    assert not Watch().explored("unknown", agreed=False)


def test_the_learner_retires_what_explored_pages_contradict_and_says_so() -> None:
    learner = Learner("h.com")
    learner.observe([Page(f"http://h.com/v?t={n}&m={m}", n) for n in range(60) for m in (1, 2)])
    rules = learner.learn(1)
    assert rules is not None
    (live,) = rules.rules
    for number in range(STRIKES):
        learner.observe([Page(f"http://h.com/v?t={900 + number}&m=1", 5000 + number, explored=live.id)])
    assert learner.due()
    after = learner.learn(2)
    assert after is not None
    assert after.rules == ()
    assert after.retired == ((live.id, f"{STRIKES} of {STRIKES} explored pages contradicted it"),)


def test_explored_pages_that_agree_keep_a_rule() -> None:
    learner = Learner("h.com")
    learner.observe([Page(f"http://h.com/v?t={n}&m={m}", n) for n in range(60) for m in (1, 2)])
    rules = learner.learn(1)
    assert rules is not None
    live = rules.rules[0].id
    for n in range(60, 80):
        learner.observe([Page(f"http://h.com/v?t={n}&m=1", n), Page(f"http://h.com/v?t={n}&m=2", n, explored=live)])
    assert learner.learn(2) is None
    assert len(learner.rules) == 1


def test_explored_pages_that_show_what_an_earlier_crawl_saw_keep_a_rule() -> None:
    pages = [Page(f"http://h.com/v?t={n}&m={m}", n, crawl="first") for n in range(60) for m in (1, 2)]
    learner = Learner("h.com")
    learner.observe(pages)
    published = learner.learn(1)
    assert published is not None
    (live,) = published.rules

    def explored(n: int, content: int) -> Page:
        known = f"http://h.com/v?t={n}&m=1"
        return Page(f"http://h.com/v?t={n}&m=9", content, explored=live.id, instead_of=known, crawl="second")

    learner.observe(explored(n, n) for n in range(10))
    learner.learn(2)
    assert live.id in {rule.id for rule in learner.rules}
    learner.observe(explored(n, 700 + n) for n in range(10, 14))
    learner.learn(3)
    assert live.id not in {rule.id for rule in learner.rules}
