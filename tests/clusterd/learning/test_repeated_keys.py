"""Parameters that a URL has several times: a crawl numbers anew what is left, and applies a rule to it again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random

import pytest

from tests.clusterd.learning.one_host import key, learned


def shop(content: Callable[[list[str]], object]) -> dict[str, object]:
    """Return pages of 120 items under up to three values of ``s``, which show the item and what is made of these."""
    random = Random(0)
    pages: dict[str, object] = {}
    for _ in range(400):
        item = random.randrange(120)
        values = [str(random.randrange(8)) for _ in range(random.choice([0, 1, 1, 2, 2, 3]))]
        pages["p?" + "&".join([f"id={item}", *(f"s={value}" for value in values)])] = item, content(values)
    return pages


def merged(pages: dict[str, object]) -> list[set[object]]:
    """Return what is shown by the URLs that learned rules make one."""
    numbers = {shown: number for number, shown in enumerate(dict.fromkeys(pages.values()), 1)}
    rules = learned([(path, numbers[shown]) for path, shown in pages.items()])
    found: dict[str, set[object]] = defaultdict(set)
    for path, shown in pages.items():
        found[key(rules, path)].add(shown)
    return list(found.values())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda values: values[1:2], id="the second counts"),
        pytest.param(lambda values: tuple(values[1:]), id="all but the first count"),
        pytest.param(lambda values: len(values) > 1, id="whether there are several counts"),
    ],
)
def test_a_value_is_dropped_where_none_moves_up_to_its_place(content):
    pages = shop(lambda values: repr(content(values)))
    groups = merged(pages)
    assert all(len(shown) == 1 for shown in groups)
    assert len(groups) < len(pages) * 0.9


def test_values_are_dropped_together_with_those_that_would_move_up():
    pages = shop(lambda values: ())
    groups = merged(pages)
    assert all(len(shown) == 1 for shown in groups)
    assert len(groups) < len(set(pages.values())) * 1.1


def test_values_that_mean_the_same_together_say_nothing_of_fewer_of_them() -> None:
    """Of three tags any order shows all; whichever one there is shows its own."""
    random = Random(0)
    pages: dict[str, object] = {}
    for item in range(150):
        for _ in range(3):
            tags = random.sample("abc", random.choice([1, 2, 3, 3]))
            pages["&".join([f"p?id={item}", *(f"tag={tag}" for tag in tags)])] = item, *sorted(tags)
    groups = merged(pages)
    assert all(len(shown) == 1 for shown in groups)
    assert len(groups) < len(pages)
