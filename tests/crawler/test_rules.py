"""Rules as data: JSON there and back, strict reading, what each does to a URL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from clusterd_crawler.errors import RuleError
from clusterd_crawler.rule_language.json_form import rule_from_json, rule_set_from_json, rule_set_to_json, version_of
from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet

from tests.crawler.made_rules import DROP_SID, HOST, SID, key_under, rule, rule_set


def key(url: str, *rules: Rule) -> str:
    return key_under(rule_set(*rules), url)[0]


@pytest.mark.parametrize(
    "text", ["k(3,-)", "k(-,1)", "k(4,2)", "k(3.1,1.3)", "k(-,-)", "?sid", "?sid#2", "?;jsessionid"]
)
def test_a_key_is_written_as_it_is_read(text: str) -> None:
    assert str(Key.parse(text)) == text


@pytest.mark.parametrize("text", ["", "sid", "k(3)", "k(x,y)", "?", "?a#0", "k(3,-"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(RuleError, match="not a key"):
        Key.parse(text)


def test_json_there_and_back() -> None:
    full = replace(
        DROP_SID, support=3, coverage=4, precision=0.75, lower_bound=0.5, evidence=(("http://a/", "http://b/", True),)
    )
    named = Rule(
        "n1",
        HOST,
        (Condition(Key(name="p"), "any"),),
        (),
        kind="name",
        name="anchor",
        carrier=(Condition(Key(), "only"),),
    )
    shown = replace(full, id="s1", shows=7)
    titled = [Condition(Key(end=1), "numbered", ("-", ".html", *digits)) for digits in ((), ("3",))]
    listed = Condition(Key(start=4), "like", ("#_#,*",))
    newer = [rule([condition, listed], [Edit(Key(start=4), "items", "%2C")]) for condition in titled]
    family = rule([Condition(SID, "is", ("",)), Condition(Key(), "depth", ("99999",))], [Edit(Key(), "family")])
    renamed = rule([], [Edit(SID, "rename", "s"), Edit(Key(), "keep", names=("s",))])
    rules = RuleSet(
        HOST, 7, (full, named, shown, *newer, family, renamed), (("old", "reason"),), ("http://example.com/x",)
    )
    again = rule_set_from_json(rule_set_to_json(rules))
    assert again == rules
    assert again.rules[0].evidence == full.evidence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surprise": 1}, "unknown 'surprise'"),
        ({"version": -1}, "version"),
        ({"rules": {}}, "a list is expected"),
        ({"rules": [{"id": "x", "host": "other.com", "transformation": [{"key": "?a", "op": "delete"}]}]}, "own host"),
        ({"rules": [{"id": "x", "host": "*", "transformation": []}]}, r"rules\[0\]: host: '\*' has a character"),
        ({"rules": [{"id": "x\ud800", "host": HOST, "transformation": []}]}, r"rules\[0\]: id: .* is not text"),
        ({"rules": [{"id": "x", "host": HOST, "transformation": []}]}, r"rules\[0\]: transformation is empty"),
        ({"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "?a", "op": "burn"}]}]}, "op: 'burn'"),
        ({"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "a", "op": "delete"}]}]}, "not a key"),
        ({"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "?a", "op": "copy"}]}]}, "needs a source"),
        (
            {"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "?a", "op": "spaces"}]}]},
            "_ or %20, not None",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "?a", "op": "items"}]}]},
            "needs a value: what separates items",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "k(3,-)", "op": "rename", "value": "a"}]}]},
            "rename is for a query key",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "k(-,-)", "op": "family"}]}]},
            "needs a context",
        ),
        (
            {
                "rules": [
                    {"id": "x", "host": HOST, "transformation": [{"key": "k(2,-)", "op": "set", "value": "b.com"}]}
                ]
            },
            "only a rule that spans",
        ),
        (
            {
                "rules": [
                    {
                        "id": "x",
                        "host": HOST,
                        "spans": True,
                        "transformation": [{"key": "k(2,-)", "op": "set", "value": "b.com"}],
                    }
                ]
            },
            "within 'example.com'",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "context": [{"key": "?a", "test": "is"}], "transformation": []}]},
            "exactly one value, not 0",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "context": [{"key": "?a", "test": "is", "values": ["1", "2"]}]}]},
            "exactly one value, not 2",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "context": [{"key": "k(-,1)", "test": "numbered", "values": ["-"]}]}]},
            "exactly two values, not 1",
        ),
        (
            {
                "rules": [
                    {
                        "id": "x",
                        "host": HOST,
                        "context": [{"key": "k(-,1)", "test": "numbered", "values": ["-", "", "x"]}],
                    }
                ]
            },
            "'x' is not a number of digits",
        ),
        (
            {
                "rules": [
                    {"id": "x", "host": HOST, "context": [{"key": "k(-,1)", "test": "numbered", "values": ["", "."]}]}
                ]
            },
            "a delimiter before the number",
        ),
        (
            {
                "rules": [
                    {"id": "x", "host": HOST, "context": [{"key": "k(-,-)", "test": "depth", "values": ["100000"]}]}
                ]
            },
            "depth '100000' is not a number",
        ),
        (
            {"rules": [{"id": "x", "host": HOST, "context": [{"key": "k(-,-)", "test": "depth", "values": []}]}]},
            "'depth' takes one value or more",
        ),
        (  # no key could be made by it: requests of the host failed, and pages were lost
            {"rules": [{"id": "x", "host": HOST, "transformation": [{"key": "?a", "op": "set", "value": "\ud800"}]}]},
            "is not text",
        ),
        ({"rules": rule_set_to_json(rule_set(DROP_SID))["rules"] * 2}, r"rules\[1\]: id '.*' stands twice"),
        (
            {"rules": [{"id": "x", "host": HOST, "transformation": [], "evidence": [["http://a/", "http://b/"]]}]},
            r"evidence\[0\]: .* is not \[url, url, agreed\]",
        ),
        ({"retired": ["x"]}, r"retired\[0\]: 'x' is not \[id, reason\]"),
        ({"rules": [["x", HOST]]}, "list where an object is expected"),
        ({"rules": [7]}, "int where an object is expected"),
    ],
)
def test_a_rule_set_with_an_error_is_refused_whole(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleError, match=message):
        rule_set_from_json({**rule_set_to_json(rule_set(DROP_SID)), **change})


@pytest.mark.parametrize(
    ("key", "value"), [("k(1,-)", "*"), ("k(2,-)", "a b.example.com"), ("k(2,-)", "a.example.com:99999")]
)
def test_a_rule_whose_keys_would_be_no_urls_is_refused(key: str, value: str) -> None:
    """Requests of the domain failed by it, and pages were lost."""
    edits = [{"key": key, "op": "set", "value": value}]
    with pytest.raises(RuleError, match=r"to a host within 'example\.com' as URLs have it"):
        rule_from_json({"id": "x", "host": HOST, "spans": True, "transformation": edits})
    edits[0]["value"] = "https" if key == "k(1,-)" else "a.example.com:8080"
    assert rule_from_json({"id": "x", "host": HOST, "spans": True, "transformation": edits}).spans


def test_an_id_depends_on_what_a_rule_says_not_on_what_is_known_about_it() -> None:
    assert rule([Condition(SID, "any")], [Edit(SID, "delete")], support=9).id == DROP_SID.id
    assert rule([Condition(SID, "is", ("1",))], [Edit(SID, "delete")]).id != DROP_SID.id


def test_text_is_one_line_for_people() -> None:
    assert DROP_SID.text == "example.com: ?sid any → delete ?sid"
    said = [
        (Condition(Key(), "only", ("sid", "t")), "only ?sid, ?t"),
        (Condition(Key(), "only"), "only a path"),
        (Condition(Key(), "depth", ("2",)), "2 path components"),
        (Condition(Key(), "depth", ("2", "4")), "2 or 4 path components"),
        (Condition(SID, "in", tuple("abcdef")), "?sid in 'a', 'b', 'c', 'd', … (6 values)"),
        (Edit(SID, "rename", "s"), "call ?sid 's'"),
        (Edit(Key(), "keep", names=("a", "b")), "of the query keep a, b"),
        (Edit(Key(), "keep"), "of the query keep nothing"),
        (Edit(SID, "spaces", "_"), "write spaces as '_' in ?sid"),
        (Edit(SID, "without", "x"), "take 'x' out of ?sid"),
    ]
    assert [str(one) for one, _ in said] == [text for _, text in said]
    titled, number = Condition(Key(end=1), "numbered", ("-", "", "3")), Key(end=1, deep=3)
    copied = rule([titled], [Edit(Key(end=1), "copy", source=number), Edit(SID, "items", ",")])
    assert copied.text == (
        "example.com: k(-,1) numbered '-', '', '3' → copy k(-,1) from k(-.3,1), sort what ',' separates in ?sid"
    )


@pytest.mark.parametrize(
    ("context", "edits", "url", "expected"),
    [
        ([], [Edit(SID, "delete")], "http://example.com/a?sid=1&x=2", "http://example.com/a?x=2"),
        ([], [Edit(SID, "delete")], "http://example.com/a?sid=1&sid=2", "http://example.com/a"),
        ([], [Edit(SID, "delete")], "http://example.com/a?sid=%&x=%41", "http://example.com/a?x=A"),
        (
            [],
            [Edit(Key(name="sid", occurrence=2), "delete")],
            "http://example.com/?sid=1&sid=2",
            "http://example.com/?sid=1",
        ),
        (
            [],
            [Edit(Key(name=";jsessionid"), "delete")],
            "http://example.com/a;jsessionid=F/b?c",
            "http://example.com/a/b?c",
        ),
        (
            [Condition(Key(start=3), "is", ("a",))],
            [Edit(Key(start=3), "delete")],
            "http://example.com/a;u=1/b;v=2/c",
            "http://example.com/b;v=2/c",
        ),
        (
            [Condition(Key(end=1), "like", ("a-*",))],
            [Edit(Key(end=1, deep=3), "delete")],
            "http://example.com/x/a-bob",
            "http://example.com/x/a-",
        ),
        ([], [Edit(Key(name=";v"), "delete")], "http://example.com/a/.;v=1/b", "http://example.com/a/b"),
        ([], [Edit(Key(), "keep", names=("t",))], "http://example.com/v?t=1&a=2&b", "http://example.com/v?t=1"),
        ([], [Edit(Key(), "sort")], "http://example.com/?b=1&a=2&b=0", "http://example.com/?a=2&b=1&b=0"),
        ([], [Edit(Key(), "lower")], "http://example.com/A/B?C=D", "http://example.com/a/b?C=D"),
        ([], [Edit(SID, "set", "*")], "http://example.com/?sid=9&a=1", "http://example.com/?sid=*&a=1"),
        (
            [Condition(Key(end=1), "is", ("",))],
            [Edit(Key(end=1), "delete")],
            "http://example.com/a/",
            "http://example.com/a",
        ),
        (
            [Condition(Key(end=1), "is", ("index.html",))],
            [Edit(Key(end=1), "set", "")],
            "http://example.com/a/index.html",
            "http://example.com/a/",
        ),
        (
            [Condition(Key(start=3), "is", ("old",))],
            [Edit(Key(start=3), "delete")],
            "http://example.com/old/a",
            "http://example.com/a",
        ),
        (
            [],
            [Edit(Key(name="route"), "decode")],
            "http://example.com/?route=a%2Fb%26c",
            "http://example.com/?route=a/b%26c",
        ),
        ([], [Edit(Key("="), "decode")], "http://example.com/?a%2Fb%3D1", "http://example.com/?a/b%3D1"),
        ([], [Edit(SID, "items", ",")], "http://example.com/?sid=b,c,a&t=2,1", "http://example.com/?sid=a,b,c&t=2,1"),
        ([], [Edit(SID, "rename", "s")], "http://example.com/?a=1&sid=2&b=3", "http://example.com/?a=1&s=2&b=3"),
        ([], [Edit(SID, "rename", "s")], "http://example.com/?s=1&sid=2", "http://example.com/?s=1&sid=2"),
        ([], [Edit(SID, "rename", "s")], "http://example.com/?sid=1&sid=2", "http://example.com/?sid=1&sid=2"),
        ([], [Edit(Key(end=1), "without", "_print")], "http://example.com/a_print.html", "http://example.com/a.html"),
        ([], [Edit(Key(end=1), "items", "+")], "http://example.com/b+a/d+c", "http://example.com/b+a/c+d"),
        (
            [],
            [Edit(Key(start=3), "items", "&")],
            "http://example.com/b&a?c=2&c=1",
            "http://example.com/a&b?c=2&c=1",
        ),
        (
            [],
            [Edit(Key("f[0]"), "items", "&")],
            "http://example.com/?f[1]=a&g=1&f[0]=c&f[2]=b",
            "http://example.com/?f[1]=b&g=1&f[0]=a&f[2]=c",
        ),
        ([], [Edit(SID, "spaces", "%20")], "http://example.com/?sid=a+b_%2B", "http://example.com/?sid=a%20b_%2B"),
        (
            [Condition(Key(start=3), "like", ("*%20*",))],
            [Edit(Key(start=3), "spaces", "_")],
            "http://example.com/a%20b%2Fc/d%20e",
            "http://example.com/a_b%2Fc/d%20e",
        ),
        (
            [Condition(Key(start=3), "like", ("*%20*",))],
            [Edit(Key(start=3), "spaces", "_")],
            "http://example.com/C++",
            "http://example.com/C++",
        ),
        (
            [Condition(Key(name="title"), "any")],
            [Edit(Key(start=3), "copy", source=Key(name="title")), Edit(Key(name="title"), "delete")],
            "http://example.com/index.php?title=A",
            "http://example.com/A",
        ),
        (
            [Condition(Key(end=1), "like", ("friends-*",))],
            [Edit(Key(end=1, deep=3), "set", "*")],
            "http://example.com/friends-bob",
            "http://example.com/friends-*",
        ),
        (
            [Condition(Key(name="x"), "within", ("1",))],
            [Edit(SID, "delete")],
            "http://example.com/?sid=1",
            "http://example.com/",
        ),
        (
            [Condition(Key(name="x"), "within", ("1",))],
            [Edit(SID, "delete")],
            "http://example.com/?sid=1&x=2",
            "http://example.com/?sid=1&x=2",
        ),
        (
            [Condition(Key(), "only", ("sid",))],
            [Edit(SID, "delete")],
            "http://example.com/?sid=1&y=2",
            "http://example.com/?sid=1&y=2",
        ),
        (
            [Condition(Key(name="y"), "absent")],
            [Edit(SID, "delete")],
            "http://example.com/?sid=1&y=2",
            "http://example.com/?sid=1&y=2",
        ),
        (
            [Condition(Key(), "depth", ("2",))],
            [Edit(SID, "delete")],
            "http://example.com/a?sid=1",
            "http://example.com/a?sid=1",
        ),
        (
            [Condition(SID, "in", ("1", "2"))],
            [Edit(SID, "delete")],
            "http://example.com/?sid=3",
            "http://example.com/?sid=3",
        ),
    ],
)
def test_what_a_rule_does(context: list[Condition], edits: list[Edit], url: str, expected: str) -> None:
    assert key(url, rule(context, edits)) == expected


def test_a_path_that_is_empty_already_is_not_changed() -> None:
    first = rule([], [Edit(Key(start=3), "delete")])
    assert key_under(rule_set(first), "http://example.com/?x=1") == ("http://example.com/?x=1", ())
    named = rule([], [Edit(Key(start=3), "delete"), Edit(Key(end=1), "set", "a")])
    assert key("http://example.com/b", named) == "http://example.com/a"


def test_a_family_is_one_key_that_is_no_url() -> None:
    family = rule([Condition(Key(start=3), "is", ("login",))], [Edit(Key(), "family")])
    first, second = key("http://example.com/login?a=1", family), key("http://example.com/login?a=2", family)
    assert first == second == f"family:{family.id}@example.com"
    assert key(first, family) == first


@pytest.mark.parametrize(("value", "written"), [("a b", "a%20b"), ("a&b", "a%26b"), ("ü", "%C3%BC")])
def test_a_key_is_canonical_also_where_a_rule_sets_what_is_not(value: str, written: str) -> None:
    setting = rule([Condition(SID, "any")], [Edit(SID, "set", value=value)])
    assert key("http://example.com/?sid=1", setting) == f"http://example.com/?sid={written}"


def test_other_hosts_stay_untouched() -> None:
    keys = Keys()
    keys.load(rule_set(DROP_SID))
    assert keys.key("http://other.org/?sid=1") == ("http://other.org/?sid=1", ())
    assert keys.key("http://www.example.com/?sid=1") == ("http://www.example.com/?sid=1", ())


def test_a_spanning_rule_reaches_the_hosts_of_its_domain_and_no_other() -> None:
    spanning = rule([], [Edit(Key(start=2), "set", "example.com")], spans=True)
    keys = Keys()
    keys.load(rule_set(spanning, DROP_SID))
    assert keys.key("http://www.example.com/a?sid=1")[0] == "http://example.com/a"
    assert keys.key("http://example.org/a?sid=1")[0] == "http://example.org/a?sid=1"
    keys.load(rule_set(replace(spanning, context=(Condition(Key(start=2), "in", (f"en.{HOST}", f"m.{HOST}")),))))
    keyed = [keys.key(f"http://{name}.{HOST}/a")[0] for name in ("en", "m", "www")]
    assert keyed == [f"http://{HOST}/a", f"http://{HOST}/a", f"http://www.{HOST}/a"]


def test_a_host_edit_that_leaves_its_domain_is_not_made() -> None:
    stealing = rule([], [Edit(Key(start=2), "set", "victim.org")], spans=True)
    assert key("http://example.com/a", stealing) == "http://example.com/a"


def test_retired_rules_are_not_applied() -> None:
    assert key("http://example.com/?sid=1", replace(DROP_SID, state="retired")) == "http://example.com/?sid=1"


@pytest.mark.parametrize("version", ["1e999", "NaN", "-1", "true", '"3"', "1.5", "null", "9" * 5_000, "[" * 100_000])
def test_a_version_that_cannot_be_read_is_below_all(version: str) -> None:
    assert version_of(b'{"version": 7}') == 7
    assert version_of(f'{{"version": {version}}}'.encode()) == -1
    assert version_of(b"") == version_of(b"[]") == version_of(b"\xff") == -1
