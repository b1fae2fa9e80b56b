"""The log of a crawl over Redis: when it takes no more, and which of a cluster's servers has it."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.servers.redis_client import connect

from tests.crawler.test_publish import arrived, publisher
from tests.services.redis_server import redis_server
from tests.services.waiting import wait_until


def test_a_full_stream_is_left_alone(redis_url: str, prefix: str) -> None:
    log = RedisLog(redis_url, f"{prefix}stream:full", limit=10)
    log.send([(b"k", b"v")] * 10)
    with pytest.raises(Unreachable, match="full"):
        log.send([(b"k", b"v")])
    with redis.Redis.from_url(redis_url) as client:
        assert client.xlen(f"{prefix}stream:full") == 10
        client.xtrim(f"{prefix}stream:full", maxlen=0)
    log.send([(b"k", b"v")])
    log.close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_a_server_that_would_evict_is_sent_nothing_until_it_would_not(tmp_path: Path, policy: str) -> None:
    """While daemons waited for that, the pages of crawls took the place of the store, and of each other."""
    with (
        redis_server(tmp_path / "redis", "--maxmemory", "64mb") as url,
        redis.Redis.from_url(url) as client,
        publisher(url, "", tmp_path, capacity=10) as out,
    ):
        out.offer(b"k", b"before")
        wait_until(lambda: arrived(url, "") == [b"before"])
        client.config_set("maxmemory-policy", policy)
        log = RedisLog(url, "stream:sketches")
        with pytest.raises(Unreachable, match="when it is full: set its maxmemory-policy to noeviction"):
            log.send([])
        client.config_set("maxmemory", 1)
        client.config_set("maxmemory-policy", "allkeys-lru")
        wait_until(lambda: client.info("stats")["evicted_keys"])
        with pytest.raises(Unreachable, match=r"and has evicted \d+ keys since it started: set"):
            log.send([])
        log.close()
        out.offer(b"k", b"meanwhile")
        wait_until(lambda: out.counts.spooled == 1)
        client.config_set("maxmemory", 0)
        wait_until(lambda: arrived(url, "") == [b"meanwhile"])


def test_a_cluster_serves_as_the_log(redis_cluster_url: str, prefix: str) -> None:
    log = RedisLog(redis_cluster_url, f"{prefix}stream:sketches")
    log.send([(b"k", b"v")] * 3)
    log.send([])
    log.close()
    with connect(redis_cluster_url) as client:
        assert client.xlen(f"{prefix}stream:sketches") == 3


def test_of_a_cluster_the_server_that_has_the_stream_is_not_to_evict(
    redis_cluster_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the others daemons wait; nor is one that may not be asked suspected."""
    monkeypatch.setattr("clusterd_crawler.publish.redis_log.EVICTION_SECONDS", 0.0)
    unasked = redis_cluster_url.replace("://", "://unasked:secret@")
    with connect(redis_cluster_url) as client:
        streams = {client.get_node_from_key(stream).name: stream for stream in (f"{prefix}{n}" for n in range(50))}
        logs = {node: RedisLog(redis_cluster_url, stream) for node, stream in streams.items()}
        evicting = client.get_primaries()[0]
        client.execute_command("ACL SETUSER", "unasked", "on", ">secret", "~*", "+@all", "-info", target_nodes="all")
        client.config_set("maxmemory", 10**12, target_nodes="all")
        client.config_set("maxmemory-policy", "allkeys-lru", target_nodes=evicting)
        try:
            refused = logs.pop(evicting.name)
            with pytest.raises(Unreachable, match="would evict pages"):
                refused.send([(b"k", b"v")])
            refused.close()
            for log in (*logs.values(), RedisLog(unasked, streams[evicting.name])):
                log.send([(b"k", b"v")])
                log.close()
            assert len(logs) == 2
        finally:
            client.config_set("maxmemory-policy", "noeviction", target_nodes="all")
            client.config_set("maxmemory", 0, target_nodes="all")
            client.execute_command("ACL DELUSER", "unasked", target_nodes="all")
