"""What a crawl is told of an address of Redis that is wrong."""

from __future__ import annotations

import pytest
import redis
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.servers.redis_client import connect, translated


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://127.0.0.1:1/0?tls=1", "there is no option 'tls'"),
        ("redis://127.0.0.1:1?socket_timeout=soon", "socket_timeout"),
        ("unix:///run/redis.sock?tls=1", "there is no option 'tls'"),
        ("redis+sentinel://127.0.0.1:1/pages?tls=1", "there is no option 'tls'"),
    ],
)
def test_an_option_that_the_client_has_not_is_a_setting_that_is_wrong(url: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        connect(url)


def test_a_node_of_a_cluster_is_taken_for_one() -> None:
    with pytest.raises(Unreachable, match="it takes redis\\+cluster://HOST:PORT"), translated("redis://h:1"):
        raise redis.exceptions.MovedError("14516 127.0.0.1:7002")


def test_each_of_servers_and_sentinels_is_told_what_is_for_it() -> None:
    url = "rediss+sentinel://us:ours%40@s:1,t/my%20pages/3?sentinel_password=theirs&ssl_ca_certs=ca.pem"
    pool = connect(url).connection_pool
    servers = pool.connection_kwargs
    assert pool.service_name == "my pages"
    assert [servers[name] for name in ("username", "password", "db", "ssl_ca_certs")] == ["us", "ours@", 3, "ca.pem"]
    told = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    assert [(one["host"], one["port"]) for one in told] == [("s", 1), ("t", 26379)]
    assert [(one["username"], one["password"], one["ssl_ca_certs"]) for one in told] == [(None, "theirs", "ca.pem")] * 2
    assert [
        issubclass(one.connection_pool.connection_class, redis.SSLConnection) for one in pool.sentinel_manager.sentinels
    ] == [True, True]
