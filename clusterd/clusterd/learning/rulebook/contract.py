"""What the rule book holds: evidence, rules with their history, skips. It is on Redis (`redis.RuleBook`).

Everything is kept per host and one host's pages reach nothing of another's, but for mirrors within one registrable
domain (`groups`). Every write may be repeated after a crash (at-least-once delivery): pages seen again replace what was
known of their URL, skips are counted once, and a rule set is saved by compare-and-set on its revision, so that of two
that change it at once the second looks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterd_crawler.rules import Rule, RuleSet, State

from clusterd.learning.contract import Page

#: Pages of evidence kept for one host; beyond it `evidence.reservoir` chooses (100,000 pages pack to about 5 MB).
EVIDENCE_LIMIT: Final = 100_000
#: Skips that can be listed, over all hosts; older ones stay counted by rule.
SKIPS_LIMIT: Final = 100_000
#: Retired rules remembered for one host, and changes of state remembered for one rule.
RETIRED_LIMIT: Final = 500
HISTORY_LIMIT: Final = 50
#: URLs that an operator may exempt on one host; beyond it the rule should be retired instead.
UNSKIP_LIMIT: Final = 10_000
#: Bytes that a host's set may have, as it is published, after an operator's change. Kafka takes 2 MB: what it does not
#: take, no crawl is ever told, not of rules that are retired later either. So this leaves room for what is learned.
SET_BYTES: Final = 1_500_000

#: Who changed a rule's state: the learner by saying so, or by no longer naming the rule (``relearned``); the watch, as
#: pages fetched in spite of the rule contradicted it; the operator by hand or by importing a file. What the watch or an
#: operator retired does not come back by itself; nor does what the log says was retired by somebody (``restored``);
#: nor what does the same as a rule that an operator retired (`turns.relearned`).
By = Literal["learner", "relearned", "watch", "hand", "import", "restored"]
#: Why a rule went in whose place another stands, before the id of that one.
REPLACED: Final = "replaced by "


@dataclass(frozen=True, slots=True)
class Turn:
    """A change of a rule's state."""

    #: Unix milliseconds.
    at: int
    state: State
    by: By
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule in the book, with how it came to its state (latest turn last)."""

    rule: Rule
    history: tuple[Turn, ...] = ()

    @property
    def last(self) -> Turn:
        """Return the turn that led to the present state."""
        return self.history[-1] if self.history else Turn(self.rule.since, self.rule.state, "learner")

    @property
    def replaced_by(self) -> str:
        """Return the id of the rule that took the place of this one, which is retired since; "" where none did."""
        said = self.rule.state == "retired" and self.last.reason.startswith(REPLACED)
        return self.last.reason.removeprefix(REPLACED) if said else ""


@dataclass(frozen=True, slots=True)
class HostRules:
    """All that the book holds of one host's rules: the set as published, and every entry with the retired ones."""

    rules: RuleSet
    entries: Mapping[str, Entry] = field(default_factory=dict)
    #: How often it had been saved when it was loaded; set by the book.
    revision: int = field(default=0, compare=False)

    @classmethod
    def empty(cls, host: str) -> HostRules:
        """Return the state of a host of which nothing has been learned: version 0."""
        return cls(RuleSet(host, 0, ()))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A stretch of a host's evidence log."""

    pages: tuple[Page, ...]
    #: Where the next stretch begins.
    mark: str
    #: False where the log was rewritten since the mark that was asked for: these are all its pages, start anew.
    continued: bool = True
    #: What the whole log holds: pages (a URL may be among them more than once) and the blocks that they lie in.
    total: int = 0
    blocks: int = 0
    #: Whether pages were cut from the log, so that `RuleBook.met` may say something.
    was_cut: bool = True
    #: Version of the host's rules at that moment; None where none were saved (`RuleBook.load` would be empty).
    version: int | None = None
