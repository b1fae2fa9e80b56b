"""What is known of thousands of hosts is read portion by portion: all at once would hold Redis up for every page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from clusterd.clusters.contract import Index
from clusterd.clusters.redis.index import RedisIndex
from clusterd.learning.contract import Page
from clusterd.learning.rulebook.redis import RuleBook
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.message import SkipReport

from tests.contract.index_world import Opened, page
from tests.contract.test_rulebook import rule, state
from tests.services.redis_server import redis_server
from tests.services.waiting import wait_until

MANY = 3000
NAMES = [f"www.h{number}.example" for number in range(MANY)]
#: Commands whose one reply holds all that a key has.
AT_ONCE = {"smembers", "hgetall", "hvals", "hkeys"}


@contextmanager
def in_portions(url: str) -> Iterator[None]:
    """Fail where one command reads all of a key meanwhile, or where nothing is read."""
    with redis.Redis.from_url(url) as client:
        client.config_resetstat()
        yield
        asked = {name.removeprefix("cmdstat_"): one["calls"] for name, one in client.info("commandstats").items()}
    assert not AT_ONCE & asked.keys()
    assert asked.get("sscan", 0) + asked.get("hscan", 0) >= 3


@pytest.fixture
def own_url(tmp_path: Path) -> Iterator[str]:
    """A server that nobody else asks."""
    with redis_server(tmp_path) as url:
        yield url


def test_the_hosts_of_an_index_are_each_told_once(opened: Opened) -> None:
    index: Index = opened()
    index.apply([page(f"http://{name}/", 1, range(9)) for name in NAMES])
    assert index.hosts() == sorted(NAMES)


def test_the_hosts_of_an_index_are_read_in_portions(own_url: str) -> None:
    index = RedisIndex(own_url)
    index.apply([page(f"http://{name}/", 1, range(9)) for name in NAMES])
    with in_portions(own_url):
        assert len(index.hosts()) == MANY
    index.close()


def test_what_the_rule_book_knows_of_all_hosts_is_read_in_portions(own_url: str) -> None:
    client = connect(own_url)
    book = RuleBook(client, "many:")
    book.add_pages({name: [Page(f"http://{name}/", 1, 1, (), 1)] * 2 for name in NAMES})
    with in_portions(own_url):
        assert book.changed() == dict.fromkeys(NAMES, 2)
    empty = RuleBook(client, "many:").load(NAMES[0])
    for name in NAMES:
        assert book.save(state(1, rule(f"r{name}", name), host=name), empty)
    with in_portions(own_url):
        assert book.hosts() == sorted(NAMES)
    book.add_skips(
        [SkipReport(f"http://{name}/a", f"r{name}", f"http://{name}/", f"http://{name}/", 1) for name in NAMES]
    )
    with in_portions(own_url):
        assert book.skip_counts() == {f"r{name}": 1 for name in NAMES}
    client.close()


def test_skips_that_are_forgotten_hold_nobody_up(own_url: str) -> None:
    """What tells repeated deliveries holds up to 100,000 identities, which Redis is to free beside its calls."""
    client: Any = connect(own_url)
    book = RuleBook(client, "many:", skips_limit=200)
    for first in range(0, 1000, 100):
        host = "http://h.example"
        book.add_skips([SkipReport(f"{host}/{n}", "r", f"{host}/", f"{host}/", n) for n in range(first, first + 100)])
    wait_until(lambda: client.info("memory")["lazyfreed_objects"] >= 3)
    assert book.skip_counts() == {"r": 1000}
    client.close()
