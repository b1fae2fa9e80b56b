"""Edits that lead to a page which another rule has given another key: both are learned, and the keys meet."""

from __future__ import annotations

from random import Random

from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.one_host import HOST, key, learned


def one(rules: RuleSet, *paths: str) -> bool:
    """Say whether paths have one key."""
    return len({key(rules, path) for path in paths}) == 1


def test_a_parameter_goes_from_pages_that_have_another_name_by_now() -> None:
    # Given pages under two names, of which only the one bears a parameter that does not matter …
    forms = ("issues/{}", "-/issues/{}", "-/issues/{}?sort=created")
    rules = learned([(form.format(n), n) for n in range(200) for form in forms])
    # … then that the names are one does not keep the parameter's rule from being found.
    assert one(rules, "issues/900", "-/issues/900", "-/issues/900?sort=created")
    assert not one(rules, "issues/900", "-/issues/901?sort=created")


def test_a_parameter_that_matters_stays_on_pages_that_have_another_name() -> None:
    pages = [(form.format(n), n) for n in range(200) for form in ("issues/{}", "-/issues/{}")]
    rules = learned([*pages, *((f"-/issues/{n}?sort=votes", 1000 + n) for n in range(200))])

    assert one(rules, "issues/900", "-/issues/900")
    assert not one(rules, "issues/900", "-/issues/900?sort=votes")


def test_a_session_goes_from_paths_that_are_written_small_by_now() -> None:
    spellings = ("Shop/Item.aspx", "shop/item.aspx", "SHOP/ITEM.ASPX", "Shop/item.aspx", "shop/Item.aspx")
    pages = [(f"{spelling}?id={n}", n) for n in range(200) for spelling in spellings]
    rules = learned([*pages, *((f"(S({n:06x}))/Shop/Item.aspx?id={n}", n) for n in range(200))])

    assert one(rules, *(f"{spelling}?id=900" for spelling in spellings), "(S(abcdef))/Shop/Item.aspx?id=900")
    assert not one(rules, "shop/item.aspx?id=900", "(S(abcdef))/Shop/Item.aspx?id=901")


def test_rules_that_lead_back_keep_no_page_from_another() -> None:
    # Given sections under which each page stands a second time, and the one folder in which all stand.
    pages = [(f"{folder}/{n}", n) for n in range(300) for folder in ("news", ("sport", "world")[n % 2])]
    rules = learned(pages)

    assert one(rules, "news/900", "sport/900") or one(rules, "news/900", "world/900")
    assert not one(rules, "news/900", "sport/901")


def test_a_parameter_goes_beside_one_of_which_any_value_is_one_by_now() -> None:
    # Given pages on which some view has to be stated, whichever it is …
    learner = Learner(HOST)
    random = Random(0)
    views = [(f"item?id={n}&view={view}", n) for n in range(120) for view in random.sample("abcdefgh", 3)]
    plain = [(f"item?id={n}", 1000 + n) for n in range(120)]
    # … when a parameter that does not matter is met only once that is known …
    for paths in (views + plain, [(f"{path}&ref={random.choice('abc')}", content) for path, content in views]):
        learner.observe(Page(f"http://{HOST}/{path}", content) for path, content in paths)
        learner.learn(1)
    # … then it goes from what the one rule has made of the view.
    rules = RuleSet(HOST, 1, learner.rules)
    assert one(rules, "item?id=900&view=a", "item?id=900&view=b", "item?id=900&view=a&ref=b")
    assert not one(rules, "item?id=900&view=a", "item?id=900")
