"""What is learned of the paths of one host, and the keys of others under it."""

from __future__ import annotations

from collections.abc import Iterable

from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet

from tests.crawler.made_rules import key_under

HOST = "example.com"


def learned(paths: Iterable[tuple[str, int]]) -> RuleSet:
    """Return the rules that a learner makes of (path, content), learning once at the end."""
    learner = Learner(HOST)
    learner.observe(Page(f"http://{HOST}/{path}", content) for path, content in paths)
    return learner.learn(1) or RuleSet(HOST, 0, ())


def key(rules: RuleSet, path: str) -> str:
    """Return the key of a path."""
    return key_under(rules, f"http://{HOST}/{path}")[0]
