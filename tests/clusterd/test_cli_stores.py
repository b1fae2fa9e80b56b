"""A store that cannot be asked, or lacks what it had, is said in one line, with what would be right."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import redis
from clusterd.config import Config
from clusterd.services import Services
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler import topics

from clusterd import health
from tests.clusterd.command_line import clusterd, write
from tests.services.redis_server import redis_server

CLUSTERD = str(Path(sys.executable).parent / "clusterd")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("{0}:i", "the store has lost KEY and maybe more, which somebody has deleted: restore a backup"),
        ("{0}:l", "the store has lost KEY and maybe more, which somebody has deleted: restore a backup"),
        ("{0}:s:0", "the store lacks keys, which somebody has deleted, or another program writes under its prefix"),
    ],
)
def test_a_store_that_lacks_a_key_says_so_in_one_line(
    redis_url: str, prefix: str, tmp_path: Path, key: str, says: str
) -> None:
    (tmp_path / "page.html").write_text("<p>a page of a few words</p>")
    where = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    assert clusterd("ingest", "--sweep", "one", "page.html", folder=tmp_path, **where).returncode == 0
    with redis.Redis.from_url(redis_url) as client:
        assert client.delete(f"{prefix}{key}") == 1
    done = clusterd("changes", folder=tmp_path, **where)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert says.replace("KEY", f"{prefix}{key}") in done.stderr


def test_a_database_that_the_server_has_not_is_named(redis_url: str, tmp_path: Path) -> None:
    done = clusterd("status", "--redis", f"{redis_url.removesuffix('/0')}/999", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("clusterd: redis names a database that the server has not: ")


def test_a_refusal_says_where_a_password_goes_and_no_password(redis_url: str, tmp_path: Path) -> None:
    wrong = redis_url.replace("://", "://user:open-sesame@")
    for command in (["status"], ["run", "--check"]):
        done = clusterd(*command, "--redis", wrong, folder=tmp_path)
        assert done.returncode == 1
        assert "refuses us" in done.stderr
        assert "it takes redis://USER:PASSWORD@HOST:PORT/DB" in done.stderr
        assert "open-sesame" not in done.stderr


def test_a_single_redis_that_is_given_as_a_cluster_is_said(redis_url: str, tmp_path: Path) -> None:
    url = redis_url.replace("redis://", "redis+cluster://").removesuffix("/0")
    done = clusterd("status", "--redis", url, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"clusterd: {url} is no Redis Cluster; a single Redis is given as redis://HOST:PORT/DB\n"


def test_a_single_redis_that_is_given_as_a_sentinel_is_said(redis_url: str, tmp_path: Path) -> None:
    url = redis_url.replace("redis://", "redis+sentinel://").removesuffix("/0") + "/pages"
    done = clusterd("status", "--redis", url, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"clusterd: {url} is no sentinel; a single Redis is given as redis://HOST:PORT/DB\n"


@pytest.mark.cluster
def test_a_node_of_a_cluster_that_is_given_as_a_single_redis_is_said(redis_cluster_url: str, tmp_path: Path) -> None:
    url = redis_cluster_url.replace("redis+cluster://", "redis://")
    said = [
        clusterd("status", "--redis", url, CLUSTERD_REDIS_PREFIX=prefix, folder=tmp_path).stderr for prefix in "abc"
    ]
    assert any("it takes redis+cluster://HOST:PORT" in one for one in said)  # where the first keys are another node's


def test_a_working_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """As where a project is removed, and checked out anew, under the shell that stands in it."""
    gone = ["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', "sh"]
    for command in (["status"], ["run"], ["rules", "export", "rules.json"]):
        done = subprocess.run([*gone, CLUSTERD, *command], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("clusterd: the working folder is gone")


def test_a_policy_that_a_full_store_has_taken_is_said_to_be_there(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(100)]
    rows = [{"url": f"http://h.example/{n}", "text": " ".join(words[10 * n :])} for n in range(3)]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with redis_server(tmp_path / "full") as url, redis.Redis.from_url(url) as client:
        assert clusterd("ingest", "pages.jsonl", "--redis", url, folder=tmp_path).returncode == 0
        client.config_set("maxmemory", 1)
        add = ("policy", "add", "loose", "--resemblance", ".3", "--redis", url)
        done = clusterd(*add, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        told = "policy loose is added, but its clusters are not built yet, which the next daemon or question does"
        assert done.stderr.splitlines()[-1].startswith(f"clusterd: {told}: Redis is full: raise its maxmemory")
        client.config_set("maxmemory", 0)
        listed = clusterd("policy", "list", "--redis", url, "--json", folder=tmp_path).stdout.splitlines()
        assert json.loads(listed[-1]) == {"policy": "loose", "resemblance": 0.3, "containment": None, "clusters": 1}


def test_of_a_log_that_is_not_named_the_daemons_say_what_waits(
    services: Services, redis_url: str, prefix: str, tmp_path: Path
) -> None:
    where = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}

    def lag() -> int | None:
        said: int | None = json.loads(clusterd("status", "--json", folder=tmp_path, **where).stdout)["lag"]
        return said

    with closing(Calls(services.redis)) as calls:
        health.beat(calls, prefix, health.Report(log="kafka"))
        assert lag() is None  # nor does the daemon know yet
        health.beat(calls, prefix, health.Report(log="kafka", lag=7))
        health.beat(calls, prefix, health.Report(log="kafka", lag=5))
        assert lag() == 7
        health.beat(calls, prefix, health.Report(log="redis", lag=5))
        assert lag() == 0  # as the stream says


def test_a_question_that_names_no_group_is_of_the_daemons_group(redis_url: str, prefix: str, tmp_path: Path) -> None:
    """It founded another, for which the stream filled up until crawls could send nothing any more."""
    write(tmp_path / "pages.jsonl", *({"url": f"http://h.example/{n}", "text": f"page {n}"} for n in range(600)))
    where = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix}
    assert clusterd("ingest", "pages.jsonl", folder=tmp_path, CLUSTERD_GROUP="mine", **where).returncode == 0
    done = clusterd("status", "--json", folder=tmp_path, **where)
    assert json.loads(done.stdout)["lag"] == 0
    done = clusterd("clusters", folder=tmp_path, **where)
    assert "messages wait" not in done.stderr
    with redis.Redis.from_url(redis_url) as client:
        groups = client.xinfo_groups(topics.stream(prefix, topics.SKETCHES))
    assert [group["name"] for group in groups] == [b"mine"]


def test_topics_that_no_daemon_reads_are_said(services: Services, redis_url: str, prefix: str, tmp_path: Path) -> None:
    where = {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_KAFKA": "127.0.0.1:1"}
    theirs = Config(kafka="127.0.0.1:1", kafka_prefix="shop-").log
    with closing(Calls(services.redis)) as calls:
        health.beat(calls, prefix, health.Report(log=theirs))
    write(tmp_path / "pages.jsonl", {"url": "http://h.example/", "text": "a page"})
    done = clusterd("ingest", "pages.jsonl", folder=tmp_path, **where)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "they have CLUSTERD_KAFKA_PREFIX = 'shop-'" in done.stderr
