"""How many skips may rest on the trials of each rule, before one of its would-be skips is tried further.

So many skips may rest on each trial (a page that agreed when the rule was learned, or that was explored since); from
`MANY` trials on skips may grow with the square of the trials, for one wrong skip in several hundred. `renaming` has the
argument and takes the rules that rename folders, `resting` those that hold on pages of any path or of one script.

A page counts as a trial from when it is explored, also for a rule that takes the place of its own before the page has
come. After a trial that differed each trial counts for half, after two for a third, and so on. That holds at once, as
the daemon publishes nothing where its evidence still carries the rule. Skips beyond what is then allowed are decided
anew, and most of them fetched.

Cost: a look-up a would-be skip; a number for each rule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clusterd_crawler.rules import Rule

#: Trials from which on skips grow with their square.
MANY: Final = 100


class TrialBudget(ABC):
    """The rules in use of one kind, and how many skips rest on each."""

    #: Skips for each trial.
    each: ClassVar[int]

    def __init__(self) -> None:
        #: Id of a rule → how many trials agreed when it came, and how many did not.
        self._trials: dict[str, tuple[float, int]] = {}
        #: Id of a rule → how many pages had been explored when it came.
        self._explored: dict[str, int] = {}
        self._skips: Counter[str] = Counter()

    @abstractmethod
    def agreed(self, rule: Rule) -> float | None:
        """Return how many trials of a rule agreed; None for one that is not of this kind."""

    def __contains__(self, rule: str) -> bool:
        return rule in self._trials

    def load(self, gone: Sequence[Rule], rules: Sequence[Rule], awaited: Mapping[str, int]) -> None:
        """Take rules in the place of others; ``awaited``: how many trials of each are on their way."""
        for rule in gone:
            self._trials.pop(rule.id, None)
            self._explored.pop(rule.id, None)
        for rule in rules:
            if (agreed := self.agreed(rule)) is not None:
                self._trials[rule.id] = agreed + awaited.get(rule.id, 0), _differed(rule)

    def asks(self, rule: str, explored: int, tried: bool) -> bool:
        """Whether a would-be skip is to be fetched, of a rule of which so many were; count it where not.

        ``tried``: another page of its path was, and agreed.
        """
        if rule not in self._trials or tried:
            return False
        if self._skips[rule] >= self._allowed(rule, explored):
            return True
        self._skips[rule] += 1
        return False

    def differed(self, rule: str, explored: int) -> bool:
        """Count a trial that differed; true where more skips rest on the rule than may: they are to be decided anew."""
        if rule not in self._trials:
            return False
        agreed, differed = self._trials[rule]
        self._trials[rule] = agreed, differed + 1
        if self._skips[rule] <= self._allowed(rule, explored):
            return False
        del self._skips[rule]
        return True

    def _allowed(self, rule: str, explored: int) -> float:
        agreed, differed = self._trials[rule]
        # What had been explored when the rule came is among its trials.
        trials = (agreed + explored - self._explored.setdefault(rule, explored)) / (1 + differed)
        return self.each * trials * max(1, trials / MANY)


def _differed(rule: Rule) -> int:
    """Return how many trials of a rule did not agree."""
    return round(rule.support / rule.precision) - rule.support if rule.precision else 0
