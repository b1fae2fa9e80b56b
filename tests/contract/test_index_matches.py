"""Which page is told as the match of one that was applied: of those that other URLs show now, the one most like it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterd.clusters.contract import Index
from clusterd.clusters.opening import open_index

from tests.contract.index_world import page

A, B, C = (f"http://h.example/{letter}" for letter in "abc")


@pytest.fixture(params=["memory", "redis", "cluster"])
def index(request: pytest.FixtureRequest, prefix: str) -> Iterator[Index]:
    url = {"memory": None, "redis": "redis_url", "cluster": "redis_cluster_url"}[request.param]
    opened = open_index(request.getfixturevalue(url) if url else None, prefix)
    yield opened
    opened.close()


def test_what_a_page_showed_before_is_no_match_of_it(index: Index) -> None:
    """A page with a counter, and another URL that shows nearly the same: it is told, though the counter's is nearer."""
    index.apply([page(A, 1, range(300)), page(B, 1, [*range(295), 7000])])
    for at in range(2, 9):
        (outcome,) = index.apply([page(A, at, [*range(300), 9000 + at])])
        assert outcome.match == B
        assert outcome.resemblance == pytest.approx(295 / 302, abs=0.02)
        assert outcome.clusters["near"][1] == 2


def test_a_page_whose_match_shows_it_no_more_has_none(index: Index) -> None:
    index.apply([page(A, 1, range(300))])
    (outcome,) = index.apply([page(A, 2, [*range(300), 9000])])
    assert (outcome.match, outcome.resemblance, outcome.clusters) == (None, 0.0, {})


def test_a_page_fetched_again_unchanged_is_still_equal_in_sketch_to_another(index: Index) -> None:
    index.apply([page(A, 1, range(100))])
    for at in (1, 2):
        (outcome,) = index.apply([page(B, at, range(100), order="turned")])
        assert (outcome.identity, outcome.match, outcome.resemblance) == ("sketch", A, 1.0)
    index.apply([page(C, 3, range(100))])
    (outcome,) = index.apply([page(A, 4, range(100))])
    assert (outcome.identity, outcome.match) == ("text", C)


def test_the_match_of_a_page_with_an_equal_one_in_its_batch_is_no_page_that_is_less_alike(index: Index) -> None:
    """Where it is told at all that the first of the two is in company, the company is the one equal to it."""
    first, second, near = index.apply([page(A, 1, range(100)), page(B, 1, range(100)), page(C, 1, range(95))])
    assert (second.match, second.resemblance) == (A, 1.0)
    assert near.match in (A, B)
    if first.clusters:
        assert (first.match, first.resemblance) == (B, 1.0)
