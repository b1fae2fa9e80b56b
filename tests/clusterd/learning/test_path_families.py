"""Families of one page whatever their path: a component of any value, or the whole path beside a query."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.evidence.arrays import Rows
from clusterd.learning.evidence.moves import Moves
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.paths import DEPTH, path_families
from clusterd.learning.learner import Learner, accept

from tests.clusterd.learning.one_host import HOST, key, learned

WALL = 7
ARTICLES = [(f"posts/{n}", 1000 + n) for n in range(150)]


@pytest.mark.parametrize(
    "wall",
    [
        lambda n: f"login/u{n}",
        lambda n: f"login/u{n}/",
        lambda n: f"posts/{n}/edit",
        lambda n: f"posts/{n}/edit/",
        lambda n: f"posts/{n}?do=edit",
        lambda n: f"posts/{n}/?do=edit",
        lambda n: f"p{n}?do=login&sectok=",
        lambda n: f"2024/{n % 12}/p{n}?do=login",
        lambda n: f"compare/add/{n // 2}/from/u{n}/",
        lambda n: f"owner{n // 2}/thing{n}/fork",
    ],
)
def test_a_wall_is_one_page_wherever_in_the_path_it_is_asked_for(wall: Callable[[int], str]) -> None:
    rules = learned([*((wall(n), WALL) for n in range(150)), *ARTICLES])
    assert key(rules, wall(8012)) == key(rules, wall(9012))
    assert key(rules, "posts/8012") != key(rules, "posts/9012")


@pytest.mark.parametrize(
    "wall",
    [lambda n, b: f"u{n // 2}{b}/thing{n}/fork", lambda n, b: f"p{n}{b}/a?do=login", lambda n, b: f"p?id=a{b}{n}"],
)
def test_one_very_long_url_takes_its_own_room_alone(wall: Callable[[int, str], str]) -> None:
    """It took that for each page of the family: gigabytes."""
    pages = [(wall(n, "x" * 60_000 * (n == 8)), WALL) for n in range(600)]
    tracemalloc.start()
    rules = learned(pages)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert key(rules, wall(8012, "")) == key(rules, wall(9012, ""))
    assert most < 1 << 24


def test_one_in_twenty_that_differs_keeps_the_family_from_being_one() -> None:
    rules = learned([(f"posts/{n}/reviews", WALL if n % 20 else 5000 + n) for n in range(300)])
    assert key(rules, "posts/8001/reviews") != key(rules, "posts/8002/reviews")


def test_one_in_twenty_that_differs_keeps_a_family_of_two_components_from_being_one() -> None:
    rules = learned([(f"u{n // 2}/album{n}/reviews", WALL if n % 20 else 5000 + n) for n in range(300)])
    assert key(rules, "u8001/album8001/reviews") != key(rules, "u8002/album8002/reviews")


def test_of_several_components_those_stay_that_take_few_values() -> None:
    """What a folder that was not tried shows, nobody knows."""
    rules = learned([*((f"{n % 3}/u{n // 2}/thing{n}/fork", WALL) for n in range(450)), *ARTICLES])
    assert key(rules, "2/u8001/thing8001/fork") == key(rules, "2/u8002/thing8002/fork")
    assert key(rules, "3/u8001/thing8001/fork") != key(rules, "3/u8002/thing8002/fork")
    assert key(rules, "2/u8001/thing8001") != key(rules, "2/u8002/thing8002")


def test_paths_that_have_no_component_in_common_are_no_family() -> None:
    rules = learned([(f"u{n // 2}/thing{n}", WALL) for n in range(450)])
    assert key(rules, "u8001/thing8001") != key(rules, "u8002/thing8002")


def test_what_the_query_says_is_of_the_family() -> None:
    rules = learned([*((f"p{n}?do=login", WALL) for n in range(150)), *((f"p{n}?do=edit", 50 + n) for n in range(150))])
    assert key(rules, "p8001?do=login") == key(rules, "p8002?do=login")
    for query in ("do=edit", "do=register", "do=login&id=3", ""):
        assert key(rules, f"p8001?{query}") != key(rules, f"p8002?{query}")


def test_each_folder_may_have_a_page_of_its_own() -> None:
    # Given an index that unfolds the page's folder: 50 pages in each of three folders, of one folder 5 …
    folders = ["alpha", "beta", "gamma"]
    pages = [(f"{folder}/p{n}?do=index", 1 + at) for at, folder in enumerate(folders) for n in range(50)]
    rules = learned(pages + [(f"delta/p{n}?do=index", 9) for n in range(5)])
    # … then the name of the page does not matter in the folders that were tried, and the folder does.
    for folder in folders:
        assert key(rules, f"{folder}/p8001?do=index") == key(rules, f"{folder}/p8002?do=index")
    assert len({key(rules, f"{folder}/p8001?do=index") for folder in folders}) == 3
    for folder in ("delta", "epsilon"):
        assert key(rules, f"{folder}/p8001?do=index") != key(rules, f"{folder}/p8002?do=index")


def test_a_folder_whose_pages_differ_is_left_out() -> None:
    pages = [(f"{folder}/p{n}?do=index", 1) for folder in ("alpha", "beta") for n in range(80)]
    rules = learned(pages + [(f"wiki/p{n}?do=index", 1 if n else 500) for n in range(80)])
    assert key(rules, "alpha/p8001?do=index") == key(rules, "alpha/p8002?do=index")
    assert key(rules, "wiki/p8001?do=index") != key(rules, "wiki/p8002?do=index")


def test_where_each_folder_has_a_page_that_differs_none_is_of_a_family() -> None:
    pages = [(f"{folder}/p{n}?do=index", 1 if n else 500 + at) for at, folder in enumerate("abc") for n in range(80)]
    rules = learned(pages)
    assert all(key(rules, f"{folder}/p8001?do=index") != key(rules, f"{folder}/p8002?do=index") for folder in "abc")


def test_paths_of_very_many_components_are_no_family() -> None:
    folders = "/".join(map(str, range(DEPTH)))
    rules = learned([*((f"{folders}/p{n}?do=login", WALL) for n in range(150)), *ARTICLES])
    assert key(rules, f"{folders}/p8001?do=login") != key(rules, f"{folders}/p8002?do=login")


def test_paths_of_another_depth_are_not_of_the_family() -> None:
    rules = learned([(f"p{n}?do=login", WALL) for n in range(150)])
    assert key(rules, "a/p8001?do=login") != key(rules, "a/p8002?do=login")


def test_paths_without_a_query_and_a_component_in_common_are_never_one_family() -> None:
    rules = learned([(f"p{n}", WALL) for n in range(150)])
    assert key(rules, "p8001") != key(rules, "p8002")


def test_a_family_that_is_accepted_has_no_other_paths_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a hundred families had all paths of the host edited, twice: seconds of a lesson."""
    learner = Learner(HOST)
    pages = [(f"p{n}?do=w{n % 20}", n % 20) for n in range(2400)]
    learner.observe(Page(f"http://{HOST}/{path}", content) for path, content in pages)
    snapshot = Snapshot(learner.evidence)
    looked_at: list[int] = []
    table = Moves.table

    def counted(moves: Moves, present: Rows, items: Sequence[str], move: Callable[[str], int | None]) -> Rows:
        looked_at.append(len(present))
        return table(moves, present, items, move)

    monkeypatch.setattr(Moves, "table", counted)
    accepted = 0
    for proposal in path_families(snapshot):
        accept(snapshot, proposal)
        accepted += 1
    assert accepted == 20
    assert sum(looked_at) <= 2 * len(pages)
