"""Skips by rules that write one stated part of a path for another: how many may rest on how few trials.

``/en-ca/x`` shows what ``/en-au/x`` does until somebody writes for Canada. If a share p of the pages differs, n trials
that agree come about with probability e^(-pn), and of s skips ps are wrong: no more than s/(en) are expected, whatever
p is (it is largest at p = 1/n). What a rule kept out is fetched once the rule is withdrawn, so it does not matter when
pages are tried, but how many are. Such a rule is tried further as soon as its skips are `SKIPS` for each trial: at most
1.5 wrong ones are expected then. From many trials on (`trial_budget`) skips may grow with their square, for one wrong
skip in several hundred: of 1,000 would-be skips 130 are tried, of 20,000 are 680. (It goes on, since pages that are
fetched late may differ more often than those that made the rule.) After a trial that differed twice as many are, and so
on. What counts are pages whose path was not tried: where a list was fetched under both names, another order of it is
nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from clusterd_crawler.rules import Key, Rule
from clusterd_crawler.skipping.trial_budget import TrialBudget

#: Skips for each trial.
SKIPS: Final = 4


class Renaming(TrialBudget):
    """The rules in use that rename a part of a path, and how many skips rest on each."""

    each = SKIPS

    def __init__(self) -> None:
        super().__init__()
        #: Ids of the rules that let any value of some parameter pass: what was tried says nothing of the next one.
        self._any_value: set[str] = set()

    def agreed(self, rule: Rule) -> float | None:
        """Return the pages that agreed."""
        return rule.support if _renames(rule) else None

    def load(self, gone: Sequence[Rule], rules: Sequence[Rule], awaited: Mapping[str, int]) -> None:
        """Take rules in the place of others; ``awaited``: how many trials of each are on their way."""
        super().load(gone, rules, awaited)
        self._any_value -= {rule.id for rule in gone}
        self._any_value |= {rule.id for rule in rules if rule.id in self and _takes_any_value(rule)}

    def asks(self, rule: str, explored: int, tried: bool) -> bool:
        """Whether a would-be skip is to be fetched; ``tried``: a page of its path was fetched under both names."""
        return super().asks(rule, explored, tried and rule not in self._any_value)


def path_of(url: str) -> str:
    """Return a URL, or a key, without its query."""
    return url.partition("?")[0]


def _renames(rule: Rule) -> bool:
    """Whether a rule exchanges stated components of a path, or drops them (and parameters), on whatever pages."""
    stated = {known.key for known in rule.context if known.test == "is" and any(known.values)}
    edits = [edit for edit in rule.transformation if edit.key.is_of_path or edit.op != "delete"]
    changes = all(edit.op == "delete" or (edit.op == "set" and edit.value) for edit in edits)
    places = all(edit.key in stated and edit.key.is_of_path for edit in edits)
    closed = any(known.key == Key() and known.test in {"is", "in"} for known in rule.context)
    return bool(edits) and changes and places and not (closed and not _takes_any_value(rule))


def _takes_any_value(rule: Rule) -> bool:
    """Whether a rule lets any value of some parameter pass."""
    asked = {known.key.name for known in rule.context if known.test not in {"only", "any"}}
    allowed = [known.values for known in rule.context if known.test == "only"]
    return not allowed or any(name not in asked for name in allowed[0])
