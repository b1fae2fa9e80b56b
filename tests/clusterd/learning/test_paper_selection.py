"""Which proposed rules a host gets (section 5.1's filters): what passes alone, what adds, what is preferred of two."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from clusterd.learning.koppula.columns import Columns
from clusterd.learning.koppula.generalize import ANY, Context
from clusterd.learning.koppula.pairwise import DELETE, Change, Transformation
from clusterd.learning.koppula.proposals import KEEP, Proposal
from clusterd.learning.koppula.selection import Evidence, _greedy, _worth, sampled
from clusterd.learning.koppula.tokenize import Slot, UrlParts, split_url

SID: Slot = ("?sid", 1, 0, 0, 0)
REF: Slot = ("?ref", 1, 0, 0, 0)
PAGE: Slot = ("", 3, 0, 0, 0)
NO_SID, NO_REF = ((SID, DELETE),), ((REF, DELETE),)


def urls(*paths: str) -> list[UrlParts]:
    return [split_url(f"http://a.test/{path}") for path in paths]


def topics(count: int, *names: str) -> list[list[UrlParts]]:
    """Clusters of a page and the same page under each name."""
    return [urls(f"t?id={n}", *(f"t?id={n}&{name}={n}" for name in names)) for n in range(count)]


def greedy(clusters: list[list[UrlParts]], *rules: tuple[Context, Transformation], precision: float = 0.95):
    columns = Columns(
        [url for cluster in clusters for url in cluster], [n for n, cluster in enumerate(clusters) for _ in cluster]
    )
    passing = [(columns.trial(*rule), Proposal(*rule)) for rule in rules]
    return [(rule.context, rule.changes) for rule in _greedy(columns.copy(), passing, precision)]


class TestSampled:
    def test_what_is_few_is_taken_as_it_stands(self) -> None:
        clusters = topics(10, "sid")
        assert sampled(clusters, 20, Random(0)) == clusters

    def test_clusters_are_taken_whole(self) -> None:
        clusters = topics(100, "sid", "ref")
        taken = sampled(clusters, 20, Random(0))
        assert len(taken) == 6  # of three each; two more would be a part of one
        assert all(cluster in clusters for cluster in taken)

    def test_of_a_giant_cluster_a_sample_of_a_quarter(self) -> None:
        giant = urls(*(f"g?id={n}" for n in range(1000)))
        taken = sampled([giant, *topics(5, "sid")], 40, Random(0))
        assert sorted(map(len, taken)) == [2] * 5 + [10]
        assert set(max(taken, key=len)) <= set(giant)

    def test_a_page_alone_has_no_pair(self) -> None:
        alone = [urls(f"a{n}") for n in range(50)]
        assert sampled([*alone, *topics(3, "sid")], 20, Random(0)) != []
        assert all(len(cluster) == 2 for cluster in sampled([*alone, *topics(3, "sid")], 20, Random(0)))


class TestGreedy:
    def test_the_rule_that_saves_most_applies_first(self) -> None:
        clusters = topics(10, "sid") + [urls(f"u?id={n}", f"u?id={n}&ref=1", f"u?id={n}&ref=2") for n in range(10)]
        assert greedy(clusters, ((), NO_SID), ((), NO_REF)) == [((), NO_REF), ((), NO_SID)]

    def test_a_rule_that_adds_nothing_to_those_before_is_not_taken(self) -> None:
        narrow = (((PAGE, "t"),), NO_SID)
        assert greedy(topics(10, "sid"), ((), NO_SID), narrow) == [((), NO_SID)]

    def test_a_rule_that_is_wrong_is_not_taken(self) -> None:
        wrong = [urls(f"t?id={n}", f"t?id={n}&p=1") for n in range(3)]
        wrong += [urls(f"t?id={n}&p=2", f"t?id={n}&p=3") for n in range(3)]
        delete_p = (((("?p", 1, 0, 0, 0)), DELETE),)
        assert greedy([[url] for cluster in wrong for url in cluster], ((), delete_p)) == []

    @pytest.mark.parametrize(
        ("better", "worse"),
        [
            (((), NO_SID), (((PAGE, "t"),), NO_SID)),
            (((), ((KEEP, Change("keep", "id")),)), ((), NO_SID)),
            (((), NO_SID), ((), ((PAGE, Change("set", ANY)), (SID, DELETE)))),
        ],
        ids=["fewer conditions", "naming what stays", "no component replaced by any"],
    )
    def test_of_rules_that_add_the_same(self, better, worse) -> None:
        clusters = topics(10, "sid")
        for rules in ((better, worse), (worse, better)):
            assert greedy(clusters, *rules) == [better]

    def test_a_rule_that_saves_clearly_more_wins_in_spite_of_its_conditions(self) -> None:
        clusters = topics(12, "sid", "ref")
        joint: tuple[Context, Transformation] = (((PAGE, "t"),), tuple(sorted((*NO_SID, *NO_REF))))
        assert greedy(clusters, ((), NO_SID), joint) == [joint]

    def test_worth_is_net_of_what_is_wrong(self) -> None:
        (trial,) = [
            columns.trial((), NO_SID)
            for columns in [Columns(urls("a", "a?sid=1", "b", "b?sid=1", "c", "c?sid=1"), [1, 1, 2, 2, 3, 4])]
        ]
        assert (trial.right, trial.wrong) == (2, 1)
        assert _worth(trial, Proposal((), NO_SID), 0.9) == 1


class TestPassing:
    @pytest.mark.parametrize(("count", "found"), [(4, 0), (5, 1)])
    def test_a_rule_covers_ten_urls_at_least(self, count: int, found: int) -> None:
        """Section 5.1; those without the key are covered too, by a rule that keeps the others."""
        assert len(Evidence(topics(count, "sid"), Random(0)).select(0.95)) == found

    @pytest.mark.parametrize(("count", "most"), [(59, 1), (60, 2), (120, 3)])
    def test_of_one_transformation_the_widest_few_contexts_pass(self, count: int, most: int) -> None:
        """One; from 120 URLs on two, from 240 on three."""
        passing = [proposal for _, proposal in Evidence(topics(count, "sid"), Random(0))._passing(0.95)]
        assert max(Counter(proposal.changes for proposal in passing).values()) == most
        assert Proposal((), NO_SID) in [Proposal(proposal.context, proposal.changes) for proposal in passing]

    def test_a_rule_reaches_the_precision(self) -> None:
        """Of 40 topics 2 are another page under a session, which a reference does not change."""
        clusters = topics(38, "sid")
        for n in (50, 51):
            clusters += [urls(f"t?id={n}", f"t?id={n}&ref=1"), urls(f"t?id={n}&sid=1", f"t?id={n}&sid=1&ref=1")]
        evidence = Evidence(clusters, Random(0))
        exact, loose = evidence.select(1.0), evidence.select(0.9)
        assert all(rule.alone.precision == 1 for rule in exact)
        assert loose
        assert min(rule.alone.precision for rule in loose) < 1
        assert all(rule.alone.precision >= 0.9 for rule in loose)
