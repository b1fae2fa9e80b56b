"""The transport over Redis Streams: one stream a topic, one consumer group; ample for one machine.

Delivery: XREADGROUP puts an entry on the group's pending list until XACK, which `RedisStreamTransport.commit` sends
after the state is written. Entries of a consumer that died are claimed by the others once they have been pending for
``claim_after`` seconds. A consumer that closes in order hands back its place in the group. Who only helps out, as a
command does, founds no group where there are others: what that one does not read later would stay for it for ever.

Room: entries that every group has acknowledged are trimmed from `topics.SKETCHES`; every other topic is bounded by its
length in `KEPT`, and where entries may be long, by its size in `BYTES`.

Position: the log lies in the store that it feeds, so a store that comes back without its last second, or from a
snapshot, brings its log and the pending list of that very moment with it. `seek` is for a rebuild.

Keys: ``<prefix>stream:<topic>``; fields ``k`` and ``v`` (`topics`).
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

import redis
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable

from clusterd_consumer.redis_connection import Client, translated
from clusterd_consumer.transport.contract import Position, Record

log = logging.getLogger(__name__)

#: Entries kept of the topics that nobody acknowledges.
KEPT: Final = {
    topics.ALERTS: 100_000,
    topics.RULES: 10_000,
    topics.KNOWN: 20_000,
    topics.VERDICTS: 10_000,
    topics.DEAD_LETTERS: 10_000,
}
#: Bytes kept of those of which an entry may be long: rule sets, of up to 1.5 MB, which crawls read within a second; and
#: blocks of up to a thousand pages, which have 30 kB where URLs are short, and 1 MB where they are long. What is gone
#: of these costs a crawl that begins some fetches, and loses nothing.
BYTES: Final = {topics.RULES: 256 * 2**20, topics.KNOWN: 256 * 2**20}
#: Seconds between two looks at the size of such a topic, and entries that it is told from.
SIZE_INTERVAL: Final = 10.0
SIZE_SAMPLES: Final = 100
#: Published messages that wait for one pipeline; the next one sends them first.
PUBLISH_BATCH: Final = 500
#: Seconds between two looks for entries to trim.
TRIM_INTERVAL: Final = 1.0
#: Milliseconds after which a consumer of the group that holds nothing is forgotten.
FORGET_AFTER: Final = 3_600_000
_LAST_SEQUENCE: Final = (1 << 64) - 1


class RedisStreamTransport:
    """Keeps `contract.Transport`. Not for several threads at once."""

    outlives_store: Final = False
    refused: Final = 0

    def __init__(
        self,
        client: Client,
        *,
        prefix: str = "clusterd:",
        group: str = "clusterd",
        claim_after: float = 10.0,
        guest: bool = False,
    ):
        """``guest``: where the stream has groups, and none of this name, be of the one that has come furthest."""
        self._guest = guest
        self._client: Any = client
        self._prefix = prefix
        self._group = group
        self._stream = topics.stream(prefix, topics.SKETCHES)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._claim_after = claim_after
        self._claim_due = 0.0
        #: What others than we trimmed that was pending. Of what was not delivered yet Redis does not tell exactly.
        self.missed = 0
        self._trim_due = 0.0
        #: Whether something was acknowledged since the last trim.
        self._acknowledged = False
        self._size_due: dict[str, float] = {}
        self._joined = False
        #: Ids delivered to us and not acknowledged.
        self._delivered: set[bytes] = set()
        self._waiting: deque[tuple[str, bytes, bytes]] = deque()

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Return what dead consumers left, else what is new."""
        with translated():
            self._join()
            try:
                records = self._claim(max_records) or self._read(max_records, timeout)
                if not records:
                    self._trim_when_due()  # what was acknowledged last
                return records
            except redis.ResponseError as error:
                if "NOGROUP" not in str(error):
                    raise
                self._joined = False  # the store was emptied under us: the next poll joins anew
                return []

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        """Keep the message for the next pipeline; not where one that is full cannot be sent: then it is asked again."""
        if len(self._waiting) >= PUBLISH_BATCH:
            self.flush(timeout=0)
        self._waiting.append((topic, key, value))

    def flush(self, timeout: float) -> None:
        """Send what waits. What a lost connection leaves unclear is sent again: at least once."""
        while self._waiting:
            batch = [self._waiting[n] for n in range(min(len(self._waiting), PUBLISH_BATCH))]
            with translated():
                pipeline = self._client.pipeline(transaction=False)
                for topic, key, value in batch:
                    entry = {topics.FIELD_KEY: key, topics.FIELD_VALUE: value}
                    pipeline.xadd(topics.stream(self._prefix, topic), entry, maxlen=KEPT.get(topic), approximate=True)
                pipeline.execute()
            for _ in batch:
                self._waiting.popleft()
            self._bound(BYTES.keys() & {topic for topic, _, _ in batch})

    def _bound(self, long: Iterable[str]) -> None:
        """Trim topics to their size, now and then."""
        for topic in long:
            if time.monotonic() < self._size_due.get(topic, 0.0):
                continue
            self._size_due[topic] = time.monotonic() + SIZE_INTERVAL
            stream = topics.stream(self._prefix, topic)
            with translated():
                size = int(self._client.memory_usage(stream, samples=SIZE_SAMPLES) or 0)
                if size > BYTES[topic]:
                    kept = int(self._client.xlen(stream) * BYTES[topic] / size)
                    self._client.xtrim(stream, maxlen=kept, approximate=True)

    def commit(self, position: Position) -> None:
        """Acknowledge what lies before the position; now and then trim what everybody has acknowledged."""
        until = _parse(position.get(self._stream, "0-0"))
        done = {offset for offset in self._delivered if _parse(offset) < until}
        with translated():
            if done:
                self._client.xack(self._stream, self._group, *done)
                self._delivered -= done  # only now: a store that is away meanwhile is told again
                self._acknowledged = True
            self._trim_when_due()

    def _trim_when_due(self) -> None:
        """Trim, now and then, where something was acknowledged since."""
        if self._acknowledged and time.monotonic() >= self._trim_due:
            self._trim_due = time.monotonic() + TRIM_INTERVAL
            self._acknowledged = False
            self.trim()

    def seek(self, position: Position) -> None:
        """Deliver anew everything from the position on, to whoever of the group asks first."""
        if self._stream not in position:
            return
        with translated():
            self._join()
            self._client.xgroup_setid(self._stream, self._group, _before(position[self._stream]))
        self._delivered.clear()

    def assigned(self) -> Position:
        """Return the one partition, which all consumers share; the state says nothing of it."""
        return {self._stream: ""} if self._joined else {}

    def changing(self) -> bool:
        """Say no: nobody gives entries away that are not his any more."""
        return False

    def backlog(self) -> int:
        """Return the entries of the group that are unread or pending."""
        with translated():
            group = self._group_info()
            if group is None:
                return int(self._client.xlen(self._stream))
            return self._unread(group) + int(group["pending"])

    def taken(self) -> int:
        """Return how many entries the stream ever took, as far as the store remembers."""
        with translated():
            return int(self._client.xinfo_stream(self._stream)["entries-added"]) if self._groups() else 0

    def trim(self) -> None:
        """Remove the entries that every group has acknowledged."""
        reached = []
        for group in self._groups():
            first = self._client.xpending(self._stream, group["name"])["min"] if group["pending"] else None
            reached.append(_parse(first) if first is not None else _after(_parse(group["last-delivered-id"])))
        # Redis removes 10,000 at most in one call, and small messages are worked off at four times that in a second.
        while reached and self._client.xtrim(self._stream, minid=_text(min(reached)), approximate=True):
            pass

    def close(self) -> None:
        """Leave the group, unless entries are pending here: those the others claim. Forget consumers long gone."""
        try:
            with translated():
                if self._waiting:
                    self.flush(timeout=0)
                if self._joined:
                    self._leave()
        except Unreachable as error:
            log.warning("left without a word: %s", error)
        self._joined = False

    def _join(self) -> None:
        if self._joined:
            return
        self._look_at_groups()
        try:
            self._client.xgroup_create(self._stream, self._group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise
        self._joined = True

    def _look_at_groups(self) -> None:
        """As a guest be of the group that is there; else say which others there are: the stream fills up for them."""
        if self._guest:
            if group := self._group_info():
                self._group = group["name"].decode()
            return
        others = [name for group in self._groups() if (name := group["name"].decode()) != self._group]
        if others:
            log.warning(
                "beside %s there is group %s: what it has not read stays for it and fills the stream; where no daemon "
                "is of it any more, end it (redis-cli XGROUP DESTROY %s NAME)",
                *(self._group, ", ".join(others), self._stream),
            )

    def _leave(self) -> None:
        try:
            consumers = self._client.xinfo_consumers(self._stream, self._group)
        except redis.ResponseError as error:
            if not str(error).startswith(("NOGROUP", "no such key")):
                raise
            return  # the store was emptied under us
        for consumer in consumers:
            ours = consumer["name"].decode() == self._name
            if consumer["pending"] == 0 and (ours or consumer["idle"] > FORGET_AFTER):
                self._client.xgroup_delconsumer(self._stream, self._group, consumer["name"])

    def _claim(self, max_records: int) -> list[Record]:
        """Take over what has been pending for too long; asked for twice in that time."""
        if time.monotonic() < self._claim_due:
            return []
        answer = self._client.xautoclaim(
            self._stream, self._group, self._name, int(self._claim_after * 1000), start_id="0-0", count=max_records
        )
        entries = [entry for entry in answer[1] if entry[0] not in self._delivered]
        if gone := sum(offset not in self._delivered for offset in answer[2]):
            self.missed += gone
            log.error(
                "%d messages of %s were removed from it before they were worked on, and their pages are not known: "
                "somebody else trims it or deletes from it, and may have removed more",
                *(gone, self._stream),
            )
        if not entries:
            self._claim_due = time.monotonic() + self._claim_after / 2
        return self._received(entries, again=True)

    def _read(self, max_records: int, timeout: float) -> list[Record]:
        block = max(1, int(timeout * 1000))
        answer = self._client.xreadgroup(self._group, self._name, {self._stream: ">"}, count=max_records, block=block)
        return [record for _, entries in answer or () for record in self._received(entries, again=False)]

    def _received(self, entries: Sequence[tuple[bytes, dict[bytes, bytes]]], again: bool) -> list[Record]:
        records = []
        for offset, fields in entries:
            self._delivered.add(offset)
            records.append(
                Record(
                    partition=self._stream,
                    offset=offset.decode(),
                    key=fields.get(topics.FIELD_KEY, b""),
                    value=fields.get(topics.FIELD_VALUE, b""),
                    next=_text(_after(_parse(offset))),
                    again=again,
                )
            )
        return records

    def _groups(self) -> list[dict[str, Any]]:
        try:
            return list(self._client.xinfo_groups(self._stream))
        except redis.ResponseError:  # no such stream yet
            return []

    def _group_info(self) -> dict[str, Any] | None:
        groups = self._groups()
        ours = next((group for group in groups if group["name"] == self._group.encode()), None)
        if ours or not self._guest:
            return ours
        return max(groups, key=lambda group: _parse(group["last-delivered-id"]), default=None)

    def _unread(self, group: dict[str, Any]) -> int:
        """Return the entries that the group has not been given.

        What Redis says may be too much, for good, once it has read its append-only file back: there XCLAIM stands for
        XREADGROUP, and does not count what the group reads. Where all has been delivered, a member puts that right;
        and what there is no more is not unread.
        (Entries that another member is given at that very moment may be delivered twice.)
        """
        unread, last = group.get("lag"), group["last-delivered-id"]
        if unread is None:  # Redis cannot tell after a seek or a trim in the middle
            return self._count_after(last)
        if not unread:
            return 0
        stream = self._client.xinfo_stream(self._stream)
        if _parse(stream["last-generated-id"]) > _parse(last):
            return min(int(unread), int(stream["length"]))
        if self._joined:
            self._client.xgroup_setid(self._stream, self._group, last, entries_read=stream["entries-added"])
        return 0

    def _count_after(self, last: bytes) -> int:
        count, start = 0, _text(_after(_parse(last)))
        while entries := self._client.xrange(self._stream, min=start, count=1000):
            count += len(entries)
            start = _text(_after(_parse(entries[-1][0])))
        return count


def _parse(offset: str | bytes) -> tuple[int, int]:
    text = offset.decode() if isinstance(offset, bytes) else offset
    milliseconds, _, sequence = text.partition("-")
    return int(milliseconds), int(sequence or 0)


def _text(offset: tuple[int, int]) -> str:
    return f"{offset[0]}-{offset[1]}"


def _after(offset: tuple[int, int]) -> tuple[int, int]:
    milliseconds, sequence = offset
    return (milliseconds, sequence + 1) if sequence < _LAST_SEQUENCE else (milliseconds + 1, 0)


def _before(offset: str) -> str:
    milliseconds, sequence = _parse(offset)
    if sequence:
        return _text((milliseconds, sequence - 1))
    return _text((milliseconds - 1, _LAST_SEQUENCE)) if milliseconds else "0-0"
