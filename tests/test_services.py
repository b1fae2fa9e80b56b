"""The services that the other tests stand on are real and answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.services import kafka_broker
from tests.services.redis_server import connect_cluster, reserve

ROOT = Path(__file__).parents[1]
#: Asks for two ports in a row, and stays until its input ends.
ASKING = (
    "import sys; from tests.services.redis_server import free_port; print(free_port(2), flush=True); sys.stdin.read()"
)


def test_redis_answers(redis_url: str, prefix: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set(prefix + "k", 1)
        assert client.get(prefix + "k") == b"1"


def test_the_cluster_spreads_keys_over_three_nodes(redis_cluster_url: str, prefix: str) -> None:
    with connect_cluster(redis_cluster_url) as client:
        nodes = {client.get_node_from_key(f"{prefix}{n}").port for n in range(100)}
    assert len(nodes) == 3


def test_no_port_is_given_to_two_processes() -> None:
    """Nor that of its server's cluster bus, though none of them is open yet."""
    command = [sys.executable, "-c", ASKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        for given in (port, port + 1, port + 10_000, port + 10_001):
            with pytest.raises(OSError, match="in use"):
                reserve(given)


def test_jars_that_maven_cannot_fetch_are_lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test that needs them had failed with a traceback, where the machine has Maven and no network."""
    monkeypatch.setattr(kafka_broker, "LIBS", tmp_path / "kafka" / "libs")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "mvn").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    assert "Maven cannot fetch" in (kafka_broker.fetch_jars.__wrapped__() or "")
    assert not kafka_broker.LIBS.exists()
