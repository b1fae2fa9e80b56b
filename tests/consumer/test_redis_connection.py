"""Addresses of Redis, with a real server behind each: by TLS, of a cluster of which some nodes are away."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import CONNECT_TIMEOUT, connect, greet, translated
from clusterd_consumer.redis_failover import Failover
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.publisher import Publisher
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.publish.spool import Spool
from clusterd_crawler.servers.redis_address import shown
from clusterd_crawler.subscribe.redis_feed import RedisFeed
from clusterd_crawler.subscribe.subscriber import Subscriber

from tests.clusterd.command_line import clusterd
from tests.contract.index_world import expected, page, partition, settled
from tests.crawler.site import running
from tests.services.certificates import Authority
from tests.services.redis_server import SLOTS, free_port, redis_server, wait_until_formed
from tests.services.waiting import wait_until

CRAWL = [page("http://h.example/a", 1, range(100)), page("http://h.example/b", 1, [*range(98), 500])]
BY_NAME = "--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"


@pytest.fixture(scope="module", params=["rediss", "rediss+cluster"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server, or of a cluster of one node, by TLS."""
    if shutil.which("redis-server") is None and os.environ.get("CI") != "true":
        pytest.skip("redis-server is not installed; the embedded server knows no TLS")
    folder = tmp_path_factory.mktemp("secured")
    authority, port = Authority(folder, "ours"), free_port()
    cert, key = authority.sign("localhost", "127.0.0.1")  # the client looks up this name where it stands for a node
    files = "--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(authority.ca)
    options = ["--tls-port", str(port), *files, "--tls-auth-clients", "no"]
    if request.param == "rediss+cluster":
        options += ["--cluster-enabled", "yes", "--tls-cluster", "yes", *BY_NAME]
    with redis_server(folder / "server", *options) as plain, redis.Redis.from_url(plain) as client:
        if request.param == "rediss+cluster":
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)
            wait_until_formed([client])
        yield f"{request.param}://localhost:{port}?ssl_ca_certs={authority.ca}"


def test_store_and_crawl_go_by_tls(secured: str, prefix: str) -> None:
    index = RedisIndex(secured, prefix)
    index.apply(CRAWL)
    settled(index)
    assert partition(index) == expected(CRAWL)
    index.close()
    log = RedisLog(secured, topics.stream(prefix, topics.VERDICTS))
    feed = RedisFeed(secured, prefix)
    log.send([(b"key", b"value")])
    assert [(one.key, one.value) for one in feed.poll(5)] == [(b"key", b"value")]
    log.close()
    feed.close()


def test_a_server_that_another_authority_vouches_for_is_refused(secured: str, tmp_path: Path) -> None:
    address, _, _ = secured.partition("?")
    other = f"{address}?ssl_ca_certs={Authority(tmp_path, 'others').ca}"
    with pytest.raises(Unreachable, match=r"not accepted: .* \(ssl_ca_certs=FILE"), translated(shown(other)):
        connect(other).ping()


def test_a_server_by_tls_that_is_given_without_says_so_at_once(secured: str) -> None:
    plain = secured.partition("?")[0].replace("rediss", "redis")
    scheme = secured.partition(":")[0].replace("+", r"\+")
    for contact in (greet, lambda url: RedisLog(url, "log").send([(b"key", b"value")])):
        with pytest.raises(Unreachable, match=rf"localhost:\d+ speaks TLS at that port: it takes {scheme}://"):
            contact(plain)


def test_a_server_without_tls_that_is_given_by_tls_says_so_within_seconds(redis_url: str) -> None:
    """It waits for the end of what it takes for a command: the client's limit for the answer to work is 30 s."""
    asked = time.monotonic()
    with pytest.raises(Unreachable, match=r"speaks no TLS at that port: it takes redis://"):
        greet(redis_url.replace("redis://", "rediss://"))
    assert time.monotonic() - asked < 3 * CONNECT_TIMEOUT


def test_a_crawl_goes_on_when_a_file_of_tls_is_there_again(
    secured: str, prefix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address, _, authority = secured.partition("?ssl_ca_certs=")
    renewed = tmp_path / "renewed.pem"
    url = f"{address}?ssl_ca_certs={renewed}"
    publisher = Publisher(lambda: RedisLog(url, f"{prefix}log"), lambda: Spool(tmp_path / "spool", 100_000), capacity=9)
    subscriber = Subscriber(lambda: RedisFeed(url, prefix), lambda rules: None, lambda verdicts: None, "crawl")
    publisher.offer(b"key", b"value")
    wait_until(lambda: caplog.text.count("renewed.pem' cannot be read") == 2)
    shutil.copy(authority, renewed)
    wait_until(lambda: publisher.counts.published == 1 and subscriber.connected.is_set())
    publisher.close(5)
    subscriber.close(5)


@pytest.mark.cluster
def test_a_cluster_of_which_the_first_node_named_is_away(redis_cluster_url: str, prefix: str) -> None:
    url = redis_cluster_url.replace("://", f"://127.0.0.1:{free_port()},")
    index = RedisIndex(url, prefix)
    index.apply(CRAWL)
    settled(index)
    assert partition(index) == expected(CRAWL)
    index.close()


@pytest.mark.cluster
def test_a_question_that_a_cluster_refuses_is_asked_once(redis_cluster_url: str, prefix: str) -> None:
    """No replica that takes the place of a primary would answer otherwise."""
    asked: list[str] = []
    client: Any = connect(redis_cluster_url)
    client.set(f"{prefix}word", "no list")

    def ask() -> object:
        asked.append("once")
        return client.llen(f"{prefix}word")

    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        Failover(client, seconds=60)(ask)
    client.close()
    assert asked == ["once"]


@pytest.mark.parametrize("tls", ["", "?ssl_password=key-of-keys"])
def test_sentinels_that_do_not_answer_are_named(tls: str) -> None:
    """Where they are, and nothing else of what they are asked by: the password of a key is an option like others."""
    here, there = f"127.0.0.1:{free_port()}", f"localhost:{free_port()}"
    url = f"redis{'s' if tls else ''}+sentinel://:open-sesame@{here},{there}/pages{tls}"
    with pytest.raises(Unreachable, match="No master found for 'pages'") as raised, translated(shown(url)):
        connect(url).ping()
    said = str(raised.value)
    assert not any(secret in said for secret in ("open-sesame", "key-of-keys"))
    assert all(f"{server} - network:ConnectionError" in said for server in (here, there))
    assert "<redis" not in said


def test_a_server_of_another_kind_is_said_to_be_one(tmp_path: Path) -> None:
    """As a sentinel, or a Redis that is too old: it does not know a command of ours, and no page is to blame."""
    port = free_port()
    with redis_server(tmp_path / "server", "--rename-command", "HGET", "unheard-of", port=port):
        client = connect(f"redis://127.0.0.1:{port}/0")
        with pytest.raises(Unreachable, match=r"before 7\.0 .*'hget'.* redis\+sentinel://HOST"), translated():
            client.execute_command("hget", "key", "secret")
        client.close()


def test_a_port_at_which_something_else_answers_is_said_to_be_no_redis(tmp_path: Path) -> None:
    """As of a proxy that has no Redis behind it just now: it was said to be a fault of ours, and ended a daemon."""
    with running() as site:
        url = site.url.replace("http://", "redis://")
        done = clusterd("status", "--redis", url, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"clusterd: {url} is no Redis: something else answers there (")
        with pytest.raises(Unreachable, match="is no Redis: something else answers there"):
            RedisLog(url, "sketches").send([(b"key", b"value")])


def test_a_replica_is_said_to_be_one(tmp_path: Path, prefix: str) -> None:
    primary = free_port()
    with (
        redis_server(tmp_path / "primary", port=primary),
        redis_server(tmp_path / "replica", "--replicaof", "127.0.0.1", str(primary)) as replica,
        redis.Redis.from_url(replica) as client,
    ):
        wait_until(lambda: client.info("replication")["master_link_status"] == "up")
        done = clusterd("clusters", "--redis", replica, folder=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "is a replica, which takes no writes: it takes the primary, or redis+sentinel://" in done.stderr


def test_a_server_that_is_too_old_is_said_to_be_that(tmp_path: Path) -> None:
    """It has all that a store is opened with, and no functions."""
    without = (
        word for name in ("FCALL", "FCALL_RO", "FUNCTION") for word in ("--rename-command", name, f"{name}-to-be")
    )
    port = free_port()
    too_old = pytest.raises(Unreachable, match=r"is older than 7\.0, .*FCALL.*; clusterd needs 7\.0 or later")
    with redis_server(tmp_path / "server", *without, port=port), too_old:
        RedisIndex(f"redis://127.0.0.1:{port}/0").apply(CRAWL)
