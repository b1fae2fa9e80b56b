"""deploy/redis/redis.conf is what a real server runs with."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
import redis

from tests.services.redis_server import binary, free_port

CONF = Path(__file__).resolve().parents[2] / "deploy" / "redis" / "redis.conf"


def test_a_server_runs_with_the_deployed_configuration(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [binary(), str(CONF), "--port", str(port), "--dir", str(tmp_path)], stdout=log, stderr=log
        )
    try:
        client = redis.Redis(port=port)
        deadline = time.monotonic() + 10
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail((tmp_path / "log").read_text())
                time.sleep(0.02)
        told = client.config_get("append*", "maxmemory*", "save")
        assert told["appendonly"] == "yes"
        assert told["appendfsync"] == "everysec"
        assert told["maxmemory-policy"] == "noeviction"
        assert told["maxmemory"] == str(4 * 1024**3)
        assert told["save"] == ""
        client.close()
    finally:
        server.terminate()
        server.wait(20)
