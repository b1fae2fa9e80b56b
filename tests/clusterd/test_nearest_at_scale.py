"""What lost & found makes of chance where the sweep has tens of thousands of pages."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from clusterd.queries.nearest import Nearest
from clusterd.queries.nearness import Page, beyond_chance
from clusterd_consumer.postings.keys import prepare
from clusterd_consumer.postings.scheme import DEFAULT
from clusterd_consumer.postings.stored import Restored
from clusterd_crawler.sketch import TEXT, StreamSketch

#: Shingles of a page of a hundred words, and pages of the sweep.
SHINGLES = 91
PAGES = 30_000


def page(name: str, fingerprints: np.typing.NDArray[np.uint64], shingles: int = 0) -> Page:
    """A page as the index gives it: its values are cut."""
    values = np.sort(fingerprints).astype("<u8").tobytes()
    shingles = shingles or len(fingerprints)
    text = hash(values)
    kept, _ = prepare(StreamSketch(values, shingles, shingles + 9, text), TEXT, DEFAULT)
    return Page(f"http://site.example/{name}", Restored(kept, TEXT, shingles, shingles + 9, text))


@pytest.fixture(scope="module")
def fingerprints() -> np.typing.NDArray[np.uint64]:
    return np.random.default_rng(1).integers(0, 2**40, (PAGES + 400, SHINGLES), np.uint64)


@pytest.fixture(scope="module")
def sweep(fingerprints: np.typing.NDArray[np.uint64]) -> Nearest:
    return Nearest([page(f"new{n}", fingerprints[n]) for n in range(PAGES)], TEXT)


class TestAmongTensOfThousands:
    def test_pages_that_share_nothing_have_no_match(
        self, sweep: Nearest, fingerprints: np.typing.NDArray[np.uint64]
    ) -> None:
        """By chance some of 30,000 pages share eight cut values with a page that is gone."""
        gone = [page(f"gone{n}", fingerprints[n]) for n in range(PAGES, PAGES + 400)]
        assert sum(bool(sweep.matches(one)) for one in gone) <= 0.02 * len(gone)  # of 1,000 pages as many have one

    def test_what_is_left_out_of_a_sketch_brings_no_more_of_chance(self) -> None:
        """Of 600 shingles 192 are kept: those up to the last meet in a third of the cells of its octave."""
        made = np.random.default_rng(5).integers(0, 2**40, (10_000, 300), np.uint64)
        sweep = Nearest([page(f"new{n}", own) for n, own in enumerate(made)], TEXT)
        others = np.sort(np.random.default_rng(6).integers(0, 2**40, (100, 600), np.uint64))[:, : TEXT.size]
        gone = [page(f"gone{n}", own, 600) for n, own in enumerate(others)]
        assert sum(bool(sweep.matches(one)) for one in gone) <= 0.02 * len(gone)

    def test_a_page_of_which_a_third_is_left_is_found(
        self, sweep: Nearest, fingerprints: np.typing.NDArray[np.uint64]
    ) -> None:
        for number in range(0, PAGES, PAGES // 50):
            left = np.append(fingerprints[number, : SHINGLES // 3], fingerprints[PAGES + 1, SHINGLES // 3 :])
            assert sweep.matches(page("old", left))[0].page.url == f"http://site.example/new{number}"

    def test_a_query_does_not_read_what_chance_brings_of_every_page(self) -> None:
        """Of pages of 400 values 20,000 have some 2,000 cut values in common with any other by chance."""
        made = np.random.default_rng(2).integers(0, 2**40, (20_000, 400), np.uint64)
        sweep = Nearest([page(f"new{n}", own) for n, own in enumerate(made)], TEXT)
        asked = [page(f"old{n}", made[n]) for n in range(100)]
        begun = time.process_time()
        found = [sweep.matches(one)[0].page.url for one in asked]
        assert found == [f"http://site.example/new{n}" for n in range(100)]
        assert (time.process_time() - begun) / len(asked) < 0.03


def test_what_chance_may_bring_grows_with_the_pages() -> None:
    assert beyond_chance(4.0, 10) == beyond_chance(4.0, 1000) == 6.0
    assert 6.0 < beyond_chance(4.0, 10_000) < beyond_chance(4.0, 100_000) < 12.0
    assert beyond_chance(0.0, 100_000) == 0.0


@pytest.mark.parametrize(("shared", "least", "most"), [(0, 0.0, 0.06), (200, 1.0, 1.0)])
def test_a_namesake_in_another_folder_is_no_match_for_what_chance_brings(
    shared: int, least: float, most: float
) -> None:
    """A third of the pages of a thousand shingles got a namesake that has not one of theirs."""
    made = np.random.default_rng(4).integers(0, 2**40, (2, 200, 1000), np.uint64)
    made[1, :, :shared] = made[0, :, :shared]
    gone, new = np.sort(made)[:, :, : TEXT.size]
    sweep = Nearest([page(f"new/part{n}/topic{n}.html", own, 1000) for n, own in enumerate(new)], TEXT)
    found = sum(bool(sweep.matches(page(f"old/chapter{n}/topic{n}.html", own, 1000))) for n, own in enumerate(gone))
    assert least <= found / len(gone) <= most


def test_a_page_with_no_value_in_common_has_no_match() -> None:
    fingerprints = np.random.default_rng(3).integers(0, 2**40, (2, 3), np.uint64)
    assert Nearest([page("new", fingerprints[0])], TEXT).matches(page("old", fingerprints[1])) == []


def test_a_set_of_pages_takes_a_few_bytes_a_value_and_no_more_while_it_is_made(
    fingerprints: np.typing.NDArray[np.uint64],
) -> None:
    """Their sketches stay as they are stored, and are unpacked some hundreds at a time."""
    made = fingerprints[:16_000].reshape(4000, -1)
    tracemalloc.start()
    try:
        pages = [page(f"new{n}", own) for n, own in enumerate(made)]
        sketches, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        sweep = Nearest(pages, TEXT)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sweep.matches(page("old", made[7]))[0].page is pages[7]
    assert sketches < 5 * made.size
    assert most - sketches < 20 * made.size
