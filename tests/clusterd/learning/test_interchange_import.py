"""Rule files read: ours, and duplicate-url-discarder's; an error refuses the file whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clusterd.learning.interchange.files import read_rules, write_rules
from clusterd_crawler.errors import RuleError
from clusterd_crawler.rule_language.json_form import rule_to_json
from clusterd_crawler.urls import canonical

from tests.clusterd.learning.discarding import HOST, drop, make, ours, theirs, urls

pytestmark = pytest.mark.usefixtures("suffixes_from_the_package")


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "order": 100,
        "processor": "queryRemoval",
        "args": ["sid"],
        "urlPattern": {"include": ["example.com/view"], "exclude": [], "priority": 500},
        **changes,
    }


def own(**changes: Any) -> str:
    """Return our own file of a rule with other fields."""
    return json.dumps({"clusterd-rules": 1, "rules": [rule_to_json(make([], drop("?sid"))) | changes]})


def test_a_rule_of_our_own_file_needs_no_id() -> None:
    """It has the one that the same rule would be learned under; two of one saying are one too many."""
    said = {"host": "h.test", "transformation": [{"key": "?sid", "op": "delete"}]}
    (rule,) = read_rules(json.dumps({"clusterd-rules": 1, "rules": [said]}), "clusterd").rules
    assert rule.id == rule.made_id
    assert rule.text == "h.test: any URL → delete ?sid"
    with pytest.raises(RuleError, match=f"entry 1: id '{rule.id}' stands twice"):
        read_rules(json.dumps({"clusterd-rules": 1, "rules": [said, said]}), "clusterd")


def test_keys_and_values_written_by_hand_are_those_of_urls() -> None:
    context = [{"key": "k(3,-)", "test": "is", "values": ["künstler"]}, {"key": "?q", "test": "is", "values": ["a b"]}]
    edits = [{"key": "?größe", "op": "delete"}, {"key": "?é#2", "op": "set", "value": "ü"}]
    said = {"host": "h.test", "context": context, "transformation": edits}
    (rule,) = read_rules(json.dumps({"clusterd-rules": 1, "rules": [said]}), "clusterd").rules
    met = canonical("http://h.test/künstler/1?größe=1&q=a b&é=1&é=2")
    assert ours([rule])(met) == canonical("http://h.test/künstler/1?q=a b&é=1&é=ü")
    (again,) = read_rules(write_rules([rule], "clusterd")[0], "clusterd").rules
    assert again == rule


def test_escapes_in_small_letters_are_those_of_urls(tmp_path: Path) -> None:
    """As a site's links have them, and its log: such a rule was stored, and met no URL."""
    given, short = "http://example.com/k%c3%bc/1?gr%c3%b6=1&q=2", "http://example.com/k%c3%bc/1?q=2"
    key, value = {"key": "?gr%c3%b6", "op": "delete"}, {"key": "k(3,-)", "test": "is", "values": ["k%c3%bc"]}
    said = {"host": "example.com", "context": [value], "transformation": [key], "carrier": [value]}
    (rule,) = read_rules(json.dumps({"clusterd-rules": 1, "rules": [said]}), "clusterd").rules
    assert ours([rule])(canonical(given)) == canonical(short)
    assert rule.carrier == rule.context
    text = json.dumps([entry(args=["gr%c3%b6"], urlPattern={"include": ["example.com/k%c3%bc/"]})])
    assert theirs(text, tmp_path)(given) == short
    assert ours(read_rules(text, "dud").rules)(canonical(given)) == canonical(short)


def test_the_example_of_its_documentation_is_read() -> None:
    done = read_rules(json.dumps([entry()]), "dud")
    assert {rule.host for rule in done.rules} == {"example.com", "www.example.com"}
    process = ours(done.rules)
    assert process("http://example.com/viewtopic?sid=1&t=2") == "http://example.com/viewtopic?t=2"
    assert process("http://www.example.com/view/x?sid=1") == "http://www.example.com/view/x"
    assert process("http://example.com/other?sid=1") == "http://example.com/other?sid=1"
    assert done.refused == []


PATHS = ["/a", "/a/", "/a|", "/a*", "/|", "/*/", "/a/*/", "/*/b|", "/a/*/b|", "/*/*/b|", "/*.php|", "/a/b|?mode=m*"]
INCLUDES = [f"{HOST}{path}" for path in (*PATHS, "/?mode=m", "/a?mode=m&mode=n", "/?sid=*", ":8080/a")]
INCLUDES += [f"http://{HOST}/", "example.com"]


@pytest.mark.parametrize("include", INCLUDES)
@pytest.mark.parametrize(
    ("processor", "args"), [("queryRemoval", ["sid", "x"]), ("queryRemovalExcept", ["id"]), ("queryRemovalExcept", [])]
)
def test_an_imported_entry_does_here_what_it_does_there(
    include: str, processor: str, args: list[str], tmp_path: Path
) -> None:
    # Given every URL whose case is that of the pattern, and no port where all subdomains are meant
    text = json.dumps([entry(processor=processor, args=args, urlPattern={"include": [include], "exclude": []})])
    done = read_rules(text, "dud")
    assert done.refused == []
    mine, its = ours(done.rules), theirs(text, tmp_path)
    for url in urls():
        other_case = "SID" in url and "?sid" in include
        if not other_case and (include != "example.com" or ":8080" not in url):
            assert mine(url) == its(url), url


def test_the_shortest_of_a_component_is_dropped_once(tmp_path: Path) -> None:
    text = json.dumps([entry(processor="subpathRemoval", args=[0], urlPattern={"include": ["example.com/en/"]})])
    done = read_rules(text, "dud")
    process = ours(done.rules)
    assert process("http://example.com/en/x/y") == "http://example.com/x/y"
    assert theirs(text, tmp_path)("http://example.com/en/x/y") == "http://example.com/x/y"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (entry(urlPattern={"include": []}), "every domain"),
        (entry(urlPattern={"include": [""]}), "every domain"),
        (entry(urlPattern={"include": None}), "every domain"),
        (entry(urlPattern={"include": ["a.example.com"]}), "subdomains"),
        (entry(urlPattern={"include": ["example.com/a*b"]}), "several components"),
        (entry(urlPattern={"include": ["example.com/"], "exclude": ["example.com/a"]}), "excluded"),
        (entry(urlPattern={"include": ["example.com"], "exclude": ["a.example.com/b"]}), "excluded"),
        (entry(processor="subpathRemoval", args=[0], urlPattern={"include": ["example.com/"]}), "again"),
        (entry(processor="normalizer", args=[], urlPattern={"include": ["example.com"]}), "www"),
        (entry(args=[]), "nothing"),
        (entry(args=["a#2"]), "called 'a#2'"),
        (entry(args=["sid", "="]), "called '='"),
        (entry(processor="queryRemovalExcept", args=[";v"]), "called ';v'"),
        (entry(args=[""]), "called ''"),
        (entry(urlPattern={"include": ["example.com/#top"]}), "fragment"),
        (entry(urlPattern={"include": ["*.example"]}), "'*.example' has a character that no host has"),
        (entry(urlPattern={"include": ["me@example.com/a"]}), "a character that no host has"),
    ],
)
def test_an_entry_without_counterpart_is_named(given: dict[str, Any], reason: str) -> None:
    done = read_rules(json.dumps([given]), "dud")
    assert done.rules == []
    [(named, why)] = done.refused
    assert named.startswith("entry 0 (")
    assert reason in why


def test_a_normalizer_is_read_where_www_has_no_part() -> None:
    given = entry(processor="normalizer", args=None, urlPattern={"include": ["example.com/a"], "exclude": []})
    done = read_rules(json.dumps([given]), "dud")
    assert [rule.host for rule in done.rules] == ["example.com"]
    assert "www" in done.refused[0][1]
    assert ours(done.rules)("http://example.com/a/") == "http://example.com/a"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "list of entries"),
        ([entry(), entry(order="1")], "entry 1: order"),
        ([entry(processor="lower")], "entry 0: processor"),
        ([entry(args="sid")], "entry 0: args"),
        ([entry(args=[1])], "entry 0: args"),
        ([entry(processor="subpathRemoval", args=["0"])], "entry 0: args"),
        ([entry(processor="subpathRemoval", args=[True])], "entry 0: args"),
        ([entry(processor="normalizer", args=["x"])], "normalizer"),
        ([entry(urlPattern={"includes": []})], "includes"),
        ([entry(urlPattern={"include": ["/path"]})], "no domain"),
        ([entry(urlPattern={"include": "example.com"})], "include"),
        ([entry(urlPattern={"include": ["http://[x/"]})], "no pattern"),
        ([entry(more=1)], "more"),
        ([{"order": 1}], "processor is missing"),
        ([None], "entry 0"),
    ],
)
def test_a_file_with_an_error_is_refused_whole(given: Any, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        read_rules(json.dumps(given), "dud")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "--format dud"),
        ("{}", "clusterd-rules"),
        ('{"clusterd-rules": 2, "rules": []}', "version 2"),
        ('{"clusterd-rules": 1}', "a list"),
        ('{"clusterd-rules": 1, "rules": [{"id": "x"}]}', "entry 0"),
        (own(state="candidate"), "entry 0: state: 'candidate' is not one of live, pinned, retired"),
        (own(state=["live"]), "entry 0: state: .* is not one of live, pinned, retired"),
        ("[" * 100_000, "not JSON"),
        (own(host="example.com:99999"), "entry 0: host: 'example.com:99999' is the host of no URL"),
        (own(host="[zz]"), "entry 0: host: .* is the host of no URL"),
    ],
)
def test_our_own_file_with_an_error_is_refused_whole(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        read_rules(text, "clusterd")


def test_a_rule_that_stands_twice_is_refused() -> None:
    rule = make([], drop("?sid"))
    text, _ = write_rules([rule, rule], "clusterd")
    with pytest.raises(RuleError, match="entry 1"):
        read_rules(text, "clusterd")
