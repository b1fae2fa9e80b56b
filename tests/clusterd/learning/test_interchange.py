"""Rule files written; what is exported does in duplicate-url-discarder's own processor what it does in ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clusterd.learning.interchange import discarder_export
from clusterd.learning.interchange.files import own_file, read_rules, write_rules
from clusterd_crawler.rule_language.json_form import rule_to_json
from clusterd_crawler.rules import Edit, Key, Rule

from tests.clusterd.learning.discarding import HOST, drop, groups, keep, make, on, ours, theirs

pytestmark = pytest.mark.usefixtures("suffixes_from_the_package")


FAMILY = [Edit(Key(), "family")]
SAID = {
    "drop a parameter everywhere": make([], drop("?sid")),
    "drop two": make([], drop("?sid", "?x")),
    "drop where it is set": make([on("?sid", "any")], drop("?sid")),
    "drop below a folder": make([on("k(3,-)", "is", "a")], drop("?sid")),
    "drop in either folder": make([on("k(3,-)", "in", "a", "b")], drop("?sid")),
    "drop on one path": make([on("k(3,-)", "is", "a"), on("k(4,-)", "is", "b"), on("", "depth", "2")], drop("?sid")),
    "drop on a path that ends there": make([on("k(3,-)", "is", "a"), on("k(4,-)", "absent")], drop("?sid")),
    "drop on a path fixed from both ends": make([on("k(3,2)", "is", "a"), on("k(4,1)", "is", "b")], drop("?sid")),
    "drop on a path of which both ends are counted": make(
        [on("k(-,2)", "is", "a"), on("k(4,-)", "is", "b"), on("", "depth", "2")], drop("?sid")
    ),
    "drop below two": make([on("k(3,-)", "is", "a"), on("k(4,-)", "any")], drop("?sid")),
    "drop below three": make([on("k(3,-)", "is", "a"), on("k(4,-)", "any"), on("k(5,-)", "any")], drop("?sid")),
    "drop in any folder": make([on("k(3,-)", "any"), on("k(4,-)", "any")], drop("?sid")),
    "drop on a page": make([on("k(-,1)", "is", "b")], drop("?sid")),
    "drop on either page": make([on("k(-,1)", "in", "b", "a")], drop("?sid")),
    "drop on a page in a folder": make([on("k(-,1)", "is", "b"), on("k(-,2)", "is", "a")], drop("?sid")),
    "drop on a page in some folder": make([on("k(-,1)", "is", "b"), on("k(-,2)", "any")], drop("?sid")),
    "drop on a page below a folder": make([on("k(3,-)", "is", "a"), on("k(-,1)", "is", "b")], drop("?sid")),
    "drop where both ends are one": make([on("k(3,-)", "is", "a"), on("k(-,1)", "is", "a")], drop("?sid")),
    "drop on names that begin so": make([on("k(3,-)", "like", "a*")], drop("?sid")),
    "drop on names that end so": make([on("k(-,1)", "like", "*.php")], drop("?sid")),
    "drop at a value": make([on("?mode", "is", "m")], drop("?sid")),
    "drop at either value": make([on("?mode", "in", "m", "n")], drop("?sid")),
    "drop without another": make([on("?mode", "absent")], drop("?sid")),
    "drop at an empty value": make([on("?sid", "is", "")], drop("?sid")),
    "drop on http": make([on("k(1,-)", "is", "http")], drop("?sid")),
    "drop on a whole path": make([on("k(-,-)", "is", "a/b")], drop("?sid")),
    "drop on as many paths as may be": make([on("k(-,-)", "in", "a/b", *map(str, range(63)))], drop("?sid")),
    "drop on whole paths that end so": make(
        [on("k(-,-)", "in", "a/b", "b", "a/", "x/y/b"), on("k(-,1)", "is", "b"), on("k(3,-)", "in", "a", "b")],
        drop("?sid"),
    ),
    "drop without another or at its value": make([on("?mode", "within", "m")], drop("?sid")),
    "drop within values of two": make([on("?mode", "within", "m", "n"), on("?id", "within", "1")], drop("?sid")),
    "drop at a value that is there": make([on("?sid", "any"), on("?sid", "in", "1", "8")], drop("?sid")),
    "keep two parameters": make([on("k(3,-)", "is", "a")], keep("id", "mode")),
    "keep nothing": make([on("k(3,-)", "is", "a")], keep()),
    "drop a folder": make([on("k(3,-)", "is", "a"), on("k(4,-)", "is", "b")], drop("k(4,-)")),
    "drop two folders": make(
        [on("k(3,-)", "is", "a"), on("k(4,-)", "is", "b"), on("k(5,-)", "is", "c"), on("", "depth", "3")],
        drop("k(3,-)", "k(3,-)"),
    ),
    "drop a folder counted from the end": make(
        [on("k(3,-)", "is", "a"), on("k(4,-)", "is", "b"), on("", "depth", "2")], drop("k(-,2)")
    ),
    "drop the trailing slash": make([on("k(-,1)", "is", "")], drop("k(-,1)")),
    "drop with a folder": make([on("k(3,-)", "is", "b"), on("k(4,-)", "is", "a")], [*drop("?sid"), *drop("k(3,-)")]),
}


@pytest.mark.parametrize("rule", SAID.values(), ids=SAID)
def test_an_exported_rule_does_there_what_it_does_here(rule: Rule, tmp_path: Path) -> None:
    text, done = write_rules([rule], "dud")
    assert done.refused == {}
    assert groups(theirs(text, tmp_path)) == groups(ours([rule]))


@pytest.mark.parametrize("rule", SAID.values(), ids=SAID)
def test_an_exported_rule_comes_back(rule: Rule) -> None:
    text, _ = write_rules([rule], "dud")
    back = read_rules(text, "dud")
    assert groups(ours(back.rules)) == groups(ours([rule]))


def test_a_family_is_one_page_there_too(tmp_path: Path) -> None:
    family = make([on("k(3,-)", "is", "v.php"), on("", "depth", "1"), on("?mode", "is", "m")], FAMILY)
    text, done = write_rules([family], "dud")
    assert done.refused == {}
    assert groups(theirs(text, tmp_path)) == groups(ours([family]))


def test_a_rule_of_a_registrable_domain_holds_on_its_subdomains(tmp_path: Path) -> None:
    rule = make([], drop("?sid"), "example.com", spans=True)
    text, done = write_rules([rule], "dud")
    process = theirs(text, tmp_path)
    assert process("http://b.a.example.com/x?sid=1&id=2") == "http://b.a.example.com/x?id=2"
    assert process("http://example.org/x?sid=1") == "http://example.org/x?sid=1"
    assert "port" in done.notes[rule.id]
    assert ours(read_rules(text, "dud").rules)("http://b.a.example.com/x?sid=1") == "http://b.a.example.com/x"


def test_many_rules_of_one_host_are_applied_in_their_order(tmp_path: Path) -> None:
    rules = [
        make([on("k(3,-)", "is", "a")], drop("?sid")),
        make([], drop("?x")),
        make([on("k(-,1)", "is", "b")], keep("id")),
        make([on("k(3,-)", "is", "a"), on("k(4,-)", "is", "b")], drop("k(3,-)")),
    ]
    text, _ = write_rules(rules, "dud")
    assert [entry["order"] for entry in json.loads(text)] == [104, 103, 102, 101]
    assert json.loads(text)[0]["urlPattern"]["include"] == [f"{HOST}/a/", f"{HOST}/a|"]
    assert groups(theirs(text, tmp_path)) == groups(ours(rules))


def test_all_of_a_repeated_parameter_goes_both_here_and_there(tmp_path: Path) -> None:
    rule = SAID["drop below a folder"]
    url = f"http://{HOST}/a?sid=1&id=2&sid=3"
    assert theirs(write_rules([rule], "dud")[0], tmp_path)(url) == ours([rule])(url) == f"http://{HOST}/a?id=2"
    # Where a rule's path goes with the first of them, its context no longer holds for the second: that is noted.
    both = SAID["drop with a folder"]
    assert "repeated" in write_rules([both], "dud")[1].notes[both.id]


@pytest.mark.parametrize("nothing", [[], [""], None])
def test_universal_entries_are_repeated_for_every_host(nothing: list[str] | None, tmp_path: Path) -> None:
    everywhere = {"order": 1, "processor": "queryRemoval", "args": ["utm"], "urlPattern": {"include": nothing}}
    elsewhere = {**everywhere, "args": ["id"], "urlPattern": {"include": ["example.org"]}}
    text, _ = write_rules([make([], drop("?sid"))], "dud", universal=json.dumps([everywhere, elsewhere]))
    assert theirs(text, tmp_path)(f"http://{HOST}/a?utm=1&sid=2&id=3") == f"http://{HOST}/a?id=3"


UNSAID = {
    "a literal": make([], [Edit(Key("lang"), "set", "en")]),
    "a reference": make([], [Edit(Key.parse("k(3,-)"), "copy", source=Key("id"))]),
    "a conversion": make([], [Edit(Key("name"), "lower")]),
    "how spaces are written": make([], [Edit(Key("name"), "spaces", "_")]),
    "a text that goes from a component": make([], [Edit(Key(end=1), "without", "_print")]),
    "another name": make([], [Edit(Key("sid"), "rename", "s")]),
    "the order of items": make([], [Edit(Key("name"), "items", ",")]),
    "the order of parameters": make([], [Edit(Key(), "sort")]),
    "a part of a component": make([on("k(3,-)", "like", "x-*")], [Edit(Key(start=3, deep=3), "delete")]),
    "a number at the end of a component": make([on("k(-,1)", "numbered", "-", ".html")], drop("?sid")),
    "a number in a component": make([on("k(3,-)", "like", "#-*")], drop("?sid")),
    "a number in a value": make([on("?id", "like", "#:*")], drop("?sid")),
    "other parameters": make([on("", "only", "sid", "id")], drop("?sid")),
    "the root alone": make([on("k(3,-)", "absent")], drop("?sid")),
    "a component beyond the last": make(
        [on("k(3,-)", "is", "a"), on("k(4,-)", "any"), on("", "depth", "1")], drop("?sid")
    ),
    **{f"a literal {sign} in a whole path": make([on("k(-,-)", "is", f"a{sign}b")], drop("?sid")) for sign in "*|;"},
    "a path that never is": make([on("k(-,-)", "is", "a/b"), on("k(3,-)", "is", "b")], drop("?sid")),
    "two conditions on a component": make([on("k(3,-)", "like", "a*"), on("k(3,-)", "in", "ab", "b")], drop("?sid")),
    "two conditions on a parameter": make([on("?id", "in", "1", "2"), on("?id", "in", "2", "3")], drop("?sid")),
    "too many paths": make([on(f"k({n},-)", "in", *map(str, range(1000))) for n in range(3, 9)], drop("?sid")),
    "five choices": make([on(f"?{name}", "within", "1") for name in "abcde"], drop("?sid")),
    "a host": make([], [Edit(Key(start=2), "set", "example.com")], "example.com", spans=True),
    "a repeated parameter": make([], drop("?sid#2")),
    "a parameter of the path": make([], [Edit(Key(";jsessionid"), "delete")]),
    "what has no name": make([], drop("?=")),
    "what has no name, kept": make([], [Edit(Key(), "keep", names=("=", "id"))]),
    "a condition on what has no name": make([on("?=", "any")], drop("?sid")),
    "a number of components": make([on("", "depth", "2")], drop("?sid")),
    "one of several numbers of components": make([on("k(3,-)", "is", "a"), on("", "depth", "1", "2")], drop("?sid")),
    "at most so many components": make(
        [on("k(3,-)", "is", "a"), on("k(-,1)", "is", "a"), on("k(5,-)", "absent")], drop("?sid")
    ),
    "a gap in the path": make([on("k(4,-)", "is", "b")], drop("?sid")),
    "a pattern inside the path": make([on("k(3,-)", "like", "a*b")], drop("?sid")),
    "a family of many paths": make([on("k(3,-)", "is", "a")], FAMILY),
    "a component from the end": make([on("k(-,2)", "is", "a"), on("k(-,1)", "any")], drop("k(-,2)")),
    "an address of IPv6": make([], drop("?sid"), "[::1]"),
    "another host": make([on("k(2,-)", "is", "other.org")], drop("?sid")),
    "a condition on a repeated parameter": make([on("?id#2", "is", "1")], drop("?sid")),
    "a literal star in a value": make([on("?id", "is", "1*")], drop("?sid")),
    "a literal star": make([on("k(3,-)", "is", "a*")], drop("?sid")),
    "a condition on subdomains": make([on("?sid", "any")], drop("?sid"), "example.com", spans=True),
    "a name": Rule("n1", HOST, (), (), kind="name", name="canonical"),
    "what the known page shows": replace(make([], drop("?sort")), shows=7),
    "one crawl": replace(make([on("k(-,-)", "is", "a")], FAMILY), crawl="monday"),
}


@pytest.mark.parametrize("rule", UNSAID.values(), ids=UNSAID)
def test_what_cannot_be_expressed_is_named_with_its_reason(rule: Rule) -> None:
    text, done = write_rules([rule, make([], drop("?ok"))], "dud")
    assert list(done.refused) == [rule.id]
    assert len(done.refused[rule.id]) > 10
    assert [entry["args"] for entry in json.loads(text)] == [["ok"]]


def test_a_condition_on_other_parameters_is_left_out_only_when_asked_for(tmp_path: Path) -> None:
    rule = make([on("k(-,-)", "is", "1"), on("", "only", "sid", "id")], drop("?sid"))
    assert "other parameters" in write_rules([rule], "dud")[1].refused[rule.id]
    text, done = write_rules([rule], "dud", loose=True)
    assert done.refused == {}
    assert "only ?sid, ?id" in done.notes[rule.id]
    assert theirs(text, tmp_path)(f"http://{HOST}/1?sid=1&x=2") == f"http://{HOST}/1?x=2"


def test_a_difference_of_case_is_noted() -> None:
    rule = make([on("k(3,-)", "is", "View")], drop("?sid"))
    plain = make([on("k(3,-)", "is", "123")], drop("?sid"))
    assert "case" in write_rules([rule], "dud")[1].notes[rule.id]
    assert write_rules([plain], "dud")[1].notes == {}


def test_a_rule_that_waits_for_another_is_noted() -> None:
    rules = [make([], drop("?sid")), make([on("?sid", "absent")], drop("?x"))]
    assert rules[0].id in write_rules(rules, "dud")[1].notes[rules[1].id]


def test_a_rule_on_a_path_that_another_shortens_is_noted() -> None:
    folder = make([on("k(3,-)", "is", "1")], drop("k(3,-)"))
    rules = [folder, make([on("k(3,-)", "is", "1")], drop("?2"))]
    assert folder.id in write_rules(rules, "dud")[1].notes[rules[1].id]


def test_a_rule_is_compared_with_those_of_its_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 4,000 rules of as many hosts took 12 seconds."""
    compared: list[tuple[str, str]] = []

    def changes(other: Rule, rule: Rule) -> bool:
        compared.append((other.host, rule.host))
        return False

    monkeypatch.setattr(discarder_export, "_changes_context", changes)
    rules = [make([], drop(name), host=f"h{n}.example") for n in range(20) for name in ("?sid", "?ref")]
    write_rules(rules, "dud")
    assert sorted(compared) == sorted((f"h{n}.example",) * 2 for n in range(20) for _ in range(2))


def test_our_own_format_loses_nothing() -> None:
    rules = [*SAID.values(), *UNSAID.values()]
    text, done = write_rules(rules, "clusterd")
    assert read_rules(text, "clusterd").rules == rules
    assert done.refused == {}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("EXAMPLE.org", "example.org"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("example.org:80", "example.org:80"),  # https on port 80
        ("example.org:8080", "example.org:8080"),
    ],
)
def test_a_host_written_by_hand_is_that_of_urls(written: str, meant: str) -> None:
    entry = {"id": "one", "host": written, "transformation": [{"key": "?sid", "op": "delete"}]}
    (rule,) = read_rules(json.dumps({"clusterd-rules": 1, "rules": [entry]}), "clusterd").rules
    assert rule.host == meant


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_file_is_written_rule_by_rule(count: int) -> None:
    """The rules of a large store are many times what one of them is, with the pages that they rest on."""
    taken = []

    def rules() -> Iterator[Rule]:
        for number in range(count):
            taken.append(number)
            yield replace(make([], drop(f"?ü{number}")), evidence=(("http://a/", "http://b/", True),))

    whole = {"clusterd-rules": 1, "rules": [rule_to_json(rule) for rule in rules()]}
    taken.clear()
    parts = own_file(rules())
    text = next(parts)
    for number in range(count):
        assert taken == list(range(number))
        text += next(parts)
    assert text + "".join(parts) == json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    assert "".join(own_file(rules(), one_line=True)) == json.dumps(whole) + "\n"


@pytest.mark.parametrize(
    "rule",
    [
        make([on("?sid", "in", "1", "2")], drop("?sid")),
        make([on("?sid", "within", "1")], drop("?sid")),
        make([on("?sid", "any")], drop("?sid", "?x")),
    ],
    ids=str,
)
def test_a_note_says_that_of_a_repeated_parameter_all_go_there(rule: Rule, tmp_path: Path) -> None:
    text, done = write_rules([rule], "dud")
    url = f"http://{HOST}/a?sid=1&x=1&sid=9&x=2"
    assert ours([rule])(url) != ours([rule])(f"http://{HOST}/a?x=1")
    assert "sid" not in theirs(text, tmp_path)(url)
    assert "repeated" in done.notes[rule.id]


def test_a_note_says_that_a_rule_waits_for_one_that_drops_what_it_asks_for(tmp_path: Path) -> None:
    rules = [make([on("k(3,-)", "is", "a")], drop("?mode")), make([on("?mode", "is", "m")], drop("?sid"))]
    text, done = write_rules(rules, "dud")
    url = f"http://{HOST}/a?mode=m&sid=1"
    assert ours(rules)(url) == f"http://{HOST}/a?sid=1"
    assert theirs(text, tmp_path)(url) == f"http://{HOST}/a"
    assert rules[0].id in done.notes[rules[1].id]
    assert rules[1].id not in done.notes[rules[0].id]
