"""A real primary with a replica, and the sentinels that put the one in the other's place."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import redis

from tests.services.redis_server import binary, free_port, redis_server
from tests.services.waiting import wait_until

DEPLOYED = Path(__file__).parents[2] / "deploy" / "redis" / "sentinel.conf"
#: By which the deployed file calls the primary.
SERVICE = "pages"
SENTINELS = 3
PASSWORD = "of the servers"
#: Milliseconds between what sentinels do again and again: in seconds it would be most of what a test takes.
PERIODS = {"info-period": 500, "publish-period": 200}


@dataclass
class Watched:
    """The servers, and where the sentinels are asked for them."""

    url: str
    servers: tuple[redis.Redis, redis.Redis]
    sentinels: list[redis.Redis]

    def is_primary(self, server: redis.Redis) -> bool:
        """Whether every sentinel says of this server that it is the primary, and that it is up.

        Asked as the client asks: a sentinel that is about to end a failover names the new primary where it is asked for
        the address alone, but lists the dead one, which no client takes, for a moment more.
        """
        listed = [sentinel.sentinel_masters()[SERVICE] for sentinel in self.sentinels]
        return all(one["port"] == _port(server) and not one["is_sdown"] and not one["is_odown"] for one in listed)

    def kill_primary(self) -> None:
        """Kill the first server while the other has not heard of its latest writes; wait until that is in its place."""
        first, second = (int(server.info("server")["process_id"]) for server in self.servers)
        os.kill(second, signal.SIGSTOP)
        try:
            wait_until(lambda: self._unheard() > 100_000, 5)
        finally:
            os.kill(first, signal.SIGKILL)
            os.kill(second, signal.SIGCONT)
        wait_until(lambda: self.is_primary(self.servers[1]), 30)

    def stop_primary(self) -> None:
        """Kill the first server once the other has heard of all its writes; do not wait for the failover."""
        process = int(self.servers[0].info("server")["process_id"])
        wait_until(lambda: not self._unheard(), 5)
        os.kill(process, signal.SIGKILL)

    def _unheard(self) -> int:
        """Return how many bytes of what the first server was told the second has not said to have heard."""
        said = self.servers[0].info("replication")
        return int(said["master_repl_offset"]) - int(said["slave0"]["offset"])


@contextmanager
def redis_sentinels(folder: Path) -> Iterator[Watched]:
    """Run a primary, a replica and the sentinels, with a password on the servers; yield them."""
    both = "--requirepass", PASSWORD, "--masterauth", PASSWORD
    primary, replica = free_port(), free_port()
    follows = "--replicaof", f"127.0.0.1 {primary}"
    with ExitStack() as stack:
        stack.enter_context(redis_server(folder / "primary", *both, port=primary, password=PASSWORD))
        stack.enter_context(redis_server(folder / "replica", *both, *follows, port=replica, password=PASSWORD))
        asked = redis.Redis(port=primary, password=PASSWORD), redis.Redis(port=replica, password=PASSWORD)
        wait_until(lambda: asked[1].info("replication")["master_link_status"] == "up")
        ports = [free_port() for _ in range(SENTINELS)]
        for port in ports:
            stack.enter_context(_sentinel(folder / f"sentinel{port}", port, primary))
        sentinels = [redis.Redis(port=port) for port in ports]
        for sentinel in sentinels:
            wait_until(lambda sentinel=sentinel: _is_hastened(sentinel))
        wait_until(lambda: all(map(_is_met, sentinels)))
        named = ",".join(f"127.0.0.1:{port}" for port in ports)
        url = f"redis+sentinel://:{PASSWORD.replace(' ', '%20')}@{named}/{SERVICE}"
        for client in (*asked, *sentinels):
            stack.enter_context(client)
        yield Watched(url, asked, sentinels)


@contextmanager
def _sentinel(folder: Path, port: int, primary: int) -> Iterator[None]:
    folder.mkdir()
    file = folder / "sentinel.conf"
    file.write_text(_hastened(DEPLOYED.read_text("utf-8"), port, primary) + f"dir {folder}\n")
    with (folder / "sentinel.log").open("wb") as log:
        process = subprocess.Popen([binary(), str(file), "--sentinel"], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


def _hastened(text: str, port: int, primary: int) -> str:
    """Return the deployed file for servers on these ports, with a password and less patience."""
    for said, here in (
        ("port 26379", f"port {port}"),
        ("127.0.0.1 6379 2", f"127.0.0.1 {primary} 2"),
        ("# sentinel auth-pass pages PASSWORD", f'sentinel auth-pass pages "{PASSWORD}"'),
        ("milliseconds pages 5000", "milliseconds pages 1000"),
        ("timeout pages 60000", "timeout pages 4000"),
    ):
        assert text.count(said) == 1, said
        text = text.replace(said, here)
    return text


def _is_hastened(sentinel: redis.Redis) -> bool:
    """Whether a sentinel is there and has its `PERIODS`."""
    try:
        return bool(sentinel.execute_command("SENTINEL", "DEBUG", *chain.from_iterable(PERIODS.items())))
    except redis.ConnectionError:
        return False


def _is_met(sentinel: redis.Redis) -> bool:
    """Whether a sentinel knows the replica and the others."""
    known = sentinel.sentinel_master(SERVICE)
    return int(known["num-slaves"]) == 1 and int(known["num-other-sentinels"]) == SENTINELS - 1


def _port(server: redis.Redis) -> int:
    return int(server.connection_pool.connection_kwargs["port"])
