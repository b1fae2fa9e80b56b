"""A primary that dies, and the replica that takes its place without what it had not heard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import mmh3
import pytest
import redis
from clusterd.clusters.contract import Version
from clusterd.clusters.opening import open_index
from clusterd.clusters.redis.index import SHARDS, RedisIndex
from clusterd.config import Config
from clusterd.services import Services, open_services, publish_sketches
from clusterd_consumer.hash_tags import HOME, spread_tags
from clusterd_consumer.redis_connection import Client
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.message import SkipReport
from clusterd_crawler.publish.redis_log import RedisLog
from clusterd_crawler.rules import Rule
from redis.crc import key_slot

from tests.contract.index_world import expected, page, partition
from tests.contract.moments import Interrupted
from tests.crawler.crawling import sid_rule
from tests.flow.daemons import daemons, made_up_crawl, until, wait_until_done
from tests.flow.test_flow import kafka_settings
from tests.services.redis_replicas import PRIMARIES, redis_replicas
from tests.services.redis_sentinels import PASSWORD, Watched, redis_sentinels
from tests.services.waiting import wait_until


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with redis_sentinels(tmp_path / "servers") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("log", ["redis", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_daemons_go_on_with_the_replica(
    log: str, request: pytest.FixtureRequest, watched: Watched, prefix: str, tmp_path: Path
) -> None:
    crawl = made_up_crawl(1500, seed=40)
    settings = {"redis": watched.url, "redis_prefix": prefix, "claim_after": "2", "batch": "16"}
    if log == "kafka":
        settings |= kafka_settings(request.getfixturevalue("kafka_bootstrap"), prefix)
    with daemons(settings, tmp_path) as group, open_services(group.config()) as services:
        publish_sketches(services, crawl)
        assert services.redis.wait(1, 5000) == 1
        processes = [group.start(), group.start()]
        until(lambda: services.index.counts()["documents"] > 50, say=group.said)
        watched.kill_primary()
        with open_services(group.config()) as after:
            wait_until_done(after)
            assert partition(after.index) == expected(crawl)
        assert [one.poll() for one in processes] == [None, None]
        assert "Traceback" not in group.said()
        assert PASSWORD not in group.said()


@pytest.mark.slow
def test_a_crawl_publishes_to_the_replica(watched: Watched, prefix: str) -> None:
    log = RedisLog(watched.url, f"{prefix}sketches")
    log.send([(b"k", b"before")])
    assert watched.servers[0].wait(1, 5000) == 1
    watched.sentinels[0].sentinel_failover("pages")
    wait_until(lambda: watched.servers[0].info("replication")["role"] == "slave", 20)

    def sent() -> bool:
        try:
            log.send([(b"k", b"after")])
        except Unreachable:  # as long as the sentinels disagree; the publisher's spool keeps it
            return False
        return True

    wait_until(sent)
    assert [entry[b"v"] for _, entry in watched.servers[1].xrange(f"{prefix}sketches")] == [b"before", b"after"]
    log.close()


@pytest.mark.slow
def test_questions_wait_for_the_replica_that_sentinels_put_in_the_place_of_a_primary(
    watched: Watched, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that are under way, and those that begin meanwhile; who writes, or does not wait, is told at once."""
    config = Config.load(environment={}, options={"redis": watched.url, "redis_prefix": prefix})
    crawl = made_up_crawl(300, seed=52)
    with open_services(config, 60) as waits, open_services(config) as hasty, open_services(config, 60) as late:
        waits.index.apply(crawl)
        waits.rulebook.import_rules([sid_rule("h.example")], 1)
        waits.rulebook.record_skips([SkipReport("http://h.example/?sid=1", "r", "k", "http://h.example/", 1)])
        pages, rules, skips = answers(waits)
        assert answers(hasty) == (pages, rules, skips)
        assert (len(rules), len(skips)) == (1, 1)
        watched.stop_primary()
        for ask in (hasty.index.counts, hasty.rulebook.book.hosts, hasty.daemons):
            with pytest.raises(Unreachable):
                ask()
        with pytest.raises(Unreachable):
            waits.index.apply(crawl)
        with pytest.raises(Unreachable):
            waits.rulebook.record_skips([SkipReport("http://h.example/?sid=2", "r", "k", "http://h.example/", 2)])
        with ThreadPoolExecutor(4) as pool:
            begun = pool.submit(answers, late)
            under_way = [
                pool.submit(lambda: list(waits.index.pages())),
                pool.submit(lambda: list(waits.rulebook.rules())),
                pool.submit(lambda: list(waits.rulebook.book.skips())),
            ]
        assert begun.result() == (pages, rules, skips)
        assert [one.result() for one in under_way] == [pages, rules, skips]
    assert "waiting for a primary that is away, or its replica" in caplog.text
    assert PASSWORD not in caplog.text


def answers(services: Services) -> tuple[list[Version], list[Rule], list[SkipReport]]:
    book = services.rulebook
    return list(services.index.pages()), list(book.rules()), list(book.book.skips())


@pytest.mark.slow
def test_a_name_that_no_sentinel_knows_is_not_waited_for(watched: Watched) -> None:
    config = Config.load(environment={}, options={"redis": f"{watched.url}-of-another"})
    begun = time.monotonic()
    with open_services(config, 600) as services, pytest.raises(Unreachable, match="No master found"):
        _ = services.redis
    assert time.monotonic() - begun < 300


@pytest.mark.slow
def test_a_list_of_hosts_is_whole_where_sentinels_let_a_replica_go_on_with_it(watched: Watched, prefix: str) -> None:
    def die() -> None:
        watched.stop_primary()

    hosts = [f"h{n}.test" for n in range(3000)]
    index = RedisIndex(watched.url, prefix, calls=lambda client: Interrupted(client, "SSCAN", 2, die, transit=60))
    index.apply([page(f"http://{host}/", 1, range(9 * n, 9 * n + 9)) for n, host in enumerate(hosts)])
    assert index.hosts() == sorted(hosts)
    index.close()


def another_home() -> str:
    """Return the tag of the home of some host of the crawl, on another node than the first."""
    hosts = [f"site{n}.test".encode() for n in range(5)]  # (`made_up_crawl`)
    tags = [spread_tags(SHARDS)[mmh3.hash(host, signed=False) % SHARDS] for host in hosts]
    nodes = [key_slot(tag.encode()) * PRIMARIES >> 14 for tag in (HOME, *tags)]
    return next(tag for tag, node in zip(tags, nodes[1:], strict=True) if node != nodes[0])


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.cluster
@pytest.mark.parametrize("dying", ["first", "home"])
def test_daemons_go_on_with_a_replica_of_a_cluster(
    dying: str, kafka_bootstrap: str, prefix: str, tmp_path: Path
) -> None:
    """The first home has what is one for all; the other has the pages of some hosts."""
    crawl = made_up_crawl(700, seed=50)
    with redis_replicas(tmp_path / "nodes") as cluster:
        settings = {"redis": cluster.url, "redis_prefix": prefix, "batch": "16"}
        with (
            daemons({**settings, **kafka_settings(kafka_bootstrap, prefix)}, tmp_path) as group,
            open_services(group.config()) as services,
        ):
            publish_sketches(services, crawl)
            processes = [group.start(), group.start()]
            until(lambda: services.index.counts()["documents"] > 50, say=group.said)
            cluster.kill_primary_of(f"{{{HOME if dying == 'first' else another_home()}}}")
            with open_services(group.config()) as after:
                wait_until_done(after)
                assert partition(after.index) == expected(crawl)
            assert [one.poll() for one in processes] == [None, None]
            assert "Traceback" not in group.said()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_question_waits_for_the_replica_of_a_node_that_died(prefix: str, tmp_path: Path) -> None:
    """And is answered as before, as one that begins meanwhile is; who writes, or does not wait, is told at once."""
    crawl = made_up_crawl(300, seed=51)
    with redis_replicas(tmp_path / "nodes") as cluster:
        index, hasty = open_index(cluster.url, prefix, transit=60), open_index(cluster.url, prefix)
        index.apply(crawl)
        while index.settle():
            pass
        pages, clusters = list(index.pages()), list(index.clusters("near"))
        similar = index.similar(crawl[0].main, crawl[0].profile)
        assert list(hasty.pages()) == pages
        for primary, replica in cluster.pairs:
            wait_until(lambda: offset(replica, "slave_repl_offset") >= offset(primary, "master_repl_offset"))  # noqa: B023
        cluster.pairs[1][0].shutdown(nosave=True, now=True, force=True)
        with pytest.raises(Unreachable):
            list(hasty.pages())
        with pytest.raises(Unreachable):
            index.apply(crawl)
        config = Config.load(environment={}, options={"redis": cluster.url, "redis_prefix": prefix})
        with open_services(config, 60) as late, ThreadPoolExecutor(1) as pool:
            begun = pool.submit(answers, late)
            assert list(index.pages()) == pages
            assert begun.result() == (pages, [], [])
        assert cluster.pairs[1][1].info("replication")["role"] == "master"
        assert list(index.clusters("near")) == clusters
        assert index.similar(crawl[0].main, crawl[0].profile) == similar
        index.close()
        hasty.close()


@pytest.mark.slow
@pytest.mark.cluster
def test_a_list_of_hosts_is_whole_where_a_replica_goes_on_with_it(prefix: str, tmp_path: Path) -> None:
    """It keeps them in another order than the node that died, where a part of them had been read."""
    with redis_replicas(tmp_path / "nodes") as cluster:

        def die() -> None:
            for primary, replica in cluster.pairs:
                wait_until(lambda: offset(replica, "slave_repl_offset") >= offset(primary, "master_repl_offset"))  # noqa: B023
            cluster.kill_primary_of(f"{{{spread_tags(SHARDS)[3]}}}")

        def calls(client: Client) -> Calls:
            return Interrupted(client, "SSCAN", SHARDS + 1, die, transit=60)

        made_up = (f"h{n}.test" for n in count())
        hosts = list(islice((host for host in made_up if mmh3.hash(host.encode(), signed=False) % SHARDS == 3), 2000))
        index = RedisIndex(cluster.url, prefix, calls=calls, shards=SHARDS)
        index.apply([page(f"http://{host}/", 1, range(9 * n, 9 * n + 9)) for n, host in enumerate(hosts)])
        assert index.hosts() == sorted(hosts)
        index.close()


def offset(client: redis.Redis, name: str) -> int:
    """Return how much a primary has written, or its replica has heard."""
    return int(client.info("replication")[name])
