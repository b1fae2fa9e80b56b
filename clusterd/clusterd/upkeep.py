"""What can wait, so that no page waits for it: settling of clusters, learning, retention, counting the lag.

A lesson follows another after `LEARN_PAUSE`, or after as long as it took: a small host's first rules are there a moment
after its pages, and learning never takes more than half of this thread.

Asked to stop, the thread begins nothing more; it tells the crawls of the last pages, since one that is paused may go on
before another daemon has learned anything. A step in hand that takes longer than `STOP_SECONDS` (a lesson of a host
of 100,000 pages, a store that does not answer) is left where it is, as by a crash: every step of it may be repeated,
and the worker that takes the host over repeats it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from clusterd_consumer.redis_connection import unable
from clusterd_consumer.worker import FLUSH_TIMEOUT
from clusterd_crawler import topics
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Forbidden, Unreachable

from clusterd.alerts import alerts_of_splits
from clusterd.health import Report

if TYPE_CHECKING:
    from clusterd.services import Services

log = logging.getLogger(__name__)

#: Seconds between two rounds while there is nothing to settle; after one that failed; between two looks at the lag.
UPKEEP_INTERVAL: Final = 0.1
TROUBLE_PAUSE: Final = 1.0
LAG_INTERVAL: Final = 5.0
#: Seconds for which the same failure is not logged again.
SELDOM: Final = 60.0
#: Fewest seconds between the end of a lesson and the next one.
LEARN_PAUSE: Final = 0.2
#: Seconds of a round of upkeep after which no further host's rules are learned.
LEARN_SECONDS: Final = 2.0
#: Seconds that the step in hand gets when the daemon stops.
STOP_SECONDS: Final = 2.0
#: Seconds between two rounds of settling, so that the worker's thread gets its turn.
SETTLE_PAUSE: Final = 0.001
#: Seconds between two rounds of retention.
RETENTION_INTERVAL: Final = 600.0
#: Seconds of a round of upkeep after which retention goes on in the next one, behind settling and learning.
RETENTION_SECONDS: Final = 0.5
DAY_MS: Final = 86_400_000


class Upkeep:
    """What can wait, in a thread with connections of its own."""

    def __init__(self, services: Services, report: Report) -> None:
        self._services = services
        self._report = report
        self._tallies = report.tallies
        self._stop = threading.Event()
        self._due = {"learn": 0.0, "lag": 0.0, "retention": 0.0, "restore": 0.0}
        #: Whether messages were unread when that was last looked at; as long as it was not, they may be.
        self._behind = True
        #: What retention has still to do, and how many versions it has forgotten so far.
        self._expiring: Iterator[int] | None = None
        self._forgotten = 0
        #: Which time that the store came back from the past has been looked after, by learners and by rules; it may be
        #: so at the start.
        self._unlearned = self._restored = -1
        #: Where the log of rules ended when that was last looked at.
        self._rules_written: Mapping[str, int] = {}
        #: What failed last, and until when it is not logged again.
        self._failure, self._silent_until = "", 0.0
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Finish the step in hand; False where it takes longer than so many seconds and is left."""
        self._stop.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            log.warning("what upkeep has in hand takes longer than %g s and is left; it is done again", seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with self._services as services:
            while not self._stop.is_set():
                pause = UPKEEP_INTERVAL
                self._report.upkeep_since = time.monotonic()
                try:
                    if self.round(services) or self._expiring is not None:
                        pause = SETTLE_PAUSE
                except Exception as error:
                    self._tell(error)
                    pause = TROUBLE_PAUSE
                self._report.upkeep_since = 0.0
                self._stop.wait(pause)
            try:
                services.rulebook.share_rest(now_ms())  # they have arrived when the services are closed
            except Exception as error:
                self._tell(error)

    def _tell(self, error: Exception) -> None:
        """Say what failed: of an outage the worker speaks too, but not of a right that only upkeep lacks."""
        away = isinstance(error, Unreachable) or unable(error)
        failure = str(error) if away else f"{type(error).__name__}: {error}"
        self._report.fail(failure)
        now = time.monotonic()
        if failure == self._failure and now < self._silent_until:
            return
        self._failure, self._silent_until = failure, now + SELDOM
        if away:
            log.warning("upkeep waits: %s", failure)
        else:
            log.error("upkeep failed; it is tried again", exc_info=error)

    def round(self, services: Services) -> int:
        """Do what is due; return how much is left to settle that something can be done about by now."""
        try:
            self._work(services)
        finally:  # a store that is full or a lesson that fails keeps nobody from knowing how far behind we are
            if self._is_due("lag", LAG_INTERVAL):
                self._report.lag = lag = services.lag()
                self._behind = lag > 0
                if services.config.metrics_port:
                    self._tallies.held = services.index.counts()
                    self._tallies.clusters = services.index.cluster_counts()
                self._look_for_older_log(services)
        settling = self._report.settling
        return 0 if settling and services.index.only_awaits() else settling

    def _work(self, services: Services) -> None:
        # First what makes room: a store that is full may refuse the rest.
        if services.config.retention:
            self._forget(services)
        self._report.settling = services.index.settle(services.config.settle_steps)
        self._tallies.alerts.update(split=tell_splits(services))
        self._restore(services)  # before any are learned anew
        if self._is_due("learn", LEARN_PAUSE):
            begun = time.monotonic()
            services.handed_over.tell(services.rulebook.sets)
            self._tallies.rule_sets += learn(services, stopping=self._stop.is_set, whole=not self._behind)
            ended = time.monotonic()
            self._due["learn"] = ended + max(LEARN_PAUSE, ended - begun)

    def _forget(self, services: Services) -> None:
        """Forget what is superseded, as far as a round lasts: a large store's first time takes half a minute."""
        if self._expiring is None and self._is_due("retention", RETENTION_INTERVAL):
            self._expiring, self._forgotten = services.index.expiring(retained(services)), 0
        if self._expiring is None:
            return
        ended, going_on = time.monotonic() + RETENTION_SECONDS, self._expiring
        self._expiring = None  # nothing goes on behind a call that fails
        for some in going_on:
            self._forgotten += some
            if time.monotonic() >= ended or self._stop.is_set():
                self._expiring = going_on
                return
        log.info("forgot %d superseded versions", self._forgotten)

    def _look_for_older_log(self, services: Services) -> None:
        """Have rules restored where their log has lost its end, or was made anew: the crawls begin by what it holds."""
        written = services.rules_written()
        if any(written.get(partition, 0) < end for partition, end in self._rules_written.items()):
            log.warning("the log of rules came back without its end")
            self._restored = -1
        self._rules_written = written

    def _restore(self, services: Services) -> None:
        set_backs = self._report.set_backs
        if self._restored == set_backs or time.monotonic() < self._due["restore"]:
            return
        if self._unlearned != set_backs:  # once, however often rules cannot be restored
            services.rulebook.forget()
            self._unlearned = set_backs
        try:
            restore_rules(services)
        except Forbidden as error:  # lessons do not wait for a right that only this needs
            log.warning("rules that the store may have lost are not restored: %s", error)
            self._due["restore"] = time.monotonic() + SELDOM
        else:
            self._restored = set_backs

    def _is_due(self, what: str, interval: float) -> bool:
        now = time.monotonic()
        if now < self._due[what]:
            return False
        self._due[what] = now + interval
        return True


def forget_superseded(services: Services) -> None:
    """Forget the superseded versions that were fetched before the retention, where one is set."""
    if services.config.retention:
        log.info("forgot %d superseded versions", services.index.expire(retained(services)))


def retained(services: Services) -> int:
    """Return since when what is superseded is kept, Unix ms."""
    return now_ms() - int(services.config.retention * DAY_MS)


def tell_splits(services: Services) -> int:
    """Publish an alert of each split that nobody has told yet; return how many. After a crash some are told again."""
    splits = services.index.splits()
    if splits:
        services.publisher.flush(FLUSH_TIMEOUT)  # else each attempt of an outage would add them to file and stream
        services.alerts.publish(alerts_of_splits(splits, now_ms()))
        services.publisher.flush(FLUSH_TIMEOUT)
        services.index.told(splits)
    return len(splits)


def restore_rules(services: Services) -> int:
    """Read from the log, where that outlives the store, the rule sets that the store has lost; return how many.

    Those that the log has lost are announced again.
    """
    if not services.config.uses_kafka():
        return 0
    from clusterd_consumer.transport.kafka_records import records

    from clusterd.learning.rulebook.restoring import reconcile

    published = records(services.config.kafka, services.config.kafka_prefix + topics.RULES)
    return reconcile(services.rulebook, published, now_ms())


def learn(
    services: Services,
    seconds: float = LEARN_SECONDS,
    stopping: Callable[[], bool] = lambda: False,
    *,
    whole: bool = True,
) -> int:
    """Learn what is due, beginning no host after ``seconds`` or when ``stopping``; return how many sets were published.

    All of them have arrived then. ``whole``: no messages are left to be read.
    """
    published = services.rulebook.learn_due(now_ms(), seconds, stopping, whole=whole)
    services.publisher.flush(FLUSH_TIMEOUT)
    return len(published)
