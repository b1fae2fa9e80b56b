"""What goes from any page, whichever of several values it has, needs as many trials as what takes any value."""

from __future__ import annotations

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet

from tests.crawler.made_rules import key_under

HOST = "http://library.example"


def learned(records: int, values: tuple[str, ...]) -> RuleSet:
    """Learn from records that are linked with and without a parameter, which makes no difference for them."""
    learner = Learner("library.example")
    for number in range(records):
        record = f"{HOST}/record?id={number}"
        learner.observe([Page(record, number), Page(f"{record}&branch={values[number % len(values)]}", number)])
    for other in range(600):  # not a small host
        learner.observe([Page(f"{HOST}/other/{other}", 10_000 + other)])
    return learner.learn(1) or RuleSet("library.example", 0, ())


def drops_branch(rules: RuleSet) -> bool:
    return key_under(rules, f"{HOST}/record?id=3000&branch=a")[0] == key_under(rules, f"{HOST}/record?id=3000")[0]


@pytest.mark.parametrize(
    ("records", "values", "dropped"),
    [
        (40, ("a", "b", "c"), False),
        (60, ("a", "b", "c"), True),
        (40, ("a",), True),  # one value is mostly the default
    ],
)
def test_several_values_go_from_any_record_after_as_many_trials_as_any_value(
    records: int, values: tuple[str, ...], dropped: bool
) -> None:
    assert drops_branch(learned(records, values)) is dropped


@pytest.mark.parametrize(("records", "same"), [(40, False), (60, True)])
def test_scripts_that_stand_for_one_another_need_as_many(records: int, same: bool) -> None:
    learner = Learner("shop.example")
    for number in range(records):
        for script in ("product", "print"):
            learner.observe([Page(f"http://shop.example/{script}.do?id={number}", number)])
    rules = learner.learn(1) or RuleSet("shop.example", 0, ())
    keys = {key_under(rules, f"http://shop.example/{script}.do?id=3000")[0] for script in ("product", "print")}
    assert (len(keys) == 1) is same


@pytest.mark.parametrize(("products", "dropped"), [(40, False), (60, True)])
def test_no_parameter_lives_on_the_trials_of_another_that_is_dropped_with_it(products: int, dropped: bool) -> None:
    learner = Learner("shop.example")
    for number in range(products):
        product = f"http://shop.example/product?id={number}"
        views = (f"{product}&colour={('red', 'blue', 'sand')[number % 3]}", f"{product}&ref={('a', 'b')[number % 2]}")
        learner.observe([Page(url, number) for url in (product, *views)])
    for other in range(600):
        learner.observe([Page(f"http://shop.example/other/{other}", 10_000 + other)])
    rules = learner.learn(1) or RuleSet("shop.example", 0, ())
    product = "http://shop.example/product?id=3000"
    assert (key_under(rules, f"{product}&colour=red")[0] == key_under(rules, product)[0]) is dropped
