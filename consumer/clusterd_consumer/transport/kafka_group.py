"""A member of a Kafka consumer group: its partitions, its polls, whether anybody answers.

Behaviour of kafka-python 3.0.12 that decided how this is written:
- While a heartbeat is unanswered (a frozen broker, a network that swallows) `KafkaConsumer.poll` asks again without a
  pause for all of its time, and each time leaves something in memory: 500 MB in 30 s. So it is asked here in slices.
- A broker that is away is not said: `poll` returns nothing, as for a log without news. So a silent one is asked.
- A record that it cannot read it says once, and at the next poll looks for ever, without a pause, at what it holds.
- A join for the sake of new metadata that ends after the poll that began it is lost: nothing awaits it any more, the
  heartbeat stays off and the partitions are never fetched, unless the next poll is told to join again.
- That one then asks to join once more, whoever called for the first: from the member that leads the group this makes
  all others join again, too. So what a join brought is kept for it (`Membership.follow`).
- Partitions count as assigned until the join has ended, though they may be somebody else's before we hear of it; also
  after a pause beyond the session, until a heartbeat is answered (`Membership.lapsed`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from clusterd_crawler.servers.kafka_client import lacking, said
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import (  # type: ignore[import-untyped]
    CorruptRecordError,
    InvalidSessionTimeoutError,
    KafkaError,
    LeaderNotAvailableError,
    UnsupportedCodecError,
)

log = logging.getLogger(__name__)

#: Seconds between two polls while a heartbeat is due.
DUE_PAUSE: Final = 0.02
#: Seconds without news after which the log is asked whether it is there, and in which it has to answer.
SILENCE: Final = 5.0
SILENCE_ANSWER: Final = 3.0
#: The clock of sessions: they end while a machine is suspended, in which Linux's monotonic clock stands still.
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds of a clock that goes on, where the system has one, while the machine is suspended."""
    return time.clock_gettime(CLOCK)


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]
    """What the group does with our partitions. The client calls it from its own thread, while `poll` waits or not.

    Partitions keep no place beyond a change of the group: when they come back, the store says.
    """

    #: Milliseconds between two heartbeats: by its next one a member hears that the group changes, and until the last of
    #: them has heard of it and joined, nobody reads.
    HEARTBEAT: Final = 250
    #: Milliseconds between two polls after which a member that sends heartbeats counts as stuck, as one does that alone
    #: cannot reach Redis: then others read its partitions. So long, too, they wait for it when the group changes. One
    #: that was only slow comes back, and what it did in that time counts where nobody was faster (`worker`).
    STUCK: Final = 60_000

    def __init__(self, session: float) -> None:
        """``session``: seconds without a heartbeat after which the group gives our partitions to others."""
        self._session = session
        #: When the heartbeat was sent that was answered last, or partitions were given to us.
        self._alive = math.inf
        #: Counts the changes.
        self.turn = 0
        #: Whether partitions were taken away and none have been given yet.
        self.joining = False
        #: What a join brought that no poll has taken up yet, and when it did.
        self._brought: Any = None
        self._joined = math.inf
        self._heard = time.monotonic()

    def settings(self) -> dict[str, int]:
        """Return what the consumer is to be told of heartbeats and polls."""
        session = int(self._session * 1000)
        return {
            "session_timeout_ms": session,
            "heartbeat_interval_ms": self.HEARTBEAT,
            "max_poll_interval_ms": max(self.STUCK, session),
        }

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Know that they may become somebody else's."""
        self.turn += 1
        self.joining = True

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Know that these are ours."""
        self.turn += 1
        self.joining = False
        self._brought = None
        # A join that no poll has taken up sends no heartbeats: the group may have counted us out since.
        self._alive = min(self._joined, now())
        self._joined = math.inf

    def follow(self, consumer: Any) -> None:
        """Know what becomes of a consumer's joins and heartbeats."""
        self._keep_joins(consumer)
        self._note_heartbeats(consumer)

    def _keep_joins(self, consumer: Any) -> None:
        """Let a join that ends between two polls be taken up by the next one, instead of joining anew."""
        coordinator = consumer._coordinator
        join = getattr(coordinator, "_do_join_and_sync_async", None)
        if join is None:  # a later client, which may do without: the group only joins once more often
            return

        async def kept() -> Any:
            if not coordinator.rebalance_in_progress():  # else what was brought is of the membership that we are in
                self._brought = None
            if self._brought is None:
                self._brought = await join()
                self._joined = now()
            return self._brought

        coordinator._do_join_and_sync_async = kept

    def poll(self, consumer: Any, max_records: int, timeout: float) -> Mapping[Any, Sequence[Any]]:
        """Return what is new, by partition; nothing after ``timeout`` seconds."""
        coordinator = consumer._coordinator
        if self.joining:
            coordinator.request_rejoin()
        until = time.monotonic() + timeout
        while True:
            left = max(0.0, until - time.monotonic())
            due = coordinator.time_to_next_poll() if coordinator.stable() else left
            fetched = _read(consumer, int(1000 * min(left, due)), max_records)
            if fetched:
                self._heard = time.monotonic()
            if fetched or time.monotonic() >= until:
                return fetched
            if due <= 0:
                time.sleep(min(DUE_PAUSE, max(0.0, until - time.monotonic())))

    def _note_heartbeats(self, consumer: Any) -> None:
        """Know when each heartbeat that is answered was sent: where we stood still, its answer may be an old one."""
        heartbeat: Any = getattr(consumer._coordinator, "heartbeat", None)
        send, receive = (getattr(heartbeat, f"{done}_heartbeat", None) for done in ("sent", "received"))
        if send is None or receive is None:
            self._session = math.inf  # an unknown client reads on until it hears that the group has changed
            return
        sent_at = -math.inf

        def sent() -> None:
            nonlocal sent_at
            sent_at = now()
            send()

        def received() -> None:
            self._alive = sent_at
            receive()

        heartbeat.sent_heartbeat, heartbeat.received_heartbeat = sent, received

    def lapsed(self) -> bool:
        """Whether no heartbeat has been answered for a session: we or the machine stood still, or the log was away.

        Then our partitions may be somebody else's, until one is answered or we have joined anew.
        """
        return now() > self._alive + self._session

    def changing(self, consumer: Any) -> bool:
        """Whether the group is to be joined anew, or may have counted us out."""
        return bool(consumer._coordinator.need_rejoin()) or self.lapsed()

    def listen(self, consumer: Any, topic: str) -> None:
        """Ask a log that has been silent for long whether it is there; the client's error where it is not."""
        if time.monotonic() < self._heard + SILENCE:
            return
        asked = list(consumer.assignment()) or [TopicPartition(topic, 0)]
        edges(consumer.end_offsets, asked, SILENCE_ANSWER)
        self._heard = time.monotonic()


def _read(consumer: Any, milliseconds: int, max_records: int) -> Mapping[Any, Sequence[Any]]:
    """Poll the client; let it forget what it cannot read, which it fetches anew the next time."""
    try:
        fetched: Mapping[Any, Sequence[Any]] = consumer.poll(timeout_ms=milliseconds, max_records=max_records)
    except (CorruptRecordError, UnsupportedCodecError):
        with suppress(AttributeError):  # of a later client
            consumer._fetcher.close()
        raise
    return fetched


def edges(ask: Callable[..., Any], partitions: Sequence[Any], timeout: float) -> Mapping[Any, int]:
    """Return the first or last offsets of partitions, of which a consumer's method is asked; else `KafkaError`.

    The client trips over a partition without a leader, whose only broker is away.
    """
    try:
        found: Mapping[Any, int] = ask(partitions, timeout_ms=int(timeout * 1000)) if partitions else {}
    except KeyError as error:
        gone = error.args[0]
        raise LeaderNotAvailableError(f"no broker has partition {gone.partition} of {gone.topic}") from None
    return found


def deleted_unread(consumer: Any, partition: Any, expected: int, first: int, timeout: float) -> int:
    """Return how many records between two offsets Kafka has deleted; some may never have been (a transaction's mark).

    Never fails: the record at the second offset has been fetched, and would be lost.
    """
    try:
        oldest = edges(consumer.beginning_offsets, [partition], timeout)[partition]
    except KafkaError:
        oldest = first
    return max(0, min(int(oldest), first) - expected)


def reason(error: Exception, right: str) -> str:
    """Return what is wrong with Kafka where a ``right`` on topics was needed, and what would be right where known."""
    if needed := lacking(error, right):
        return needed
    if isinstance(error, InvalidSessionTimeoutError):
        return (
            "refuses a member of this CLUSTERD_SESSION_TIMEOUT: it takes group.min.session.timeout.ms (usually 6 s) to "
            "group.max.session.timeout.ms (30 minutes)"
        )
    return f"does not answer: {said(error)}"


def close(client: Any, timeout: float) -> None:
    """Close a consumer or producer, whether Kafka consents or not."""
    try:
        if isinstance(client, KafkaConsumer):
            client.close(autocommit=False, timeout_ms=int(timeout * 1000))
        else:
            client.close(timeout=timeout)
    except KafkaError as error:
        log.warning("closed without Kafka's consent: %s", error)
