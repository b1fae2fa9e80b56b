"""Parameters that every link bears, and what narrows the context of a parameter whose value is ever new."""

from __future__ import annotations

import random

from tests.clusterd.learning.one_host import key, learned


def test_a_position_that_every_link_bears() -> None:
    # Given: articles that are only linked with the place of the link; no page without it to compare with.
    dice = random.Random(1)
    pages = {f"article?id={n}&pos={pos}": n for n in range(150) for pos in dice.sample(range(9), 2)}
    rules = learned(list(pages.items()))
    assert key(rules, "article?id=9999&pos=3") == key(rules, "article?id=9999&pos=7")
    assert key(rules, "article?id=9998&pos=3") != key(rules, "article?id=9999&pos=3")


def test_one_that_matters_on_another_page_is_not_closed_to_its_values() -> None:
    # Given: `from` is when a list of changes was looked at, one of forty times, and where a list of pages begins.
    dice = random.Random(2)
    pages: dict[str, object] = {}
    for days in range(1, 91):
        for hide in ("", "&bots=1", "&minor=1"):
            pages[f"index?title=Changes&days={days}{hide}"] = (days, hide)
            for _ in range(2):
                pages[f"index?title=Changes&days={days}{hide}&from=2020{dice.randrange(40):02}"] = (days, hide)
    for n in range(120):
        pages[f"index?title=All&from=Page_{n}"] = ("all", n)
        pages[f"index?title=All&from=Page_{n}&minor=1"] = ("all", n, "minor")
    numbers = {content: number for number, content in enumerate(dict.fromkeys(pages.values()))}
    rules = learned([(url, numbers[content]) for url, content in pages.items()])
    assert key(rules, "index?title=Changes&days=7&from=202099") == key(rules, "index?title=Changes&days=7")
    assert key(rules, "index?title=All&from=Page_7777") != key(rules, "index?title=All&from=Page_8888")
