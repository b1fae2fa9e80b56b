"""What Kafka's client logs in a crawl: one warning a minute, unless somebody asks for more."""

from __future__ import annotations

import logging
import math
import time
from contextlib import closing

import pytest
from clusterd_consumer.transport import kafka_topics
from clusterd_crawler import topics
from clusterd_crawler.publish.kafka_log import KafkaLog
from clusterd_crawler.servers import kafka_lines
from clusterd_crawler.servers.kafka_client import client_library
from clusterd_crawler.servers.kafka_lines import Seldom
from kafka.net.selector import NetworkSelector  # type: ignore[import-untyped]


@pytest.fixture(autouse=True)
def level(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """Return the client's logger as a crawl finds it, of which nothing has been logged."""
    monkeypatch.setattr(kafka_lines._SELDOM, "_silent_until", -math.inf)
    client = logging.getLogger("kafka")
    client.setLevel(logging.NOTSET)
    return client


def test_one_line_is_logged_a_minute() -> None:
    """Whatever it says: of one outage six parts of the client say something else each."""
    seldom = Seldom()

    def passes(name: str, line: str, at: float, level: int = logging.ERROR) -> bool:
        record = logging.LogRecord(name, level, "", 0, line, (), None)
        record.created = at
        return seldom.filter(record)

    assert [passes("kafka.net", "refused: %s", at) for at in (0, 0.1, 59, 61)] == [True, False, False, True]
    assert [passes("kafka.cluster", "another: %s", at) for at in (119, 122)] == [False, True]
    assert [passes("kafka.net", "of a clock put back", at) for at in (40, 41, 101)] == [True, False, True]
    assert [passes("clusterd.daemon", "refused: %s", at) for at in (0, 0.1)] == [True, True]
    assert [passes("kafka.net", "sent: %s", at, logging.DEBUG) for at in (0, 0.1)] == [True, True]


def test_a_slow_step_on_a_busy_machine_is_no_line_and_hides_none(caplog: pytest.LogCaptureFixture) -> None:
    client_library()
    with closing(NetworkSelector(slow_task_threshold_secs=0.001)) as selector:
        selector.call_soon(lambda: time.sleep(0.01))
        selector.poll(timeout_ms=0)
    logging.getLogger("kafka.cluster").error("no metadata")
    assert [record.getMessage() for record in caplog.records] == ["no metadata"]


def test_an_outage_does_not_fill_the_log_of_a_crawl(caplog: pytest.LogCaptureFixture) -> None:
    client_library()
    manager = logging.getLogger("kafka.net.manager")
    for number in range(20):
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            manager.exception("no broker in a test: %d", number)
        logging.getLogger("kafka.cluster").error("no metadata")
        manager.debug("details")
    assert [record.getMessage() for record in caplog.records] == ["no broker in a test: 0"]
    assert "Traceback" not in caplog.text


def test_a_level_that_was_set_stays(level: logging.Logger) -> None:
    level.setLevel(logging.DEBUG)
    client_library()
    assert level.level == logging.DEBUG


@pytest.mark.kafka
def test_a_crawl_that_logs_everything_logs_no_line_a_page(
    kafka_bootstrap: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = prefix.strip(":") + "-"
    kafka_topics.ensure(kafka_bootstrap, own)
    with caplog.at_level(logging.DEBUG):
        log = KafkaLog(f"kafka://{kafka_bootstrap}", own + topics.SKETCHES)
        caplog.clear()
        for number in range(5):
            log.send([(b"key", b"%d" % number)])
        log.close()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kafka")] == []
