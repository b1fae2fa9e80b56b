"""A node of a Redis Cluster that is killed and comes back with an older file gets again what it has lost."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import mmh3
import pytest
import redis
from clusterd.clusters.contract import DEFAULT_POLICIES, Outcome
from clusterd.clusters.redis import marks as redis_marks
from clusterd.clusters.redis.homes import OWN
from clusterd.clusters.redis.index import SHARDS, RedisIndex
from clusterd_consumer.dead_letters import DeadLetters
from clusterd_consumer.hash_tags import HOME, spread_tags
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls
from clusterd_consumer.transport.contract import Position, Record
from clusterd_consumer.worker import Worker
from clusterd_crawler.message import encode
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import World, expected, page, partition, settled
from tests.contract.test_index_homes import spread
from tests.services.redis_server import connect_cluster, redis_cluster, redis_server, wait_until_formed

LATER = replace(DEFAULT_POLICIES[1], name="later")
LOOSE = replace(DEFAULT_POLICIES[2], name="loose", resemblance=0.1)
AOF = ("--appendonly", "yes", "--appendfsync", "always")


class Log:
    """A log of two partitions, kept outside the store, with one reader."""

    outlives_store = True

    def __init__(self) -> None:
        self.partitions: dict[str, list[bytes]] = {"0": [], "1": []}
        self.read = {"0": 0, "1": 0}

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        found = []
        for name, values in self.partitions.items():
            at = self.read[name]
            for offset, value in enumerate(values[at : at + max_records // 2], at):
                found.append(Record(name, str(offset), b"", value, str(offset + 1)))
            self.read[name] = min(at + max_records // 2, len(values))
        return found

    def publish(self, topic: str, key: bytes, value: bytes) -> None:
        raise AssertionError(f"a dead letter: {value!r}")

    def flush(self, timeout: float) -> None:
        """Nothing waits."""

    def commit(self, position: Position) -> None:
        """The store has the position."""

    def seek(self, position: Position) -> None:
        self.read = {name: int(position.get(name, 0)) for name in self.partitions}

    def changing(self) -> bool:
        return False

    def assigned(self) -> Position:
        return dict.fromkeys(self.partitions, "")

    def backlog(self) -> int:
        return sum(len(values) - self.read[name] for name, values in self.partitions.items())

    def close(self) -> None:
        """Nothing is held open."""


#: Of the homes of a store, that of h.example, where all pages of the host lie.
OF_HOST = spread_tags(SHARDS)[mmh3.hash(b"h.example", signed=False) % SHARDS]


class Nodes:
    """A cluster of which one node can be set back: that of the home of h.example, or one that has only its postings.

    ``first``: that of the first home.
    """

    def __init__(
        self, url: str, folder: Path, prefix: str, stack: ExitStack, *, home: bool = False, first: bool = False
    ) -> None:
        self.url = url
        self._stack = stack
        with connect_cluster(url) as cluster:
            ports = [node.port for node in cluster.get_primaries()]
            of_host, of_first = (cluster.get_node_from_key(f"{prefix}{{{tag}}}").port for tag in (OF_HOST, HOME))
        other = next(port for port in sorted(ports) if port not in (of_host, of_first))
        self._port = of_host if home else of_first if first else other
        self._clients = [stack.enter_context(redis.Redis(port=port)) for port in ports]
        self._victim = stack.enter_context(redis.Redis(port=self._port))
        self._folder = Path(self._victim.config_get("dir")["dir"])
        self._kept = folder / "kept"

    def keep(self) -> None:
        """Keep the node's files as they are."""
        shutil.copytree(self._folder, self._kept)

    def keep_nothing(self) -> None:
        """Keep of the node what it knows of the others, and none of its data."""
        self.keep()
        shutil.rmtree(self._kept / "appendonlydir")

    def set_back(self) -> None:
        """Kill the node; start it again with the files that were kept."""
        os.kill(int(self._victim.info("server")["process_id"]), signal.SIGKILL)
        while listens(self._port) or listens(self._port + 10_000):  # its bus
            time.sleep(0.01)
        shutil.rmtree(self._folder)
        shutil.copytree(self._kept, self._folder)
        options = ("--cluster-enabled", "yes", *AOF)
        self._stack.enter_context(redis_server(self._folder, *options, port=self._port))
        wait_until_formed(self._clients)


def listens(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def nodes(tmp_path: Path, prefix: str) -> Iterator[Nodes]:
    with ExitStack() as stack:
        url = stack.enter_context(redis_cluster(tmp_path / "cluster", options=AOF))
        yield Nodes(url, tmp_path, prefix, stack)


@pytest.fixture
def index(nodes: Nodes, prefix: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisIndex]:
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)
    opened = RedisIndex(nodes.url, prefix)
    yield opened
    opened.close()


def pages(first: int, last: int, extra: int = 0, hosts: int = 1) -> list[Sketch]:
    """Pages that share nothing with each other; with another ``extra`` near duplicates of them, on another host."""
    return [
        page(
            f"http://{'h' * (1 + (n + extra) % hosts)}.example/{n}/{extra}",
            1,
            [*range(1000 * n, 1000 * n + 100), 10**6 + extra],
        )
        for n in range(first, last)
    ]


class Reader:
    """A log and its worker."""

    def __init__(self, index: RedisIndex, batch: int = 8) -> None:
        self._index = index
        self._log = Log()
        self._worker: Worker[Outcome] = Worker(
            self._log, index, lambda batch, outcomes: None, DeadLetters(self._log), batch=batch
        )

    def go_on(self, index: RedisIndex) -> None:
        """Let another worker read on, from what the store remembers."""
        self._log.seek(index.position())
        self._index = index
        self._worker = Worker(self._log, index, lambda batch, outcomes: None, DeadLetters(self._log), batch=8)

    def step(self, crawl: Sequence[Sketch]) -> None:
        """Let the worker read one batch."""
        for n, sketch in enumerate(crawl):
            self._log.partitions[str(n % 2)].append(encode(sketch))
        self._worker.step()

    def work(self, crawl: Sequence[Sketch], settle: bool = True) -> None:
        """Let the worker read pages as they come, and settle beside it, until nothing is left to do."""
        self.step(crawl)
        idle = 0
        while idle < 3:
            idle = 0 if self._worker.step() else idle + 1
            if settle:
                self._index.settle(1)


@pytest.mark.cluster
def test_a_node_that_was_restarted_is_not_said_to_be_set_back(
    nodes: Nodes, index: RedisIndex, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader(index)
    reader.work(pages(0, 20))
    nodes.keep()
    nodes.set_back()  # with all that it had
    reader.work(pages(20, 30))
    assert "a shard of the store answers from another process; going back from mark" in caplog.text
    assert "a node of the store was set back" not in caplog.text


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("marked", "hosts"),
    [(False, 1), (True, 1), (True, 9)],
    ids=["lost_since_the_mark", "lost_before_the_mark", "of_many_hosts"],
)
def test_a_node_that_lost_pages_is_caught_up_from_the_log(
    nodes: Nodes, index: RedisIndex, prefix: str, marked: bool, hosts: int
) -> None:
    """Of many hosts, some have their homes there: what joined their clusters with others' is lost, too."""
    reader = Reader(index)
    before, lost = pages(0, 40, hosts=hosts), pages(40, 100, hosts=hosts)
    if hosts > 1:
        before += pages(0, 40, extra=2, hosts=hosts)
        lost += [*pages(0, 20, extra=3, hosts=hosts), *pages(40, 80, extra=2, hosts=hosts)]
    after = [*pages(0, 100, extra=1, hosts=hosts), *pages(100, 120, hosts=hosts)]
    reader.work(before)
    nodes.keep()
    reader.work(lost, settle=marked)
    nodes.set_back()
    reader.work([])
    reader.work(after)
    settled(index)
    assert partition(index) == expected([*before, *lost, *after])
    with connect(nodes.url) as client:
        calls = Calls(client)
        assert not any(calls.command("SMEMBERS", f"{prefix}{{{tag}}}:w") for tag in spread_tags(SHARDS))


@pytest.mark.cluster
def test_a_node_that_is_set_back_while_spans_are_reviewed_lets_all_be_reviewed_anew(
    nodes: Nodes, index: RedisIndex, prefix: str
) -> None:
    """What was reviewed before it may have been lost with it, or have a part in a home that lost it."""
    reader = Reader(index)
    reader.work(pages(0, 20, hosts=9))
    nodes.keep()
    with connect(nodes.url) as client:
        calls, keys = Calls(client), [f"{prefix}{{{tag}}}:review" for tag in spread_tags(SHARDS)]
        for key in keys:
            calls.command("SET", key, "p7")
        nodes.set_back()
        index.settle(0)  # looks at the marks, and does no step of the review
        found = [calls.command("GET", key) for key in keys]
    assert b"s0" in found
    assert all(at == b"s0" or at.isdigit() for at in found)


@pytest.mark.cluster
def test_a_first_node_that_comes_back_with_nothing_is_caught_up_from_the_log(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the marks, the position, and the order of the policies, which who comes new has from others."""
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)
    crawl = [one for extra in range(3) for one in pages(0, 12, extra=extra, hosts=9)]
    with ExitStack() as stack:
        url = stack.enter_context(redis_cluster(tmp_path / "cluster", options=AOF))
        nodes = Nodes(url, tmp_path, prefix, stack, first=True)
        index = RedisIndex(url, prefix)
        reader = Reader(index)
        reader.work(crawl[:30])
        index.add_policy(LATER)
        settled(index)
        nodes.keep_nothing()
        nodes.set_back()
        index.close()
        after = RedisIndex(url, prefix)
        reader.go_on(after)
        reader.work(crawl[30:])
        settled(after)
        policies = [*DEFAULT_POLICIES, LATER]
        assert after.policies() == policies
        assert partition(after, policies) == expected(crawl, policies)
        assert all(len(after.similar(known, 1)) >= 3 for one in crawl if (known := after.sketch(one.url)))
        after.close()


@pytest.mark.cluster
def test_a_node_that_comes_back_with_a_policy_that_was_removed_has_nothing_left_of_it(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another has its place by now, which joins less; the other homes have that."""
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)
    crawl = spread(World(3).crawl(90), hosts=9)
    policies = [*DEFAULT_POLICIES, replace(DEFAULT_POLICIES[1], name="tight", resemblance=0.95)]
    with ExitStack() as stack:
        url = stack.enter_context(redis_cluster(tmp_path / "cluster", options=AOF))
        nodes = Nodes(url, tmp_path, prefix, stack, first=True)
        index = RedisIndex(url, prefix, [*DEFAULT_POLICIES, LOOSE])
        reader = Reader(index)
        reader.work(crawl[:60])
        nodes.keep()
        index.remove_policy(LOOSE.name)
        settled(index)
        index.add_policy(policies[-1])
        settled(index)
        nodes.set_back()
        reader.work(crawl[60:])
        settled(index)
        assert index.policies() == policies
        assert partition(index, policies) == expected(crawl, policies)
        index.close()


@pytest.mark.cluster
def test_a_node_that_lost_a_batch_whose_end_was_not_told_yet_is_caught_up(nodes: Nodes, index: RedisIndex) -> None:
    """The store remembers where the batch began, before and after it went back: it is read again all the same."""
    reader = Reader(index, batch=256)
    before, lost, after = pages(0, 40), pages(40, 200), pages(0, 200, extra=1)
    reader.work(before)
    nodes.keep()
    reader.step(lost)
    nodes.set_back()
    index.settle(1)
    reader.work([])
    reader.work(after)
    settled(index)
    assert partition(index) == expected([*before, *lost, *after])


@pytest.mark.cluster
def test_without_a_log_what_lost_its_postings_is_posted_from_its_sketch(
    nodes: Nodes, index: RedisIndex, prefix: str
) -> None:
    """But for the pages whose sketches lie on the node that is set back, half of them: nobody has those any more."""
    index.apply(pages(0, 40))
    settled(index)
    nodes.keep()
    index.apply(pages(40, 400))  # sketches in every shard
    before = entries(nodes.url, prefix)
    nodes.set_back()
    lost = entries(nodes.url, prefix)
    settled(index)
    mended = entries(nodes.url, prefix)
    assert sum(lost) < sum(before)
    assert sum(lost) + 0.3 * (sum(before) - sum(lost)) < sum(mended) <= sum(before)


def entries(url: str, prefix: str) -> list[int]:
    """Return how many postings lie in each shard."""
    with connect(url) as client:
        calls = Calls(client)
        return [int(calls.command("GET", f"{prefix}{{{tag}}}:pn") or 0) for tag in spread_tags(SHARDS)]


def test_before_the_first_mark_each_home_is_at_the_beginning_of_its_own_numbers() -> None:
    """There a store goes back to where a node comes back with nothing: not through all numbers of the homes before."""
    assert [redis_marks.Mark().node(home) for home in range(3)] == [0, 1 << OWN, 2 << OWN]


def test_marks_of_any_age_are_kept_a_few() -> None:
    kept: list[int] = []
    for latest in range(1, 20_000):
        kept = [number for number in kept if redis_marks._kept(number, latest)] + [latest]
    ages = [20_000 - number for number in reversed(kept)]
    assert len(kept) < 8 * 13
    assert ages[:8] == list(range(1, 9))
    assert all(older <= 1.3 * age + 1 for age, older in zip(ages, [*ages[1:], 20_000], strict=True))
