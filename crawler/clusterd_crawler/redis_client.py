"""A Redis client for the crawl's threads: short timeouts, no retries of its own, errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from clusterd_crawler.errors import SettingError, Unreachable

#: Seconds to connect, and to wait for an answer.
CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0


def library() -> Any:
    """Return the client library; `SettingError` names the extra where it is missing.

    All of it that is used is imported at once: an import beside the running loop would hold it up.
    """
    try:
        import redis
        import redis.backoff
        import redis.cluster
        import redis.retry
    except ImportError:
        raise SettingError("CLUSTERD_REDIS needs the Redis client: pip install 'clusterd[redis]'") from None
    return redis


def connect(url: str) -> Any:
    """Return a client of a Redis (``redis://``, ``rediss://``, ``unix://``) or a cluster (``redis+cluster://``)."""
    redis = library()
    # protocol 2: one shape of answers, whatever the client's default
    limits = {"socket_connect_timeout": CONNECT_SECONDS, "socket_timeout": ANSWER_SECONDS, "protocol": 2}
    with translated(url):
        if url.startswith("redis+cluster://"):
            address = urlsplit(url)
            return redis.cluster.RedisCluster(host=address.hostname or "", port=address.port or 6379, **limits)
        return redis.Redis.from_url(url, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0), **limits)


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Let the client's errors leave as `Unreachable`."""
    errors = _errors()
    try:
        yield
    except errors as error:
        raise Unreachable(f"Redis at {url}: {type(error).__name__}: {error}") from None


@lru_cache(maxsize=1)
def _errors() -> tuple[type[Exception], ...]:
    """Return what the client raises."""
    redis = library()
    return redis.RedisError, redis.exceptions.RedisClusterException, OSError


def embedded_url(data: Path) -> str:
    """Return the URL of a data folder's embedded server: its socket, or where the folder says that it is."""
    note = data / "redis.socket-path"
    path = note.read_text().strip() if note.exists() else str(data.resolve() / "redis.sock")
    return f"unix://{path}"
