"""Questions that wait while a replica takes the place of a primary: on a Redis Cluster, or behind sentinels.

Only what changes nothing may be asked again: of what writes nobody knows whether it was done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clusterd_crawler.errors import Unreachable
from clusterd_crawler.servers.redis_errors import REPLICA, reason
from redis import AuthenticationError, RedisError, TimeoutError
from redis import ConnectionError as NotConnected
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException
from redis.sentinel import SentinelConnectionPool

if TYPE_CHECKING:
    from clusterd_consumer.redis_connection import Client

log = logging.getLogger(__name__)

#: What a server answers that may not know yet which node has what a dead one had, or still reads what that one gave it.
UNSURE: Final = ("CLUSTERDOWN", "MASTERDOWN", "LOADING", REPLICA)
#: Seconds between two tries.
PAUSE: Final = 0.1

Answer = TypeVar("Answer")


class Patience:
    """How long one question waits: so many seconds from now on, while a replica may take the place of a primary."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self.until = time.monotonic() + seconds
        self._said = False

    def outlasts(self, failure: Exception) -> bool:
        """Whether to ask again: the pause before that has passed then, and the first time it was told why."""
        if time.monotonic() >= self.until or not _passes(failure) or not (self._said or _is_watched(self._client)):
            return False
        if not self._said:
            log.warning("waiting for a primary that is away, or its replica: %s", reason(failure))
            self._said = True
        time.sleep(PAUSE)
        return True


class Failover:
    """Asks again, for so many seconds, where a primary is away whose replica may take its place (an `Insist`)."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds

    def __call__(self, work: Callable[[], Answer], /) -> Answer:
        """Ask."""
        patience = Patience(self._client, self._seconds)
        while True:
            try:
                return work()
            except (RedisError, RedisClusterException, Unreachable) as failure:
                if not patience.outlasts(failure):
                    raise
            look_around(self._client)


def _passes(failure: Exception) -> bool:
    """Whether it may be over when a replica has taken the place of a primary."""
    cause = failure.__cause__ if isinstance(failure, Unreachable) else failure
    if isinstance(cause, (NotConnected, TimeoutError, RedisClusterException)):
        return not isinstance(cause, AuthenticationError)
    return isinstance(cause, RedisError) and reason(cause).startswith(UNSURE)


def _is_watched(client: Client) -> bool:
    """Whether there is a Redis Cluster, or a sentinel that knows the primary: a wrong address is not waited for."""
    pool: Any = None if isinstance(client, RedisCluster) else client.connection_pool
    if not isinstance(pool, SentinelConnectionPool):
        return pool is None
    manager: Any = pool.sentinel_manager
    for sentinel in manager.sentinels:
        try:
            if pool.service_name in sentinel.sentinel_masters():
                return True
        except RedisError:
            continue
    return False


def look_around(client: Client) -> None:
    """Learn anew which node of a cluster holds which slot; where none answers, the next call says so."""
    if isinstance(client, RedisCluster):
        cluster: Any = client
        with suppress(RedisError, RedisClusterException):
            cluster.nodes_manager.initialize()
