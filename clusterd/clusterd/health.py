"""Which daemons are alive and how they are: one key a daemon in the store, which expires when its daemon dies.

Keys: ``<prefix>daemons``, a set of the ids of all daemons that did not say good-bye; ``<prefix>daemon:<id>``, the
daemon's last report as JSON, which lives for `ALIVE_FOR` seconds. A report's fields: ``id, host, pid, log, state
(starting, running, waiting, stalled, stopping), since, at, stepped, messages, dead_letters, missed, lag, settling,
last_error, last_error_at, upkeep_seconds``.

They are written by functions that a full Redis lets run: a daemon that waits for room is alive, and says so.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from clusterd_consumer.redis_connection import Client, translated
from clusterd_consumer.redis_scripts import FREES, Calls, Library, Script
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Unreachable

from clusterd.tallies import Tallies

log = logging.getLogger(__name__)

#: Seconds between two reports, and for which one is believed.
BEAT: Final = 2.0
ALIVE_FOR: Final = 10.0

#: Seconds without a finished step of the worker after which a daemon that does not wait is called stalled.
STALLED_AFTER: Final = 120.0

FUNCTIONS: Final = {
    "enter": "define('enter', function(ARGV) return call('SADD', BASE, ARGV[1]) end)",
    "report": "define('report', function(ARGV) return call('SET', BASE, ARGV[1], 'PX', ARGV[2]) end)",
}
LIBRARY: Final = Library("health", (), FUNCTIONS, dict.fromkeys(FUNCTIONS, FREES))
ENTER: Final = Script(LIBRARY, "enter")
REPORT: Final = Script(LIBRARY, "report")

State = Literal["starting", "running", "waiting", "stalled", "stopping"]
#: States in which a daemon does what it is there for.
HEALTHY: Final[frozenset[State]] = frozenset({"starting", "running"})


@dataclass
class Report:
    """What a daemon says of itself. Written by its threads, read by the one that beats."""

    #: Containers that share the network of their host share its name, and in each the daemon is process 1.
    id: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    #: Where its messages come from (`Config.log`).
    log: str = ""
    #: ``waiting``: Kafka or the store does not answer, the work goes on when it does.
    state: State = "starting"
    #: Unix milliseconds.
    since: int = field(default_factory=now_ms)
    at: int = 0
    #: When the worker last finished a step: twice a second where nothing arrives. And the same of the monotonic clock,
    #: by which it is judged: a clock that is set makes nobody stand still, nor hides that one does.
    stepped: int = 0
    stepped_at: float = 0.0
    messages: int = 0
    dead_letters: int = 0
    #: Messages that Kafka deleted before they were read.
    missed: int = 0
    #: None: not looked at yet, as where Kafka has been away since the start.
    lag: int | None = None
    settling: int = 0
    last_error: str = ""
    #: When that was; 0 where nothing has failed.
    last_error_at: int = 0
    #: How often the worker found that the store may have come back from the past: for the upkeep alone.
    set_backs: int = 0
    #: When upkeep began the round that it has in hand (of the monotonic clock); 0 between two.
    upkeep_since: float = 0.0
    #: For the metrics alone: it is not told in the store.
    tallies: Tallies = field(default_factory=Tallies)

    def step(self) -> None:
        """Note that the worker goes on."""
        self.stepped, self.stepped_at = now_ms(), time.monotonic()

    def fail(self, what: str) -> None:
        """Note what went wrong, and that it did just now: what is long over tells from what goes on."""
        self.last_error, self.last_error_at = what, now_ms()

    def told(self) -> State:
        """Return the state as it is told: that a thread stands still, it cannot say itself."""
        still = self.stepped_at and time.monotonic() - self.stepped_at > STALLED_AFTER
        return "stalled" if still and self.state == "running" else self.state

    def upkeep_seconds(self) -> float:
        """Return how long upkeep has been at the round in hand.

        However long a lesson takes, it is no state: pages go on, and after a restart it would begin anew.
        """
        since = self.upkeep_since
        return time.monotonic() - since if since else 0.0


#: What of a report is told in the store.
UNTOLD: Final = frozenset({"stepped_at", "upkeep_since", "set_backs", "tallies"})
TOLD: Final = tuple(one.name for one in fields(Report) if one.name not in UNTOLD)


def beat(calls: Calls, prefix: str, report: Report) -> None:
    """Say that this daemon is alive."""
    report.at = now_ms()
    said = {name: getattr(report, name) for name in TOLD}
    said |= {"state": report.told(), "upkeep_seconds": round(report.upkeep_seconds(), 3)}
    calls.run(ENTER, f"{prefix}daemons", (report.id,))
    calls.run(REPORT, f"{prefix}daemon:{report.id}", (json.dumps(said), int(ALIVE_FOR * 1000)))


def leave(redis: Client, prefix: str, report: Report) -> None:
    """Say that this daemon is gone."""
    client: Any = redis
    with translated():
        client.delete(f"{prefix}daemon:{report.id}")
        client.srem(f"{prefix}daemons", report.id)


def daemons(redis: Client, prefix: str) -> list[dict[str, Any]]:
    """Return the reports of the daemons that are alive; those that died are forgotten."""
    client: Any = redis
    alive = []
    with translated():
        for name in sorted(client.smembers(f"{prefix}daemons")):
            said = client.get(f"{prefix}daemon:{name.decode()}")
            if said is None:
                client.srem(f"{prefix}daemons", name)
            else:
                alive.append(json.loads(said))
    return alive


class Heart:
    """Beats in a thread of its own, so that a long batch does not look like a death."""

    def __init__(self, redis: Client, prefix: str, report: Report) -> None:
        self._redis = redis
        self._calls = Calls(redis)
        self._prefix = prefix
        self.report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more and take leave."""
        self._stop.set()
        self._thread.join()
        _quietly(leave, self._redis, self._prefix, self.report)
        self._calls.close()

    def _beat(self) -> None:
        while True:
            _quietly(beat, self._calls, self._prefix, self.report)
            if self._stop.wait(BEAT):
                return


def _quietly(say: Any, *arguments: Any) -> None:
    """Say it if the store listens: a store that does not answer is the worker's affair to log. The heart beats on."""
    try:
        say(*arguments)
    except Unreachable:
        return
    except Exception:
        log.exception("the daemon cannot say how it is; it is tried again")
