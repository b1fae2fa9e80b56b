"""What a crawl is told of an address of Redis that is wrong."""

from __future__ import annotations

import pytest
import redis
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.redis_client import connect, translated


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://127.0.0.1:1/0?tls=1", "there is no option 'tls'"),
        ("redis://127.0.0.1:1?socket_timeout=soon", "socket_timeout"),
        ("unix:///run/redis.sock?tls=1", "there is no option 'tls'"),
    ],
)
def test_an_option_that_the_client_has_not_is_a_setting_that_is_wrong(url: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        connect(url)


def test_a_node_of_a_cluster_is_taken_for_one() -> None:
    with pytest.raises(Unreachable, match="it takes redis\\+cluster://HOST:PORT"), translated("redis://h:1"):
        raise redis.exceptions.MovedError("14516 127.0.0.1:7002")
