"""Which rule has taken a retired one's place: the evidence of the one is brought together by the other.

As pages come, the learner says the same thing in another way: with more values in a context, for a folder where it was
for a path, as one rule where there were three. Each way is a rule with an id of its own, and the history of the one
that went names the one that came.

Cost: the keys of the `PAIRS` pairs of each rule that went, under all rules of the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Rule, RuleSet

#: Pairs of agreeing pages of a rule that its successor has to bring together.
PAIRS: Final = 6


def successors(gone: Iterable[Rule], said: Sequence[Rule]) -> dict[str, str]:
    """Return, of the rules that went, those whose place another has taken: id → the other's id."""
    keys = Keys(conditional=True)
    if said:
        keys.load(RuleSet(said[0].host, 1, tuple(said)))
    found = ((rule.id, _bringing_together(rule, keys)) for rule in gone)
    return {rule: other for rule, other in found if other}


def _bringing_together(rule: Rule, keys: Keys) -> str:
    """Return the rule by which all agreeing pairs of another have one key, "" where they have not."""
    pairs = [(first, second) for first, second, agreed in rule.evidence if agreed][:PAIRS]
    applied: Counter[str] = Counter()
    for first, second in pairs:
        (one, by_one), (other, by_other) = keys.key(first), keys.key(second)
        if one != other:
            return ""
        applied.update({*by_one, *by_other})
    return max(sorted(applied), key=applied.__getitem__, default="")
