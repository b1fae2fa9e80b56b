"""Rules that went because another took their place say so, and only those; of those that went the latest are kept."""

from __future__ import annotations

from dataclasses import replace

from clusterd.learning.rulebook.contract import RETIRED_LIMIT, HostRules
from clusterd.learning.rulebook.turns import imported, relearned, turned
from clusterd.learning.watch import NO_LONGER
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id

from tests.clusterd.made_up_rules import HOST

SID = Key(name="sid")


def on_path(*paths: str) -> Rule:
    """Return the rule that drops ``sid`` on these paths, with a pair of pages of each as evidence."""
    context, edits = (Condition(Key(), "in", paths), Condition(SID, "any")), (Edit(SID, "delete"),)
    pairs = tuple((f"http://{HOST}/{path}?sid=1", f"http://{HOST}/{path}?sid=2", True) for path in paths)
    return Rule(rule_id(HOST, context, edits), HOST, context, edits, evidence=pairs)


def learned(*rules: Rule, gone: tuple[tuple[str, str], ...] = ()) -> RuleSet:
    return RuleSet(HOST, 1, rules, gone)


def reasons(state: HostRules) -> dict[str, str]:
    return {rule: entry.last.reason for rule, entry in state.entries.items() if entry.rule.state == "retired"}


def test_a_rule_names_the_one_that_covers_its_evidence() -> None:
    a, b, both, other = on_path("a"), on_path("b"), on_path("a", "b"), on_path("c")
    first = relearned(HostRules.empty(HOST), learned(a, b, other), 1)
    after = relearned(first, learned(both, gone=((a.id, NO_LONGER),)), 2)
    assert reasons(after) == {
        a.id: f"replaced by {both.id}",
        b.id: f"replaced by {both.id}",
        other.id: NO_LONGER,
    }
    assert dict(after.rules.retired) == reasons(after)
    replaced = {rule: entry.replaced_by for rule, entry in after.entries.items()}
    assert replaced == {a.id: both.id, b.id: both.id, other.id: "", both.id: ""}


def test_a_rule_that_pages_contradicted_says_that() -> None:
    a, both = on_path("a"), on_path("a", "b")
    first = relearned(HostRules.empty(HOST), learned(a), 1)
    after = relearned(first, learned(both, gone=((a.id, "3 of 3 explored pages contradicted it"),)), 2)
    assert reasons(after) == {a.id: "3 of 3 explored pages contradicted it"}


def test_what_covers_only_part_or_is_retired_itself_takes_no_place() -> None:
    a, both = on_path("a"), on_path("a", "b")
    first = relearned(HostRules.empty(HOST), learned(both), 1)
    assert reasons(relearned(first, learned(a), 2)) == {both.id: NO_LONGER}

    by_hand = turned(relearned(first, learned(both, a), 2), {both.id: ("retired", "hand", "by hand")}, 3)
    after = relearned(by_hand, learned(both), 4)
    assert reasons(after) == {both.id: "by hand", a.id: NO_LONGER}


def test_rules_without_evidence_are_succeeded_by_none() -> None:
    bare = replace(on_path("a"), evidence=())
    first = relearned(HostRules.empty(HOST), learned(bare), 1)
    assert reasons(relearned(first, learned(on_path("a", "b")), 2)) == {bare.id: NO_LONGER}


def test_of_rules_that_went_the_oldest_are_forgotten_but_none_that_is_barred() -> None:
    """A rule that was retired by hand would come back by itself."""
    state, gone = HostRules.empty(HOST), [on_path(f"p{number}") for number in range(RETIRED_LIMIT + 20)]
    barred, *others = gone
    state = relearned(state, learned(*gone), 1)
    state = turned(state, {barred.id: ("retired", "hand", "by hand")}, 2)
    for at, rule in enumerate(others, 3):
        state = turned(state, {rule.id: ("retired", "learner", NO_LONGER)}, at)
    assert set(state.entries) == {rule.id for rule in (barred, *others[-(RETIRED_LIMIT - 1) :])}


def by_operator(*rules: Rule) -> HostRules:
    """Return a host's state after its only rules were retired by hand."""
    state = relearned(HostRules.empty(HOST), learned(*rules), 1)
    return turned(state, {rule.id: ("retired", "hand", "by hand") for rule in rules}, 2)


def test_what_an_operator_retired_does_not_come_back_under_another_id() -> None:
    """As one rule with more in its context, or as several with less; what it did not do comes into force."""
    a, both, wide, other = on_path("a"), on_path("a", "b"), on_path("a", "b", "c"), on_path("d")
    after = relearned(by_operator(both), learned(a, wide, other), 3)
    assert [rule.id for rule in after.rules.rules] == [other.id]
    like = f"by hand, with {both.id}"
    assert reasons(after) == {both.id: "by hand", a.id: like, wide.id: like}
    again = relearned(after, learned(a, wide, other), 4)
    assert (again.rules.version, reasons(again)) == (after.rules.version, reasons(after))


def test_what_a_rule_does_besides_that_is_like_the_retired_one_may_come() -> None:
    # Given a rule that came with more than the retired one did, and is retired with it.
    a, other = on_path("a"), Edit(Key(name="ref"), "delete")
    pair = (f"http://{HOST}/a?ref=1", f"http://{HOST}/a?ref=2", True)
    more = replace(a, id="more", transformation=(*a.transformation, other), context=(), evidence=(*a.evidence, pair))
    state = relearned(by_operator(a), learned(more), 3)
    assert not state.rules.rules
    # Then what it does besides comes into force by itself, and what the retired one did does not.
    rest, wide = replace(a, id="rest", transformation=(other,), context=()), on_path("a", "b")
    after = relearned(state, learned(rest, wide), 4)
    assert [rule.id for rule in after.rules.rules] == ["rest"]
    assert reasons(after)[wide.id] == f"by hand, with {a.id}"


def test_what_edits_the_same_and_keeps_the_pages_of_the_retired_rule_apart_may_come() -> None:
    a, edits = on_path("a"), (Edit(SID, "delete"),)
    context = Condition(Key(), "in", ("a",)), Condition(SID, "is", ("1",))
    pair = (f"http://{HOST}/a?sid=1", f"http://{HOST}/a", True)
    at_one_value = Rule(rule_id(HOST, context, edits), HOST, context, edits, evidence=(pair,))
    after = relearned(by_operator(a), learned(at_one_value), 3)
    assert [rule.id for rule in after.rules.rules] == [at_one_value.id]


def test_what_is_like_a_rule_that_was_retired_can_be_pinned_and_then_stays() -> None:
    a, both = on_path("a"), on_path("a", "b")
    pinned = turned(relearned(by_operator(both), learned(a), 3), {a.id: ("pinned", "hand", "by hand")}, 4)
    after = relearned(pinned, learned(a), 5)
    assert [(rule.id, rule.state) for rule in after.rules.rules] == [(a.id, "pinned")]


def test_a_rule_that_was_in_force_beside_the_retired_one_stays() -> None:
    a, both = on_path("a"), on_path("a", "b")
    state = relearned(HostRules.empty(HOST), learned(a, both), 1)
    state = turned(state, {both.id: ("retired", "hand", "by hand")}, 2)
    assert [rule.id for rule in relearned(state, learned(a, both), 3).rules.rules] == [a.id]


def test_what_the_watch_or_the_learner_retired_may_come_back_in_another_way() -> None:
    a, both = on_path("a"), on_path("a", "b")
    state = relearned(HostRules.empty(HOST), learned(both), 1)
    assert [rule.id for rule in relearned(state, learned(a), 2).rules.rules] == [a.id]
    state = turned(state, {both.id: ("retired", "watch", "3 of 3 watched pages differed")}, 2)
    assert [rule.id for rule in relearned(state, learned(a), 3).rules.rules] == [a.id]


def test_what_is_like_a_rule_that_an_operator_keeps_may_come() -> None:
    a, both = on_path("a"), on_path("a", "b")
    first = relearned(HostRules.empty(HOST), learned(a), 1)
    for kept in (turned(first, {a.id: ("pinned", "hand", "by hand")}, 2), imported(first, [a], 2)):
        after = relearned(kept, learned(a, both), 3)
        assert {rule.id for rule in after.rules.rules} == {a.id, both.id}


def test_of_a_rule_that_says_more_under_its_id_the_crawls_are_told() -> None:
    a = on_path("a")
    first = imported(HostRules.empty(HOST), [a], 1)
    assert imported(first, [replace(a, support=5)], 2).rules.version == first.rules.version
    spanning = imported(first, [replace(a, spans=True)], 2)  # the id is a hash of what else it says
    assert spanning.rules.version > first.rules.version
    assert [(rule.id, rule.spans) for rule in spanning.rules.rules] == [(a.id, True)]
