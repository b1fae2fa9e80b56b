"""A host's rules as bytes, for the store: the published set as JSON, and every rule with its history.

The entries are zlib over JSON: ``{"rules": {…}, "history": {id: [[at, state, by, reason], …]}}``, where ``rules`` is a
rule set of all rules, retired ones too, in the published format (`clusterd_crawler.rule_language.json_form`).
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Final

from clusterd_crawler.rule_language.json_form import rule_set_from_json, rule_set_to_json
from clusterd_crawler.rules import RuleSet

from clusterd.learning.rulebook.contract import Entry, HostRules, Turn

ZLIB_LEVEL: Final = 6


def rules_to_bytes(rules: RuleSet) -> bytes:
    """Return a rule set as it is published on `topics.RULES`: without evidence, which a crawl has no use for."""
    bare = replace(rules, rules=tuple(replace(rule, evidence=()) for rule in rules.rules))
    return json.dumps(rule_set_to_json(bare), ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def rules_from_bytes(data: bytes) -> RuleSet:
    """Read a published rule set."""
    return rule_set_from_json(json.loads(data))


def entries_to_bytes(state: HostRules) -> bytes:
    """Return all entries of a host."""
    every = replace(state.rules, rules=tuple(entry.rule for entry in state.entries.values()))
    history = {
        rule: [[turn.at, turn.state, turn.by, turn.reason] for turn in entry.history]
        for rule, entry in state.entries.items()
    }
    text = json.dumps({"rules": rule_set_to_json(every), "history": history}, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), ZLIB_LEVEL)


def entries_from_bytes(data: bytes) -> dict[str, Entry]:
    """Read all entries of a host, in their order."""
    read = json.loads(zlib.decompress(data))
    history = read["history"]
    return {
        rule.id: Entry(rule, tuple(Turn(*turn) for turn in history.get(rule.id, ())))
        for rule in rule_set_from_json(read["rules"]).rules
    }
