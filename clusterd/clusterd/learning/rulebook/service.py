"""The rule service: evidence in, rule sets out. What the worker calls, and what the command line changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterd.clusters.contract import Outcome
from clusterd.learning.contract import HostLearner
from clusterd.learning.rulebook.contract import EVIDENCE_LIMIT, RuleBook
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Rule, RuleSet
from clusterd_crawler.sketch import Sketch

#: `Transport.publish`: topic, key, value.
Publish = Callable[[str, bytes, bytes], None]


class RuleService:
    """Learns the rules of every host from the evidence that the workers bring, and publishes them."""

    def __init__(
        self,
        book: RuleBook,
        publish: Publish | None = None,
        *,
        make_learner: Callable[[str], HostLearner] | None = None,
        evidence_limit: int = EVIDENCE_LIMIT,
    ) -> None:
        raise NotImplementedError

    def observe(self, sketches: Sequence[Sketch], outcomes: Sequence[Outcome] = ()) -> None:
        """Note the pages of a batch that the index has applied. May be repeated."""
        raise NotImplementedError

    def record_skips(self, reports: Sequence[SkipReport]) -> int:
        """Log and count skips; return how many were new. May be repeated."""
        raise NotImplementedError

    def learn_due(self, now: int) -> list[RuleSet]:
        """Learn every host whose evidence changed enough and that no other worker learns; publish what changed."""
        raise NotImplementedError

    def retire(self, rule: str, at: int, reason: str = "by hand") -> Rule:
        """Retire a rule and publish at once; `errors.NotFound` where there is none of that id."""
        raise NotImplementedError

    def pin(self, rule: str, at: int) -> Rule:
        """Keep a rule whatever the watch says, and publish at once."""
        raise NotImplementedError

    def unskip(self, url: str = "", rule: str = "") -> list[SkipReport]:
        """Have a URL (or all listed skips of a rule) fetched whatever the rules say; publish; return what is undone."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the leases back, so that other workers go on at once."""
        raise NotImplementedError
