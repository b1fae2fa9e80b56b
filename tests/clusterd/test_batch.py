"""The four-phase batch: sorted runs on disk, counts of common shingles, clusters and pairs."""

from __future__ import annotations

import errno
import os
import random
import resource
import tempfile
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from clusterd.batch import clusters, crowds, pairs, ranked, whole_profile
from clusterd.batch.clustering import largest_first
from clusterd.batch.entries import Entries
from clusterd.batch.held_bytes import HeldBytes
from clusterd.batch.kept_sketches import KeptSketches
from clusterd.batch.phases import common_counts
from clusterd.batch.sorting import BLOCK, Sorter
from clusterd.batch.union import Union
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.identity import sketch_key
from clusterd_consumer.resemblance import estimate, exact
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.sketch import TEXT, Profile, Sketch, StreamSketch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.index_world import World, page

(RELATED,) = (policy for policy in DEFAULT_POLICIES if policy.name == "related")
(IDENTICAL,) = (policy for policy in DEFAULT_POLICIES if policy.identical)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), max_size=30), max_size=20), st.integers(1, 40))
def test_sorted_runs_give_every_key_once_with_its_count(lists: list[list[int]], run: int) -> None:
    with Sorter(run=run) as sorter:
        for keys in lists:
            sorter.add(np.array(keys, np.uint64))
        blocks = [zip(keys.tolist(), counts.tolist(), strict=True) for keys, counts in sorter.blocks()]
    found = [entry for block in blocks for entry in block]
    wanted = [key for keys in lists for key in keys]
    assert found == sorted((key, wanted.count(key)) for key in set(wanted))


def test_runs_longer_than_a_block_are_merged_from_disk_and_no_name_is_left_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor would one be if the process were killed now."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dice = np.random.default_rng(3)
    keys = dice.integers(0, 2**40, 5 * BLOCK, dtype=np.uint64)
    with Sorter(run=2 * BLOCK) as sorter:
        for part in np.array_split(keys, 7):
            sorter.add(part)
        assert not any(tmp_path.iterdir())
        blocks = [block for block, _ in sorter.blocks()]
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), np.unique(keys))


def test_the_files_lie_where_temporary_files_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        HeldBytes()
    with pytest.raises(FileNotFoundError):
        Union(1)


def test_a_round_of_merging_takes_about_half_a_block_of_each_run() -> None:
    """Else the time grows with the cube of the runs: 160 of them took 11 s to merge, now .8."""
    dice = np.random.default_rng(3)
    runs, run = 60, 6_000
    with Sorter(run=run) as sorter:
        for _ in range(runs):
            sorter.add(dice.integers(0, 2**40, run, dtype=np.uint64))
        assert len(list(sorter.blocks())) < 4 * runs  # it was runs², 3,600


def test_a_run_for_which_there_is_no_room_says_so() -> None:
    keys = np.arange(100_000, dtype=np.uint64)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as full, Sorter(run=len(keys)) as sorter:
            sorter.add(keys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.value.errno == errno.EFBIG


def test_many_small_arrays_take_no_more_memory_than_their_keys() -> None:
    with Sorter() as sorter:
        tracemalloc.start()
        for key in range(100_000):
            sorter.add(np.array([key], np.uint64))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 2_000_000  # 800 kB of keys; an array each took 14 MB
        ((keys, counts),) = sorter.blocks()
    assert keys.tolist() == list(range(100_000))
    assert set(counts.tolist()) == {1}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(-(2**63), 2**64))), st.integers(1, 40))
def test_entries_come_back_in_order_from_runs_on_disk(taken: list[tuple[bytes, int]], run: int) -> None:
    with Entries(run=run) as entries:
        for entry in taken:
            entries.add(entry, 1 + len(entry[0]))
        assert list(entries.ascending()) == sorted(taken)


def test_kept_sketches_are_given_back_as_they_were() -> None:
    made = [sketch_plain(f"http://a/{n}", "words and words " * n, profile=TEXT, fetched_at=0).main for n in range(9)]
    with KeptSketches() as kept:
        for number, sketch in enumerate(made):
            kept.append(sketch)
            assert kept[number // 2] == made[number // 2]
        assert list(kept) == made
        assert kept[2:4] == made[2:4]
        assert len(kept) == len(made)


@pytest.mark.parametrize("run", [7, 10**6])
def test_common_shingles_are_counted_and_those_of_too_many_documents_ignored(run: int) -> None:
    documents = [{1, 2, 3}, {2, 3, 4}, {3, 9}, {3, 4, 2}]
    shingles = [np.array(sorted(document), np.uint32) for document in documents]
    for common in (None, 3):
        counted = {
            (int(a), int(b)): int(count)
            for block in common_counts(enumerate(shingles), common, run=run)
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


def test_clusters_are_the_same_whether_they_fit_in_memory_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crawl = World(3, urls=60, length=300).crawl(150)
    spilled = list(clusters(crawl, run=50))
    assert spilled == list(clusters(reversed(crawl)))
    for policy in DEFAULT_POLICIES:
        sizes = [one.size for one in spilled if one.policy == policy.name]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > sizes[-1]
        members = sorted(url for one in spilled if one.policy == policy.name for url in one.members)
        assert members == sorted({sketch.url for sketch in crawl})
    assert not any(tmp_path.iterdir())


def test_of_more_pages_there_is_more_on_disk_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 460 bytes a page where all that is known of one lay in memory."""
    for constant in ("sorting.BLOCK", "numbers.CHUNK", "collection.REMEMBERED", "collection.RECENT"):
        monkeypatch.setattr(f"clusterd.batch.{constant}", 100)

    def peak(size: int) -> int:
        crawl = (page(f"http://a/{n}", 1, range(n // 3 * 10, n // 3 * 10 + 20)) for n in range(size))
        tracemalloc.start()
        found = sum(one.size for one in clusters(crawl, [RELATED], run=2000, least=2))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == size
        return most

    peak(9)  # what is loaded once
    small, large = 3000, 9000
    assert peak(large) - peak(small) < 100 * (large - small)


def test_of_more_large_clusters_one_lies_in_memory() -> None:
    """While they were put in order one of each 65,536 URLs did, most URLs of mirrors of a large site."""

    def peak(count: int) -> int:
        urls = ([f"http://a/{'long/' * 20}{n}/{m}" for m in range(1000)] for n in range(count))
        with closing(HeldBytes()) as held, Entries(run=500) as entries:
            tracemalloc.start()
            found = sum(one.size for one in largest_first(IDENTICAL, enumerate(urls), entries, held))
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert found == 1000 * count
        return most

    assert peak(50) < 2 * peak(5)


@pytest.mark.parametrize("work", [clusters, lambda read: ranked(pairs(read, 0.5))])
def test_where_the_documents_cannot_be_read_no_file_stays_open(work: Callable[[Iterator[Sketch]], object]) -> None:
    def broken() -> Iterator[Sketch]:
        yield page("http://a/1", 1, range(50))
        raise WrongInput("no more")

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(WrongInput, match="no more") as kept:
        list(work(broken()))
    assert len(os.listdir("/proc/self/fd")) == before, kept


def test_of_no_page_there_is_no_cluster() -> None:
    assert not list(clusters([]))


def test_only_the_latest_version_of_a_url_counts(caplog: pytest.LogCaptureFixture) -> None:
    crawl = [
        page("http://a/1", 2, range(50)),
        page("http://a/1", 1, range(100, 150)),
        page("http://a/2", 1, range(100, 150)),
    ]
    assert [one.size for one in clusters(crawl, [RELATED])] == [1, 1]
    assert "1 of 3 pages have the URL (or id) of a later one" in caplog.text


def test_sketches_that_are_stored_again_and_groups_that_are_left_out_change_no_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crawl = World(4, urls=60, length=300).crawl(150)
    every = list(clusters(crawl))
    monkeypatch.setattr("clusterd.batch.collection.REMEMBERED", 2)
    assert list(clusters(crawl)) == every
    large = [one for one in every if one.size >= 2]
    assert list(clusters(crawl, least=2)) == large
    assert large != every


@pytest.mark.parametrize("containment", [False, True])
def test_pairs_are_ranked_on_disk_as_in_memory(containment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.batch.entries.RUN", 20)
    found = list(pairs(World(9, urls=40, length=500).crawl(50), 0.2, containment))
    assert len(found) > 100
    wanted = sorted(found, key=lambda pair: -pair.measure(containment))
    assert list(ranked(found, containment)) == wanted
    assert wanted != found


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


class Texts:
    """Documents about as long as a sketch and much longer, each with copies of which more and more is changed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self.documents: list[str] = []
        for length in (300, 390, 600, 900, 2500):
            words = [f"w{self._dice.randrange(10**6)}" for _ in range(length)]
            self.documents += [self._changed(words, share) for share in (0, 0, 0.001, 0.004, 0.005, 0.006, 0.01, 0.02)]
            self.documents.append(" ".join(words[: length * 9 // 10]))
        self._add_one_with_the_same_sketch(self.documents[-2])

    def _changed(self, words: list[str], share: float) -> str:
        changed = list(words)
        for _ in range(round(share * len(words))):
            changed[self._dice.randrange(len(words))] = f"n{self._dice.randrange(10**6)}"
        return " ".join(changed)

    def _add_one_with_the_same_sketch(self, document: str) -> None:
        wanted = sketch_key(sketch_plain("", document, fetched_at=0))
        ends = (f"{document.rpartition(' ')[0]} n{number}" for number in range(10**6))
        self.documents.append(next(one for one in ends if sketch_key(sketch_plain("", one, fetched_at=0)) == wanted))

    def sketches(self, profile: Profile = TEXT) -> list[StreamSketch]:
        """Return the sketches of all."""
        return [sketch_plain("", document, profile=profile, fetched_at=0).main for document in self.documents]

    def again(self, places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        """Sketch some of them once more, whole."""
        kept = self.sketches(whole_profile(TEXT))
        yield from ((place, kept[place]) for place in places)


@pytest.mark.parametrize(("threshold", "containment"), [(0.9, False), (0.5, False), (1.0, False), (0.9, True)])
def test_pairs_that_can_be_read_again_are_exact(threshold: float, containment: bool) -> None:
    texts = Texts(seed=5)
    sketches = [sketch_plain(str(n), document, fetched_at=0) for n, document in enumerate(texts.documents)]
    wanted = {}
    for a, b in combinations(range(len(sketches)), 2):
        found = exact(texts.documents[a].split(), texts.documents[b].split(), TEXT.w)
        if (max(found.a_in_b, found.b_in_a) if containment else found.resemblance) >= threshold:
            wanted[a, b] = found
    counted = {(pair.a, pair.b): pair.estimate for pair in pairs(sketches, threshold, containment, again=texts.again)}
    assert counted == wanted
    guessed = {(pair.a, pair.b): pair.estimate for pair in pairs(sketches, threshold, containment)}
    assert guessed != wanted  # the sketches alone do not say as much


def test_a_collection_that_changed_between_two_readings_is_refused() -> None:
    texts = Texts(seed=6)
    sketches = [sketch_plain(str(n), document, fetched_at=0) for n, document in enumerate(texts.documents)]
    texts.documents.reverse()
    with pytest.raises(WrongInput, match="is another at the second reading"):
        list(pairs(sketches, 0.9, again=texts.again))


@pytest.mark.parametrize("containment", [False, True])
def test_a_collection_that_has_become_shorter_by_the_second_reading_is_refused(containment: bool) -> None:
    texts = Texts(seed=6)
    sketches = [sketch_plain(str(n), document, fetched_at=0) for n, document in enumerate(texts.documents)]

    def shorter(places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        return (one for one in texts.again(places) if one[0] < 20)

    with pytest.raises(WrongInput, match=r"document \d+ is not there at the second reading"):
        list(pairs(sketches, 0.9, containment, again=shorter))


def _crowd() -> list[Sketch]:
    """Pages of equal words but for one in the middle, as many strangers, and a passage of the former."""
    common = [f"w{n}" for n in range(60)]
    texts = {f"http://a/{n}": [*common[:30], f"own{n}", *common[30:]] for n in range(40)}
    texts |= {f"http://b/{n}": [f"b{n}x{word}" for word in range(60)] for n in range(40)}
    texts["http://c/part"] = common[30:50]
    return [sketch_plain(url, " ".join(text), fetched_at=0) for url, text in texts.items()]


@pytest.mark.parametrize(("threshold", "containment", "count"), [(0.5, False, 780), (0.7, False, 0), (0.9, True, 40)])
def test_pairs_that_share_common_shingles_only_are_found(threshold: float, containment: bool, count: int) -> None:
    crawl = _crowd()
    every = {(pair.a, pair.b, pair.estimate) for pair in pairs(crawl, threshold, containment, common=None)}
    assert len(every) == count
    found = [(pair.a, pair.b, pair.estimate) for pair in pairs(crawl, threshold, containment, common=10)]
    assert (set(found), len(found)) == (every, count)


def test_it_is_said_where_a_crowd_is_too_large(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clusterd.batch.crowds.MOST", 100)
    monkeypatch.setattr("clusterd.batch.crowds.COUNTED", 1000)
    assert list(pairs(_crowd(), 0.5, common=10)) == []
    assert "pairs of 41 documents that share nothing but shingles of more than 10 documents are left out" in caplog.text


def test_pages_of_one_template_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of their shingles are common: too few for a pair that shares nothing else."""
    asked: list[int] = []
    judge = crowds.judge_many
    monkeypatch.setattr(crowds, "judge_many", lambda a, b, bits: (asked.append(len(b)), judge(a, b, bits))[1])
    template = " ".join(f"t{n}" for n in range(60))
    texts = [f"{template} {' '.join(f'own{page}x{n}' for n in range(60))}" for page in range(50)]
    assert (
        list(pairs([sketch_plain(f"http://a/{n}", t, fetched_at=0) for n, t in enumerate(texts)], 0.5, common=10)) == []
    )
    assert sum(asked) == 0


def test_a_giant_cluster_of_common_shingles_holds_together() -> None:
    crawl = [sketch_plain("http://a/", "the first of all is none of them", fetched_at=0), *_crowd()]
    sizes = [one.size for one in clusters(crawl, [RELATED], common=10)]
    assert sizes == [40, *[1] * 42]
    assert max(one.size for one in clusters(_crowd(), [RELATED], common=10, latest=0)) < 40  # as in the paper


def test_short_passages_are_found_in_long_documents() -> None:
    source = random.Random(11)
    books = [[f"w{source.randrange(10**6)}" for _ in range(12_000)] for _ in range(5)]
    texts = [" ".join(book) for book in books]
    wanted = set()
    for number, book in enumerate(books):
        for size in (10, 12, 15, 20, 40, 80, 200, 600):
            at = source.randrange(11_000)
            wanted.add((number, len(texts)))
            texts.append(" ".join(book[at : at + size]))
    sketches = [sketch_plain(f"http://a/{n}", text, fetched_at=0) for n, text in enumerate(texts)]

    def again(places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        yield from ((n, sketch_plain("", texts[n], profile=whole_profile(TEXT), fetched_at=0).main) for n in places)

    found = {(pair.a, pair.b): pair.estimate for pair in pairs(sketches, 0.9, True, again=again)}
    assert wanted <= found.keys()
    assert {found[pair].b_in_a for pair in wanted} == {1.0}
