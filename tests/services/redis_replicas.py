"""A real Redis Cluster of which every node has a replica, and nodes that die before their replicas have heard all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.services.redis_server import form, redis_server, wait_until_known
from tests.services.waiting import wait_until

PRIMARIES = 3
OPTIONS = "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"
#: Seconds for which a replica hears nothing before its primary dies.
DEAF = 1.0


@dataclass
class Replicated:
    """The cluster, and clients of its primaries and of the replica of each."""

    url: str
    pairs: list[tuple[redis.Redis, redis.Redis]]

    def kill_primary_of(self, key: str) -> None:
        """Kill the node that holds a key while its replica hears nothing; wait until that is in its place."""
        slot = int(self.pairs[0][0].execute_command("CLUSTER", "KEYSLOT", key))
        primary, replica = self.pairs[slot // (16384 // PRIMARIES + 1)]
        dying, following = (int(one.info("server")["process_id"]) for one in (primary, replica))
        os.kill(following, signal.SIGSTOP)
        time.sleep(DEAF)
        os.kill(dying, signal.SIGKILL)
        os.kill(following, signal.SIGCONT)
        wait_until(lambda: replica.info("replication")["role"] == "master", 30)


@contextmanager
def redis_replicas(folder: Path) -> Iterator[Replicated]:
    """Run the cluster; its URL names two primaries."""
    with ExitStack() as stack:
        urls = [stack.enter_context(redis_server(folder / f"node{n}", *OPTIONS)) for n in range(2 * PRIMARIES)]
        clients = [stack.enter_context(redis.Redis.from_url(url)) for url in urls]
        primaries, replicas = clients[:PRIMARIES], clients[PRIMARIES:]
        form(primaries)
        for one in replicas:
            one.execute_command("CLUSTER", "MEET", "127.0.0.1", _port(primaries[0]))
        wait_until_known(clients)
        pairs = list(zip(primaries, replicas, strict=True))
        for primary, replica in pairs:
            replica.execute_command("CLUSTER", "REPLICATE", primary.execute_command("CLUSTER", "MYID"))
        wait_until(lambda: all(one.info("replication").get("master_link_status") == "up" for one in replicas), 30)
        yield Replicated(f"redis+cluster://127.0.0.1:{_port(primaries[0])},127.0.0.1:{_port(primaries[1])}", pairs)


def _port(client: redis.Redis) -> int:
    return int(client.connection_pool.connection_kwargs["port"])
