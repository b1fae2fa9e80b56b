"""Lists whose items are parameters of one name, or numbered: where their order does not matter, and where it does."""

from __future__ import annotations

from itertools import permutations

import pytest
from clusterd.learning.interchange.files import read_rules, write_rules

from tests.clusterd.learning.one_host import explored_more, key, learned, same

TAGS = ("blue", "gold", "green", "grey", "lime", "pink", "red", "rose", "teal", "white")
NAMES = ["tag", "f%5B%5D", "filter[brand][]", "f[{}]", "f%5B{}%5D"]


def asked(name: str, tags: tuple[str, ...], page: str = "shop") -> str:
    """Return the path of a list of what has these tags."""
    return f"{page}?" + "&".join(f"{name.format(at)}={tag}" for at, tag in enumerate(tags))


def lists(name: str, page: str = "shop", *, ordered: bool = False) -> list[tuple[str, int]]:
    """Return lists of two and of three tags, in most of their orders; ``ordered``: the order matters."""
    numbers: dict[tuple[str, ...], int] = {}
    chosen = [tags for size in (2, 3) for tags in permutations(TAGS, size)]
    return [
        (asked(name, tags, page), numbers.setdefault(tags if ordered else tuple(sorted(tags)), at))
        for at, tags in enumerate(chosen)
        if at % 3 < 2
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_values_does_not_matter(name: str) -> None:
    rules = learned(lists(name))

    assert same(rules, asked(name, ("red", "blue", "black")), asked(name, ("black", "red", "blue")))
    assert not same(rules, asked(name, ("red", "blue")), asked(name, ("red", "black")))
    assert not same(rules, asked(name, ("red", "blue")), asked(name, ("red", "blue", "blue")))
    assert not same(rules, asked(name, ("red", "blue"), "cart"), asked(name, ("blue", "red"), "cart"))


@pytest.mark.parametrize("name", NAMES)
def test_an_order_that_matters_stays(name: str) -> None:
    rules = learned(lists(name, ordered=True))

    assert not same(rules, asked(name, ("red", "blue")), asked(name, ("blue", "red")))


@pytest.mark.parametrize("name", NAMES)
def test_few_lists_say_nothing_of_others(name: str) -> None:
    pairs = [(first, second) for first in TAGS for second in TAGS if first < second]
    few = [(asked(name, tags), at) for at, pair in enumerate(pairs) for tags in (pair, pair[::-1])]

    assert not same(learned(few), asked(name, ("new", "old")), asked(name, ("old", "new")))


def test_the_order_of_one_list_says_nothing_of_another() -> None:
    others = [(path, 1000 + content) for path, content in lists("sort", ordered=True)]

    rules = learned(lists("tag") + others)

    assert same(rules, "shop?tag=b&tag=a", "shop?tag=a&tag=b")
    assert not same(rules, "shop?sort=b&sort=a", "shop?sort=a&sort=b")


def test_lists_in_order_are_told_apart_by_what_else_they_have() -> None:
    """Each page of a list is another; a session beside it does not matter, wherever it stands."""
    found = []
    for at, (path, content) in enumerate(lists("tag")):
        for page in (1, 2):
            found += [
                (f"{path}&page={page}&sid=a{at}", 2 * content + page),
                (f"{path}&page={page}", 2 * content + page),
            ]

    rules = learned(found)

    assert same(rules, "shop?tag=red&tag=gold&page=2&sid=new", "shop?tag=gold&tag=red&page=2")
    assert not same(rules, "shop?tag=red&tag=gold&page=2", "shop?tag=gold&tag=red&page=1")


def test_a_value_without_a_sign_is_no_item() -> None:
    rules = learned(lists("tag"))

    assert key(rules, "shop?tag=b&tag&tag=a").endswith("/shop?tag=b&tag&tag=a")


def test_such_rules_go_through_files_and_are_explored_more_while_their_trials_are_few() -> None:
    rules = learned(lists("f[{}]"))

    assert read_rules(write_rules(rules.rules, "clusterd")[0], "clusterd").rules == list(rules.rules)
    assert "sort what" in write_rules(rules.rules, "dud", loose=True)[1].refused[rules.rules[0].id]
    assert "sort what '&' separates in ?f[0]" in rules.rules[0].text
    assert explored_more(rules, [asked("f[{}]", (f"x{number}", "a")) for number in range(2000)])
