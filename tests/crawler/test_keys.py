"""Which rules are looked at for a URL, and how often: filed where none is missed, applied until nothing changes."""

from __future__ import annotations

from typing import Any

from clusterd_crawler.keys import PASSES, CompiledRule, HostRules, Keys, key_under
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.urls import parse
from hypothesis import given, settings
from hypothesis import strategies as st

HOST = "example.com"
SID = Key(name="sid")


def rule(context: list[Condition], edits: list[Edit], host: str = HOST, **more: Any) -> Rule:
    return Rule(rule_id(host, tuple(context), tuple(edits)), host, tuple(context), tuple(edits), **more)


def rule_set(*rules: Rule, host: str = HOST) -> RuleSet:
    return RuleSet(host, 1, rules)


DROP_SID = rule([Condition(SID, "any")], [Edit(SID, "delete")])


def test_a_spanning_rule_that_comes_later_reaches_hosts_whose_keys_were_asked_for_before() -> None:
    keys = Keys()
    for host in ("www.example.com", "example.com"):
        keys.load(rule_set(rule([Condition(SID, "any")], [Edit(SID, "delete")], host=host), host=host))
        assert keys.key(f"http://{host}/a?sid=1")[0] == f"http://{host}/a"
    keys.load(rule_set(rule([], [Edit(Key(start=2), "set", "example.com")], spans=True), DROP_SID))
    assert keys.key("http://www.example.com/a?sid=1")[0] == "http://example.com/a"


def test_a_url_may_lose_more_than_there_are_passes() -> None:
    names = [f"p{number}" for number in range(2 * PASSES)]
    dropping = [rule([Condition(Key(name=name), "any")], [Edit(Key(name=name), "delete")]) for name in names]
    url = "http://example.com/a?x=1&" + "&".join(f"{name}=1" for name in names)
    assert key_under(rule_set(*dropping), url) == ("http://example.com/a?x=1", tuple(one.id for one in dropping))


PLACES = st.one_of(
    st.builds(Key, name=st.sampled_from(["sid", "t", "x", ";j"])),
    st.builds(Key, start=st.sampled_from([0, 2, 3, 4]), end=st.sampled_from([0, 0, 1, 2])),
)
FEW = st.sampled_from(["a", "b", "1", "2", "example.com", ""])
ASKED = st.one_of(
    st.builds(lambda key, value: Condition(key, "is", (value,)), PLACES, FEW),
    st.builds(
        lambda key, test, values: Condition(key, test, tuple(values)),
        PLACES,
        st.sampled_from(["in", "within"]),
        st.lists(FEW, min_size=1, max_size=3, unique=True),
    ),
    st.builds(Condition, PLACES, st.sampled_from(["any", "absent"])),
    st.builds(lambda key, depth: Condition(key, "depth", (depth,)), PLACES, st.sampled_from(["1", "2"])),
    st.builds(lambda key: Condition(key, "only", ("sid", "t")), PLACES),
)
CHANGES = st.one_of(
    st.builds(Edit, PLACES, st.just("delete")),
    st.builds(Edit, PLACES, st.sampled_from(["set", "upper"]), value=FEW),
    st.just(Edit(Key(), "sort")),
    st.just(Edit(Key(), "keep", names=("t",))),
)
FILED = st.lists(
    st.builds(rule, st.lists(ASKED, max_size=2), st.lists(CHANGES, min_size=1, max_size=2)),
    min_size=1,
    max_size=8,
    unique_by=lambda r: r.id,
)
LOOKED_UP = st.builds(
    lambda path, query: "http://example.com/" + "/".join(path) + ("?" + "&".join(query) if query else ""),
    st.lists(st.sampled_from(["a", "b", "1", "a;j=1"]), max_size=3),
    st.lists(st.sampled_from(["sid=1", "sid=2", "sid", "t=b", "t=1", "x=a", "x=b"]), max_size=3),
)


@settings(deadline=None, max_examples=500)
@given(FILED, LOOKED_UP)
def test_no_rule_is_missed_for_the_place_that_it_is_filed_in(rules: list[Rule], url: str) -> None:
    filed = HostRules(rules)
    found = filed.candidates(parse(url))
    for order, known in enumerate(rules):
        if CompiledRule(known, order).apply(parse(url)) is not None:
            assert order in {one.order for one in found}
            assert filed.needed is None or filed.needed.search(url) is not None
