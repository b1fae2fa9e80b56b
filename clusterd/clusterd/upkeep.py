"""What can wait, so that no page waits for it: settling of clusters, learning, retention, counting the lag."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from clusterd_consumer.redis_connection import unable
from clusterd_consumer.worker import FLUSH_TIMEOUT
from clusterd_crawler.errors import Unreachable

from clusterd.alerts import now_ms
from clusterd.health import Report
from clusterd.services import Services

log = logging.getLogger(__name__)

#: Seconds between two rounds of upkeep while there is nothing to settle; between two lessons; between two looks at lag.
UPKEEP_INTERVAL: Final = 0.2
LEARN_INTERVAL: Final = 1.0
LAG_INTERVAL: Final = 5.0
#: Seconds of a round of upkeep after which no further host's rules are learned.
LEARN_SECONDS: Final = 2.0
#: Seconds between two rounds of settling, so that the worker's thread gets its turn.
SETTLE_PAUSE: Final = 0.001
#: Seconds between two rounds of retention.
RETENTION_INTERVAL: Final = 600.0
DAY_MS: Final = 86_400_000


class Upkeep:
    """What can wait, in a thread with connections of its own."""

    def __init__(self, services: Services, report: Report) -> None:
        self._services = services
        self._report = report
        self._stop = threading.Event()
        self._due = {"learn": 0.0, "lag": 0.0, "retention": 0.0}
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the step in hand."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._services as services:
            while not self._stop.is_set():
                pause = UPKEEP_INTERVAL
                try:
                    if self.round(services):
                        pause = SETTLE_PAUSE
                except Exception as error:
                    if not isinstance(error, Unreachable) and not unable(error):
                        log.exception("upkeep failed; it is tried again")
                        self._report.last_error = f"{type(error).__name__}: {error}"
                    pause = LEARN_INTERVAL
                self._stop.wait(pause)

    def round(self, services: Services) -> int:
        """Do what is due; return how many clusters still settle."""
        self._report.settling = services.index.settle(services.config.settle_steps)
        if self._is_due("learn", LEARN_INTERVAL):
            learn(services)
        if self._is_due("lag", LAG_INTERVAL):
            self._report.lag = services.lag()
        if services.config.retention and self._is_due("retention", RETENTION_INTERVAL):
            gone = services.index.expire(now_ms() - int(services.config.retention * DAY_MS))
            log.info("forgot %d superseded versions", gone)
        return self._report.settling

    def _is_due(self, what: str, interval: float) -> bool:
        now = time.monotonic()
        if now < self._due[what]:
            return False
        self._due[what] = now + interval
        return True


def learn(services: Services, seconds: float = LEARN_SECONDS) -> int:
    """Learn what is due, beginning no host after ``seconds``; return how many rule sets were published and arrived."""
    published = services.rulebook.learn_due(now_ms(), seconds)
    services.publisher.flush(FLUSH_TIMEOUT)
    return len(published)
