"""What a learner sees and says: pages of one host in, rule sets out. Pure: no Redis, no Kafka, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from clusterd_crawler.purpose import ANYONE, Purpose
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Name

State = Literal["good", "soft", "failed", "redirected", "file"]
#: Of what says something of its URL: a good page does, and a file, that its URL is not a page's.
WITNESSES: Final = frozenset[State]({"good", "file"})
#: Of a group of hosts: sites that are compared, those met first; pages that are taken, those fetched first.
SITES: Final = 64
PAGES: Final = 200_000


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched page as the learner sees it."""

    url: str
    #: What the page is: pages of a host with an equal identity show the same content (by the policy that is judged by).
    content: int
    #: Number of tokens.
    words: int = 0
    names: tuple[Name, ...] = ()
    fetched_at: int = 0
    #: Fetched to watch this rule, instead of skipping it for ``instead_of``.
    explored: str = ""
    instead_of: str = ""
    #: The crawl that fetched it, of whose crawlers it may justify skips; "" where it justifies none.
    crawl: str = ""
    #: What came: a page; one that says it is none, or nothing, which justify no skip and are shown to no learner; a
    #: file, which justifies none either; or the address of another page, as which it is shown once that is known
    #: (`rulebook.arrivals`).
    state: State = "good"
    #: What the crawl fetched it for, which matters to the crawls alone.
    purpose: Purpose = ANYONE
    #: Of what was redirected: to which page.
    target: str = ""
    #: Of a page that watches a rule: its crawl had met what it shows, on pages that its learner is not shown.
    repeats: bool = False

    @property
    def is_witness(self) -> bool:
        """Whether it says something of its URL."""
        return self.state in WITNESSES


class HostLearner(Protocol):
    """Learns one host's rules as its pages come. The same class serves the daemon and the replay."""

    def observe(self, pages: Iterable[Page]) -> None:
        """Take pages in the order in which they were fetched. A URL seen again replaces what was known of it.

        One that failed takes back what its crawl has shown of its URL: of that the spider made nothing, or asked for
        it again.
        """
        ...

    def due(self) -> bool:
        """Whether the evidence changed enough that learning again is worth its cost."""
        ...

    def learn(self, at: int) -> RuleSet | None:
        """Learn; return the new rule set where it differs from the one before, else None."""
        ...

    def retire(self, rule: str, reason: str) -> RuleSet:
        """Retire a rule (by hand); it does not come back from the evidence that made it."""
        ...

    def pin(self, rule: str, at: int) -> RuleSet:
        """Keep a rule whatever the watch says."""
        ...
