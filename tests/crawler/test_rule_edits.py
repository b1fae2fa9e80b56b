"""What single conditions and edits do to a URL: occurrences, parameters of path components, places from either end."""

from __future__ import annotations

import pytest
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id

from tests.crawler.made_rules import key_under

HOST = "example.com"
SID, SECOND = Key(name="sid"), Key(name="sid", occurrence=2)


def key(condition: Condition | None, edit: Edit, rest: str) -> str:
    """Return the key of a URL of the host under one rule, without the host."""
    context = (condition,) if condition is not None else ()
    rule = Rule(rule_id(HOST, context, (edit,)), HOST, context, (edit,))
    return key_under(RuleSet(HOST, 1, (rule,)), f"http://{HOST}{rest}")[0].removeprefix(f"http://{HOST}")


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        (Condition(SECOND, "is", ("b",)), "/?sid=a&sid=b", "/?sid=b&sid=a"),
        (Condition(SECOND, "any"), "/?sid=a&sid=b", "/?sid=a"),
        (Condition(Key(name="t"), "is", ("a*",)), "/?sid=1&t=a*", "/?sid=1&t=ab"),
        (Condition(Key(name=";v"), "any"), "/a;v=1?sid=1", "/a?sid=1&v=1"),
        (Condition(Key(name=";v"), "any"), "/a;v?sid=1", "/a;w?sid=1"),
        (Condition(Key(name=";v", occurrence=2), "is", ("2",)), "/a;v=1/b;v=2?sid=1", "/a;v=2/b;v=1?sid=1"),
        (Condition(Key(start=4), "any"), "/a/b?sid=1", "/a?sid=1"),
        (Condition(Key(end=1), "some"), "/a/b?sid=1", "/a/?sid=1"),
        (Condition(Key(name="t"), "some"), "/?sid=1&t=0", "/?sid=1&t="),
        (Condition(Key(start=3), "is", ("a",)), "/a?sid=1", "/b?sid=1"),
        (Condition(Key(end=1), "is", ("a",)), "/b/a?sid=1", "/a/b?sid=1"),
        (Condition(Key(start=3, end=2), "is", ("a",)), "/a/b?sid=1", "/a/b/c?sid=1"),
        (Condition(Key(start=2, end=2), "is", (HOST,)), "/a?sid=1", "/a/b?sid=1"),
        (Condition(Key(end=1), "like", ("page",)), "/page?sid=1", "/page1?sid=1"),
        (Condition(Key(end=1), "like", ("a*b*c",)), "/a-b-c?sid=1", "/a-c-b?sid=1"),
        (Condition(Key(end=1), "like", ("ab*ba",)), "/abba?sid=1", "/aba?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", "")), "/a-1-23?sid=1", "/a-23-b?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", "")), "/-2?sid=1", "/a-?sid=1"),
        (Condition(Key(end=1), "numbered", ("-t", ".html")), "/a-t5.html?sid=1", "/a-5.html?sid=1"),
        (Condition(Key(end=1), "numbered", (".", ".html")), "/a.5.html?sid=1", "/a.5.htm?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", "")), "/a-2?sid=1", "/2?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", "")), "/a-2?sid=1", "/a-%D9%A2?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", ".html")), "/a-2.html?sid=1", "/.html?sid=1"),
        (Condition(Key(end=1), "numbered", ("-", "", "3")), "/a-123?sid=1", "/a-12?sid=1"),
        (Condition(Key(end=1), "like", ("#-*",)), "/12-a-b?sid=1", "/a-12?sid=1"),
        (Condition(Key(end=1), "like", ("t-#-#.html",)), "/t-1-2.html?sid=1", "/t-1-a.html?sid=1"),
        (Condition(Key(end=1), "like", ("t-#-#.html",)), "/t-1-*.html?sid=1", "/t-1-.html?sid=1"),
        (Condition(Key(end=1), "like", ("#",)), "/12?sid=1", "/%D9%A2?sid=1"),
        (Condition(Key(), "depth", ("1",)), "/a?sid=1", "/a/b?sid=1"),
        (Condition(Key(), "depth", ("1", "3")), "/a/b/c?sid=1", "/a/b?sid=1"),
        (Condition(Key(), "only", ("sid", "t")), "/?sid=1&t=2", "/?sid=1&u=2"),
        (Condition(Key(), "only", ("sid", ";v")), "/a;v=1?sid=1", "/a;w=1?sid=1"),
        (Condition(Key(), "only", ("sid",)), "/a?sid=1", "/a;sid=1?sid=1"),
        (Condition(Key(name="t"), "within", ("1", "2")), "/?sid=1&t=2", "/?sid=1&t=3"),
    ],
    ids=str,
)
def test_where_a_condition_holds(condition: Condition, holds: str, fails: str) -> None:
    assert key(condition, Edit(Key(name="new"), "set", "1"), holds) == f"{holds}&new=1"
    assert key(condition, Edit(Key(name="new"), "set", "1"), fails) == fails


@pytest.mark.parametrize(
    ("edit", "given", "expected"),
    [
        (Edit(Key(name=";v", occurrence=2), "delete"), "/a;v=1/b;v=2", "/a;v=1/b"),
        (Edit(Key(), "sort"), "/a;d=1;c=2/b;b;a=3;b=0", "/a;c=2;d=1/b;a=3;b;b=0"),
        (Edit(Key(start=5), "delete"), "/a/b", "/a/b"),
        (Edit(Key(end=3), "delete"), "/a/b", "/a/b"),
        (Edit(Key(end=1), "upper"), "/`az{1", "/%60AZ%7B1"),
        (Edit(Key(end=1), "lower"), "/AZ@1[|]", "/az@1[|]"),
        (Edit(SECOND, "set", "x"), "/?sid=1&sid=2", "/?sid=1&sid=x"),
        (Edit(Key(name="sid", occurrence=3), "set", "x"), "/?sid=1", "/?sid=1"),
        (Edit(SID, "set", "x"), "/?t=1", "/?t=1&sid=x"),
        (Edit(Key(start=3), "items", "&"), "/b&a?c=2&c=1", "/a&b?c=2&c=1"),
        (Edit(Key(name="f[0]"), "items", "&"), "/?f[1]=a&g=1&f[0]=c&f[2]=b", "/?f[1]=b&g=1&f[0]=a&f[2]=c"),
        (Edit(SID, "set", "*"), "/?t=1", "/?t=1"),
        (Edit(SID, "set", "*"), "/?sid=1", "/?sid=*"),
        (Edit(Key(start=4), "copy", source=Key(name="t")), "/index.php?t=A", "/index.php/A?t=A"),
        (Edit(Key(start=5), "copy", source=Key(name="t")), "/index.php?t=A", "/index.php?t=A"),
        (Edit(Key(start=4, end=1), "copy", source=Key(name="t")), "/index.php?t=A", "/index.php?t=A"),
        (Edit(Key(), "copy", source=Key(name="t")), "/?t=a/b", "/a/b?t=a/b"),
        (Edit(Key(name=";v"), "set", "1"), "/a;v=2", "/a;v=2"),
        (Edit(SID, "decode"), "/?sid=%2541%252F%2525", "/?sid=%2541%252F%2525"),
        (Edit(SID, "decode"), "/?sid=%2F%25%C3%A9%26", "/?sid=/%25%C3%A9%26"),
        (Edit(SID, "decode"), "/?sid=100%", "/?sid=100%25"),
        (Edit(SID, "decode"), "/?sid=%E9%2F", "/?sid=%E9%2F"),
        (Edit(Key(end=1), "decode"), "/a%252Fb%3D", "/a%252Fb="),
        (Edit(SID, "lower"), "/?sid", "/?sid"),
        (Edit(SID, "rename", "ID"), "/?sid", "/?sid"),
        (Edit(Key(end=1), "set", "*"), "/a/b", "/a/*"),
        (Edit(Key(end=1), "set", "*"), "/a/", "/a/"),
        (Edit(Key(start=4), "copy", source=Key(name="t")), "/w?t=..", "/w/%252E%252E?t=.."),
        (Edit(Key(start=4), "copy", source=Key(name="t")), "/w?t=.", "/w/%252E?t=."),
        (Edit(Key(end=1), "without", "x"), "/a/.x.", "/a/%252E%252E"),
        (Edit(SID, "delete"), "/?sid=1&b=x;c=2", "/?b=x%3Bc=2"),
        (Edit(SID, "delete"), "/?sid=1&b=x;c", "/?b=x;c"),
        (Edit(SID, "delete"), "/?sid=1;b=x;c=2", "/?b=x;c=2"),
    ],
    ids=str,
)
def test_what_an_edit_does(edit: Edit, given: str, expected: str) -> None:
    assert key(None, edit, given) == expected


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit(Key(end=1, deep=3, deep_end=1), "set", "x"), "/friends-x"),
        (Edit(Key(end=1, deep=3, deep_end=2), "set", "x"), "/friends-Bob7"),
        (Edit(Key(end=1, deep=4), "set", "x"), "/friends-Bob7"),
        (Edit(Key(end=1, deep_end=1), "lower"), "/friends-bob7"),
        (Edit(Key(end=1, deep=1), "set", "x"), "/x-Bob7"),
        (Edit(Key(name="n"), "copy", source=Key(end=1, deep=3)), "/friends-Bob7?n=Bob7"),
        (Edit(Key(name="n"), "copy", source=Key(end=1, deep_end=3)), "/friends-Bob7?n=friends"),
    ],
    ids=str,
)
def test_deep_tokens_are_the_runs_of_a_pattern_and_what_its_stars_stand_for(edit: Edit, expected: str) -> None:
    assert key(Condition(Key(end=1), "like", ("friends-*",)), edit, "/friends-Bob7") == expected


@pytest.mark.parametrize(
    ("number", "expected"), [(1, "the-title-7"), (2, ".t"), (3, "12"), (4, ".html"), (5, "the-title-7.t12.html")]
)
def test_a_numbered_component_has_four_deep_tokens(number: int, expected: str) -> None:
    condition = Condition(Key(end=1), "numbered", (".t", ".html"))
    edit = Edit(Key(end=1), "copy", source=Key(end=1, deep=number))
    assert key(condition, edit, "/the-title-7.t12.html") == f"/{expected}"


@pytest.mark.parametrize(
    ("pattern", "source", "holds", "fails"),
    [
        ("*-*", Key(name="sid", deep=1), "/?sid=1-a&b=2", "/?sid=-1&b=2"),
        ("*-*", Key(name="sid", deep=3), "/?sid=1-a&b=2", "/?sid=1-&b=2"),
        ("#-*", Key(name="sid", deep=1), "/?sid=1-&b=2", "/?sid=-a&b=2"),
    ],
    ids=str,
)
def test_a_rule_that_copies_a_deep_token_asks_for_its_text(pattern: str, source: Key, holds: str, fails: str) -> None:
    context = (Condition(SID, "like", (pattern,)),)
    edits = (Edit(Key(name="b"), "delete"), Edit(SID, "copy", source=source))
    rules = RuleSet(HOST, 1, (Rule(rule_id(HOST, context, edits), HOST, context, edits),))

    assert "b=2" not in key_under(rules, f"http://{HOST}{holds}")[0]
    assert key_under(rules, f"http://{HOST}{fails}")[0] == f"http://{HOST}{fails}"
