"""A real primary with a replica, and the sentinels that put the one in the other's place."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.services.redis_server import binary, free_port, redis_server
from tests.services.waiting import wait_until

DEPLOYED = Path(__file__).parents[2] / "deploy" / "redis" / "sentinel.conf"
#: By which the deployed file calls the primary.
SERVICE = "pages"
SENTINELS = 3
PASSWORD = "of the servers"


@dataclass
class Watched:
    """The servers, and where the sentinels are asked for them."""

    url: str
    servers: tuple[redis.Redis, redis.Redis]
    sentinel: redis.Redis

    def primary(self) -> int:
        """Return the port of the server that is the primary now."""
        return int(self.sentinel.sentinel_get_master_addr_by_name(SERVICE)[1])

    def kill_primary(self) -> None:
        """Kill the first server while the other has not heard of its latest writes; wait until that is in its place."""
        first, second = (int(server.info("server")["process_id"]) for server in self.servers)
        before = self.primary()
        os.kill(second, signal.SIGSTOP)
        try:
            wait_until(lambda: self._unheard() > 100_000, 5)
        finally:
            os.kill(first, signal.SIGKILL)
            os.kill(second, signal.SIGCONT)
        wait_until(lambda: self.primary() != before, 30)

    def _unheard(self) -> int:
        """Return how many bytes of what the first server was told the second has not said to have heard."""
        said = self.servers[0].info("replication")
        return int(said["master_repl_offset"]) - int(said["slave0"]["offset"])


@contextmanager
def redis_sentinels(folder: Path) -> Iterator[Watched]:
    """Run a primary, a replica and the sentinels, with a password on the servers; yield them."""
    secured = "--requirepass", PASSWORD, "--masterauth", PASSWORD
    primary, replica = free_port(), free_port()
    follows = "--replicaof", f"127.0.0.1 {primary}", "--repl-diskless-sync-delay", "0"
    with ExitStack() as stack:
        stack.enter_context(redis_server(folder / "primary", *secured, port=primary, password=PASSWORD))
        stack.enter_context(redis_server(folder / "replica", *secured, *follows, port=replica, password=PASSWORD))
        asked = redis.Redis(port=primary, password=PASSWORD), redis.Redis(port=replica, password=PASSWORD)
        wait_until(lambda: asked[1].info("replication")["master_link_status"] == "up")
        ports = [free_port() for _ in range(SENTINELS)]
        for port in ports:
            stack.enter_context(_sentinel(folder / f"sentinel{port}", port, primary))
        sentinel = redis.Redis(port=ports[-1])
        wait_until(lambda: _is_met(sentinel))
        named = ",".join(f"127.0.0.1:{port}" for port in ports)
        url = f"redis+sentinel://:{PASSWORD.replace(' ', '%20')}@{named}/{SERVICE}"
        for client in (*asked, sentinel):
            stack.enter_context(client)
        yield Watched(url, asked, sentinel)


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


def _is_met(sentinel: redis.Redis) -> bool:
    """Whether a sentinel knows the replica and the others."""
    try:
        known = sentinel.sentinel_master(SERVICE)
    except redis.ConnectionError:
        return False
    return int(known["num-slaves"]) == 1 and int(known["num-other-sentinels"]) == SENTINELS - 1
