"""Alerts: what is told, where it can be read, and that no sink holds the stream up."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.alerts import Alert, Alerts, alerts_of
from clusterd.clusters.contract import Change, Outcome
from clusterd.config import Config
from clusterd_consumer.insisting import StopFlag
from clusterd_consumer.transport.kafka import KafkaTransport
from clusterd_crawler import topics
from clusterd_crawler.clock import iso, now_ms
from clusterd_crawler.errors import Unreachable

JOINED = Outcome(
    url="http://h/a?s=1",
    fetched_at=1,
    new=True,
    identity="text",
    match="http://h/a",
    resemblance=0.98765,
    clusters={"near": ("c1", 2), "identical": ("c2", 2)},
    changes=(Change("near", "joined", "c1", 2), Change("identical", "joined", "c2", 2)),
)
REPEATED = JOINED._replace(new=False, changes=())
ALONE = JOINED._replace(clusters={}, changes=(), match=None, resemblance=0.0)


def config(prefix: str, **more: Any) -> Config:
    return Config(redis_prefix=prefix, **more)


def alert(n: int) -> Alert:
    return Alert("2026-01-01T00:00:00.000Z", "joined", f"http://h/{n}", "near", "c", n, None, 0.5)


def test_an_alert_has_the_fields_that_scripts_rely_on() -> None:
    first, second = alerts_of(JOINED, at=1_700_000_000_123)
    assert json.loads(first.to_bytes()) == {
        "at": "2023-11-14T22:13:20.123Z",
        "event": "joined",
        "url": "http://h/a?s=1",
        "policy": "near",
        "cluster": "c1",
        "size": 2,
        "match": "http://h/a",
        "resemblance": 0.9877,
    }
    assert second.policy == "identical"
    assert Alert.from_bytes(first.to_bytes()) == first


def test_a_page_alone_gives_no_alert() -> None:
    assert alerts_of(ALONE, at=0) == []


def test_a_repeated_delivery_is_silent_unless_its_alerts_may_have_been_lost() -> None:
    assert alerts_of(REPEATED, at=0) == []
    assert [(a.event, a.policy) for a in alerts_of(REPEATED, at=0, again=True)] == [
        ("joined", "near"),
        ("joined", "identical"),
    ]
    merged = JOINED._replace(changes=(Change("near", "merged", "c1", 2),))  # of one that had not been applied
    assert [(a.event, a.policy) for a in alerts_of(merged, at=0, again=True)] == [("merged", "near")]


def test_alerts_are_read_since_a_time_in_order(client: redis.Redis, prefix: str) -> None:
    alerts = Alerts(client, config(prefix))
    alerts.publish([alert(n) for n in range(3)])
    time.sleep(0.01)
    middle = now_ms()
    time.sleep(0.01)
    alerts.publish([alert(n) for n in range(3, 1500)])
    assert [a.size for a in alerts.since(0)] == list(range(1500))
    assert [a.size for a in alerts.since(middle)] == list(range(3, 1500))


def test_a_follower_sees_each_alert_as_it_comes(client: redis.Redis, prefix: str) -> None:
    alerts = Alerts(client, config(prefix))
    alerts.publish([alert(0)])
    stop, seen, got = StopFlag(), [], threading.Event()

    def follow() -> None:
        for one in alerts.follow(0, stop):
            seen.append(one.size)
            if len(seen) == 3:
                got.set()
                stop.set()

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.1)
    alerts.publish([alert(1), alert(2)])
    assert got.wait(60)
    thread.join(60)
    assert seen == [0, 1, 2]


def test_a_follower_is_told_nothing_of_before_its_time(client: redis.Redis, prefix: str) -> None:
    """Also where there is none since then: it was told all that were kept."""
    alerts = Alerts(client, config(prefix))
    for at, number in ((1000, 0), (2000, 1), (2001, 2)):
        entry = {topics.FIELD_KEY: b"c", topics.FIELD_VALUE: alert(number).to_bytes()}
        client.xadd(topics.stream(prefix, topics.ALERTS), entry, id=f"{at}-0")
    assert [next(alerts.follow(at)).size for at in (0, 1000, 1001, 2000, 2001)] == [0, 0, 1, 1, 2]
    stop = StopFlag()
    threading.Timer(0.1, stop.set).start()
    assert list(alerts.follow(2002, stop)) == []


def test_what_is_no_alert_hides_none_behind_it(client: redis.Redis, prefix: str) -> None:
    alerts = Alerts(client, config(prefix))
    alerts.publish([alert(0)])
    for entry in ({topics.FIELD_VALUE: b"nonsense"}, {b"x": b"y"}, {topics.FIELD_VALUE: b"[1]"}):
        client.xadd(topics.stream(prefix, topics.ALERTS), entry)
    alerts.publish([alert(1)])
    assert [found.size for found in alerts.since()] == [0, 1]
    following = alerts.follow(0)
    assert [next(following).size, next(following).size] == [0, 1]


def test_what_a_log_that_is_away_does_not_take_is_in_the_stream_once(client: redis.Redis, prefix: str) -> None:
    """It is published again until the log is back: the stream held nothing else then."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    alerts = Alerts(client, config(prefix), KafkaTransport(f"127.0.0.1:{port}"))
    for at in range(3):
        with pytest.raises(Unreachable):
            alerts.publish([replace(alert(1), at=iso(at)), replace(alert(2), at=iso(at))])
    with pytest.raises(Unreachable):
        alerts.publish([alert(3)])
    assert [one.size for one in alerts.since(0)] == [1, 2, 3]


def test_the_stream_is_bounded(client: redis.Redis, prefix: str) -> None:
    alerts = Alerts(client, config(prefix, alerts_kept=200))
    for start in range(0, 3000, 500):
        alerts.publish([alert(n) for n in range(start, start + 500)])
    assert 200 <= client.xlen(topics.stream(prefix, topics.ALERTS)) < 500


def test_a_file_gets_every_alert_as_a_line(client: redis.Redis, prefix: str, tmp_path: Path) -> None:
    file = tmp_path / "alerts.jsonl"
    alerts = Alerts(client, config(prefix, alert_file=str(file)))
    alerts.publish([alert(1), alert(2)])
    alerts.publish([alert(3)])
    alerts.close()
    assert [json.loads(line)["size"] for line in file.read_text().splitlines()] == [1, 2, 3]


def test_a_file_that_cannot_be_written_holds_nobody_up(
    client: redis.Redis, prefix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alerts = Alerts(client, config(prefix, alert_file=str(tmp_path / "no" / "such" / "folder")))
    alerts.publish([alert(1)])
    assert [a.size for a in alerts.since(0)] == [1]
    assert "cannot be written" in caplog.text
