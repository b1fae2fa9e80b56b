"""A Redis client for the crawl's threads: short timeouts, no retries of its own, errors as ours, no debug lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from clusterd_crawler.errors import SettingError, Unreachable
from clusterd_crawler.servers.redis_address import Address, read, shown

#: Seconds to connect, and to wait for an answer.
CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
#: Seconds after which a held connection is looked at before it is used: servers close those that are idle for minutes.
FRESH_SECONDS: Final = 1.0
#: Options of an address that are files of TLS.
FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def library() -> Any:
    """Return the client library, which says little then; `SettingError` names the extra where it is missing.

    At ``DEBUG``, which is Scrapy's default, it logs each try in vain, twenty a second while a store reads its data.
    All of it that is used is imported at once: an import beside the running loop would hold it up.
    """
    try:
        import redis
        import redis.backoff
        import redis.cluster
        import redis.retry
        import redis.sentinel
    except ImportError:
        raise SettingError("CLUSTERD_REDIS needs the Redis client: pip install 'clusterd[redis]'") from None
    if (client := logging.getLogger("redis")).level == logging.NOTSET:  # a level that somebody has set counts
        client.setLevel(logging.INFO)
    return redis


def connect(url: str) -> Any:
    """Return a client of what stands at an address (`redis_address`)."""
    with translated(url):
        return opened(url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=ANSWER_SECONDS)


def opened(url: str, **limits: Any) -> Any:
    """Return a client of the library, by these of its options.

    A single Redis is not retried behind our back: after a lost connection the caller must look how far the state goes.
    """
    redis = library()
    limits["protocol"] = 2  # one shape of answers, whatever the client's default
    with accepted(url):
        address = read(url)
        _look_at_files(address.url)
        if address.kind == "cluster":
            nodes = [redis.cluster.ClusterNode(host, port) for host, port in address.servers]
            return redis.cluster.RedisCluster.from_url(address.url, startup_nodes=nodes, **limits)
        limits["retry"] = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        client = (
            _of_sentinels(redis, address, limits) if address.service else redis.Redis.from_url(address.url, **limits)
        )
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # the client looks at the names of options when it connects
        return client


def _look_at_files(url: str) -> None:
    """Raise `ValueError` where a file of TLS cannot be read: the client would say that the server cannot be found."""
    for name, path in parse_qsl(urlsplit(url).query):
        if name in FILES:
            try:
                Path(path).open("rb").close()
            except OSError as error:
                raise ValueError(f"{name} = {path!r} cannot be read: {error.strerror}") from None


def _of_sentinels(redis: Any, address: Address, limits: dict[str, Any]) -> Any:
    """Return a client whose connections ask the sentinels, each as it begins, which server is the primary."""
    options = redis.connection.parse_url(address.url)
    if options.pop("connection_class", None):
        options["ssl"] = True
    own = {name: options.pop(f"sentinel_{name}") for name in ("username", "password") if f"sentinel_{name}" in options}
    by_tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    sentinels = redis.sentinel.Sentinel(
        address.servers, sentinel_kwargs={**by_tls, **own, **limits}, **{**limits, **options}
    )
    return sentinels.master_for(address.service)


@contextmanager
def accepted(url: str) -> Iterator[None]:
    """Let what the client says of the options of a URL (``?db=3``) leave as `SettingError`."""
    try:
        yield
    except (TypeError, ValueError, library().RedisError) as error:
        _, unknown, option = str(error).partition("unexpected keyword argument ")
        why = f"there is no option {option}" if unknown else str(error)
        address = shown(url).partition("?")[0]  # an option that does not exist may be a password
        raise SettingError(f"redis = {address!r} is not accepted: {why}") from None


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Let the client's errors leave as `Unreachable`."""
    errors = _errors()
    try:
        yield
    except errors as error:
        from clusterd_crawler.servers.redis_errors import unreachable  # needs the client

        raise unreachable(error, f"Redis at {shown(url)}", url) from None


def refuse_evicting(server: Any, what: str) -> None:
    """Raise `Unreachable` where a server (`redis.Redis`) that is full would evict keys: nobody should write to it.

    It would lose pages without a word, and with a counter that is gone give the number of one page to another. Of keys
    that expire, too: the evidence of rules does, in months, and so do the reports of daemons. A server that may not be
    asked is trusted.
    """
    try:
        memory = server.info("memory")
        if not memory.get("maxmemory") or memory.get("maxmemory_policy", "noeviction") == "noeviction":
            return
        gone = server.info("stats").get("evicted_keys")
    except library().exceptions.NoPermissionError:
        return
    already = f", and has evicted {gone} keys since it started" if gone else ""
    raise Unreachable(f"{what} would evict pages when it is full{already}: set its maxmemory-policy to noeviction")


@lru_cache(maxsize=1)
def _errors() -> tuple[type[Exception], ...]:
    """Return what the client raises."""
    redis = library()
    return redis.RedisError, redis.exceptions.RedisClusterException, OSError


class Held:
    """A connection of a client, held by one thread that uses it several times a second.

    To take it from the client's pool for each command, and to have the command go through the client, costs .2 ms of a
    processor that has just run a crawl, for statistics, retries, and a look whether somebody has written into it.
    """

    def __init__(self, client: Any) -> None:
        """Of a client of one server."""
        self._pool = client.connection_pool
        self._connection: Any = None
        self._used = 0.0

    def execute(self, *commands: Sequence[Any]) -> Any:
        """Return the answer to the last of some commands, as the server gave it, having sent all of them at once.

        In one piece: every piece that is sent lets go of the interpreter's lock, for which the crawl's loop, when it is
        busy, has this thread wait 5 ms each time.
        """
        now = time.monotonic()
        if self._connection is not None and now - self._used > FRESH_SECONDS:
            self.close()
        self._used = now
        connection = self._connection = self._connection or self._pool.get_connection()
        try:
            connection.send_packed_command([b"".join(connection.pack_commands(commands))])
            return [connection.read_response() for _ in commands][-1]
        except BaseException:
            connection.disconnect()  # what was not read is not to be taken for the next answer
            raise

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.release(connection)


def embedded_url(data: Path) -> str:
    """Return the URL of a data folder's embedded server: its socket, or where the folder says that it is."""
    return unix_url(embedded_socket(data))


def embedded_socket(data: Path) -> Path:
    """Return the socket of a data folder's embedded server."""
    return remembered_socket(data) or data.resolve() / "redis.sock"


def remembered_socket(data: Path) -> Path | None:
    """Return the socket that a data folder has elsewhere, as it remembers; None where it has none.

    A copy remembers that of the folder it was copied from, whose server is another store: it has none yet.
    """
    note = data / "redis.socket-path"
    socket = Path(note.read_text("utf-8").strip()) if note.exists() else None
    return socket if socket and socket.parent.name.startswith(socket_folder(data)) else None


def socket_folder(data: Path) -> str:
    """Return how the name of the folder of such a socket begins: by the number that a copied folder has not."""
    return f"clusterd-{data.stat().st_ino:x}-"


def unix_url(socket: Path) -> str:
    """Return the URL of a socket; what would end or change a URL's path (``#``, ``?``, ``%``, a tab) is escaped.

    A path of bytes that are no text has one, too, at which nobody answers: there the socket lies elsewhere.
    """
    return f"unix://{quote(str(socket), errors='backslashreplace')}"
