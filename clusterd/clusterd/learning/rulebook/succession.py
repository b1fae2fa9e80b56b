"""Which rule has taken a retired one's place, or would: the evidence of the one is brought together by the other.

As pages come, the learner says the same thing in another way: with more values in a context, for a folder where it was
for a path, as one rule where there were three. Each way is a rule with an id of its own, and the history of the one
that went names the one that came. After an operator retired the one, the other may not come (`alike`).

Cost: the keys of the `PAIRS` pairs of each rule that went, under all rules of the host; of each that an operator
retired, once more under each rule that is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Key, Rule, RuleSet

#: Pairs of agreeing pages of a rule that its successor has to bring together.
PAIRS: Final = 6


def successors(gone: Iterable[Rule], said: Sequence[Rule]) -> dict[str, str]:
    """Return, of the rules that went, those whose place another has taken: id → the other's id."""
    keys = Keys(conditional=True)
    if said:
        keys.load(RuleSet(said[0].host, 1, tuple(said)))
    found = ((rule.id, _bringing_together(rule, keys)) for rule in gone)
    return {rule: other for rule, other in found if other}


def alike(retired: Sequence[tuple[Rule, Rule]], said: Iterable[Rule]) -> dict[str, str]:
    """Return, of the rules said, those that do by themselves what one that was retired did: id → the other's id.

    ``retired``: a rule that an operator retired, and itself or what it was said as since. One agreeing pair is enough,
    since the learner may say as several rules what was one. What it was said as may do more: that is not barred.
    """
    found = {}
    for rule in said if retired else ():
        keys = Keys(conditional=True)
        keys.load(RuleSet(rule.host, 1, (rule,)))
        for other, form in retired:
            speaks = form is other or _edited(rule) & _edited(other)
            if speaks and any(_as_one(keys, pair) for pair in _agreeing(form)):
                found[rule.id] = other.id
                break
    return found


def _edited(rule: Rule) -> set[Key]:
    return {edit.key for edit in rule.transformation}


def _agreeing(rule: Rule) -> list[tuple[str, str]]:
    return [(first, second) for first, second, agreed in rule.evidence if agreed][:PAIRS]


def _as_one(keys: Keys, pair: tuple[str, str]) -> bool:
    (one, by_one), (other, by_other) = map(keys.key, pair)
    return one == other and bool(by_one or by_other)


def _bringing_together(rule: Rule, keys: Keys) -> str:
    """Return the rule by which all agreeing pairs of another have one key, "" where they have not."""
    applied: Counter[str] = Counter()
    for first, second in _agreeing(rule):
        (one, by_one), (other, by_other) = keys.key(first), keys.key(second)
        if one != other:
            return ""
        applied.update({*by_one, *by_other})
    return max(sorted(applied), key=applied.__getitem__, default="")
