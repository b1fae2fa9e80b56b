"""Lists in one value or component: where the order of their items does not matter, and where it does."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.clusterd.learning.one_host import learned, same

COLOURS = ("blue", "gold", "green", "grey", "lime", "pink", "red", "rose", "teal", "white")


def lists(form: str, separator: str, *, ordered: bool = False) -> list[tuple[str, int]]:
    """Return lists of two and of three colours, in most of their orders; ``ordered``: the order matters."""
    numbers: dict[tuple[str, ...], int] = {}
    chosen = [colours for size in (2, 3) for colours in permutations(COLOURS, size)]
    return [
        (form.format(separator.join(colours)), numbers.setdefault(colours if ordered else tuple(sorted(colours)), at))
        for at, colours in enumerate(chosen)
        if at % 3 < 2
    ]


@pytest.mark.parametrize("separator", [",", "%2C", "|", "+", "-", "_"])
@pytest.mark.parametrize("form", ["shop?colour={}", "shop/tagged/{}", "shop/{}/list"])
def test_the_order_of_items_does_not_matter(form: str, separator: str) -> None:
    rules = learned(lists(form, separator))

    def asked(*items: str) -> str:
        return form.format(separator.join(items))

    assert same(rules, asked("red", "blue", "black"), asked("black", "red", "blue"))
    assert not same(rules, asked("red", "blue"), asked("red", "black"))
    assert not same(rules, asked("red", "blue"), asked("red", "blue", "blue"))


@pytest.mark.parametrize("form", ["shop?colour={}", "shop/tagged/{}"])
def test_an_order_that_matters_stays(form: str) -> None:
    rules = learned(lists(form, ",", ordered=True))

    assert not same(rules, form.format("red,blue"), form.format("blue,red"))


@pytest.mark.parametrize("form", ["distance/{}", "distance?route={}", "list?sort={}"])
def test_few_that_agree_say_nothing_of_what_may_be_no_list(form: str) -> None:
    separator = "," if "sort" in form else "-"
    towns = [f"{first}{last}" for first in "abcdefgh" for last in "aeiou"]
    routes = [(first, second) for first, second in zip(towns, [*towns[7:], *towns[:7]], strict=True)]
    routes += [(first, second) for first, second in zip(towns, [*towns[3:], *towns[:3]], strict=True)]
    found = [
        (form.format(separator.join(route)), 2 * at) for at, pair in enumerate(routes) for route in (pair, pair[::-1])
    ]

    assert not same(learned(found), form.format(f"x{separator}y"), form.format(f"y{separator}x"))


@pytest.mark.parametrize("form", ["list/{}?sort={}", "list/{}/{}"])
def test_the_luckiest_of_many_lists_is_no_rule(form: str) -> None:
    found = []
    for number in range(2400):
        first, second = sorted((COLOURS[number % 6], COLOURS[number % 6 + 1 + number // 6 % 3]))
        differs = number % 6 and number // 18 % 16 == 0
        for at, items in enumerate((f"{first},{second}", f"{second},{first}")):
            found.append((form.format(f"a{number}", items), 2 * number + (at if differs else 0)))

    assert not [rule.text for rule in learned(found).rules if rule.transformation[0].op == "items"]


def test_the_order_of_one_parameter_says_nothing_of_another() -> None:
    others = lists("compare?left={}", ",", ordered=True)
    found = lists("shop?colour={}", ",") + [(url, 1000 + content) for url, content in others]

    assert same(learned(found), "shop?colour=red,black", "shop?colour=black,red")
    assert not same(learned(found), "compare?left=red,black", "compare?left=black,red")
