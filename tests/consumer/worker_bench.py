"""What tests of the worker stand on: a log, a store that can fail, workers between them."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import redis
from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.insisting import Insist, StopFlag
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.transport.contract import Position, SetBack, Transport
from clusterd_consumer.transport.redis_streams import RedisStreamTransport
from clusterd_consumer.worker import Batch, Worker
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch, StreamSketch

#: Seconds after which what a dead consumer of Redis Streams had in hand is somebody else's.
DEAD_AFTER = 1.0
#: Seconds of a member's session in Kafka: none dies unclosed here, and one that is starved keeps its partitions.
PATIENT = 20.0
STREAM = StreamSketch(values=(5).to_bytes(8, "little"), shingles=1, tokens=3, text=7)


def page(n: int, url: str = "") -> Sketch:
    return Sketch(url or f"http://h/{n}", 1000 + n, 1, n, STREAM, STREAM, n)


@dataclass
class Ledger:
    """A store that keeps what it was told, and can fail, forget and refuse as real ones do."""

    pages: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    refuses: str = "no such page"
    fail_next: int = 0
    #: It does what it is asked to, but its next answer does not arrive.
    mute_next: bool = False
    #: It is of the past, and has not said so yet.
    gone_back: bool = False
    #: How often it was asked to apply something, and how many pages it has.
    asked: int = 0
    applied: int = 0
    before_apply: Callable[[], None] = lambda: None

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> list[bool]:
        self.asked += 1
        self.before_apply()
        if self.fail_next:
            self.fail_next -= 1
            raise Unreachable("the ledger is away")
        if any(sketch.url == self.refuses for sketch in sketches):
            raise ValueError("this page cannot be applied")
        outcomes = [self.pages.get(sketch.url) != sketch.fetched_at for sketch in sketches]
        self.pages.update({sketch.url: sketch.fetched_at for sketch in sketches})
        self.applied += len(sketches)
        for partition, offset in (position or {}).items():
            if self.held.get(partition, "") not in ((known or {}).get(partition, ""), offset):
                raise SetBack
        self.held.update(position or {})
        if self.mute_next:
            self.mute_next = False
            raise Unreachable("the ledger's answer is lost")
        return outcomes

    def position(self) -> dict[str, str]:
        return dict(self.held)

    def went_back(self) -> bool:
        went, self.gone_back = self.gone_back, False
        return went

    def snapshot(self) -> Ledger:
        return copy.deepcopy(self)

    def restore(self, before: Ledger) -> None:
        self.pages, self.held = dict(before.pages), dict(before.held)


@dataclass
class Bench:
    """One transport's log with a ledger, and the workers between them."""

    connect: Callable[[Ledger], Transport]
    client: redis.Redis
    prefix: str
    ledger: Ledger = field(default_factory=Ledger)
    handed: list[tuple[str, bool]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    opened: list[Transport] = field(default_factory=list)
    #: How often a worker said that the store may have come back from the past.
    set_backs: int = 0

    def transport(self) -> Transport:
        self.opened.append(self.connect(self.ledger))
        return self.opened[-1]

    def worker(
        self,
        hand_on: Callable[[Batch, Sequence[bool]], None] | None = None,
        batch: int = 10,
        stopping: StopFlag | None = None,
        insist: Insist | None = None,
    ) -> Worker[bool]:
        transport = self.transport()
        dead = DeadLetters(transport, self.client, self.prefix)
        return Worker(
            *(transport, self.ledger, hand_on or self.note, dead),
            batch=batch,
            poll_timeout=0.1,
            on_set_back=self.note_set_back,
            stopping=stopping,
            insist=insist,
        )

    def note_set_back(self) -> None:
        self.set_backs += 1

    def note(self, batch: Batch, outcomes: Sequence[bool]) -> None:
        assert len(outcomes) == len(batch.sketches) == len(batch.records)
        self.handed += [
            (sketch.url, record.again) for sketch, record in zip(batch.sketches, batch.records, strict=True)
        ]
        self.batches.append(batch)

    def publish(self, *messages: bytes) -> None:
        transport = self.transport()
        for n, message in enumerate(messages):
            transport.publish(topics.SKETCHES, str(n).encode(), message)
        transport.flush(10)

    def dead_letters(self) -> list[bytes]:
        entries = self.client.xrange(topics.stream(self.prefix, topics.DEAD_LETTERS))
        return [fields[b"v"] for _, fields in entries]


def bench_on_redis(redis_url: str, prefix: str) -> Bench:
    client = connect(redis_url)
    return Bench(lambda _: RedisStreamTransport(client, prefix=prefix, claim_after=DEAD_AFTER), client, prefix)


def work_until(worker: Worker[bool], done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done() and time.monotonic() < deadline:
        worker.step()
    assert done()
