"""A joint deletion covers the combinations of parameters that were tried, and no others that the host has."""

from __future__ import annotations

import numpy as np
from clusterd.learning.edits.edit import Drop
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.contexts import refine
from clusterd.learning.trials.tried_together import chosen, lets_through
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.urls import parse

from tests.clusterd.learning.one_host import learned_of
from tests.crawler.made_rules import key_under

HOST = "http://git.example"


def learned(pages: list[tuple[str, int]]) -> RuleSet:
    return learned_of("git.example", ((HOST + url, content) for url, content in pages))


def repository(files: int) -> list[tuple[str, int]]:
    """Return a code browser: of each file the page, at a commit, and at a commit of a branch; of others the branch."""
    pages = []
    for file in range(files):
        url, commit = f"/blame/f{file}", f"id={file % 4}"
        pages += [(url, file), (f"{url}?{commit}", file), (f"{url}?h=old&{commit}", file)]
        pages.append((f"/blame/g{file}?h=old", 1000 + file))
    return pages


def same(rules: RuleSet, first: str, second: str) -> bool:
    return key_under(rules, HOST + first)[0] == key_under(rules, HOST + second)[0]


def test_what_was_tried_together_says_nothing_of_one_alone() -> None:
    rules = learned(repository(60))
    assert same(rules, "/blame/f7?id=3", "/blame/f7")
    assert same(rules, "/blame/f7?h=old&id=3", "/blame/f7")
    assert not same(rules, "/blame/g7?h=old", "/blame/g7")


def test_what_was_tried_alone_is_covered_alone() -> None:
    pages = repository(60)
    pages += [(f"/blame/g{file}", 1000 + file) for file in range(60)]
    assert same(learned(pages), "/blame/g7?h=old", "/blame/g7")


def test_a_parameter_does_not_live_on_the_record_of_another() -> None:
    # Given: a forum whose posts lead to their topic, and a few of whose topics are linked without their forum as well.
    pages = []
    for topic in range(60):
        url = f"/viewtopic.php?f={topic % 7}&t={topic}"
        pages += [(f"{url}&p={topic}{post}", topic) for post in range(3)]
        pages += [(f"/viewtopic.php?t={topic}", topic)] if topic < 12 else []
    evidence = Evidence()
    for url, content in pages:
        evidence.add(HOST + url, content, parse(HOST + url))
    # When, then: that the post may go has 120 trials, that the forum may go has twelve.
    assert refine(Snapshot(evidence), Drop((("p", 1),))) is not None
    assert refine(Snapshot(evidence), Drop((("f", 1), ("p", 1)))) is None


def test_combinations_are_taken_without_letting_another_through() -> None:
    assert chosen([0b01, 0b11], np.array([0b10])) == [0b01, 0b11]
    assert chosen([0b01, 0b10], np.array([0b11])) == [0b01]
    assert chosen([0b101, 0b110], np.zeros(0, np.int64)) == [0b101, 0b110]


def test_conditions_on_each_parameter_let_all_between_through() -> None:
    patterns = np.arange(8)
    assert patterns[lets_through([0b001, 0b111], patterns)].tolist() == [0b001, 0b011, 0b101, 0b111]
    assert patterns[lets_through([0b010], patterns)].tolist() == [0b010]
