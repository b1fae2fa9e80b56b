"""What follows an applied batch: verdicts, alerts, evidence for rules, failed fetches, redirects, files, skips.

A fault in one of them (a rule learner that trips over one host, say) is logged and counted, and the partition goes on;
an outage is passed on to the worker, which tries again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from clusterd_consumer.redis_connection import unable
from clusterd_consumer.transport.contract import Transport
from clusterd_consumer.worker import Batch
from clusterd_crawler import topics
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Unreachable, WrongInput
from clusterd_crawler.message import SkipReport
from clusterd_crawler.urls import canonical, differ_by_parameters, parse
from clusterd_crawler.verdict import Verdict, encode_verdict

from clusterd.alert_webhook import WEBHOOK_TIMEOUT
from clusterd.alerts import Alert, Alerts, alerts_of
from clusterd.clusters.contract import NEAR, Outcome
from clusterd.health import Report

if TYPE_CHECKING:
    from clusterd.services import Services

log = logging.getLogger(__name__)

#: The policy that a verdict tells the cluster of, first that is in use.
VERDICT_POLICIES: Final = ("near", "identical")
#: Least resemblance of pages that may be one but for a few words: a number in the midst of 60 words leaves .65.
NEARLY: Final = 0.5
#: Milliseconds that a page may be dated ahead of this machine's clock before that is told, and seconds before again.
AHEAD_MS: Final = 300_000
AHEAD_INTERVAL: Final = 3600.0


#: Something to be done, and what with.
Step = tuple[Any, ...]


class Handing:
    """What follows an applied batch: verdicts, alerts, evidence, skips. Faults are contained, outages are not."""

    def __init__(self, services: Services, transport: Transport, report: Report) -> None:
        self._services = services
        self._transport = transport
        self._report = report
        self._tallies = report.tallies
        self._alerts = Alerts(services.redis, services.config, transport if services.config.uses_kafka() else None)
        self._alerts.try_file()
        #: The batch in hand, and what of it is not done yet.
        self._batch: Batch | None = None
        self._left: deque[Step] = deque()
        #: Until when nothing is said of pages that are dated ahead.
        self._ahead_until = 0.0

    def __call__(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Hand on one batch; where an outage kept it from that, what is left of it. Alerts are told once, however often
        a key of the rule book is asked for that is not to be had, or on a node that is away.
        """
        if batch is not self._batch:
            self._left = deque(self._steps(batch, list(outcomes), outcomes))
            self._batch = batch
        while self._left:
            self._contained(*self._left[0])
            self._left.popleft()
        self._batch = None

    def _steps(self, batch: Batch, told: list[Outcome], outcomes: Sequence[Outcome]) -> Iterator[Step]:
        yield self._recall, batch, told
        yield self._answer, batch, told
        yield self._alert, batch, told
        if batch.sketches:
            yield self._tell_ahead, batch
            yield self._services.rulebook.observe, batch.sketches, outcomes
        if batch.failures:
            yield self._services.rulebook.note_failures, batch.failures
        if batch.redirects:
            yield self._services.rulebook.note_redirects, batch.redirects
        if batch.files:
            yield self._services.rulebook.note_files, batch.files
        if batch.skips:
            yield self._record_skips, batch.skips

    def close(self, seconds: float = WEBHOOK_TIMEOUT) -> None:
        """Close the sinks of alerts; what waits for a web address gets so many seconds."""
        self._alerts.close(seconds)

    def _tell_ahead(self, batch: Batch) -> None:
        """Say that a crawl's clock is wrong: until a page's date, no other fetch of its URL becomes the current one.

        Of pages of no crawl the command says so that brought them in.
        """
        latest = max(batch.sketches, key=lambda sketch: sketch.fetched_at if sketch.crawl else 0)
        ahead = latest.fetched_at - now_ms()
        if not latest.crawl or ahead <= AHEAD_MS or time.monotonic() < self._ahead_until:
            return
        self._ahead_until = time.monotonic() + AHEAD_INTERVAL
        log.warning(
            "%s of crawl %s is dated %d s ahead of this machine's clock; what is fetched of its URL before that date "
            "counts as older",
            latest.url,
            latest.crawl,
            ahead // 1000,
        )

    def _recall(self, batch: Batch, told: list[Outcome]) -> None:
        """Look up the match of pages that have company and were not compared.

        Of a page that comes again the index told it once, to who may have died since; one that shows what it did, in
        the next crawl, is looked up nowhere; and of two that bring one content at once each is told of the other.
        """
        places = [
            place
            for place, (sketch, record, one) in enumerate(zip(batch.sketches, batch.records, told, strict=True))
            if one.match is None and one.clusters and (sketch.wants_verdict or one.changes or record.again)
        ]
        matches = self._services.index.matches([batch.sketches[place] for place in places]) if places else []
        for place, hit in zip(places, matches, strict=True):
            if hit:
                told[place] = told[place]._replace(match=hit.url, resemblance=hit.resemblance)

    def _answer(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Send the verdicts that crawls wait for."""
        at = now_ms()
        identity = self._services.rule_identity
        for sketch, outcome in zip(batch.sketches, outcomes, strict=True):
            if sketch.wants_verdict:
                told = verdict(sketch.crawl, outcome, nearly=is_nearly_its_match(outcome, identity))
                self._transport.publish(topics.VERDICTS, sketch.crawl.encode(), encode_verdict(told))
                self._tallies.answered.add((at - sketch.fetched_at) / 1000)

    def _alert(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        at = now_ms()
        alerts: list[Alert] = []
        for record, outcome in zip(batch.records, outcomes, strict=True):
            alerts += alerts_of(outcome, at, record.again)
        self._alerts.publish(alerts)
        self._tallies.alerts.update(alert.event for alert in alerts)

    def _record_skips(self, skips: Sequence[SkipReport]) -> None:
        self._services.rulebook.record_skips(skips)
        self._tallies.skips += len(skips)

    def _contained(self, work: Callable[..., Any], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:
            if isinstance(error, Unreachable) or unable(error):
                raise
            log.exception("%s failed; the stream goes on", getattr(work, "__qualname__", work))
            self._report.fail(f"{type(error).__name__}: {error}")


def is_nearly_its_match(outcome: Outcome, identity: str = "identical") -> bool:
    """Whether a page resembles its best match, and no rule will bring them together, though only parameters differ.

    ``identity``: by which pages count as the same. By their words or without numbers, it is not known of the match.
    """
    if outcome.match is None or outcome.identity == "text" or outcome.resemblance < NEARLY:
        return False
    if identity in {"words", "unnumbered"} or (identity == "near" and NEAR.name in outcome.clusters):
        return False
    try:
        return differ_by_parameters(*(parse(canonical(url)) for url in (outcome.url, outcome.match)))
    except WrongInput:
        return False


def verdict(crawl: str, outcome: Outcome, *, nearly: bool = False) -> Verdict:
    """Return the answer to a crawl: the best match, and the cluster under the first policy in which it has company."""
    policy = next((p for p in (*VERDICT_POLICIES, *outcome.clusters) if p in outcome.clusters), VERDICT_POLICIES[0])
    cluster, size = outcome.clusters.get(policy, (None, 1))
    return Verdict(
        url=outcome.url,
        fetched_at=outcome.fetched_at,
        crawl=crawl,
        match=outcome.match,
        resemblance=outcome.resemblance,
        cluster=cluster,
        policy=policy,
        size=size,
        nearly=nearly,
    )
