"""The rule book in memory: for tests, replays and as the measure of the one on Redis."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import RuleSet

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.contract import SKIPS_LIMIT, Evidence, HostRules


@dataclass(slots=True)
class _Log:
    """A host's evidence; ``generation`` rises whenever the log is rewritten."""

    pages: list[Page] = field(default_factory=list)
    generation: int = 0
    shared: int = 0


class MemoryRuleBook:
    """Keeps everything in dictionaries. Not for several threads at once."""

    def __init__(self, *, skips_limit: int = SKIPS_LIMIT) -> None:
        self._logs: dict[str, _Log] = {}
        self._changed: Counter[str] = Counter()
        self._leases: dict[str, tuple[str, float]] = {}
        self._hosts: dict[str, HostRules] = {}
        self._offers: dict[str, RuleSet] = {}
        self._announced: dict[str, int] = {}
        self._sites: dict[str, set[str]] = {}
        self._skips: deque[SkipReport] = deque(maxlen=skips_limit)
        self._seen: deque[set[SkipReport]] = deque([set(), set()], maxlen=2)
        self._seen_limit = skips_limit
        self._counts: Counter[str] = Counter()

    def add_pages(self, pages: Mapping[str, Sequence[Page]]) -> None:
        """Append to the evidence of hosts."""
        for host, added in pages.items():
            self._logs.setdefault(host, _Log()).pages.extend(added)
            self._changed[host] += 1

    def evidence(self, host: str, after: str = "") -> Evidence:
        """Return what was added after a mark."""
        log = self._logs.get(host, _Log())
        generation, _, start = after.partition(":")
        continued = generation == str(log.generation)
        pages = log.pages[int(start) :] if continued else log.pages
        total = len(log.pages)
        return Evidence(tuple(pages), f"{log.generation}:{total}", continued, total, blocks=1 if total else 0)

    def rewrite(self, host: str, upto: str, pages: Sequence[Page]) -> str:
        """Put ``pages`` in the place of the log up to a mark."""
        log = self._logs.get(host, _Log())
        generation, _, end = upto.partition(":")
        if generation != str(log.generation):
            return ""
        log.pages[: int(end)] = pages
        log.generation += 1
        return f"{log.generation}:{len(pages)}"

    def shared(self, host: str) -> int:
        """Return up to which fetch time the host's pages were published."""
        return self._logs.get(host, _Log()).shared

    def note_shared(self, host: str, upto: int) -> None:
        """Note up to which fetch time the host's pages have been published."""
        self._logs.setdefault(host, _Log()).shared = upto

    def changed(self) -> dict[str, int]:
        """Return the hosts with evidence that no learner has looked at."""
        return dict(self._changed)

    def looked_at(self, host: str, times: int) -> None:
        """Take a host off `changed`, unless it was added to since."""
        if self._changed[host] <= times:
            del self._changed[host]

    def lease(self, host: str, owner: str, seconds: float) -> bool:
        """Take or prolong the sole right to learn a host."""
        now = time.monotonic()
        holder, until = self._leases.get(host, (owner, 0.0))
        if holder != owner and until > now:
            return False
        self._leases[host] = (owner, now + seconds)
        return True

    def release(self, host: str, owner: str) -> None:
        """Give a lease back."""
        if self._leases.get(host, ("", 0.0))[0] == owner:
            del self._leases[host]

    def load(self, host: str) -> HostRules:
        """Return what the book holds of a host's rules."""
        return self._hosts.get(host) or HostRules.empty(host)

    def version(self, host: str) -> int:
        """Return the version of a host's rules."""
        return self.load(host).rules.version

    def versions(self, hosts: Sequence[str]) -> list[int]:
        """Return the version of each host's rules."""
        return [self.version(host) for host in hosts]

    def save(self, state: HostRules, before: HostRules) -> bool:
        """Store a host's rules where nobody has saved any since ``before`` was loaded."""
        host = state.rules.host
        if self.load(host).revision != before.revision:
            return False
        self._hosts[host] = replace(state, revision=before.revision + 1)
        return True

    def offer(self, rules: RuleSet) -> None:
        """Put a rule set where crawlers load it from at their start."""
        known = self._offers.get(rules.host)
        if known is None or known.version < rules.version:
            self._offers[rules.host] = rules

    def note_site(self, group: str, site: str) -> None:
        """Note that a group has a site."""
        self._sites.setdefault(group, set()).add(site)

    def sites(self, group: str) -> list[str]:
        """Return the sites of a group."""
        return sorted(self._sites.get(group, ()))

    def offered(self, host: str) -> RuleSet | None:
        """Return what crawlers would load."""
        return self._offers.get(host)

    def note_announced(self, host: str, version: int) -> None:
        """Note that a version of a host's rules has arrived in the log."""
        self._announced[host] = version

    def announced(self, host: str) -> int:
        """Return the version of a host's rules that is known to have arrived in the log."""
        return self._announced.get(host, 0)

    def hosts(self) -> list[str]:
        """Return the hosts of which rules are known."""
        return sorted(self._hosts)

    def host_of(self, rule: str) -> str | None:
        """Return the host of a rule id."""
        return next((host for host, state in self._hosts.items() if rule in state.entries), None)

    def add_skips(self, reports: Sequence[SkipReport]) -> int:
        """Log and count skips, each once."""
        new = 0
        for report in reports:
            if any(report in seen for seen in self._seen):
                continue
            if len(self._seen[-1]) >= self._seen_limit:
                self._seen.append(set())
            self._seen[-1].add(report)
            self._skips.append(report)
            self._counts[report.rule] += 1
            new += 1
        return new

    def skips(self, rule: str = "") -> Iterator[SkipReport]:
        """Yield the skips that can still be listed, in the order in which they arrived."""
        return (skip for skip in list(self._skips) if rule in {"", skip.rule})

    def skip_counts(self) -> dict[str, int]:
        """Return the number of skips by rule since the beginning."""
        return dict(self._counts)
