"""Keys are fixed points whatever the rules and the URL, and the work for one URL is bounded."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest
from clusterd_crawler.rule_language.keys import CANDIDATES, LONGEST, Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawler.made_rules import DROP_SID, HOST, SID, key_under, rule, rule_set


def key(url: str, *rules: Rule) -> str:
    return key_under(rule_set(*rules), url)[0]


def test_rules_that_never_settle_leave_the_url_as_its_own_key() -> None:
    growing = rule([], [Edit(SID, "encode")])
    assert key("http://example.com/?sid=%2F", growing) == "http://example.com/?sid=%2F"
    to_a = rule([Condition(Key(start=3), "is", ("b",))], [Edit(Key(start=3), "set", "a")])
    to_b = rule([Condition(Key(start=3), "is", ("a",))], [Edit(Key(start=3), "set", "b")])
    assert key(key("http://example.com/b", to_a, to_b), to_a, to_b) == key("http://example.com/b", to_a, to_b)


VALUES = st.sampled_from(["a", "b", "index.html", "", "1", "A", "%2F", "x-1"])
KEYS = st.one_of(
    st.builds(Key, name=st.sampled_from(["sid", "t", ";j"]), occurrence=st.sampled_from([1, 1, 2])),
    st.builds(Key, start=st.sampled_from([0, 3, 4]), end=st.sampled_from([0, 1, 2])),
)
COMPONENTS = st.one_of(
    st.sampled_from(["a", "b", "index.html", "A", "x-1", "c;j=1", "b-a-12", "a,b%2Ca", "t-1-2-3.html", "1,0"]),
    st.text("ab12-,.*%+", max_size=8).filter(lambda text: text.strip(".")),
)
CONDITIONS = st.one_of(
    st.builds(
        lambda key, test, value: Condition(key, test, () if test in {"any", "absent"} else (value,)),
        KEYS,
        st.sampled_from(["is", "any", "absent", "in", "within"]),
        VALUES,
    ),
    st.builds(
        lambda key, delimiter, rest: Condition(key, "numbered", (delimiter, *rest)),
        KEYS,
        st.sampled_from(["-", ",", "-t", "."]),
        st.sampled_from([("",), (".html",), ("", "2"), (".1", "1")]),
    ),
    st.builds(
        lambda key, pattern: Condition(key, "like", (pattern,)),
        KEYS,
        st.sampled_from(["*-*", "#-*", "t-#-#-#.html", "#,#", "*"]),
    ),
)
DEEP = st.builds(replace, KEYS, deep=st.integers(0, 6))
EDITS = st.builds(
    Edit,
    st.one_of(KEYS, DEEP),
    st.sampled_from(
        [
            "delete",
            "set",
            "copy",
            "lower",
            "upper",
            "encode",
            "decode",
            "spaces",
            "items",
            "without",
            "rename",
            "sort",
            "keep",
        ]
    ),
    value=st.one_of(VALUES, st.sampled_from([",", "-", ".", "%2C", "*"])),
    source=st.one_of(st.none(), KEYS, DEEP),
).filter(
    lambda edit: edit.value or edit.op not in {"items", "without"}
)  # no rule can be read that has these of nothing
RULES = st.lists(
    st.builds(rule, st.lists(CONDITIONS, max_size=2), st.lists(EDITS, min_size=1, max_size=2)),
    max_size=5,
    unique_by=lambda r: r.id,
)
URLS = st.builds(
    lambda path, query: "http://example.com/" + "/".join(path) + ("?" + "&".join(query) if query else ""),
    st.lists(COMPONENTS, max_size=3),
    st.lists(
        st.sampled_from(["sid=1", "sid=%2f", "t=b", "t", "A=1", "x=1;y=2", "sid=b,a%2C1", "t=b-a-12", "t=2.1.html"]),
        max_size=3,
    ),
)


@settings(deadline=None, max_examples=500)
@given(RULES, URLS)
def test_keys_are_fixed_points_whatever_the_rules(rules: list[Rule], url: str) -> None:
    keys = Keys()
    keys.load(rule_set(*rules))
    once, applied = keys.key(url)
    assert keys.key(once)[0] == once
    assert set(applied) <= {known.id for known in rules}
    assert "//example.com/" in once


@pytest.mark.parametrize("separator", [",", "-", "%2C", "+"])
@pytest.mark.parametrize("place", [Key(start=3), SID], ids=str)
def test_a_whole_url_of_separators_or_digits_settles(place: Key, separator: str) -> None:
    whole = separator * ((LONGEST - 40) // len(separator))
    digits = "1" * (LONGEST - 40)
    conditions = [
        Condition(place, "numbered", (separator, "")),
        Condition(place, "like", (separator.join("#" * 6),)),
        Condition(place, "like", (f"*{separator}*",)),
    ]
    edits = [Edit(place, "items", separator), Edit(replace(place, deep=1), "items", separator)]
    keys = Keys()
    keys.load(rule_set(*(rule([condition], [edit]) for condition in conditions for edit in edits)))
    for value in (whole, digits, digits[1:] + separator, f"a{separator}" * ((LONGEST - 40) // (1 + len(separator)))):
        url = f"http://{HOST}/" + (value if place != SID else f"?sid={value}")
        once = keys.key(url)[0]
        assert keys.key(once)[0] == once


def test_work_is_bounded_by_the_rules_that_can_apply() -> None:
    many = [
        rule(
            [Condition(SID, "any"), Condition(Key(name=f"p{n}"), "absent")],
            [Edit(Key(name=f"q{n}"), "delete"), Edit(SID, "lower")],
        )
        for n in range(20 * CANDIDATES)
    ]
    keys = Keys()
    keys.load(rule_set(*many))
    start = process_time()
    for _ in range(20):
        assert keys.key("http://example.com/?sid=A")[0] == "http://example.com/?sid=A"
    assert process_time() - start < 2


def test_rules_that_double_a_value_each_time_they_apply_cost_bounded_work() -> None:
    a = Key(name="a")
    doubling = [
        rule(
            [Condition(a, "like", ("*-*",)), Condition(Key(name=f"p{n}"), "absent")],
            [Edit(Key(name="a", deep=1), "copy", source=a)] * 2,
        )
        for n in range(CANDIDATES)
    ]
    keys = Keys()
    keys.load(rule_set(*doubling))
    start = process_time()
    key, _ = keys.key("http://example.com/?a=x-y")
    assert len(key) <= LONGEST
    assert process_time() - start < 5


def test_parameters_by_the_hundred_thousand_are_their_own_key() -> None:
    url = "http://example.com/?" + "&".join(f"sid={n}" for n in range(100_000))
    keys = Keys()
    keys.load(rule_set(DROP_SID))
    start = process_time()
    assert keys.key(url) == (url, ())
    assert process_time() - start < 1


def test_cost_does_not_grow_with_rules_of_other_hosts() -> None:
    keys = Keys()
    keys.load(rule_set(DROP_SID))
    urls = [f"http://example.com/a?sid={n}&x={n}" for n in range(3000)]

    def seconds() -> float:
        start = process_time()
        for url in urls:
            keys.key(url)
        return process_time() - start

    alone = min(seconds() for _ in range(3))
    for number in range(2000):
        other = f"h{number}.org"
        keys.load(rule_set(rule([Condition(SID, "any")], [Edit(SID, "delete")], host=other), host=other))
    assert min(seconds() for _ in range(3)) < 3 * alone
