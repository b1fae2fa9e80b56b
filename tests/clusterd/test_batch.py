"""The four-phase batch: sorted runs on disk, counts of common shingles, clusters and pairs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from clusterd.batch import cluster, pairs
from clusterd.batch.phases import common_counts
from clusterd.batch.sorting import BLOCK, Sorter
from clusterd.batch.union import Union
from clusterd_consumer.resemblance import estimate
from clusterd_crawler.sketch import TEXT
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.index_world import World, page


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), max_size=30), max_size=20), st.integers(1, 40))
def test_sorted_runs_give_every_key_once_with_its_count(lists: list[list[int]], run: int) -> None:
    sorter = Sorter(run=run)
    for keys in lists:
        sorter.add(np.array(keys, np.uint64))
    found = [
        (int(key), int(count)) for keys, counts in sorter.blocks() for key, count in zip(keys, counts, strict=True)
    ]
    wanted = [key for keys in lists for key in keys]
    assert found == sorted((key, wanted.count(key)) for key in set(wanted))


def test_runs_longer_than_a_block_are_merged_from_disk_and_the_folder_is_left_empty(tmp_path: Path) -> None:
    dice = np.random.default_rng(3)
    keys = dice.integers(0, 2**40, 5 * BLOCK, dtype=np.uint64)
    sorter = Sorter(tmp_path, run=2 * BLOCK)
    for part in np.array_split(keys, 7):
        sorter.add(part)
    assert any(tmp_path.iterdir())
    blocks = [block for block, _ in sorter.blocks()]
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), np.unique(keys))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("run", [7, 10**6])
def test_common_shingles_are_counted_and_those_of_too_many_documents_ignored(run: int) -> None:
    documents = [{1, 2, 3}, {2, 3, 4}, {3, 9}, {3, 4, 2}]
    shingles = [np.array(sorted(document), np.uint32) for document in documents]
    for common in (None, 3):
        counted = {
            (int(a), int(b)): int(count)
            for block in common_counts(shingles, common, run=run)
            for a, b, count in zip(*block, strict=True)
        }
        ignored = {3} if common else set()
        wanted = {(a, b): len((documents[a] & documents[b]) - ignored) for a, b in combinations(range(4), 2)}
        assert counted == {pair: count for pair, count in wanted.items() if count}


def test_union_find_names_a_set_by_its_smallest() -> None:
    union = Union(6)
    for a, b in ((4, 5), (1, 2), (5, 1)):
        union.join(a, b)
    assert [union.find(node) for node in range(6)] == [0, 1, 1, 3, 1, 1]


def test_clusters_are_the_same_whether_they_fit_in_memory_or_not(tmp_path: Path) -> None:
    crawl = World(3, urls=60, length=300).crawl(150)
    spilled = cluster(crawl, run=50, folder=tmp_path)
    assert spilled == cluster(list(reversed(crawl)))
    assert any(len(found) > 1 and found[0].size > 1 for found in spilled.values())
    assert not any(tmp_path.iterdir())


def test_only_the_latest_version_of_a_url_counts() -> None:
    crawl = [
        page("http://a/1", 2, range(50)),
        page("http://a/1", 1, range(100, 150)),
        page("http://a/2", 1, range(100, 150)),
    ]
    assert [found.size for found in cluster(crawl)["related"]] == [1, 1]


@pytest.mark.parametrize("containment", [False, True])
def test_pairs_are_those_of_all_comparisons(containment: bool) -> None:
    crawl = World(9, urls=40, length=500).crawl(50)
    wanted = set()
    for a, b in combinations(range(len(crawl)), 2):
        found = estimate(crawl[a].main, crawl[b].main, TEXT)
        measure = max(found.a_in_b, found.b_in_a) if containment else found.resemblance
        if measure >= 0.4:
            wanted.add((a, b, found))
    got = {(pair.a, pair.b, pair.estimate) for pair in pairs(crawl, 0.4, containment)}
    assert len(got) > 50
    assert got == wanted
