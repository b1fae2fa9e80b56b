"""The contract of the rule book: evidence, rules with their history, skips. In memory and on Redis.

Everything is kept per host and one host's pages reach nothing of another's. Every write may be repeated after a crash
(at-least-once delivery): pages seen again replace what was known of their URL, skips are counted once, and a rule set
is saved by compare-and-set on its version, so that of two workers that learned at once only one is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from clusterd.learning.contract import Page
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Rule, RuleSet, State

#: Pages of evidence kept for one host; beyond it `evidence.reservoir` chooses (100,000 pages pack to about 5 MB).
EVIDENCE_LIMIT: Final = 100_000
#: Skips that can be listed, over all hosts; older ones stay counted by rule.
SKIPS_LIMIT: Final = 100_000
#: Retired rules remembered for one host, and changes of state remembered for one rule.
RETIRED_LIMIT: Final = 500
HISTORY_LIMIT: Final = 50
#: URLs that an operator may exempt on one host; beyond it the rule should be retired instead.
UNSKIP_LIMIT: Final = 10_000

#: Who changed a rule's state. What ``relearned`` retired may come back by itself, the rest may not.
By = Literal["learner", "watch", "relearned", "hand", "import"]


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


@dataclass(frozen=True, slots=True)
class HostRules:
    """All that the book holds of one host's rules: the set as published, and every entry with the retired ones."""

    rules: RuleSet
    entries: Mapping[str, Entry] = field(default_factory=dict)

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


class RuleBook(Protocol):
    """Where evidence, rules and skips are kept. Client-library errors leave as `errors.Unreachable`."""

    def add_pages(self, host: str, pages: Sequence[Page]) -> int:
        """Append to a host's evidence and mark the host as changed; return how many pages its log holds now."""
        ...

    def evidence(self, host: str, after: str = "") -> Evidence:
        """Return what was added after a mark (all, where the mark is empty or the log was rewritten since)."""
        ...

    def rewrite(self, host: str, upto: str, pages: Sequence[Page]) -> bool:
        """Put ``pages`` in the place of the log up to a mark; False where it was rewritten since by another."""
        ...

    def changed(self) -> list[str]:
        """Return the hosts with evidence that no learner has looked at."""
        ...

    def looked_at(self, host: str) -> None:
        """Take a host off `changed`; to be called before its evidence is read, so that nothing is missed."""
        ...

    def lease(self, host: str, owner: str, seconds: float) -> bool:
        """Take or prolong the sole right to learn a host; False while another owner has it."""
        ...

    def release(self, host: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is another's by now."""
        ...

    def load(self, host: str) -> HostRules:
        """Return what the book holds of a host's rules (`HostRules.empty` where nothing)."""
        ...

    def save(self, state: HostRules) -> bool:
        """Store a host's rules where the stored version is the one just before; False where it is another."""
        ...

    def offer(self, rules: RuleSet) -> None:
        """Put a rule set where crawlers load it from at their start, unless a later version lies there already."""
        ...

    def hosts(self) -> list[str]:
        """Return the hosts of which rules are known, retired ones included, sorted."""
        ...

    def host_of(self, rule: str) -> str | None:
        """Return the host of a rule id."""
        ...

    def add_skips(self, reports: Sequence[SkipReport]) -> int:
        """Log and count skips, each once however often it is delivered; return how many were new."""
        ...

    def skips(self, rule: str = "", since: int = 0) -> Iterator[SkipReport]:
        """Yield the skips that can still be listed, oldest first (of one rule; at or after a time, Unix ms)."""
        ...

    def skip_counts(self) -> dict[str, int]:
        """Return the number of skips by rule since the beginning; no bound ever drops one."""
        ...
