"""Services that tests share. Every test uses its own key prefix, topic and group; nothing is flushed globally."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.core import compiled

from tests.services import kafka_broker
from tests.services.redis_server import redis_cluster, redis_server


def pytest_configure() -> None:
    """Begin as from a terminal: ``nohup`` and a shell's ``&`` leave signals ignored, and so what tests start."""
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Redis, one for the test session; ``CLUSTERD_TEST_REDIS`` names one that runs already."""
    given = os.environ.get("CLUSTERD_TEST_REDIS")
    if given:
        yield given
        return
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Redis Cluster of three nodes, one for the test session."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``HOST:PORT`` of a real Kafka broker, one for the test session; ``CLUSTERD_TEST_KAFKA`` names one that runs.

    Where Java 17, Maven or its repository is missing the test is skipped, in CI it fails.
    """
    given = os.environ.get(kafka_broker.SHARED)
    if given:
        yield given
        return
    needs_kafka()
    broker = kafka_broker.KafkaBroker(tmp_path_factory.mktemp("kafka"))
    broker.start()
    try:
        yield broker.bootstrap
    finally:
        broker.kill()


@pytest.fixture
def collect_sockets() -> Iterator[None]:
    """Collect at the end what a Kafka client left open, so that it surfaces in no other test.

    kafka-python 3.0.12 forgets to close the sockets of attempts to connect that were refused: such a test ignores
    ``pytest.PytestUnraisableExceptionWarning``. Its own names are gone by now; the client's threads let go of their
    last references moments after `close`.
    """
    yield
    for _ in range(5):
        gc.collect()
        time.sleep(0.1)


@pytest.fixture
def own_broker(tmp_path: Path, collect_sockets: None) -> Iterator[kafka_broker.KafkaBroker]:
    """A broker of the test's own, not started, to be mistreated."""
    needs_kafka()
    broker = kafka_broker.KafkaBroker(tmp_path / "kafka", kafka_broker.MORTAL)
    yield broker
    broker.kill()


def needs_kafka() -> None:
    """Fetch what a broker needs; skip the test, or fail it in CI, where the machine cannot run one."""
    lacking = kafka_broker.missing() or kafka_broker.fetch_jars()
    if lacking and os.environ.get("CI") == "true":
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the real Redis."""
    with connect(redis_url) as client:
        yield client


@pytest.fixture
def prefix() -> str:
    """Return a key prefix of this test's own."""
    return f"t{uuid.uuid4().hex[:10]}:"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a command or a daemon that runs in this process sets for it: later tests would see no warnings."""
    loggers = logging.getLogger(), logging.getLogger("kafka")
    levels = [logger.level for logger in loggers]
    before = set(loggers[0].handlers)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    for handler in set(loggers[0].handlers) - before:
        if type(handler) is logging.StreamHandler:  # (pytest's own are its own)
            loggers[0].removeHandler(handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests of the compiled cores where they could not be compiled; in CI that is a failure."""
    if item.get_closest_marker("core") is None or compiled.CORE is not None:
        return
    lacking = "the cores are not compiled: a C compiler and Python's headers (python3-dev) are missing"
    if os.environ.get("CI") == "true":
        pytest.fail(lacking)
    pytest.skip(lacking)


#: Tests that start, kill, move and outwait servers of their own, or crawl for real: they depend on the machine's pace.
PACED = (
    "tests/flow/",
    "tests/crawler/test_addon",
    "tests/crawler/test_embedded_daemon",
    "tests/crawler/test_half_pages",
    "tests/crawler/test_kafka_crawl",
    "tests/crawler/test_known.py",
    "tests/crawler/test_lock",
    "tests/crawler/test_outage",
    "tests/crawler/test_paused",
    "tests/crawler/test_publish",
    "tests/crawler/test_rewriting",
    "tests/crawler/test_subscribe",
    "tests/crawler/test_under_way",
    "tests/crawler/test_verdicts",
    "tests/consumer/test_embedded",
    "tests/consumer/test_transport",
    "tests/consumer/test_worker",
    "tests/contract/test_index_resharding",
    "tests/clusterd/test_daemon",
    "tests/clusterd/test_deployed_redis",
    "tests/clusterd/test_cli_first_use",
)


#: The longest tests. They come first: otherwise one process would end with a handful of them, and the others with
#: nothing to do.
LONGEST = "tests/flow/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the `LONGEST`. Try only a test of `PACED` once more where it fails, and count it as rerun."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    for item in items:
        if item.nodeid.startswith(PACED):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why a test was tried once more: what passed in the end has failed all the same."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.write_sep("_", f"tried once more: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
