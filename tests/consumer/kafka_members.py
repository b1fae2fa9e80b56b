"""Members of a consumer group on a real Kafka, and what they read."""

from __future__ import annotations

import time

from clusterd_consumer.transport.contract import Record
from clusterd_consumer.transport.kafka import KafkaTransport

#: What the running test has opened: the fixture `closed_at_last` closes it.
OPENED: list[KafkaTransport] = []


def transport(
    bootstrap: str, name: str, remembered: dict[str, str] | None = None, session_timeout: float = 2
) -> KafkaTransport:
    held = {} if remembered is None else remembered
    member = KafkaTransport(
        bootstrap,
        group=name,
        prefix=f"{name}-",
        session_timeout=session_timeout,
        partitions=2,
        remembered=lambda: held,
    )
    OPENED.append(member)
    return member


def drain(member: KafkaTransport, wanted: int, seconds: float = 60.0) -> list[Record]:
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < wanted and time.monotonic() < deadline:
        records += member.poll(100, 0.2)
        member.commit({record.partition: record.next for record in records})
    return records
