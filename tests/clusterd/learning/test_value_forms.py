"""A family holds for the forms of values that it was tried with."""

from __future__ import annotations

from dataclasses import replace

from clusterd.learning.contract import Page
from clusterd.learning.families.value_forms import EACH
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.one_host import learned_of
from tests.crawler.made_rules import key_under

HOST = "http://rt.example"
WORDS = ("RefersTo", "DependsOn", "MemberOf")


def learned(values: list[str]) -> RuleSet:
    return learned_of("rt.example", ((f"{HOST}/Results.html?Query={value}", 7) for value in values))


def known(rules: RuleSet, value: str) -> bool:
    """Whether a value is under a key of another."""
    url = f"{HOST}/Results.html?Query={value}"
    return key_under(rules, url)[0] != url


def test_values_that_begin_with_few_words_are_let_through_by_word() -> None:
    rules = learned([f"{WORDS[n % 3]}%20%3D%20{n}" for n in range(150)])
    assert known(rules, "RefersTo%20%3D%209999")
    assert known(rules, "MemberOf%20%3D%209999")
    assert not known(rules, "Queue%20%3D%209999")


def test_a_word_that_was_hardly_tried_is_not_let_through() -> None:
    values = [f"{WORDS[n % 3]}%20%3D%20{n}" for n in range(150)]
    values += [f"Queue%20%3D%20{n}" for n in range(EACH - 1)]
    assert not known(learned(values), "Queue%20%3D%209999")


def test_identifiers_and_titles_take_any_value() -> None:
    assert known(learned([str(n) for n in range(150)]), "new")
    titles = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}_page" for n in range(150)]
    assert known(learned(titles), "zz_other")


def test_a_form_whose_pages_differ_does_not_hold_the_others_back() -> None:
    learner = Learner("rt.example")
    values = [f"{WORDS[n % 3]}%20%3D%20{n}" for n in range(150)]
    pages = [Page(f"{HOST}/Results.html?Query={value}", 7) for value in values]
    pages += [Page(f"{HOST}/Results.html?Query=Queue%20{n}", 100 + n) for n in range(5)]
    learner.observe(pages)
    rules = learner.learn(1)
    assert rules is not None
    assert known(rules, "RefersTo%20%3D%209999")
    assert not known(rules, "Queue%209999")


def test_a_word_ends_where_the_values_that_were_tried_go_on() -> None:
    rules = learned([f"new-{n}" for n in range(150)])
    assert known(rules, "new-999")
    assert not known(rules, "newest-1")
    assert not known(rules, "news")


def test_a_word_and_a_number_says_nothing_of_longer_words() -> None:
    rules = learned([f"p{n}" for n in range(150)])
    assert known(rules, "p999")
    assert not known(rules, "print")


def test_a_word_that_begins_another_whose_pages_differ_leaves_them_alone() -> None:
    pages = [(f"{HOST}/Results.html?Query=new-{n}", 7) for n in range(150)]
    pages += [(f"{HOST}/Results.html?Query=newest-{n}", 100 + n) for n in range(12)]
    rules = learned_of("rt.example", pages)
    assert known(rules, "new-999")
    assert not known(rules, "newest-1")


def test_no_family_is_told_where_it_would_take_in_pages_that_differ() -> None:
    pages = [(f"{HOST}/Results.html?Query=new{n}x", 7) for n in range(150)]
    assert known(learned_of("rt.example", pages), "new999x")
    pages += [(f"{HOST}/Results.html?Query=newest-{n}", 100 + n) for n in range(12)]
    assert not known(learned_of("rt.example", pages), "newest-1")


def test_the_page_of_all_forms_may_change_from_crawl_to_crawl() -> None:
    learner = Learner("rt.example")
    values = [f"{WORDS[n % 3]}%20{n}" for n in range(160)]
    pages = [Page(f"{HOST}/Results.html?Query={value}", 7, crawl="one") for value in values]
    learner.observe(pages[:150])
    learner.learn(1)
    before = {rule.id for rule in learner.rules}
    assert len(before) == len(WORDS)
    learner.observe(replace(page, content=8, crawl="two") for page in pages[150:])
    learner.learn(2)
    assert {rule.id for rule in learner.rules} == before
