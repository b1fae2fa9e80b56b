"""The services that the other tests stand on are real and answer."""

from __future__ import annotations

import redis

from tests.services.redis_server import connect_cluster


def test_redis_answers(redis_url: str, prefix: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set(prefix + "k", 1)
        assert client.get(prefix + "k") == b"1"


def test_the_cluster_spreads_keys_over_three_nodes(redis_cluster_url: str, prefix: str) -> None:
    with connect_cluster(redis_cluster_url) as client:
        nodes = {client.get_node_from_key(f"{prefix}{n}").port for n in range(100)}
    assert len(nodes) == 3
