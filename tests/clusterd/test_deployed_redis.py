"""deploy/redis/redis.conf is what a real server runs with, and docs/operations.md names what a user of one needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from clusterd.clusters.contract import Policy
from clusterd.config import Config
from clusterd.services import open_services, process_pending, publish_sketches

from tests.contract.index_world import expected, page, partition, settled
from tests.flow.daemons import made_up_crawl
from tests.services.redis_sentinels import redis_sentinels
from tests.services.redis_server import binary, connect_cluster, free_port, redis_cluster, redis_server

CONF = Path(__file__).resolve().parents[2] / "deploy" / "redis" / "redis.conf"


def test_a_server_runs_with_the_deployed_configuration(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [binary(), str(CONF), "--port", str(port), "--dir", str(tmp_path)], stdout=log, stderr=log
        )
    try:
        client = redis.Redis(port=port)
        deadline = time.monotonic() + 60
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


def test_a_backup_that_is_made_as_documented_is_whole(tmp_path: Path) -> None:
    if shutil.which("redis-cli") is None:
        assert not os.environ.get("CI"), "redis-cli is missing in CI"
        pytest.skip("redis-cli is not on this machine")
    text = (CONF.parents[2] / "docs" / "operations.md").read_text("utf-8").partition("## Backup")[2]
    lines = re.findall(r"(?m)^    (.+)$", text.partition("A store that was restored")[0])
    (tmp_path / "backup").mkdir()
    with (
        redis_server(tmp_path / "redis", "--appendonly", "yes", "--rdb-key-save-delay", "1000") as url,
        redis.Redis.from_url(url) as client,
    ):
        client.mset({f"k{n}": n for n in range(2000)})
        client.bgrewriteaof()  # two seconds: one is under way when the backup is begun
        script = "\n".join(["set -e", *lines]).replace("redis-cli", f"redis-cli -u {url}")
        for said, here in (("/var/lib/redis", tmp_path / "redis"), ("BACKUP", tmp_path / "backup")):
            assert script.count(said) == 1, script
            script = script.replace(said, str(here))
        subprocess.run(["sh", "-c", script], check=True, capture_output=True, timeout=60)
        assert client.config_get("auto-aof-rewrite-percentage") == {"auto-aof-rewrite-percentage": "100"}
    copied = tmp_path / "backup" / "appendonlydir"
    named = re.findall(r"(?m)^file (\S+) ", (copied / "appendonly.aof.manifest").read_text())
    assert len(named) == 2, "a rewrite was under way"
    assert sorted(named) == sorted(file.name for file in copied.iterdir() if file.suffix != ".manifest")
    with redis_server(tmp_path / "backup", "--appendonly", "yes") as url, redis.Redis.from_url(url) as client:
        assert client.dbsize() == 2000


def permissions() -> list[list[str]]:
    """Return what docs/operations.md says that a user needs: on one Redis; on a cluster besides; and the keys."""
    text = (CONF.parents[2] / "docs" / "operations.md").read_text("utf-8").partition("A user with ACLs needs")[2]
    return [allowed.split() for allowed in re.findall(r"`([+~][^`]+)`", text)[:3]]


@pytest.mark.parametrize("nodes", [1, pytest.param(3, marks=pytest.mark.cluster)])
def test_a_user_with_the_permissions_that_are_named_can_do_all(tmp_path: Path, nodes: int) -> None:
    everywhere, on_a_cluster, keys = permissions()
    crawl = made_up_crawl(80, seed=1)
    with ExitStack() as stack:
        if nodes == 1:
            url, allowed = stack.enter_context(redis_server(tmp_path)), everywhere
            servers = [redis.Redis.from_url(url)]
        else:
            url, allowed = stack.enter_context(redis_cluster(tmp_path, nodes)), everywhere + on_a_cluster
            with connect_cluster(url) as cluster:
                servers = [redis.Redis(port=node.port) for node in cluster.get_primaries()]
        for server in servers:
            server.execute_command("ACL", "SETUSER", "crawl", "on", ">secret", *keys, "-@all", *allowed)
            stack.callback(server.close)
        config = Config.load(environment={}, options={"redis": url.replace("//", "//crawl:secret@")})
        with open_services(config) as services:
            publish_sketches(services, crawl)
            process_pending(services)
            services.index.add_policy(Policy("more", resemblance=0.7))
            services.index.expire(10**15)
            settled(services.index)
            assert partition(services.index) == expected(crawl)
            assert list(services.alerts.since(0))
            services.rulebook.learn_due(10**13)
            url = "http://h.example/changes"
            with open_services(config) as others:
                others.index.apply([page(url, 1, range(50))])
                services.index.apply([page(url, 2, range(100, 150))])
                assert services.index.settle() == 1  # the first version waits for what the others have to tell
            assert services.index.settle() == 0
        assert [server.execute_command("ACL", "LOG") for server in servers] == [[] for _ in servers]


def test_a_user_of_sentinels_needs_what_is_named(tmp_path: Path) -> None:
    (allowed,) = re.findall(r"`(\+sentinel[^`]*)`", (CONF.parents[2] / "docs" / "operations.md").read_text("utf-8"))
    with redis_sentinels(tmp_path) as watched:
        for sentinel in watched.sentinels:
            sentinel.execute_command("ACL", "SETUSER", "few", "on", ">secret", "-@all", allowed)
        url = f"{watched.url}?sentinel_username=few&sentinel_password=secret"
        with open_services(Config.load(environment={}, options={"redis": url})) as services:
            assert services.index.counts()["documents"] == 0
