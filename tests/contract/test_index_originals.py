"""Whose copy a page is: the oldest page that resembles it itself, never one at the other end of a chain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterd.clusters.contract import Index
from clusterd.clusters.opening import open_index
from clusterd_consumer.postings.scheme import Scheme

from tests.contract.index_world import page, settled


@pytest.fixture(params=["memory", "redis", "cluster"])
def index(request: pytest.FixtureRequest, prefix: str) -> Iterator[Index]:
    name = {"memory": None, "redis": "redis_url", "cluster": "redis_cluster_url"}[request.param]
    opened = open_index(request.getfixturevalue(name) if name else None, prefix, scheme=Scheme(bound=8, latest=2))
    yield opened
    opened.close()


def url(number: int) -> str:
    return f"http://h.example/{number}"


def test_pages_with_a_word_of_their_own_are_copies_of_the_first(index: Index) -> None:
    """Far more than a list holds: the lists propose the latest only."""
    pages = [page(url(n), n, [*range(200), 1000 + n]) for n in range(70)]
    for one in pages:
        index.apply([one])
    settled(index)
    asked = [(url(n), n) for n in range(70)]
    assert index.originals("near", asked) == [pages[0].main.text] * 70
    assert index.originals("identical", asked) == [one.main.text for one in pages]


def test_the_ends_of_a_chain_are_no_copies_of_each_other(index: Index) -> None:
    """Each page shares 97 % with the next, so that all are one cluster; the tenth shares 77 % with the first."""
    windows = [range(8 * n, 8 * n + 520) for n in range(40)]
    pages = [page(url(n), 1, window) for n, window in enumerate(windows)]
    index.apply(pages)
    settled(index)
    found = index.cluster_of(url(0), "near")
    assert found is not None
    assert found.size == 40
    window_of = {one.main.text: set(window) for one, window in zip(pages, windows, strict=True)}
    originals = [window_of[text or 0] for text in index.originals("near", [(url(n), None) for n in range(40)])]
    for own, original in zip(map(set, windows), originals, strict=True):
        assert len(own & original) / len(own | original) > 0.85
    assert len(set(map(frozenset, originals))) > 3
    assert sum(original != set(own) for own, original in zip(windows, originals, strict=True)) > 30


def test_a_page_alone_is_its_own_and_so_is_one_without_words(index: Index) -> None:
    pages = [page(url(0), 1, range(50)), page(url(1), 1, ()), page(url(2), 1, ()), page(url(3), 5, range(900, 950))]
    index.apply(pages)
    asked = [(url(n), None) for n in range(5)] + [(url(3), 4)]
    assert index.originals("near", asked) == [*(one.main.text for one in pages), None, None]
    assert index.originals("near", []) == []


def test_the_version_that_is_asked_for_is_answered(index: Index) -> None:
    first, second = page(url(0), 1, range(200)), page(url(1), 2, [*range(200), 500])
    changed = page(url(1), 3, range(5000, 5200))
    index.apply([first, second])
    index.apply([changed])
    assert index.originals("near", [(url(1), 2), (url(1), 3)])[1] == changed.main.text
    assert index.originals("near", [(url(0), 1)]) == [first.main.text]
