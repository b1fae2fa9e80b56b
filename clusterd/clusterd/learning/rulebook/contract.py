"""The contract of the rule book: evidence, rules with their history, skips. It is on Redis (`redis`).

Everything is kept per host and one host's pages reach nothing of another's, but for mirrors within one registrable
domain (`groups`). Every write may be repeated after a crash (at-least-once delivery): pages seen again replace what was
known of their URL, skips are counted once, and a rule set is saved by compare-and-set on its revision, so that of two
that change it at once the second looks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from clusterd_crawler.message import SkipReport
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


class RuleBook(Protocol):
    """Where evidence, rules and skips are kept. Client-library errors leave as `errors.Unreachable`."""

    def add_pages(self, pages: Mapping[str, Sequence[Page]]) -> None:
        """Append to the evidence of hosts (host → pages) and mark the hosts as changed."""
        ...

    def evidence(self, host: str, after: str = "") -> Evidence:
        """Return what was added after a mark (all, where the mark is empty or the log was rewritten since)."""
        ...

    def grown(self, marks: Mapping[str, str]) -> list[str]:
        """Return the hosts whose evidence is another than at these marks (host → mark), in one round trip."""
        ...

    def rewrite(self, host: str, upto: str, pages: Sequence[Page], gone: Mapping[str, bytes] | None = None) -> str:
        """Put ``pages`` in the place of the log up to a mark; return the mark after them.

        ``gone``: what crawls have met on pages that these lack (`met.cut_contents`), which is kept of them. Empty, with
        nothing done, where another has rewritten the log since.
        """
        ...

    def met(self, host: str) -> dict[str, list[bytes]]:
        """Return what crawls have met on pages that were cut from the log, part by part.

        It is kept up to `met.BYTES`, of the crawls of which pages were cut last; of one before them a part is empty.
        """
        ...

    def shared(self, host: str) -> int:
        """Return up to which fetch time (Unix ms) the host's pages were published to the crawls, 0 where none were."""
        ...

    def note_shared(self, host: str, upto: int) -> None:
        """Note up to which fetch time the host's pages have been published."""
        ...

    def changed(self) -> dict[str, int]:
        """Return the hosts with evidence that no learner has looked at, and how many pages of it each has."""
        ...

    def looked_at(self, host: str, pages: int) -> None:
        """Take so many pages off what is `changed` of a host, and the host where none is left."""
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

    def entries(self, hosts: Sequence[str]) -> Iterator[Entry]:
        """Yield every entry of these hosts, host by host, many hosts in a round trip."""
        ...

    def version(self, host: str) -> int:
        """Return the version of a host's rules, 0 where there are none."""
        ...

    def versions(self, hosts: Sequence[str]) -> list[int]:
        """Return the version of each host's rules, at once."""
        ...

    def save(self, state: HostRules, before: HostRules) -> bool:
        """Store a host's rules where nobody has saved any since ``before`` was loaded; False where somebody has.

        The version stays where nothing that is published changed, and rises where the crawlers must be told (`turns`).
        """
        ...

    def note_site(self, group: str, site: str) -> None:
        """Note that a group (a registrable domain) has a site (scheme and host)."""
        ...

    def sites(self, group: str) -> list[str]:
        """Return the sites of a group, sorted."""
        ...

    def site_counts(self, groups: Sequence[str]) -> list[int]:
        """Return how many sites each group has, in one round trip."""
        ...

    def offered(self, host: str) -> RuleSet | None:
        """Return the rule set that crawlers would load now."""
        ...

    def offer(self, rules: RuleSet) -> None:
        """Put a rule set where crawlers load it from at their start, unless a later version lies there already."""
        ...

    def note_announced(self, host: str, version: int) -> None:
        """Note that a version of a host's rules has arrived in the log."""
        ...

    def announced(self, host: str) -> int:
        """Return the version of a host's rules that is known to have arrived in the log, 0 where none is."""
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

    def skips(self, rule: str = "") -> Iterator[SkipReport]:
        """Yield the skips that can still be listed, in the order in which they arrived (of one rule)."""
        ...

    def skip_counts(self) -> dict[str, int]:
        """Return the number of skips by rule since the beginning; no bound ever drops one."""
        ...
