"""The stream's partition is the batch's: under every scheme, of large batches, and within bounds of common shingles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterd.clusters.contract import Policy
from clusterd.clusters.memory.index import MemoryIndex
from clusterd_consumer.postings.scheme import Candidates, Scheme

from tests.contract.index_world import Opened, World, expected, page, partition, settled


def test_a_large_batch_goes_part_by_part_and_ends_as_small_ones(opened: Opened) -> None:
    crawl = World(seed=3, urls=60).crawl(400)
    index, small = opened(), MemoryIndex()
    told = index.apply(crawl, {"0": "480"})
    expected_of = [one for start in range(0, len(crawl), 64) for one in small.apply(crawl[start : start + 64])]
    assert [(one.url, one.fetched_at, one.new, one.identity) for one in told] == [
        (one.url, one.fetched_at, one.new, one.identity) for one in expected_of
    ]
    assert index.position() == {"0": "480"}
    settled(index)
    assert partition(index) == expected(crawl)


@pytest.mark.parametrize("scheme", [Scheme(), Scheme(candidates="super"), Scheme(prefix=3, small_prefix=3, modulus=0)])
def test_the_partition_is_the_batch_s_under_every_scheme(opened: Opened, scheme: Scheme) -> None:
    crawl = World(11, urls=30, length=600).crawl(90)
    index = opened(scheme=scheme)
    for start in range(0, len(crawl), 16):
        index.apply(crawl[start : start + 16])
    settled(index)
    assert partition(index) == expected(crawl, scheme=scheme)


@pytest.mark.parametrize("first", [0, 1])
def test_pages_of_one_sample_and_of_other_sizes_are_judged_alike_in_any_order(opened: Opened, first: int) -> None:
    """The smallest values of two are the same, and one of them is half of a third page."""
    short, long = page("http://h.example/short", 1, range(5000)), page("http://h.example/long", 1, range(10_000))
    sized = [replace(short.main, shingles=size, text=size) for size in (4900, 5100)]
    both = [replace(short, url=f"http://h.example/{one.shingles}", main=one, whole=one) for one in sized]
    crawl = [both[first], both[1 - first], long]
    index = opened()
    for one in crawl:
        index.apply([one])
    settled(index)
    assert partition(index)["related"] == {frozenset(one.url for one in crawl)}
    assert index.counts()["contents"] == 3
    assert partition(index) == expected(crawl)


def test_common_shingles_are_bounded_and_the_stream_lies_between_both_batches(opened: Opened) -> None:
    scheme = Scheme(bound=8, latest=3)
    shared = range(5)
    crawl = [page(f"http://h.example/{n}", 1, [*shared, *range(100 + n, 110 + n)]) for n in range(120)]
    index = opened(scheme=scheme)
    for start in range(0, len(crawl), 10):
        index.apply(crawl[start : start + 10])
    settled(index)
    found = partition(index)
    capped, uncapped = expected(crawl, common=scheme.bound, scheme=scheme), expected(crawl, scheme=scheme)
    for policy in found:
        assert _within(capped[policy], found[policy])
        assert _within(found[policy], uncapped[policy])


@pytest.mark.parametrize("candidates", ["prefix", "super"])
def test_pairs_are_found_among_pages_that_share_most_of_their_text(opened: Opened, candidates: Candidates) -> None:
    """Of the eight smallest values of a page that shares .9 of them with all, none is its own in .43 of the cases."""
    pairs, notice = 60, range(90)
    crawl = [
        page(f"http://h.example/{n}/{copy}", 1, [*notice, *range(1000 + 20 * n, 1009 + 20 * n), 5000 + 100 * copy + n])
        for copy in range(2)
        for n in range(pairs)
    ]
    index = opened(scheme=Scheme(candidates=candidates, bound=8, latest=2))
    for start in range(0, len(crawl), 15):
        index.apply(crawl[start : start + 15])
    together = [near for near in partition(index)["near"] if len(near) > 1]
    assert all(len({url[:-2] for url in near}) == 1 for near in together)  # of two pairs r is .82
    assert len(together) > 0.85 * pairs
    matches = zip(crawl, index.matches(crawl), strict=True)
    assert sum(hit is not None and hit.url[:-2] == one.url[:-2] for one, hit in matches) > 0.85 * len(crawl)
    index.add_policy(Policy("twins", resemblance=0.95))
    settled(index)
    assert len(
        [twins for twins in partition(index, [Policy("twins", resemblance=0.95)])["twins"] if len(twins) > 1]
    ) >= len(together)


def test_a_giant_cluster_still_grows_and_shrinks(opened: Opened) -> None:
    scheme = Scheme(bound=8, latest=3)
    urls = [f"http://h.example/{n}" for n in range(150)]
    texts = [[*range(200), 1000 + n] for n in range(150)]
    index = opened(scheme=scheme)
    index.apply([page(url, 1, text) for url, text in zip(urls, texts, strict=True)])
    assert partition(index)["near"] == {frozenset(urls)}
    index.apply([page(url, 2, range(5000 + 100 * n, 5050 + 100 * n)) for n, url in enumerate(urls[:60])])
    settled(index)
    assert frozenset(urls[60:]) in partition(index)["near"]
    assert len(partition(index)["near"]) == 61


def _within(finer: set[frozenset[str]], coarser: set[frozenset[str]]) -> bool:
    """Whether every cluster of the one lies in a cluster of the other."""
    home = {url: cluster for cluster in coarser for url in cluster}
    return all(len({home[url] for url in cluster}) == 1 for cluster in finer)
