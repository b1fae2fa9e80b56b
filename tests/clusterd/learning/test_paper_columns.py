"""Rules tried and taken on columns: what a trial counts on many URLs, and what is left of URLs that were edited."""

from __future__ import annotations

from random import Random

import pytest
from clusterd.learning.koppula.columns import SMALL, Columns
from clusterd.learning.koppula.generalize import STAR, Context
from clusterd.learning.koppula.pairwise import DELETE, Change, Transformation
from clusterd.learning.koppula.proposals import KEEP
from clusterd.learning.koppula.tokenize import Slot, split_url


def key(name: str) -> Slot:
    return ("?" + name, 1, 0, 0, 0)


def component(place: int) -> Slot:
    """A path component, counted from the start."""
    return ("", place + 2, 0, 0, 0)


FEW: list[Context] = [((component(1), "x"), (component(2), "y")), ((key("a"), "1"), (key("b"), "2"))]
RULES: list[Transformation] = [
    ((key("a"), DELETE),),
    ((KEEP, Change("keep", "b")),),
    ((component(1), STAR), (component(2), STAR)),
    ((("", 0, 0, 0, 0), Change("family")),),
    ((key("b"), Change("set", "7")),),
]


def columns(*urls: str) -> Columns:
    return Columns([split_url(f"http://a.test/{url}") for url in urls], range(len(urls)))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_of_many_urls_those_that_a_rule_leaves_alone_need_not_be_counted(
    repeated: bool, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(5)
    urls, clusters = [], [random.randrange(SMALL) for _ in range(SMALL + 100)]
    for _ in clusters:
        query = [f"{name}={random.randrange(4)}" for name in random.sample("abc", random.randrange(4))]
        query += [f"a={random.randrange(3)}"] if repeated else []  # "a=1&a=2" and "a=2&a=1" have one hash
        path = "/".join(random.choice("xyz") for _ in range(random.randrange(1, 4)))
        urls.append(split_url(f"http://a.test/{path}?{'&'.join(query)}"))
    found = Columns(urls, sorted(clusters) if in_order else clusters)
    rules = [(context, changes) for context in FEW for changes in RULES]

    near = [found.trial(*rule) for rule in rules]
    monkeypatch.setattr("clusterd.learning.koppula.columns.SMALL", len(urls))

    assert near == [found.trial(*rule) for rule in rules]
    assert all(0 < trial.covered < len(urls) / 4 for trial in near)


def test_what_is_taken_from_a_url_is_gone_with_its_further_values() -> None:
    found = columns("p?m=a&x=1&x=2", "p?m=a")
    found.take((), ((KEEP, Change("keep", "m")),))
    found.take((), ((key("m"), Change("set", "b")),))  # read from what is noted of each URL

    assert found.total[0] == found.total[1] == columns("p?m=b").total[0]


def test_several_components_are_edited_where_a_path_has_them_all() -> None:
    found = columns("", "x", "x/y", "x/y/z")
    found.take((), ((component(1), STAR), (component(2), STAR)))

    assert found.total.tolist() == columns("", "x", "*/*", "*/*/z").total.tolist()


def test_several_components_may_go_and_none_be_left() -> None:
    found = columns("x/y", "x/y/z")
    found.take((), ((component(1), DELETE), (component(2), DELETE)))

    assert found.total.tolist() == columns("", "z").total.tolist()


def test_an_edit_is_asked_anew_of_paths_that_another_rule_has_made() -> None:
    found = columns("x/y", "x/z", "u/v")
    last: Transformation = ((component(2), DELETE),)
    assert found.trial((), last).right + found.trial((), last).wrong == 1
    found.take(((component(1), "u"),), ((component(1), Change("set", "x")),))
    assert found.trial((), last).right + found.trial((), last).wrong == 2


def test_a_rule_that_reads_a_value_leaves_urls_without_it() -> None:
    found = columns("x?p=1", "y?q=2", "z?p=2&q=2")
    trial = found.trial((), ((key("q"), Change("copy", source=key("p"))),))
    assert trial.covered == 2
