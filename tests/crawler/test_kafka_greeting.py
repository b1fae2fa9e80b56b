"""The look for brokers at the addresses by which they make themselves known."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers import kafka_greeting

BROKERS = [SimpleNamespace(host=f"inside-{n}", port=9092) for n in range(30)]


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Let a firewall swallow what is sent to a broker, on a clock that goes on by what that takes."""
    asked: list[tuple[str, int]] = []
    clock = [0.0]

    def swallowed(place: tuple[str, int], timeout: float) -> Any:
        asked.append(place)
        clock[0] += timeout
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", swallowed)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return asked


def test_many_brokers_that_are_swallowed_are_told_in_seconds(looked_for: list[tuple[str, int]]) -> None:
    """One after the other they took a minute for each address of Kafka, before a crawl or a daemon said anything."""
    with pytest.raises(Unreachable, match="sends its clients to inside-0:9092: timed out; inside-1"):
        kafka_greeting._look_for(BROKERS, "outside:9092")
    assert len(looked_for) == 3


def test_the_broker_that_answers_is_not_looked_for_behind_others(looked_for: list[tuple[str, int]]) -> None:
    with suppress(Unreachable):
        kafka_greeting._look_for(BROKERS, "inside-7:9092")
    assert looked_for == []


def test_of_no_brokers_nothing_is_said(looked_for: list[tuple[str, int]]) -> None:
    kafka_greeting._look_for([], "outside:9092")
    assert looked_for == []
