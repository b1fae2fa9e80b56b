"""A family that brings nothing new is skipped, says so, and shows pages that really are alike."""

from __future__ import annotations

from clusterd.learning.contract import Page
from clusterd.learning.exhausted import RUN
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import Rule

HOST = "http://forum.example"
TOPICS = 20
CONTENT = {f"{HOST}/topic.php?t={n}": 100 + n for n in range(TOPICS)}
MEMBERS = {f"{HOST}/go.php?view=next&post={7 * n}": 100 + 3 * n % TOPICS for n in range(RUN + 20)}


def families(pages: dict[str, int]) -> list[Rule]:
    learner = Learner("forum.example")
    learner.observe([Page(url, content) for url, content in pages.items()])
    rules = learner.learn(1)
    return (
        [rule for rule in rules.rules if rule.transformation[:1] and rule.transformation[0].op == "family"]
        if rules
        else []
    )


def test_a_family_whose_members_show_what_is_known_brings_nothing_new() -> None:
    (rule,) = families(CONTENT | MEMBERS)
    assert rule.text.endswith("→ nothing new")
    assert rule.evidence
    everything = CONTENT | MEMBERS
    assert all(everything[one] == everything[other] and agreed for one, other, agreed in rule.evidence)


def test_a_member_that_brings_something_new_ends_it() -> None:
    assert families(CONTENT | MEMBERS | {f"{HOST}/go.php?view=next&post=5": 1}) == []
