"""Algorithm 4 of Koppula et al. 2010: which URLs of a cluster make pairs (A13), and what clusters confirm (A10b)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from clusterd.learning.koppula.pairwise import PairwiseRule, pairwise_rule
from clusterd.learning.koppula.targets import (
    SOURCES,
    confirm_references,
    generate_all_rules,
    most_normal,
    select_sources,
    signature,
)
from clusterd.learning.koppula.tokenize import UrlParts, split_url, tokenize

from tests.clusterd.learning.paper import changes_of

HOST = "http://shop.org"


def parts(*paths: str) -> list[UrlParts]:
    return [split_url(f"{HOST}/{path}") for path in paths]


@pytest.mark.parametrize(
    ("cluster", "target"),
    [
        (("a?x=1", "a-longer-static-url"), "a-longer-static-url"),
        (("a?x=1&y=2", "a-longer-url?x=1"), "a-longer-url?x=1"),
        (("abc", "ab"), "ab"),
        (("a/bc", "abcd"), "abcd"),
        (("abd", "abc"), "abc"),
    ],
    ids=["static first", "then fewer query keys", "then shorter", "then fewer components", "then as strings"],
)
def test_the_target_ranks_first(cluster: Sequence[str], target: str) -> None:
    """Target selection, section 3.2.1; whatever stands first in the cluster."""
    for order in (cluster, cluster[::-1]):
        assert order[most_normal(parts(*order))] == target


def test_all_of_a_small_cluster_are_sources() -> None:
    urls = parts(*(f"p{n}" for n in range(SOURCES)))
    assert select_sources(urls, Random(0)) == urls


@pytest.mark.parametrize("seed", range(3))
def test_sources_are_sampled_proportional_to_the_size_of_their_stratum(seed: int) -> None:
    """One of each pattern, then 48 of 400 by size: 36 of the 300, 12 of the 100."""
    urls = parts(*(f"p{n}" for n in range(300)), *(f"p?q={n}" for n in range(100)))
    sources = select_sources(urls, Random(seed))
    assert len(set(sources)) == len(sources) == SOURCES
    assert Counter(map(signature, sources)) == {(1, ()): 37, (1, ("q",)): 13}


def test_no_source_is_sampled_twice() -> None:
    urls = parts(*(f"p?q{n}={value}" for n in range(20) for value in range(20)))
    assert all(len(set(select_sources(urls, Random(seed)))) == SOURCES for seed in range(10))


def test_an_order_of_query_keys_is_no_pattern_of_its_own() -> None:
    first, second = parts("p?a=1&b=2", "p?b=2&a=1")
    assert signature(first) == signature(second)


def test_which_of_a_stratum_are_sampled_is_left_to_chance() -> None:
    urls = parts(*(f"p{n}" for n in range(300)), *(f"p?q={n}" for n in range(100)))
    assert select_sources(urls, Random(0)) != select_sources(urls, Random(1))


def test_each_pattern_has_a_source() -> None:
    urls = parts(*(f"p{n}" for n in range(1000)), "a/b", "a?q=1", "a?r=1", "a?q=1&r=2")
    sources = select_sources(urls, Random(0))
    assert {signature(url) for url in urls} == {signature(url) for url in sources}
    assert len(set(sources)) == SOURCES


def test_of_more_patterns_than_sources_each_has_one_at_most() -> None:
    urls = parts(*(f"p?q{n}={value}" for n in range(SOURCES + 10) for value in (1, 2)))
    sources = select_sources(urls, Random(0))
    assert len({signature(url) for url in sources}) == len(sources) == SOURCES
    frequent = parts(*(f"often?q={n}" for n in range(3)))
    assert set(frequent) & set(select_sources([*urls, *frequent], Random(0)))


def test_every_source_makes_a_rule_with_its_clusters_target() -> None:
    clusters = [parts("a?sid=1", "a", "a?sid=2"), parts("b", "b?sid=3")]
    rules = generate_all_rules(clusters, tokenize, Random(0))
    assert [(rule.cluster, rule.context["?sid", 1, 0, 0, 0], changes_of(rule)) for rule in rules] == [
        (0, "1", {"?sid": "DELETE"}),
        (0, "2", {"?sid": "DELETE"}),
        (1, "3", {"?sid": "DELETE"}),
    ]


def rules_of(*pairs: tuple[str, str]) -> list[PairwiseRule]:
    """One pair a cluster, as queries."""
    return [
        pairwise_rule(tokenize(f"{HOST}/?{source}"), tokenize(f"{HOST}/?{target}"), number)
        for number, (source, target) in enumerate(pairs)
    ]


def added(values: Sequence[str], name: str = "c") -> list[dict[str, str]]:
    """What pairs become that add a key with the short value of ?a."""
    rules = rules_of(*((f"a={value}", f"a={value}&{name}={value}") for value in values))
    confirmed = confirm_references(rules)
    assert [rule.cluster for rule in confirmed] == [rule.cluster for rule in rules]
    assert [rule.context for rule in confirmed] == [rule.context for rule in rules]
    return [changes_of(rule) for rule in confirmed]


def test_three_clusters_confirm_a_short_reference() -> None:
    assert added(["en", "fr", "fr"]) == [{"?c": "copy(?a)"}] * 3


def test_two_clusters_or_one_value_confirm_none() -> None:
    assert added(["en", "fr"]) == [{"?c": "en"}, {"?c": "fr"}]
    assert added(["en", "en", "en"]) == [{"?c": "en"}] * 3


def test_pairs_of_one_cluster_confirm_none() -> None:
    pairs = [pairwise_rule(tokenize(f"{HOST}/?a={n}"), tokenize(f"{HOST}/?a={n}&c={n}")) for n in range(5)]
    assert [changes_of(rule) for rule in confirm_references(pairs)] == [{"?c": str(n)} for n in range(5)]


def test_of_two_keys_the_one_that_most_clusters_confirm_is_referred_to() -> None:
    """Intersected across clusters: b explains four of them, a three."""
    rules = rules_of(*((f"a={n}&b={n}", f"a={n}&b={n}&c={n}") for n in range(3)), ("a=8&b=9", "a=8&b=9&c=9"))
    assert [changes_of(rule) for rule in confirm_references(rules)] == [{"?c": "copy(?b)"}] * 4


def test_a_reference_stands_only_where_the_source_has_the_value() -> None:
    """Three clusters confirm b; in the fourth only a has it, which alone no three confirm."""
    rules = rules_of(*((f"b={n}", f"b={n}&c={n}") for n in range(3)), ("a=8&b=9", "a=8&b=9&c=8"))
    assert [changes_of(rule) for rule in confirm_references(rules)] == [{"?c": "copy(?b)"}] * 3 + [{"?c": "8"}]


def test_a_key_explains_one_key_of_a_pair() -> None:
    rules = rules_of(*((f"a={n}", f"a={n}&c={n}&d={n}") for n in range(3)))
    assert [changes_of(rule) for rule in confirm_references(rules)] == [
        {"?c": "copy(?a)", "?d": str(n)} for n in range(3)
    ]
