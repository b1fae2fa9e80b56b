"""Publisher: takes messages at any rate without waiting, and brings them into the log, over the disk where it must.

Two threads. The **sender** connects to the log and sends, oldest first: what waits on the spool, then the queue. It may
block as long as a client library likes. The **keeper** never talks to the network: while the log is away, or the queue
holds more than its capacity, it moves the queue's oldest messages to the spool (what a full disk refuses stays in the
queue, as far as that has room). So the path of a message is

    offer → queue (capacity) → log
                  └→ spool (bytes) → log, later or in the next crawl
                          └→ dropped, oldest first, counted

Memory holds at most the capacity, as much again or `SPARE` for the keeper to move (a disk that hangs included), and one
batch in flight. At the end the sender gets a bounded time; what is then left goes to the spool.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.errors import ClusterdError
from clusterd_crawler.publish.contract import Log, Refused
from clusterd_crawler.publish.spool import Entry, Reading, Spool

logger = logging.getLogger(__name__)

#: Messages sent together (about 0.5 MB).
BATCH: Final = 256
#: Fewest messages beyond the capacity that memory holds until the keeper has moved them. Pages come sixteen together,
#: and what a rule kept out by the hundred: a queue of ten would drop them before the keeper has its turn.
SPARE: Final = 1_000
#: Seconds from one batch to the next while there is less than a full one: messages that come one by one share a call.
#: A thread that wakes costs the crawl about .6 ms beside a busy loop, however little it does.
LINGER_SECONDS: Final = 0.1
#: Seconds between two attempts to reach a log that is away: the first wait, doubled up to the second.
RETRY_SECONDS: Final = (0.25, 5.0)
#: Seconds that the keeper gets at the end, for the disk.
KEEPER_SECONDS: Final = 10.0


@dataclass(slots=True)
class Counts:
    """What became of the messages. A message that was spooled and sent later counts in both."""

    published: int = 0
    spooled: int = 0
    dropped: int = 0


class Publisher:
    """See the module. ``connect`` makes a log or raises `Unreachable`; ``open_spool`` a spool or raises `OSError`."""

    def __init__(self, connect: Callable[[], Log], open_spool: Callable[[], Spool], capacity: int) -> None:
        self._connect = connect
        self._open_spool = open_spool
        self._capacity = capacity
        #: Messages beyond which those that come are dropped.
        self._most = capacity + max(capacity, SPARE)
        self._queue: deque[Entry] = deque()
        self._in_flight: tuple[Entry, ...] = ()
        #: How many messages the keeper has in hand, on their way to the disk.
        self._moving = 0
        self._counts = Counts()
        lock = threading.RLock()
        #: The sender waits on the first, for messages; the keeper on the second, for more than the queue is to hold.
        self._changed = threading.Condition(lock)
        self._surplus_changed = threading.Condition(lock)
        #: Messages that are sent without waiting for more.
        self._many = max(1, min(BATCH, capacity // 2))
        self._lingering = False
        #: Whether what is queued has been gathered.
        self._together = False
        self._reachable = False
        self._tried = False
        self._closing = False
        #: When a closing publisher ends: now, and where the log answers.
        self._deadline = self._last = 0.0
        self._spool: Spool | None = None
        self._spool_ready = threading.Event()
        self._sender = threading.Thread(target=self._send_all, name="clusterd-sender", daemon=True)
        self._keeper = threading.Thread(target=self._keep_all, name="clusterd-keeper", daemon=True)
        self._keeper.start()
        self._sender.start()

    @property
    def counts(self) -> Counts:
        """Counts so far."""
        with self._changed:
            return Counts(self._counts.published, self._counts.spooled, self._counts.dropped)

    @property
    def reachable(self) -> bool:
        """Whether the log took the last batch."""
        return self._reachable

    def offer(self, key: bytes, value: bytes) -> None:
        """Take a message; never waits for network or disk."""
        with self._changed:
            if self._take_in((key, value)) and not self._lingering:
                self._changed.notify()

    def offer_together(self, entries: Iterable[Entry], more: bool = False) -> None:
        """Take messages that have waited for each other: sent at once, or with ``more`` that follow. Never waits."""
        with self._changed:
            for entry in entries:
                self._take_in(entry)
            if self._queue and not more:
                self._together = True
                self._changed.notify()

    def _take_in(self, entry: Entry) -> bool:
        """Queue a message, if there is room; return whether it is the only one."""
        waiting = len(self._queue) + 1
        if self._closing or waiting > self._most:
            self._count(dropped=1)
            return False
        self._queue.append(entry)
        if waiting == self._many:
            self._changed.notify()
        if waiting > self._room():
            self._surplus_changed.notify()
        return waiting == 1

    def close(self, timeout: float, unanswered: float | None = None) -> None:
        """Send what waits for at most ``timeout`` seconds, spool the rest. Blocks: not for the reactor's thread.

        A log that did not answer the last time is asked again at once, and gets ``unanswered`` seconds until it does.
        """
        with self._changed:
            self._closing = True
            self._last = self._deadline = time.monotonic() + timeout
            if unanswered is not None and not self._reachable:
                self._deadline += unanswered - timeout
            self._notify()
        while self._sender.is_alive() and (seconds := self._deadline + 1.0 - time.monotonic()) > 0:
            self._sender.join(seconds)
        with self._changed:
            self._queue.extendleft(reversed(self._in_flight))
            self._in_flight = ()
            self._notify()
        self._keeper.join(KEEPER_SECONDS)
        left = tuple(self._queue)
        self._queue.clear()
        if self._keeper.is_alive():
            lost = len(left) + self._moving
            logger.error("The disk does not answer; %d messages are lost", lost)
            self._count(dropped=lost)
            return
        if left:
            self._keep(left)
        if self._spool is not None:
            if self._spool:
                logger.warning("%d messages wait on the spool for the log to answer a later crawl", len(self._spool))
            self._spool.close()

    # The sender: the network's side.

    def _send_all(self) -> None:
        log: Log | None = None
        wait = RETRY_SECONDS[0]
        self._spool_ready.wait()
        while self._may_go_on():
            try:
                log = log or self._connect()
                started = time.monotonic()
                together, self._together = self._together, False
                self._send_some(log)
                wait = RETRY_SECONDS[0]
                if not together:
                    self._linger(started + LINGER_SECONDS)
            except Exception as error:  # what was in hand has been given back
                if not isinstance(error, ClusterdError):  # a client library's fault
                    logger.exception("Messages cannot be published; it is tried again")
                self._lost(error)
                _close(log)
                log = None
                self._pause(wait)
                wait = min(2 * wait, RETRY_SECONDS[1])
        _close(log)

    def _may_go_on(self) -> bool:
        """Wait for something to send; False when there is nothing more to wait for."""
        with self._changed:
            while not self._queue and not self._spool:  # nothing on it, or none
                if self._closing and not self._moving:
                    return False
                if not self._tried:
                    return True  # connect at once, before the first message
                self._changed.wait()
            return not self._closing or time.monotonic() < self._deadline

    def _linger(self, until: float) -> None:
        """Wait for more messages, until there are many, or gathered ones, or the end."""
        with self._changed:
            self._lingering = True
            while not self._hurries() and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._lingering = False

    def _hurries(self) -> bool:
        return self._together or self._closing or len(self._queue) >= self._many

    def _send_some(self, log: Log) -> None:
        """Send one batch: from the spool while it holds any, else from the queue."""
        reading = self._spool.read(BATCH) if self._spool is not None else Reading(())
        if reading.lost:
            self._count(dropped=reading.lost)
        entries = reading.entries or self._take(BATCH)
        sent = len(entries)
        try:
            log.send(entries)
        except Refused as error:
            logger.error("%d messages are refused by the log: %s", len(error.entries), error)
            self._count(dropped=len(error.entries))
            sent -= len(error.entries)
        except Exception:
            if not reading.entries:
                self._give_back(entries)
            raise
        if reading.entries and self._spool is not None:
            self._spool.sent(reading)
        with self._changed:
            self._counts.published += sent
            self._in_flight = ()
        self._found()

    def _take(self, most: int) -> tuple[Entry, ...]:
        """Take the queue's oldest messages; none before the log has answered, since the keeper may move what follows.

        Those in hand would come back behind that.
        """
        with self._changed:
            most = most if self._tried and not self._all_go_to_disk() else 0
            taken = tuple(self._queue.popleft() for _ in range(min(most, len(self._queue))))
            self._in_flight = taken
            return taken

    def _give_back(self, entries: Sequence[Entry]) -> None:
        """Put a batch back at the head of the queue, unless `close` has done so."""
        with self._changed:
            if self._in_flight:
                self._queue.extendleft(reversed(entries))
                self._in_flight = ()

    def _lost(self, error: Exception) -> None:
        with self._changed:
            if self._reachable or not self._tried:
                then = "go to the spool" if self._spool is not None else "beyond the queue are dropped"
                logger.warning("The log takes nothing now: %s; messages %s", str(error), then)
            self._reachable, self._tried = False, True
            self._notify()

    def _found(self) -> None:
        with self._changed:
            if not self._reachable and self._tried:
                logger.info("The log takes messages again")
            self._reachable, self._tried = True, True
            self._deadline = self._last

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt: short ones near the end, and none when that begins."""
        with self._changed:
            closing = self._closing
            until = min(time.monotonic() + RETRY_SECONDS[0], self._deadline) if closing else time.monotonic() + seconds
            while closing == self._closing and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    # The keeper: the disk's side.

    def _keep_all(self) -> None:
        try:
            self._spool = self._open_spool()
        except OSError as error:
            logger.error("There is no spool: %s; messages beyond the queue are dropped", error)
        self._spool_ready.set()
        while entries := self._surplus():
            self._keep(entries)

    def _surplus(self) -> tuple[Entry, ...]:
        """Wait for messages that belong on the disk and take them; none at the end (`close` spools what is left)."""
        with self._changed:
            while True:
                surplus = len(self._queue) - self._room()
                if surplus > 0:
                    self._moving = min(surplus, BATCH)
                    return tuple(self._queue.popleft() for _ in range(self._moving))
                if self._closing:
                    return ()
                self._surplus_changed.wait()

    def _room(self) -> int:
        """Messages that the queue is to hold."""
        return 0 if self._all_go_to_disk() else self._capacity

    def _all_go_to_disk(self) -> bool:
        """Whether the log is away, and the disk takes what comes."""
        return self._tried and not self._reachable and self._spool is not None and not self._spool.refused

    def _notify(self) -> None:
        self._changed.notify_all()
        self._surplus_changed.notify_all()

    def _keep(self, entries: Sequence[Entry]) -> None:
        kept, dropped = (0, len(entries)) if self._spool is None else self._spool.append(entries)
        if self._spool is not None and self._spool.refused:
            dropped -= self._hold(entries[kept:])
        self._count(spooled=kept, dropped=dropped)
        with self._changed:
            self._moving = 0
            self._changed.notify_all()

    def _hold(self, entries: Sequence[Entry]) -> int:
        """Put back what a full disk refused, the latest as far as the queue has room; return how many."""
        with self._changed:
            room = 0 if self._closing else max(0, self._capacity - len(self._queue))
            held = entries[max(0, len(entries) - room) :]
            self._queue.extendleft(reversed(held))
            return len(held)

    def _count(self, spooled: int = 0, dropped: int = 0) -> None:
        with self._changed:
            if dropped and not self._counts.dropped:
                logger.warning("Messages are dropped: neither the log nor the spool takes them")
            self._counts.spooled += spooled
            self._counts.dropped += dropped


def _close(log: Log | None) -> None:
    """Close a connection that may be broken."""
    if log is not None:
        try:
            log.close()
        except Exception as error:  # it is given up anyway
            logger.debug("Closing the log: %s", error)
