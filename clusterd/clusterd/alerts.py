"""Cluster changes → alerts, to everybody who wants to know at once.

An alert is one JSON object with the fields of `Alert`. It goes to the stream ``<prefix>stream:alerts``, whose latest
``alerts_kept`` stay readable (`Alerts.since`, `Alerts.follow`), and, as configured, to Kafka's topic `topics.ALERTS`
(keyed by cluster), to a file (`alert_file`), and to an HTTP address (`alert_webhook`). File and address get what they
can take: one that fails is logged and counted, and holds nobody up; an address that is away for a moment gets it later.

At least once: a batch that comes again after a crash repeats its alerts (`alerts_of` with ``again``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from clusterd_consumer.insisting import Insist, StopFlag, once
from clusterd_consumer.redis_connection import Client, translated
from clusterd_crawler import topics
from clusterd_crawler.clock import iso

from clusterd.alert_file import AlertFile
from clusterd.alert_webhook import WEBHOOK_TIMEOUT, Webhook
from clusterd.clusters.contract import Outcome, Split
from clusterd.config import Config

log = logging.getLogger(__name__)

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

#: Alerts read from the stream at a time.
PORTION: Final = 500
#: The last entry that a stream can have of one millisecond.
LAST_OF_MS: Final = 2**64 - 1
#: Seconds that a follower waits at the stream before it looks around.
FOLLOW_WAIT: Final = 1.0


@dataclass(frozen=True, slots=True)
class Alert:
    """A page joined or left a cluster, or clusters merged or split."""

    #: When it was noticed: ISO 8601, UTC, milliseconds.
    at: str
    event: str
    url: str
    policy: str
    cluster: str
    #: URLs in the cluster afterwards.
    size: int
    #: The known page that resembles this one best, or None; and how much.
    match: str | None
    resemblance: float

    def to_bytes(self) -> bytes:
        """Return the JSON object."""
        return _json({name: getattr(self, name) for name in self.__slots__}).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Alert:
        """Read the JSON object; fields that later versions may add are ignored."""
        said = json.loads(raw)
        return cls(**{field.name: said[field.name] for field in fields(cls)})


class Publishes(Protocol):
    """What `Alerts` needs of a transport."""

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Hand a message to the log."""
        ...


def alerts_of(outcome: Outcome, at: int, again: bool = False) -> list[Alert]:
    """Return the alerts of one outcome.

    With ``again`` the page may have been applied before a crash that kept its alerts from being sent: a repeated
    outcome has no changes, so that what the page is part of now is told instead.
    """
    changes = [(change.event, change.policy, change.cluster, change.size) for change in outcome.changes]
    if again and not outcome.new:
        changes = [("joined", policy, cluster, size) for policy, (cluster, size) in outcome.clusters.items()]
    when = iso(at)
    return [
        Alert(when, event, outcome.url, policy, cluster, size, outcome.match, round(outcome.resemblance, 4))
        for event, policy, cluster, size in changes
    ]


def alerts_of_splits(splits: Sequence[Split], at: int) -> list[Alert]:
    """Return the alerts of parts that came off their clusters: a page of the part, and what is left of the cluster."""
    return [Alert(iso(at), "split", one.url, one.policy, one.cluster, one.size, None, 0.0) for one in splits]


class Alerts:
    """Where alerts are published and read."""

    def __init__(
        self, redis: Client, config: Config, transport: Publishes | None = None, asking: Insist = once
    ) -> None:
        """``asking``: how the alerts that are kept are asked for."""
        self._redis: Any = redis
        self._asking = asking
        self._stream = topics.stream(config.redis_prefix, topics.ALERTS)
        self._kept = config.alerts_kept
        self._transport = transport
        self._file = AlertFile(Path(config.alert_file)) if config.alert_file else None
        self._webhook = Webhook(config.alert_webhook) if config.alert_webhook else None
        #: Alerts that the stream has and the transport has not taken, without their times.
        self._added: list[Alert] = []

    def try_file(self) -> None:
        """Open the file of alerts, where there is one: a wrong name is logged now, not at the first alert."""
        if self._file is not None:
            self._file.append(b"")

    def publish(self, alerts: Sequence[Alert]) -> None:
        """Publish alerts to every sink; on Kafka they have arrived after the transport's next flush.

        Where the transport takes none it is done again, maybe for hours: the stream would hold nothing else then.
        """
        if not alerts:
            return
        coded = [(alert.cluster.encode(), alert.to_bytes()) for alert in alerts]
        if (timeless := [replace(alert, at="") for alert in alerts]) != self._added:
            self._add(coded)
        self._added = timeless
        if self._transport is not None:
            for key, value in coded:
                self._transport.publish(topics.ALERTS, key, value)
        self._added = []
        lines = b"".join(value + b"\n" for _, value in coded)
        if self._file is not None:
            self._file.append(lines)
        if self._webhook is not None:
            self._webhook.post(lines)

    def _add(self, coded: Sequence[tuple[bytes, bytes]]) -> None:
        with translated():
            pipeline = self._redis.pipeline(transaction=False)
            for key, value in coded:
                entry = {topics.FIELD_KEY: key, topics.FIELD_VALUE: value}
                pipeline.xadd(self._stream, entry, maxlen=self._kept, approximate=True)
            pipeline.execute()

    def since(self, at: int = 0) -> Iterator[Alert]:
        """Yield the alerts kept since a time (Unix ms), oldest first."""
        start = f"{at}-0"
        while True:
            entries = self._asking(partial(self._portion, start))
            for place, entry in entries:
                yield from _read(place.decode(), entry)
            if len(entries) < PORTION:
                return
            start = "(" + entries[-1][0].decode()

    def follow(self, at: int | None = None, stop: StopFlag | None = None, insist: Insist = once) -> Iterator[Alert]:
        """Yield the alerts since a time (from now on, where None), and then each as it comes, until ``stop``.

        ``insist`` says how long a store is waited for that does not answer any more: reading goes on where it ended.
        """
        last = self._last() if at is None else _before(at)
        while stop is None or not stop.is_set():
            for place, entry in insist(partial(self._behind, last)):
                last = place.decode()
                yield from _read(last, entry)

    def close(self, seconds: float = WEBHOOK_TIMEOUT) -> None:
        """Send what waits for the address, in so many seconds; close the file."""
        if self._webhook is not None:
            self._webhook.close(seconds)
        if self._file is not None:
            self._file.close()

    def _portion(self, start: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
        with translated():
            entries: list[tuple[bytes, dict[bytes, bytes]]] = self._redis.xrange(self._stream, min=start, count=PORTION)
            return entries

    def _behind(self, last: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return the entries of the stream behind one, as soon as there are some; none after `FOLLOW_WAIT`."""
        with translated():
            answer = self._redis.xread({self._stream: last}, count=PORTION, block=int(FOLLOW_WAIT * 1000))
        return [entry for _, entries in answer or () for entry in entries]

    def _last(self) -> str:
        with translated():
            latest = self._redis.xrevrange(self._stream, count=1)
        return latest[0][0].decode() if latest else "0-0"


def _before(at: int) -> str:
    """Return the last place in the stream before a time (Unix ms)."""
    return f"{at - 1}-{LAST_OF_MS}" if at else "0-0"


def _read(offset: str, entry: dict[bytes, bytes]) -> Iterator[Alert]:
    """Yield the alert of an entry of the stream; what is none is passed over, so that those behind it are seen."""
    try:
        alert = Alert.from_bytes(entry[topics.FIELD_VALUE])
    except (ValueError, KeyError, TypeError) as error:
        log.warning("entry %s of the alerts is none and is passed over: %s: %s", offset, type(error).__name__, error)
        return
    yield alert
