"""A family that brings nothing new is skipped, says so, and shows pages that really are alike."""

from __future__ import annotations

import random

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.families.exhausted import EACH, FEW_RUN, MANY, RUN
from clusterd.learning.learner import Learner
from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rules import Rule
from clusterd_crawler.skipping.known_pages import KnownPages

HOST = "http://forum.example"
TOPICS = 20
CONTENT = {f"{HOST}/topic.php?t={n}": 100 + n for n in range(TOPICS)}
MEMBERS = {f"{HOST}/go.php?view=next&post={7 * n}": 100 + 3 * n % TOPICS for n in range(RUN + 20)}


def families(pages: dict[str, int]) -> list[Rule]:
    learner = Learner("forum.example")
    learner.observe([Page(url, content, crawl="c") for url, content in pages.items()])
    return in_force(learner)


def in_force(learner: Learner) -> list[Rule]:
    rules = learner.learn(1)
    return (
        [rule for rule in rules.rules if rule.transformation[:1] and rule.transformation[0].op == "family"]
        if rules
        else []
    )


def test_a_family_whose_members_show_what_is_known_brings_nothing_new() -> None:
    (rule,) = families(CONTENT | MEMBERS)
    assert rule.text.endswith("→ nothing new in the crawl c")
    assert rule.evidence
    everything = CONTENT | MEMBERS
    assert all(everything[one] == everything[other] and agreed for one, other, agreed in rule.evidence)


@pytest.mark.parametrize(("lists", "said"), [(21, "?list any"), (4, "?list in '0', '1', '2', '3'")])
def test_a_value_never_seen_is_of_the_family_where_all_of_many_brought_nothing_new(lists: int, said: str) -> None:
    # Given log-in forms of three kinds, whichever comes, for each video of some lists.
    chance = random.Random(0)
    members = {f"{HOST}/login.php?list={n % lists}&video={n}": chance.choice((100, 101, 102)) for n in range(RUN + 20)}
    (rule,) = families(CONTENT | members)
    assert said in [str(condition) for condition in rule.context]


@pytest.mark.parametrize(
    ("rare", "said"), [(EACH - 1, "?list in '0', '1', '2'"), (EACH, "?list in '0', '1', '2', '9'")]
)
def test_a_value_is_of_the_family_that_was_tried_often(rare: int, said: str) -> None:
    lists = [n % 3 for n in range(RUN + 20)] + [9] * rare
    members = {f"{HOST}/login.php?list={kind}&video={n}": 100 + n % TOPICS for n, kind in enumerate(lists)}
    (rule,) = families(CONTENT | members)
    assert said in [str(condition) for condition in rule.context]


@pytest.mark.parametrize(("often", "said"), [(RUN - 1, 0), (RUN, 1)])
def test_what_is_left_of_a_run_has_to_be_as_long(often: int, said: int) -> None:
    lists = [0] * often + [1] * (EACH - 1)
    members = {f"{HOST}/go.php?list={kind}&post={n}": 100 + n % TOPICS for n, kind in enumerate(lists)}
    assert len(families(CONTENT | members)) == said


@pytest.mark.parametrize(("every", "said"), [(2, 1), (20, 0)])
def test_a_view_that_brings_nothing_new_is_not_the_luckiest_of_several(every: int, said: int) -> None:
    """A calendar of mostly empty days, of which the views are linked in turn: one was empty for as long by chance."""
    days = [(n, view) for n in range(1, FEW_RUN + 1) for view in ("day", "week", "month")]
    shown = {(n, view): 1000 * len(view) + n if view != "day" and n % every == 0 else 100 + n % 3 for n, view in days}
    assert len(families(CONTENT | {f"{HOST}/calendar?view={view}&at={n}": shown[n, view] for n, view in days})) == said


@pytest.mark.parametrize(("filled", "said"), [(0, 1), (2, 1), (1, 0)])
def test_a_content_that_one_member_alone_shows_says_that_there_is_more(filled: int, said: int) -> None:
    # Given lists that are empty in two ways for a while, and before them some that are filled, and alike.
    lists = {f"{HOST}/list.php?tab=reviews&item={n}": 1 if n < filled else 100 + n % 2 for n in range(FEW_RUN + filled)}
    assert len(families(CONTENT | lists)) == said


def test_a_member_that_brings_something_new_ends_it() -> None:
    assert families(CONTENT | MEMBERS | {f"{HOST}/go.php?view=next&post=5": 1}) == []


def test_pages_that_other_rules_bring_together_are_no_run() -> None:
    # Given each item in two sessions, of which the second ones come in a row, as when a rule is withdrawn.
    sessions = {f"{HOST}/item.php?id={n}&sid={again}{n}": n for again in (1, 2) for n in range(RUN + 20)}
    assert families(sessions) == []


@pytest.mark.parametrize(
    ("contents", "before", "stands"), [(MANY - 1, RUN, False), (MANY, RUN, True), (MANY, RUN - 1, False)]
)
def test_one_member_of_a_host_of_many_contents_ends_no_run(contents: int, before: int, stands: bool) -> None:
    others = {f"{HOST}/topic.php?t={n}": 100 + n for n in range(TOPICS, contents - 1)}
    members = dict(list(MEMBERS.items())[:before])
    after = {f"{HOST}/go.php?view=next&post=5": 1, f"{HOST}/go.php?view=next&post=6": 100}
    assert bool(families(CONTENT | others | members | after)) is stands


def test_of_a_crawl_without_a_name_nothing_is_said() -> None:
    learner = Learner("forum.example")
    learner.observe([Page(url, content) for url, content in (CONTENT | MEMBERS).items()])
    assert in_force(learner) == []


def test_a_page_that_is_found_again_by_the_next_crawl_is_not_nothing_new() -> None:
    shown = {f"{HOST}/view.php?id={n}&sid={n % 7}": n for n in range(2 * RUN)}
    again = {f"{HOST}/view.php?id={n}&sid={n % 5 + 7}": n for n in range(2 * RUN)}
    learner = Learner("forum.example")
    learner.observe([Page(url, content, crawl="first") for url, content in shown.items()])
    assert in_force(learner) == []
    learner.observe([Page(url, content, crawl="second") for url, content in again.items()])
    assert in_force(learner) == []


def test_the_rule_of_a_crawl_holds_in_that_crawl_only() -> None:
    learner = Learner("forum.example")
    learner.observe([Page(url, content, crawl="first") for url, content in (CONTENT | MEMBERS).items()])
    rules = learner.learn(1)
    assert rules is not None
    member, known = f"{HOST}/go.php?view=next&post=1", next(iter(MEMBERS))
    for crawl, skipped in (("first", True), ("second", False)):
        pages = KnownPages(explore=0, crawl=crawl)
        pages.load(rule_set_from_json(rule_set_to_json(rules)))
        pages.fetched(known, 1, content=MEMBERS[known])
        assert (pages.decide(member, 2) is not None) is skipped
    learner.observe([Page(url, content, crawl="second") for url, content in MEMBERS.items()])
    (rule,) = in_force(learner)
    assert rule.crawl == "second"
