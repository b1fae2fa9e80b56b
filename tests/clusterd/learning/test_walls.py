"""Walls that stand before any path and any value of parameters at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.evidence.columns import Paths
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families import walls
from clusterd.learning.learner import Learner

from tests.clusterd.learning.one_host import HOST, key, learned, same

WALL = 7
LOG_IN = ("user/login", WALL)
NODES = [(f"node/{n}", 1000 + n) for n in range(150)]


@pytest.mark.parametrize(
    "wall",
    [
        lambda n: f"node/{n}/edit?destination=node/{n}",
        lambda n: f"node/{n}/vote?up=1&token={n:x}{n}",
        lambda n: f"reply/{n}/?destination=node/{n}",
        lambda n: f"u{n // 2}/thing{n}/fork?token={n:x}{n}",
        lambda n: f"docs/p{n}?do=edit&sectok={n:x}{n}",
        lambda n: f"node/{n}/edit.do;jsessionid={n:x}{n}?tab=1",
        lambda n: f"p{n}?do=edit&sectok={n:x}{n}",
        lambda n: f"docs{n % 30}/p{n}?do=edit&sectok={n:x}{n}",
    ],
)
def test_a_wall_is_one_page_whatever_path_and_parameter(wall: Callable[[int], str]) -> None:
    rules = learned([LOG_IN, *((wall(n), WALL) for n in range(250)), *NODES])
    assert same(rules, wall(8012), wall(9012))
    assert not same(rules, "node/8012", "node/9012")
    assert not same(rules, wall(8012) + "&more=1", wall(9012) + "&more=1")


def test_a_value_that_is_few_is_of_the_wall_where_it_was_tried() -> None:
    rules = learned([LOG_IN, *((f"node/{n}/vote?up={n % 2}&token=t{n}", WALL) for n in range(500)), *NODES])
    assert same(rules, "node/8012/vote?up=1&token=t801", "node/9012/vote?up=1&token=t901")
    assert not same(rules, "node/8012/vote?up=2&token=t801", "node/9012/vote?up=2&token=t901")


def lists(folders: int, items: int, content: Callable[[int, int], int]) -> list[tuple[str, int]]:
    """Return the edit forms of lists, numbered anew in each."""
    return [(f"lists/l{f}/EditForm.aspx?ID={n}", content(f, n)) for f in range(folders) for n in range(items)]


def test_folders_that_are_few_are_of_the_wall_where_each_was_tried() -> None:
    forms = [*lists(5, 50, lambda f, n: WALL), ("lists/l5/EditForm.aspx?ID=1", WALL)]
    rules = learned([LOG_IN, *forms, *((f"lists/l{f}/Form.aspx?ID={n}", 9 + n) for f in range(5) for n in range(50))])
    assert same(rules, "lists/l3/EditForm.aspx?ID=801", "lists/l3/EditForm.aspx?ID=901")
    for other in ("lists/l5/EditForm.aspx", "lists/l9/EditForm.aspx", "lists/l3/Form.aspx"):
        assert not same(rules, other + "?ID=801", other + "?ID=901")


def test_folders_of_too_few_pages_in_all_are_none() -> None:
    rules = learned([LOG_IN, *lists(5, 40, lambda f, n: WALL)])
    assert not same(rules, "lists/l3/EditForm.aspx?ID=801", "lists/l3/EditForm.aspx?ID=901")


@pytest.mark.parametrize("differs", [lambda f, n: f == 4, lambda f, n: (f, n) == (4, 7)])
def test_one_page_that_differs_keeps_all_from_being_a_wall(differs: Callable[[int, int], bool]) -> None:
    def content(folder: int, number: int) -> int:
        return 5000 + 100 * folder + number if differs(folder, number) else WALL

    rules = learned([LOG_IN, *lists(5, 60, content)])
    assert not same(rules, "lists/l3/EditForm.aspx?ID=801", "lists/l3/EditForm.aspx?ID=901")
    nodes = [(f"node/{n}/edit?to={n}", 5000 if n == 77 else WALL) for n in range(300)]
    rules = learned([LOG_IN, *nodes, *NODES])
    assert not same(rules, "node/8012/edit?to=801", "node/9012/edit?to=901")


def test_folders_that_show_nothing_else_make_no_wall_where_others_do() -> None:
    """Of twelve folders in which one page in fifty is public some have none for luck, so far."""
    pages = [(f"docs{f}/p{n}?do=edit&sectok={f}t{n}", WALL) for f in range(12) for n in range(60)]
    shown = [(path, 5000 + at if at % 150 == 7 else content) for at, (path, content) in enumerate(pages)]
    rules = learned([LOG_IN, *shown, *NODES])
    assert not same(rules, "docs1/p801?do=edit&sectok=t801", "docs1/p901?do=edit&sectok=t901")


def test_what_only_pages_of_one_kind_show_is_no_wall() -> None:
    """That nobody has written a review yet is said of nearly all."""
    reviews = [(f"node/{n}/reviews?from={n}", WALL) for n in range(300)]
    rules = learned([*reviews, *NODES])
    assert not same(rules, "node/8012/reviews?from=1", "node/9012/reviews?from=2")
    assert key(rules, "node/8012/reviews?from=1").startswith("http://example.com/node/8012/reviews")


def test_the_same_pages_without_parameters_make_no_wall() -> None:
    """Each list of reviews is there without ``from``, too: what few products have in them was lost."""
    reviews = [(f"node/{n}/reviews{query}", WALL) for n in range(300) for query in ("", f"?from={n}")]
    first = [(f"node/{n}/reviews", WALL) for n in range(300, 320)]
    rules = learned([*reviews, *first, *NODES])
    assert not same(rules, "node/8012/reviews?from=1", "node/9012/reviews?from=2")


@pytest.mark.parametrize("form", ["node/{}/edit?token=t{}", "page{}?do=edit&token=t{}", "docs/{}/?do=edit&token=t{}"])
def test_several_values_of_few_paths_are_no_wall_before_others(form: str) -> None:
    """A hundred and more pages, of fewer paths: of these it is known, not of every path."""
    rules = learned([LOG_IN, *((form.format(n % 30, n), WALL) for n in range(900)), *NODES])
    assert same(rules, form.format(7, 801), form.format(7, 901))
    assert not same(rules, form.format(801, 801), form.format(901, 901))


@pytest.mark.parametrize("query", ["?do=reviews", "?do=reviews&from={0}"])
def test_what_only_pages_of_one_query_show_is_no_wall_before_any_path(query: str) -> None:
    """Of most pages nobody has written a review, with ``from`` and without."""
    reviews = [(f"page{n}" + query.format(n), WALL) for n in range(300)]
    rules = learned([*reviews, *((f"page{n}?do=reviews&from={n}", WALL) for n in range(300)), *NODES])
    assert not same(rules, "page8012?do=reviews&from=1", "page9012?do=reviews&from=2")


def test_paths_with_other_parameters_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many forms had all paths of the host looked at: seconds of a lesson on a host of 100,000 pages."""
    learner = Learner(HOST)
    pages = [(f"node/{n}/edit?p{n % 10}={n}", WALL) for n in range(3000)]
    learner.observe(Page(f"http://{HOST}/{path}", content) for path, content in [LOG_IN, *pages])
    snapshot = Snapshot(learner.evidence)
    looked_at: list[int] = []
    parts = Paths.parts

    def counted(paths: Paths, number: int) -> list[str]:
        looked_at.append(number)
        return parts(paths, number)

    monkeypatch.setattr(Paths, "parts", counted)
    list(walls.walls(snapshot))
    assert len(looked_at) < 6 * len(pages)


def test_a_form_that_has_a_rule_keeps_it_however_others_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is kept out nothing comes: by size, the rules of many forms came and went from lesson to lesson."""
    monkeypatch.setattr(walls, "FORMS", 1)
    learner = Learner(HOST)

    def observe(name: str, numbers: range) -> None:
        learner.observe(Page(f"http://{HOST}/node/{n}/edit?{name}={n}", WALL) for n in numbers)

    learner.observe([Page(f"http://{HOST}/{LOG_IN[0]}", WALL)])
    observe("first", range(300))
    observe("second", range(250))
    before = learner.learn(1)
    observe("second", range(250, 500))
    learner.learn(2)
    assert before is not None
    assert [rule.id for rule in learner.rules] == [rule.id for rule in before.rules]
