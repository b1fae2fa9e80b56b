"""Where an edit holds that does not hold of the whole site: a clean part is found beside one that is not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pytest

from tests.clusterd.learning.one_host import key, learned, same

SORTS = ("", ";sortby=date", ";sortby=log")


def repository(noisy_diffs: float) -> Iterator[tuple[str, int]]:
    """Files in revisions, one in ten of which says how old it is, and differences between revisions of one file.

    Each address comes in three forms that mean nothing (as CVSweb and ViewVC write them). An age differs at each fetch.
    """
    chance, new = random.Random(5), count(1_000_000)
    pages = [(f"src/file{file}.c?rev=1.{revision}", 0.1) for file in range(30) for revision in range(10)]
    pages += [(f"src/main.c.diff?r1=1.{n}", noisy_diffs) for n in range(60)]
    for number, (page, noise) in enumerate(pages):
        ages = chance.random() < noise
        for sort in SORTS:
            yield page + sort, next(new) if ages else number


def test_what_differs_at_each_fetch_is_no_word_against_the_part_that_never_does() -> None:
    # Given a tenth of the pages of files that differ: to drop the order is no rule of the site, but one of differences.
    rules = learned(repository(noisy_diffs=0))
    assert key(rules, "src/main.c.diff?r1=1.99;sortby=log") == key(rules, "src/main.c.diff?r1=1.99")
    assert key(rules, "src/file7.c?rev=1.99;sortby=log") != key(rules, "src/file7.c?rev=1.99")


def test_a_part_that_differs_as_often_as_the_rest_is_not_picked_out() -> None:
    rules = learned(repository(noisy_diffs=0.1))
    assert key(rules, "src/main.c.diff?r1=1.99;sortby=log") != key(rules, "src/main.c.diff?r1=1.99")


@pytest.mark.parametrize(("clean", "goes"), [(125, False), (150, True)])
def test_a_value_goes_once_all_that_differs_is_hardly_of_the_other_by_luck(clean: int, goes: bool) -> None:
    # Given three of 60 pages that look otherwise in one view, and none in the other.
    pages = [(f"page-{at}", at) for at in range(200)]
    pages += [(f"page-{at}?view=full", at) for at in range(clean)]
    pages += [(f"page-{at}?view=short", at if at > 2 else 5_000 + at) for at in range(60)]
    rules = learned(pages)
    assert same(rules, "page-700?view=full", "page-700") is goes
    assert not same(rules, "page-700?view=short", "page-700")


def folders(differing: float, seed: int, clean: int = 0) -> Iterator[tuple[str, int]]:
    """Pages in 250 folders and their print views, a share of which shows something else, after clean ones; shuffled."""
    chance, pages = random.Random(seed), list[tuple[str, int]]()
    for page in range(3_000 + clean):
        differs = page >= clean and chance.random() < differing
        path = f"part{page % 250 if page >= clean else 'clean'}/{chance.randrange(1_000_000)}.html"
        pages += [(path, 2 * page), (path + "?print=1", 2 * page + differs)]
    chance.shuffle(pages)
    return iter(pages)


def test_the_luckiest_of_many_parts_are_not_picked_out() -> None:
    # Of 250 folders with twelve pages each some five are clean by luck where three of ten pages differ.
    assert [learned(folders(differing=0.3, seed=seed)).rules for seed in range(3)] == [()] * 3


def test_a_part_that_never_differs_brings_in_none_that_were_lucky() -> None:
    for seed in range(3):
        rules = learned(folders(differing=0.3, seed=seed, clean=100))
        parts = [f"part{number}/1.html" for number in ("clean", *range(250))]
        assert [part for part in parts if key(rules, part + "?print=1") == key(rules, part)] == ["partclean/1.html"]


def test_parts_lie_below_any_of_the_first_four_components() -> None:
    # Given one of 50 folders whose print views show something else, two or three folders below the root.
    for above in ("shop/en/", "shop/en/all/"):
        pages = [(f"{above}part{part}/{page}.html", part, 20 * part + page) for part in range(50) for page in range(20)]
        views = [(f"{path}?print=1", 2 * number + (part == 7)) for path, part, number in pages]
        every = [*((path, 2 * number) for path, _, number in pages), *views]
        random.Random(1).shuffle(every)
        rules = learned(iter(every))
        alone = [part for part in range(50) if key(rules, f"{above}part{part}/1.html?print=1").endswith("?print=1")]
        assert alone == [7]
