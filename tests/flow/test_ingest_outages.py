"""Stores that die under ``clusterd ingest``, and come back: it waits for them, says so once, and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from clusterd.config import Config
from clusterd.services import open_services
from clusterd_consumer.insisting import Insisting
from clusterd_crawler.errors import Unreachable

from tests.flow.daemons import until
from tests.services.kafka_broker import KafkaBroker
from tests.services.redis_server import free_port, redis_server

PAGES = 600
AOF = ("--appendonly", "yes", "--appendfsync", "always")
STREAM = "clusterd:stream:sketches"
#: Seconds for which the store is away.
AWAY = 2.0
#: Seconds of an attempt to publish.
ATTEMPT = 2.0


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Pages of which three by three are alike."""
    file = tmp_path / "pages.jsonl"
    rows = []
    for n in range(PAGES):
        words = [f"w{n // 3}x{m}" for m in range(60)] + [f"end{n % 3}"] * (n % 2)
        rows.append({"url": f"http://h{n % 7}.example/{n}", "text": " ".join(words), "fetched_at": "2026-01-31"})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def default_interrupt() -> None:
    """Let Ctrl-C interrupt, also where these tests run in the background of a shell, which has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ingesting(url: str, file: str, patience: float = 60.0, kafka: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run ``clusterd ingest`` on a Redis, in small batches and with so many seconds of patience."""
    program = f"import clusterd.cli.ingest as it; it.PATIENCE = {patience}; import clusterd.services as services; "
    program += f"services.PUBLISH_ATTEMPT = {ATTEMPT}; from clusterd.cli import main; main()"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLUSTERD_")}
    process = subprocess.Popen(
        [sys.executable, "-c", program, "ingest", file, "--redis", url, "--kafka", kafka, "--json"],
        env={**clean, "CLUSTERD_BATCH": "8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_interrupt,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def groups(*words: str) -> set[frozenset[str]]:
    command = [sys.executable, "-m", "clusterd", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {frozenset(json.loads(line)["members"]) for line in done.stdout.splitlines()}


def kill(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)


def has_read(url: str, pages: int) -> None:
    """Wait until so many pages were taken from the log."""

    def reached() -> bool:
        with redis.Redis.from_url(url) as client:
            if not client.exists(STREAM):
                return False
            return any(int(group["entries-read"] or 0) >= pages for group in client.xinfo_groups(STREAM))

    until(reached)


def test_a_redis_that_dies_while_pages_are_processed_is_waited_for(tmp_path: Path, pages: Path) -> None:
    port = free_port()
    with redis_server(tmp_path / "redis", *AOF, port=port) as url, ingesting(url, str(pages)) as ingest:
        has_read(url, 100)
        kill(url)
        time.sleep(AWAY)
        with redis_server(tmp_path / "redis", *AOF, port=port):
            out, err = ingest.communicate(timeout=60)
            assert ingest.returncode == 0, err
            assert json.loads(out)["sketched"] == PAGES
            assert err.count("trying again") == 1, err
            # (How much it had not written to its disk, a Redis that comes back does not say.)
            assert [line for line in err.splitlines()[1:] if "may have lost" not in line] == [], err
            assert groups("clusters", "--redis", url) == groups("batch", "cluster", str(pages))


def test_a_redis_that_dies_while_pages_are_published_is_waited_for(tmp_path: Path, pages: Path) -> None:
    port = free_port()
    with redis_server(tmp_path / "redis", *AOF, port=port) as url, ingesting(url, "-") as ingest:
        assert ingest.stdin
        lines = pages.read_text().splitlines(keepends=True)
        ingest.stdin.writelines(lines[: PAGES // 4])
        ingest.stdin.flush()
        with redis.Redis.from_url(url) as client:
            until(lambda: client.exists(STREAM) == 1)
        kill(url)
        ingest.stdin.writelines(lines[PAGES // 4 :])
        ingest.stdin.flush()
        time.sleep(AWAY)
        with redis_server(tmp_path / "redis", *AOF, port=port) as url:
            out, err = ingest.communicate(timeout=60)
            assert ingest.returncode == 0, err
            assert json.loads(out)["sketched"] == PAGES
            assert err.count("trying again") == 1, err
            assert groups("clusters", "--redis", url) == groups("batch", "cluster", str(pages))
            with redis.Redis.from_url(url) as client:
                assert client.xinfo_stream(STREAM)["entries-added"] == PAGES


def test_a_redis_that_stays_away_ends_it_with_one_line_more(tmp_path: Path, pages: Path) -> None:
    with redis_server(tmp_path / "redis", *AOF) as url, ingesting(url, str(pages), patience=1.5) as ingest:
        has_read(url, 50)
        kill(url)
        began = time.monotonic()
        _, err = ingest.communicate(timeout=30)
        assert ingest.returncode == 1
        assert 1.0 < time.monotonic() - began < 10
        said = [line for line in err.splitlines() if "left without a word" not in line]
        assert len(said) == 2, err
        assert said[0].endswith("trying again for 1.5 s")
        assert said[1].startswith("clusterd: Redis does not answer: ")


def test_control_c_ends_the_wait_at_once(tmp_path: Path, pages: Path) -> None:
    with redis_server(tmp_path / "redis", *AOF) as url, ingesting(url, str(pages)) as ingest:
        has_read(url, 50)
        kill(url)
        time.sleep(AWAY)
        ingest.send_signal(signal.SIGINT)
        _, err = ingest.communicate(timeout=5)
        assert (ingest.returncode, err.splitlines()[-1]) == (1, "clusterd: stopped")


def test_a_redis_that_comes_back_empty_is_told(tmp_path: Path, pages: Path) -> None:
    port = free_port()
    with redis_server(tmp_path / "redis", port=port) as url, ingesting(url, str(pages)) as ingest:
        has_read(url, 100)
        kill(url)
        with redis_server(tmp_path / "redis", port=port):
            _, err = ingest.communicate(timeout=60)
            assert ingest.returncode == 1, err
            assert f"clusterd: the store came back without {PAGES} pages that it had taken" in err


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_that_dies_is_waited_for_and_control_c_ends_the_wait(
    own_broker: KafkaBroker, tmp_path: Path, pages: Path
) -> None:
    own_broker.start()
    lines = pages.read_text().splitlines(keepends=True)
    with redis_server(tmp_path / "redis") as url, ingesting(url, "-", kafka=own_broker.bootstrap) as ingest:
        assert ingest.stdin
        ingest.stdin.writelines(lines[: PAGES // 4])
        ingest.stdin.flush()
        with open_services(Config(redis=url, kafka=own_broker.bootstrap)) as services:
            until(lambda: services.lag() > 0)
        own_broker.kill()
        ingest.stdin.writelines(lines[PAGES // 4 :])
        ingest.stdin.close()
        ingest.stdin = None
        assert ingest.stderr
        assert "trying again" in ingest.stderr.readline()
        time.sleep(2 * ATTEMPT)
        own_broker.start()
        out, err = ingest.communicate(timeout=90)
        assert ingest.returncode == 0, err
        assert json.loads(out)["sketched"] == PAGES
        assert "trying again" not in err, err
        assert groups("clusters", "--redis", url) == groups("batch", "cluster", str(pages))
    with (
        redis_server(tmp_path / "other") as url,
        ingesting(url, str(pages), kafka=own_broker.bootstrap) as ingest,
        open_services(Config(redis=url)) as services,
    ):
        until(lambda: services.index.counts()["documents"] > 30)
        own_broker.kill()
        time.sleep(AWAY)
        ingest.send_signal(signal.SIGINT)
        _, err = ingest.communicate(timeout=5)
        assert ingest.returncode == 1
        assert err.count("clusterd: stopped") == 1, err


def test_patience_ends_for_a_piece_of_work_that_fails_and_begins_anew_with_the_next() -> None:
    troubles: list[str] = []
    attempts = iter([True, False, False, True] * 20)
    insist = Insisting(troubles.append, patience=0.3)

    def failing() -> int:
        if next(attempts):
            return 7
        raise redis.exceptions.OutOfMemoryError("used memory > maxmemory")

    began = time.monotonic()
    while time.monotonic() - began < 1:
        assert insist(failing) == 7
    assert troubles[:3] == ["used memory > maxmemory", "used memory > maxmemory", ""]
    attempts = iter([False] * 100)
    with pytest.raises(Unreachable, match="is full: raise its maxmemory"):
        insist(failing)
