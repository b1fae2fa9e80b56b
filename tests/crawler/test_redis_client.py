"""What a crawl is told of an address of Redis that is wrong, and by a Redis that is not there; what is logged of it."""

from __future__ import annotations

import logging
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from clusterd_crawler import topics
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.servers.redis_address import shown, shown_host
from clusterd_crawler.servers.redis_client import connect, translated
from clusterd_crawler.subscribe.contract import News
from clusterd_crawler.subscribe.redis_feed import RedisFeed
from clusterd_crawler.subscribe.subscriber import Subscriber

from tests.services.waiting import wait_until


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://127.0.0.1:1/0?tls=1", "there is no option 'tls'"),
        ("redis://127.0.0.1:1?socket_timeout=soon", "socket_timeout"),
        ("unix:///run/redis.sock?tls=1", "there is no option 'tls'"),
        ("redis+sentinel://127.0.0.1:1/pages?tls=1", "there is no option 'tls'"),
        ("rediss://127.0.0.1:1/0?ssl_cert_reqs=maybe", "Requirements Flag: maybe"),
        ("rediss://127.0.0.1:1/0?ssl_ca_certs=/none", "ssl_ca_certs = '/none' cannot be read: No such file"),
    ],
)
def test_an_option_that_the_client_has_not_is_a_setting_that_is_wrong(url: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        connect(url)


def test_a_protocol_that_the_address_asks_for_changes_no_answer(redis_url: str, prefix: str) -> None:
    feed = RedisFeed(f"{redis_url}?protocol=3", prefix)
    with connect(redis_url) as client:
        client.xadd(topics.stream(prefix, topics.VERDICTS), {topics.FIELD_KEY: b"k", topics.FIELD_VALUE: b"v"})
    assert feed.poll(1) == [News(topics.VERDICTS, b"k", b"v")]
    feed.close()


def test_a_node_of_a_cluster_is_taken_for_one() -> None:
    with pytest.raises(Unreachable, match="it takes redis\\+cluster://HOST:PORT"), translated("redis://h:1"):
        raise redis.exceptions.MovedError("14516 127.0.0.1:7002")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("redis+sentinel://{}/pages", r"is no sentinel; a single Redis is given as redis://HOST:PORT/DB$"),
        ("redis+cluster://{}", r"is no Redis Cluster; a single Redis is given as redis://HOST:PORT/DB$"),
        ("redis://me:secret@{}/0", r"refuses us: .*; it takes redis://USER:PASSWORD@HOST:PORT/DB$"),
    ],
)
def test_a_server_of_another_kind_is_said_to_crawls_as_to_daemons(given: str, says: str, redis_url: str) -> None:
    url = given.format(redis_url.split("/")[2])
    with pytest.raises(Unreachable, match=rf"^Redis at .*127.*{says}") as raised:
        RedisLog(url, "sketches").send([(b"key", b"value")])
    assert "secret" not in str(raised.value)


@pytest.mark.cluster
def test_what_a_cluster_refuses_is_told_without_the_command(redis_cluster_url: str, prefix: str) -> None:
    log = RedisLog(redis_cluster_url, f"{prefix}sketches")
    with connect(redis_cluster_url) as client:
        nodes = client.get_nodes()
        try:
            client.config_set("maxmemory", 1, target_nodes=nodes)
            with pytest.raises(Unreachable, match=r"^Redis at .* is full: raise its maxmemory") as raised:
                log.send([(b"key", b"value of a page")])
        finally:
            client.config_set("maxmemory", 0, target_nodes=nodes)
    assert "value" not in str(raised.value)
    assert "pipeline" not in str(raised.value)
    log.close()


def test_each_of_servers_and_sentinels_is_told_what_is_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ca.pem").touch()
    url = "rediss+sentinel://us:ours%40@s:1,t/my%20pages/3?sentinel_password=theirs&ssl_ca_certs=ca.pem"
    url += "&protocol=3&socket_timeout=7"
    pool = connect(url).connection_pool
    servers = pool.connection_kwargs
    assert pool.service_name == "my pages"
    assert [servers[name] for name in ("username", "password", "db", "ssl_ca_certs")] == ["us", "ours@", 3, "ca.pem"]
    assert (servers["protocol"], servers["socket_timeout"]) == (2, 7)
    told = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    assert [(one["host"], one["port"]) for one in told] == [("s", 1), ("t", 26379)]
    assert [(one["username"], one["password"], one["ssl_ca_certs"]) for one in told] == [(None, "theirs", "ca.pem")] * 2
    assert [
        issubclass(one.connection_pool.connection_class, redis.SSLConnection) for one in pool.sentinel_manager.sentinels
    ] == [True, True]


@pytest.fixture
def loading(tmp_path: Path) -> Iterator[str]:
    """Return the address of a server that is reading its data."""

    class Loading(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while asked := self.request.recv(4096):
                introduced = asked.count(b"SETINFO")  # as whom the client comes
                self.request.sendall(b"+OK\r\n" * introduced or b"-LOADING Redis is loading the dataset in memory\r\n")

    with socketserver.ThreadingUnixStreamServer(str(tmp_path / "redis.sock"), Loading) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"unix://{tmp_path}/redis.sock"
        server.shutdown()


@pytest.mark.parametrize(("level", "lines"), [(logging.NOTSET, 0), (logging.DEBUG, 1)])
def test_a_store_that_still_starts_fills_no_log(
    level: int, lines: int, loading: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Unless somebody has asked for what the client says."""
    caplog.set_level(logging.DEBUG)  # Scrapy's default
    caplog.set_level(level, "redis")
    with pytest.raises(Unreachable, match="loading"), translated(loading):
        connect(loading).ping()
    assert len([record for record in caplog.records if record.name == "redis.client"]) == lines


def test_a_crawl_whose_user_may_not_hear_the_daemon_says_so_once(
    redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    user = f"deaf-{prefix.rstrip(':')}"
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", "-xread")
        try:
            named = redis_url.replace("://", f"://{user}:secret@")
            feeds: list[RedisFeed] = []

            def connected() -> RedisFeed:
                feeds.append(RedisFeed(named, prefix))
                return feeds[-1]

            subscriber = Subscriber(connected, lambda rules: None, lambda verdicts: None, "crawl")
            wait_until(lambda: len(feeds) == 3)
            subscriber.close(5)
        finally:
            client.execute_command("ACL", "DELUSER", user)
    assert caplog.text.count("cannot be read now: Redis at") == 1
    assert "run the 'xread' command; docs/operations.md has what its user needs (ACLs)" in caplog.text


@pytest.mark.parametrize(
    ("url", "logged"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("redis://:secret@127.0.0.1:6379/0", "redis://:***@127.0.0.1:6379/0"),
        ("rediss://user:s:e@cret@host/0", "rediss://user:***@host/0"),
        ("redis://user@host:1", "redis://user@host:1"),
        ("user:secret@host:1", "user:***@host:1"),
        ("redis//user:sec\nret@host", "redis//user:***@host"),
        (
            "unix:///run/redis.sock?db=1&password=secret&protocol=2",
            "unix:///run/redis.sock?db=1&password=***&protocol=2",
        ),
    ],
)
def test_no_password_is_logged(url: str, logged: str) -> None:
    assert shown(url) == logged


def test_nor_is_an_option_that_does_not_exist() -> None:
    with pytest.raises(SettingError, match=r"'redis://127.0.0.1:1/0'.* no option 'pasword'"):
        connect("redis://127.0.0.1:1/0?pasword=secret")


@pytest.mark.parametrize(
    ("url", "logged"),
    [
        ("http://who:secret@h:80/", "http://who:***@h:80/"),
        ("https://hooks.example/services/T0/B0/token", "https://hooks.example/…"),
        ("ftp://who:secret@h/?token=a", "ftp://who:***@h/…"),
        ("who:secret@h/alerts", "who:***@h/…"),
        ("https://token@h/alerts", "https://***@h/…"),
        ("token@h", "***@h"),
    ],
)
def test_of_a_web_address_the_host_is_logged(url: str, logged: str) -> None:
    assert shown_host(url) == logged
