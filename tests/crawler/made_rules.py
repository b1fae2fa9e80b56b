"""Rules made for tests."""

from __future__ import annotations

from typing import Any

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet, rule_id

HOST = "example.com"
SID = Key(name="sid")


def rule(context: list[Condition], edits: list[Edit], host: str = HOST, **more: Any) -> Rule:
    return Rule(rule_id(host, tuple(context), tuple(edits)), host, tuple(context), tuple(edits), **more)


def rule_set(*rules: Rule, host: str = HOST) -> RuleSet:
    return RuleSet(host, 1, rules)


def key_under(rules: RuleSet, url: str) -> tuple[str, tuple[str, ...]]:
    """Return a URL's key under one rule set."""
    keys = Keys()
    keys.load(rules)
    return keys.key(url)


DROP_SID = rule([Condition(SID, "any")], [Edit(SID, "delete")])
