"""The transport over Kafka: the consumer group shares the partitions, the store remembers how far they were read.

On assignment every partition is placed where the *store* says (``remembered``), not where the group last committed:
a store that lost its last second, or came back from a backup, is caught up by replay; an empty store replays all that
Kafka still has. The committed offsets serve lag tools. A partition's name carries the id of its topic, so that a topic
that was deleted and made anew is read from its beginning.

Behaviour of kafka-python 3.0.12 that decided how this is written:
- What its producer does stands in `kafka_publishing`, what else its consumer does in `kafka_group`.
- Positions cannot be set inside a synchronous rebalance listener, so partitions are placed right after the ``poll``
  that brought them, and what that poll fetched of them is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from clusterd_crawler import topics
from clusterd_crawler.servers.kafka_client import opened, topic_id
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition  # type: ignore[import-untyped]
from kafka.errors import KafkaError  # type: ignore[import-untyped]

from clusterd_consumer.transport.contract import Position, Record
from clusterd_consumer.transport.kafka_connection import ANSWER_TIMEOUT, KafkaConnection
from clusterd_consumer.transport.kafka_group import Membership, close, deleted_unread, edges
from clusterd_consumer.transport.kafka_publishing import KafkaPublishing

log = logging.getLogger(__name__)

#: Most messages that a member had in hand when it died, and which come again: the largest CLUSTERD_BATCH.
IN_HAND: Final = 10_000
#: Milliseconds that the broker holds a fetch open while there is nothing new; what is new is answered at once.
FETCH_WAIT: Final = 100
#: Milliseconds for the last commit before leaving.
LAST_COMMIT: Final = 2_000


class KafkaTransport:
    """Keeps `contract.Transport`. Not for several threads at once."""

    outlives_store: Final = True

    def __init__(
        self,
        where: str,
        *,
        group: str = "clusterd",
        prefix: str = "",
        remembered: Callable[[], Position] | None = None,
        session_timeout: float = 10.0,
        partitions: int = 8,
        replication: int = 1,
    ) -> None:
        self._connection = KafkaConnection(where, prefix, partitions, replication)
        self._publishing = KafkaPublishing(self._connection)
        self._group = group
        self._prefix = prefix
        self._remembered = remembered or dict
        self._topic = prefix + topics.SKETCHES
        self._consumer: Any = None
        #: A consumer of no group, for `backlog`.
        self._asker: Any = None
        self._topic_id = ""
        self._membership = Membership(session_timeout)
        #: Partition → the turn of the membership in which it was placed, and where the store said.
        self._placed: dict[Any, tuple[int, str]] = {}
        #: Partition → how many records since it was placed may still come again.
        self._fresh: dict[Any, int] = {}
        #: Partition → the offset that comes next.
        self._expected: dict[Any, int] = {}
        #: Records that Kafka deleted before they were read; what a position calls a partition → up to where they were
        #: counted.
        self.missed = 0
        self._missing: dict[str, int] = {}
        #: Partition → the offset up to which everything has been worked on, as far as this member knows.
        self._committed: dict[Any, int] = {}

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Fetch; place partitions that are new to us where the store says."""
        with self._connection.translated():
            consumer = self._joined()
            fetched = self._membership.poll(consumer, max_records, timeout)
            self._look_for_new_topic(consumer)
            if lapsed := self._membership.lapsed():
                self._placed.clear()
            unplaced = consumer.assignment() - self._in_place()
            if unplaced and not (lapsed or self._membership.joining):
                self._place(unplaced, self._remembered())
            usable = {partition: taken for partition, taken in fetched.items() if partition not in unplaced}
            for partition, taken in usable.items():
                self._follow(partition, taken[0].offset, taken[-1].offset + 1)
            if not fetched:
                self._membership.listen(consumer, self._topic)
        return [record for partition, taken in usable.items() for record in self._records(partition, taken)]

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Give the message to the producer; wait where too many are on their way."""
        self._publishing.publish(self._prefix + topic, key, value)

    def flush(self, timeout: float) -> None:
        """Wait for Kafka's word on every message; send again, once, what the client has given up."""
        self._publishing.flush(timeout)

    @property
    def refused(self) -> int:
        """Pages that Kafka will never take."""
        return self._publishing.refused[self._topic]

    def commit(self, position: Position) -> None:
        """Commit for lag tools, without waiting: the state has its own position."""
        if self._consumer is None:
            return
        named = {partition: self._name(partition) for partition in self._consumer.assignment()}
        reached = {partition: int(position[name]) for partition, name in named.items() if name in position}
        offsets = {
            p: OffsetAndMetadata(offset, "", -1) for p, offset in reached.items() if self._committed.get(p) != offset
        }
        if offsets:
            self._committed.update({p: reached[p] for p in offsets})
            with self._connection.translated():
                self._consumer.commit_async(offsets)

    def seek(self, position: Position) -> None:
        """Place every assigned partition where the position says, at its beginning where it says nothing."""
        with self._connection.translated():
            self._place(set(self._joined().assignment()), position)

    def assigned(self) -> Position:
        """Return the partitions that are assigned and placed, and where the store said that each goes on."""
        ours = self._consumer.assignment() & self._in_place() if self._consumer is not None else ()
        return {self._name(partition): self._placed[partition][1] for partition in ours}

    def changing(self) -> bool:
        """Whether the group is to be joined anew, or may have counted us out: the next poll may take our partitions."""
        return self._consumer is not None and self._membership.changing(self._consumer)

    def backlog(self) -> int:
        """Return the records that lie after the store's position, over all partitions."""
        ends = self.ends(topics.SKETCHES)
        with self._connection.translated():
            begins = edges(self._asking().beginning_offsets, list(ends), ANSWER_TIMEOUT)
        position = self._remembered()
        return sum(max(0, end - max(int(position.get(name, 0)), begins[p])) for p, (name, end) in ends.items())

    def ends(self, topic: str) -> dict[Any, tuple[str, int]]:
        """Return what a position calls each partition of a topic, and where it ends."""
        named = self._prefix + topic
        with self._connection.translated():
            asking = self._asking()
            every = [TopicPartition(named, n) for n in asking.partitions_for_topic(named) or ()]
            now = topic_id(asking, named)
            ends = edges(asking.end_offsets, every, ANSWER_TIMEOUT)
        return {partition: (_name(partition, now), end) for partition, end in ends.items()}

    def close(self) -> None:
        """Commit, leave the group, deliver what is on its way."""
        self._publishing.close()
        self._commit_at_last()
        for client in (self._consumer, self._asker):
            if client is not None:
                close(client, ANSWER_TIMEOUT)
        self._consumer = self._asker = None

    def _commit_at_last(self) -> None:
        """Let the latest offsets arrive before the group is left: only lag tools would miss them."""
        if self._consumer is None or not self._committed:
            return
        offsets = {p: OffsetAndMetadata(self._committed[p], "", -1) for p in self._in_place() & self._committed.keys()}
        try:
            self._consumer.commit(offsets, timeout_ms=LAST_COMMIT)
        except KafkaError as error:
            log.info("left without a last commit: %s", error)

    def _joined(self) -> Any:
        """Return the consumer, made and subscribed at first."""
        if self._consumer is None:
            self._connection.ensure()
            consumer = opened(
                KafkaConsumer,
                **self._connection.settings,
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",  # also where the store's position lies before the oldest kept record
                **self._membership.settings(),
                fetch_max_wait_ms=FETCH_WAIT,
            )
            try:
                self._membership.follow(consumer)
                consumer.subscribe([self._topic], listener=self._membership)
                # Asks for metadata, now that they are noted for the group: it would join once more when they come.
                consumer.partitions_for_topic(self._topic)
                self._topic_id = topic_id(consumer, self._topic)
            except BaseException:  # whoever asks again would leave one more with its thread each time
                close(consumer, ANSWER_TIMEOUT)
                raise
            self._consumer = consumer
        return self._consumer

    def _asking(self) -> Any:
        """Return the consumer of no group, made at first."""
        if self._asker is None:
            self._connection.probe()
            self._asker = opened(KafkaConsumer, **self._connection.settings, group_id=None, enable_auto_commit=False)
        return self._asker

    def _look_for_new_topic(self, consumer: Any) -> None:
        """Know when the topic was deleted and made anew: its offsets speak of other records, all are to be read."""
        now = topic_id(consumer, self._topic)
        if self._topic_id and not now:
            self._connection.make_missing()
            consumer.partitions_for_topic(self._topic)  # asks for metadata
            now = topic_id(consumer, self._topic)
        if not now or now == self._topic_id:
            return
        log.warning("topic %s was deleted and made anew: it is read from its beginning", self._topic)
        self._topic_id = now
        self._placed.clear()

    def _follow(self, partition: Any, first: int, following: int) -> None:
        """Know where a partition stands; say where Kafka deleted what was not read, or lost what was."""
        expected = self._expected.get(partition, first)
        self._expected[partition] = following
        if first > expected:
            # Placed where the store says, the partition may come here again.
            expected = max(expected, self._missing.get(self._name(partition), 0))
            self._missing[self._name(partition)] = first
            gone = deleted_unread(self._consumer, partition, expected, first, ANSWER_TIMEOUT)
            self.missed += gone
            if gone:
                log.error(
                    "%d messages of %s from %d on were deleted by Kafka before they were read, and their pages are not "
                    "known: the topic's retention is shorter than the daemons were behind",
                    *(gone, self._name(partition), expected),
                )
        elif first < expected:
            log.warning("%s goes on at %d, not at %d: Kafka lost its end", self._name(partition), first, expected)

    def _in_place(self) -> set[Any]:
        """Return the partitions that were placed since the group last changed; none while we join it."""
        turn = None if self._membership.joining else self._membership.turn
        return {partition for partition, (placed, _) in self._placed.items() if placed == turn}

    def _place(self, partitions: set[Any], position: Position) -> None:
        turn = self._membership.turn  # read first: what changes meanwhile asks for another placing
        for partition in partitions:
            offset = position.get(self._name(partition))
            try:
                if offset is None:
                    self._consumer.seek_to_beginning(partition)
                else:
                    self._consumer.seek(partition, int(offset))
            except ValueError:
                log.info("%s was taken away before it was placed", self._name(partition))
                continue
            log.info("reading %s from %s", self._name(partition), offset or "its beginning")
            for known in (self._committed, self._expected):
                known.pop(partition, None)
                if offset is not None:
                    known[partition] = int(offset)
            self._placed[partition] = turn, offset or ""
            self._fresh[partition] = IN_HAND

    def _records(self, partition: Any, taken: Sequence[Any]) -> Iterator[Record]:
        fresh = self._fresh.get(partition, 0)
        self._fresh[partition] = max(0, fresh - len(taken))
        for n, one in enumerate(taken):
            yield Record(
                partition=self._name(partition),
                offset=str(one.offset),
                key=one.key or b"",
                value=one.value or b"",
                next=str(one.offset + 1),
                again=n < fresh,
            )

    def _name(self, partition: Any) -> str:
        return _name(partition, self._topic_id)


def _name(partition: Any, topic_id: str) -> str:
    """Return what a position calls a partition."""
    return f"{partition.topic}:{partition.partition}:{topic_id}"
