"""One way to a Redis or a Redis Cluster, and one translation of what its client raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import redis
from clusterd_crawler.errors import SettingError
from clusterd_crawler.servers.redis_address import shown
from clusterd_crawler.servers.redis_client import opened, refuse_evicting
from clusterd_crawler.servers.redis_errors import FORBIDDEN, FOREIGN, UNKNOWN, USED_UP, unreachable
from redis.cluster import RedisCluster

from clusterd_consumer.redis_failover import Failover, look_around

Client = redis.Redis | RedisCluster

#: Seconds to connect, and for an answer. A blocking read adds its own time.
CONNECT_TIMEOUT: Final = 5.0
ANSWER_TIMEOUT: Final = 30.0

#: What Redis answers while it cannot serve, though the request is right: it is asked again, never given up.
_UNABLE: Final = (
    redis.ConnectionError,  # with BusyLoadingError, AuthenticationError
    redis.TimeoutError,
    redis.InvalidResponse,  # of a proxy, say, that has no Redis behind it just now
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,  # no node of a cluster answers, or one misses slots
    redis.exceptions.TryAgainError,
    redis.exceptions.NoPermissionError,
)
_UNABLE_ANSWERS: Final = (
    *("MISCONF", "NOREPLICAS", "MASTERDOWN", "LOADING", "OOM", "READONLY", "CLUSTERDOWN", "BUSY ", "NOAUTH"),
    *("MOVED ", "ASK ", "TRYAGAIN"),  # while a slot of a cluster moves to another node
    "UNBLOCKED ",  # who waits for entries, where the stream is deleted (7.0), or the primary becomes a replica
    *(UNKNOWN, FOREIGN, USED_UP, *FORBIDDEN),
)


def connect(url: str) -> Client:
    """Return a client of what stands at an address (`redis_address`)."""
    with translated(shown(url)):
        client: Client = opened(url, socket_connect_timeout=CONNECT_TIMEOUT, socket_timeout=ANSWER_TIMEOUT)
        return client


def greet(url: str, transit: float = 0.0) -> None:
    """Return when what stands at an address answers; `Unreachable` says why it does not.

    Within seconds, as whoever asks is there to know: an answer to work may take `ANSWER_TIMEOUT`. ``transit``: seconds
    for which a primary that is away is waited for where something is there that puts a replica in its place.
    """
    with translated(shown(url), url):
        client: Any = opened(url, socket_connect_timeout=CONNECT_TIMEOUT, socket_timeout=CONNECT_TIMEOUT)
        with closing(client):
            Failover(client, transit)(client.ping)


@contextmanager
def translated(what: str = "Redis", url: str = "") -> Iterator[None]:
    """Raise `Unreachable` for a Redis that cannot serve; what it says of a wrong request stays as it is.

    Where ``url`` is given, the line also says if one end alone speaks TLS.
    """
    try:
        yield
    except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
        if unable(error):
            raise unreachable(error, what, url) from error
        if "DB index" in str(error):
            raise SettingError(f"redis names a database that the server has not: {error}") from error
        raise


def servers(client: Client) -> list[Any]:
    """Return clients of the one server, or of all primaries of a cluster."""
    if not isinstance(client, RedisCluster):
        return [client]
    cluster: Any = client  # the client library leaves half of these methods without types
    return [cluster.get_redis_connection(node) for node in cluster.get_primaries()]


def refuse_eviction(client: Client, what: str = "Redis") -> None:
    """Raise `Unreachable` where one of the servers that is full would evict keys (`refuse_evicting`)."""
    with translated(what):
        try:
            for server in servers(client):
                refuse_evicting(server, what)
        except (redis.ConnectionError, redis.TimeoutError):
            look_around(client)  # a replica may have taken the place of one
            raise


def unable(error: BaseException) -> bool:
    """Whether the error says that Redis cannot serve now, not that the request was wrong."""
    return isinstance(error, _UNABLE) or (
        isinstance(error, redis.RedisError) and any(word in str(error)[:200] for word in _UNABLE_ANSWERS)
    )
