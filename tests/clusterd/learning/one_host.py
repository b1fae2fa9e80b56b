"""What is learned of the paths of one host, and the keys of others under it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.exploring import Exploring

from tests.crawler.made_rules import key_under

HOST = "example.com"


def learned_of(host: str, pages: Iterable[tuple[str, int]]) -> RuleSet:
    """Return the rules that a host's learner makes of (URL, content), learning once at the end."""
    learner = Learner(host)
    learner.observe(Page(url, content) for url, content in pages)
    return learner.learn(1) or RuleSet(host, 0, ())


def learned(paths: Iterable[tuple[str, int]]) -> RuleSet:
    """Return the rules that are learned of (path, content)."""
    return learned_of(HOST, ((f"http://{HOST}/{path}", content) for path, content in paths))


def key(rules: RuleSet, path: str) -> str:
    """Return the key of a path."""
    return key_under(rules, f"http://{HOST}/{path}")[0]


def same(rules: RuleSet, first: str, second: str) -> bool:
    """Say whether two paths have one key."""
    return key(rules, first) == key(rules, second)


def explored_more(rules: RuleSet, paths: Sequence[str]) -> bool:
    """Say whether more of these are explored by what the first rule says of its trials than by the share alone."""
    share, urls = 0.005, [f"http://{HOST}/{path}" for path in paths]
    exploring, plain = Exploring(share), Exploring(share)
    exploring.load((), rules.rules, lambda url: (), Counter())
    explored = [sum(one.explores(url, rules.rules[0].id, url, 0) for url in urls) for one in (exploring, plain)]
    return explored[0] > 2 * explored[1]
