"""What questions about all pages ask of a store of many homes: of all at once, and never of one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.homes import PART
from clusterd.clusters.redis.index import SHARDS as HOMES
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.spans import standings
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.sketch import TEXT

from clusterd import queries
from tests.contract.index_world import page, settled


class Rounds(Calls):
    """Calls that count round trips, and note of how many spans, and by how long a call of versions, a home is asked."""

    trips = spans = versions = 0

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        Rounds.trips += 1
        asked = [int(one.data[1 : one.data.index(b"\r")]) - 2 for one in requests if one.name == "HMGET"]
        Rounds.spans = max(Rounds.spans, *asked, 0)
        Rounds.versions = max(Rounds.versions, *(len(one.data) for one in requests if one.name == "versions"), 0)
        return super().ask(requests)


def test_a_question_about_all_pages_asks_all_homes_at_once(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of the clusters that several homes have for some at a time: there may be any number of these."""
    index = RedisIndex(redis_url, prefix, calls=Rounds, shards=HOMES)
    copies = [(host, text) for host in range(20) for text in (host, (host + 1) % 20)]
    index.apply([page(f"http://h{h}.example/{text}", 1, range(100 * text, 100 * text + 80)) for h, text in copies])
    settled(index)
    query = page("http://h.example/", 1, range(80)).main

    def trips(ask: Callable[[], int], found: int) -> int:
        Rounds.trips = 0
        assert ask() == found
        return Rounds.trips

    assert trips(lambda: sum(1 for _ in index.pages()), 40) < HOMES
    assert trips(lambda: sum(1 for _ in index.clusters("near")), 20) < HOMES
    assert trips(lambda: sum(1 for _ in index.clusters("identical")), 20) < HOMES
    assert trips(lambda: len(index.hosts()), 20) < HOMES
    assert trips(lambda: index.cluster_counts()["identical"], 20) < HOMES
    one_by_one = trips(lambda: len(index.similar(query, 1, look="clusters")), 2)
    assert trips(lambda: len(index.similar(query, 1, look="all")), 2) < one_by_one + 4
    assert Rounds.spans > 3
    monkeypatch.setattr(standings, "CHUNK", Rounds.spans // 2)
    Rounds.spans = 0
    assert trips(lambda: sum(1 for _ in index.clusters("near")), 20)
    assert 0 < Rounds.spans <= standings.CHUNK
    index.close()


def test_a_home_is_asked_for_some_versions_at_a_time(redis_url: str, prefix: str) -> None:
    """All pages of a host are in one home, which would stand still while it looks at hundreds."""
    index = RedisIndex(redis_url, prefix, calls=Rounds, shards=HOMES)
    urls = [f"http://h.example/{n}" for n in range(2 * PART)]
    index.apply([page(url, 1, range(n, n + 40)) for n, url in enumerate(urls)])
    Rounds.versions = 0
    assert None not in index.sketches([(url, None) for url in urls[:PART]])
    some = Rounds.versions
    assert [version.url for (version,) in index.versions_of(urls)] == urls
    assert None not in index.sketches([(url, None) for url in urls])
    assert Rounds.versions == some > len(url_key("")) * PART
    index.close()


@pytest.mark.parametrize("policy", ["identical", "near"])
def test_a_list_of_results_is_folded_in_few_calls(redis_url: str, prefix: str, policy: str) -> None:
    """As many for forty as for one, whatever is unknown among them, and however the store has spelled what is not."""
    index = RedisIndex(redis_url, prefix, calls=Rounds, shards=HOMES)
    copies = [(host, text) for host in range(20) for text in (host, (host + 1) % 20)]
    index.apply([page(f"http://h{h}.example/~{text}", 1, range(100 * text, 100 * text + 80)) for h, text in copies])
    settled(index)
    assert index.cluster_names(["http://h.example/"], policy) == [None]
    given = [f"http://h{h}.example/%7e{text}" for h, text in copies]
    unknown = [f"http://h{h}.example/%7eunknown" for h in range(20)]

    Rounds.trips = 0
    groups = queries.group(index, [given[0], unknown[0]], policy)
    one = Rounds.trips
    assert [len(group.members) for group in groups] == [1, 1]
    groups = queries.group(index, given + unknown, policy)
    assert sorted(len(group.members) for group in groups) == [1] * 20 + [2] * 20
    assert Rounds.trips <= 2 * one
    index.close()


def test_lost_pages_are_looked_for_on_other_hosts_many_at_a_time(redis_url: str, prefix: str) -> None:
    """Forty pages that moved to other hosts take few calls more than four; `changes` says the same of them."""
    index = RedisIndex(redis_url, prefix, calls=Rounds, shards=HOMES)
    pages = []
    for host, count in (("few.example", 4), ("many.example", 40)):
        begins = range(len(host) * 10_000, len(host) * 10_000 + count * 100, 100)
        texts = [range(begin, begin + 80) for begin in begins]
        pages += [page(f"http://{host}/{n}", 1, text, sweep="1") for n, text in enumerate(texts)]
        pages += [page(f"http://{host}/", at, range(70, 150), sweep=str(at)) for at in (1, 2)]
        pages += [page(_moved(f"http://{host}/{n}"), 2, text, sweep="2") for n, text in enumerate(texts)]
    index.apply(pages)
    settled(index)

    def trips(host: str, count: int) -> int:
        Rounds.trips = 0
        found = list(queries.find_lost(index, TEXT, host=host))
        urls = sorted(f"http://{host}/{n}" for n in range(count))
        assert [one.url for one in found] == urls
        assert [one.match for one in found] == [_moved(url) for url in urls]
        return Rounds.trips

    assert trips("many.example", 40) < 3 * trips("few.example", 4)
    (period,) = queries.changes(index, TEXT, "many.example")
    assert (period.moved_across, period.vanished) == (40, 0)
    index.close()


def _moved(url: str) -> str:
    """Return where a page of a host is that has been spread over twenty others."""
    host, number = url.removeprefix("http://").split("/")
    return f"http://h{int(number) % 20}.{host}/{number}"


def test_a_list_of_hits_is_the_same_for_many_queries_as_for_one(redis_url: str, prefix: str) -> None:
    """Also where more pages resemble a query equally than are asked for."""
    index = RedisIndex(redis_url, prefix, shards=HOMES)
    texts = [[*range(100 * n, 100 * n + 60), *range(10_000 + n % 4, 10_040)] for n in range(20)]
    index.apply([page(f"http://h{k}.example/{n}", 1, text) for n, text in enumerate(texts) for k in range(1 + n % 5)])
    settled(index)
    asked = [page("http://h.example/", 1, text).main for text in texts]
    for limit in (1, 3, 30):
        one_by_one = [index.similar(query, TEXT.code, limit, look="lists") for query in asked]
        assert index.listed(asked, TEXT.code, limit) == one_by_one
    index.close()
