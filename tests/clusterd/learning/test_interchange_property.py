"""Whatever a rule says: where it is exported, duplicate-url-discarder finds the same URLs to be one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tldextract
import tldextract.tldextract
from clusterd.learning.interchange.files import write_rules
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id
from duplicate_url_discarder.url_canonicalizer import UrlCanonicalizer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.clusterd.learning.discarding import groups
from tests.crawler.made_rules import key_under

HOST = "shop.example.com"
PATHS = [
    "/",
    "/a",
    "/a/",
    "/ab",
    "/a/b",
    "/a/b/",
    "/a/bc",
    "/b/a",
    "/a/x/b",
    "/x/y/b",
    "/b",
    "/a/b/c",
    "/v.php",
    "/a/a",
]
QUERIES = [
    "",
    "?id=1",
    "?sid=9&id=1",
    "?sid=7",
    "?mode=m&sid=1",
    "?mode=n&sid=1",
    "?mode=m",
    "?sid=",
    "?mode=m&id=1&t=3",
]
URLS = [f"http://{host}{path}{query}" for host, path, query in product((HOST, f"www.{HOST}"), PATHS, QUERIES)]


@pytest.fixture(scope="module", autouse=True)
def suffixes_from_the_package() -> Iterator[None]:
    """The discarder would fetch the list of public suffixes; the copy in its package serves."""
    with pytest.MonkeyPatch.context() as patch:
        offline = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
        patch.setattr(tldextract.tldextract, "TLD_EXTRACTOR", offline)
        yield


def several(values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values.split(",")), min_size=1, max_size=3, unique=True)


def on(key: str, tests: dict[str, st.SearchStrategy[list[str]]]) -> st.SearchStrategy[Condition]:
    def one(test: Any) -> st.SearchStrategy[Condition]:
        return tests[test].map(lambda values: Condition(Key.parse(key), test, tuple(values)))

    return st.sampled_from(sorted(tests)).flatmap(one)


NONE: st.SearchStrategy[list[str]] = st.just([])
ON_EITHER = {"any": NONE, "some": NONE, "absent": NONE}
COMPONENT = several("a,b,ab,")
ON_PATH = ON_EITHER | {
    "is": COMPONENT.map(lambda values: values[:1]),
    "in": COMPONENT,
    "like": st.sampled_from([["a*"], ["*b"], ["*.php"], ["*"]]),
}
VALUE = several("1,2,m,n,,9")
ON_QUERY = ON_EITHER | {"is": VALUE.map(lambda values: values[:1]), "in": VALUE, "within": VALUE}
path = st.one_of(
    *(on(key, ON_PATH) for key in ("k(3,-)", "k(4,-)", "k(5,-)", "k(-,1)", "k(-,2)", "k(3,1)", "k(3,2)")),
    on("k(-,-)", {"in": several("a,a/b,b,a/b/,,x/y/b,a/b/c")}),
    st.sets(st.sampled_from("123"), min_size=1, max_size=2).map(
        lambda depths: Condition(Key(), "depth", tuple(sorted(depths)))
    ),
)
query = st.one_of(*(on(key, ON_QUERY) for key in ("?mode", "?id", "?sid")))
edits = st.sampled_from(
    [
        (Edit(Key("sid"), "delete"),),
        (Edit(Key("sid"), "delete"), Edit(Key("t"), "delete")),
        (Edit(Key(), "keep", names=("id",)),),
        (Edit(Key(), "keep"),),
        (Edit(Key(), "family"),),
    ]
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(path, max_size=3), st.lists(query, max_size=3), edits)
def test_what_is_exported_is_the_same_there(
    on_path: list[Condition], on_query: list[Condition], transformation: tuple[Edit, ...]
) -> None:
    context = (*on_path, *on_query)
    rule = Rule(rule_id(HOST, context, transformation), HOST, context, transformation)
    text, done = write_rules([rule], "dud")
    if done.refused:
        assert done.refused[rule.id]
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules.json"
        file.write_text(text, encoding="utf-8")
        there = UrlCanonicalizer([file]).process_url
    rules = RuleSet(HOST, 1, (rule,))
    assert groups(there, URLS) == groups(lambda url: key_under(rules, url)[0], URLS)
