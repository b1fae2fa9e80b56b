"""One way to a Redis or a Redis Cluster, and one translation of what its client raises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import redis
from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.servers.redis_address import shown
from clusterd_crawler.servers.redis_client import NODE, opened, reason
from redis.cluster import RedisCluster

Client = redis.Redis | RedisCluster

#: Seconds to connect, and for an answer. A blocking read adds its own time.
CONNECT_TIMEOUT: Final = 5.0
ANSWER_TIMEOUT: Final = 30.0

#: What Redis answers to a user who may not do what we ask; from within a script without an error code (Redis 7.0; later
#: ones and Valkey). A matter of the server's users, not of the page that met it.
_FORBIDDEN: Final = ("NOPERM", "The user executing the script can't", "ACL failure in script")
#: What Redis answers while it cannot serve, though the request is right: it is asked again, never given up.
_UNABLE: Final = (
    redis.ConnectionError,  # with BusyLoadingError, AuthenticationError
    redis.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.ClusterError,
    redis.exceptions.RedisClusterException,  # no node of a cluster answers, or one misses slots
    redis.exceptions.TryAgainError,
    redis.exceptions.NoPermissionError,
)
#: What the client says of a single server that is given as a cluster.
NO_CLUSTER: Final = "Cluster mode is not enabled"
#: What a server says that is of another kind, or older, than the address has it: no page is to blame.
_UNKNOWN: Final = "unknown command "
#: What the client puts before the error of a command in a pipeline.
_IN_PIPELINE: Final = re.compile(r"^Command # \d+ .* of pipeline caused error: ", re.DOTALL)
_UNABLE_ANSWERS: Final = (
    *("MISCONF", "NOREPLICAS", "MASTERDOWN", "LOADING", "OOM", "READONLY", "CLUSTERDOWN", "BUSY ", "NOAUTH"),
    *("MOVED ", "ASK ", "TRYAGAIN"),  # while a slot of a cluster moves to another node
    *(_UNKNOWN, *_FORBIDDEN),
)


def connect(url: str) -> Client:
    """Return a client of what stands at an address (`redis_address`)."""
    with translated(shown(url)):
        client: Client = opened(url, socket_connect_timeout=CONNECT_TIMEOUT, socket_timeout=ANSWER_TIMEOUT)
        return client


@contextmanager
def translated(what: str = "Redis") -> Iterator[None]:
    """Raise `Unreachable` for a Redis that cannot serve; what it says of a wrong request stays as it is."""
    try:
        yield
    except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
        if unable(error):
            raise unreachable(error, what) from error
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
    """Raise `Unreachable` where a server that is full would evict keys that do not expire, as all of a store's are.

    It would lose pages without a word, and with a counter that is gone give the number of one page to another. A server
    that may not be asked is trusted.
    """
    with translated(what), suppress(redis.exceptions.NoPermissionError):
        for server in servers(client):
            memory = server.info("memory")
            policy = str(memory.get("maxmemory_policy", ""))
            if policy.startswith("allkeys-") and memory.get("maxmemory"):
                raise Unreachable(f"{what} would evict pages when it is full: set its maxmemory-policy to noeviction")


def unreachable(error: Exception, what: str = "Redis") -> Unreachable:
    """Return what is raised for a Redis that cannot serve."""
    if isinstance(error, redis.AuthenticationError):
        return Unreachable(f"{what} refuses us: {_reason(error)}; it takes redis://USER:PASSWORD@HOST:PORT/DB")
    if NO_CLUSTER in str(error):
        return Unreachable(f"{what} is no Redis Cluster; a single Redis is given as redis://HOST:PORT/DB")
    if _UNKNOWN in (said := _reason(error)):
        return Unreachable(f"{what} {_of_another_kind(said)}")
    if _is_forbidden(error):
        return Unreachable(f"{what} refuses us: {_reason(error)}; docs/operations.md has what its user needs (ACLs)")
    if _is_full(error):
        return Unreachable(
            f"{what} is full: raise its maxmemory, or let CLUSTERD_RETENTION make room ({_reason(error)})"
        )
    return Unreachable(f"{what} does not answer: {_reason(error)}{NODE if _is_moved(error) else ''}")


def _of_another_kind(said: str) -> str:
    """Return what is wrong with a server that does not know a command of ours."""
    if "SENTINEL" in said:
        return "is no sentinel; a single Redis is given as redis://HOST:PORT/DB"
    return (
        f"answers as a sentinel does, or a Redis before 7.0 ({said.partition(',')[0]}); "
        "sentinels are given as redis+sentinel://HOST:PORT/SERVICE"
    )


def _is_moved(error: Exception) -> bool:
    """Whether a single server says that another one has it."""
    return isinstance(error, redis.exceptions.MovedError) or _reason(error).startswith("MOVED ")


def _is_full(error: Exception) -> bool:
    """Whether a server that may not evict has reached its limit of memory."""
    return isinstance(error, redis.exceptions.OutOfMemoryError) or _reason(error).startswith("OOM ")


def _is_forbidden(error: Exception) -> bool:
    """Whether the server's user may not do what was asked."""
    return isinstance(error, redis.exceptions.NoPermissionError) or any(word in _reason(error) for word in _FORBIDDEN)


def _reason(error: Exception) -> str:
    """Return what went wrong, without the command that a pipeline's error repeats (it may hold a page's sketch)."""
    return _IN_PIPELINE.sub("", reason(error))


def unable(error: BaseException) -> bool:
    """Whether the error says that Redis cannot serve now, not that the request was wrong."""
    return isinstance(error, _UNABLE) or (
        isinstance(error, redis.RedisError) and any(word in str(error)[:200] for word in _UNABLE_ANSWERS)
    )
