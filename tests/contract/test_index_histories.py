"""A URL that was fetched very often costs no more than others: whatever it shows, delivered again, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from struct import iter_unpack

import pytest
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import Client, connect
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.test_index_homes import SHARDS

URL = "http://h.example/often"
#: Bytes of a superseded version (`OLD` in lua/records.lua).
SUPERSEDED = 34


def calls_of(client: Client, *names: str) -> int:
    """Return how often the server was given some commands."""
    known = client.info("commandstats")
    return sum(known.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names)


def times_in(listed: bytes) -> list[int]:
    """Return the times of a list of superseded versions."""
    return [int.from_bytes(time, "big") for (time,) in iter_unpack(f"<4x6s{SUPERSEDED - 10}x", listed)]


def changing(at: int) -> Sketch:
    """A page that has another text at each fetch."""
    return page(URL, at, range(100 * at, 100 * at + 30))


def turning(at: int) -> Sketch:
    """A page that shows two texts in turn; at times it has no word."""
    return page(URL, at, [[], range(30), range(50, 80), range(30)][at % 4], order=str(at % 3))


@pytest.mark.parametrize("homes", [1, SHARDS])
def test_a_page_that_shows_old_texts_again_and_again_is_looked_up_as_any_other(
    redis_url: str, prefix: str, homes: int
) -> None:
    index = RedisIndex(redis_url, prefix, shards=homes)
    crawl = [turning(at) for at in range(1, 1601)]
    asked = []
    with connect(redis_url) as client:
        for start in range(0, len(crawl), 40):
            before = calls_of(client, "getrange", "get", "mget")
            index.apply(crawl[start : start + 40])
            settled(index)
            asked.append(calls_of(client, "getrange", "get", "mget") - before)
    assert sum(asked[-10:]) < 1.2 * sum(asked[5:15])
    in_memory = MemoryIndex()
    in_memory.apply(crawl)
    assert index.versions_of([URL]) == in_memory.versions_of([URL])
    late = [page(URL, 2 * at, range(30), order="0") for at in range(900, 920)] + crawl[::100]
    index.apply(late)
    settled(index)
    assert partition(index) == expected([*crawl, *late])
    assert index.expire(10**6) == 1600 + 20 - 1
    settled(index)
    assert index.counts()["contents"] == index.counts()["versions"] == 1
    index.close()


@pytest.mark.parametrize("make", [changing, turning])
def test_versions_of_a_long_history_that_are_delivered_again_are_found_by_halves(
    redis_url: str, prefix: str, make: Callable[[int], Sketch]
) -> None:
    index = RedisIndex(redis_url, prefix)
    crawl = [make(at) for at in range(1, 400)]
    for start in range(0, len(crawl), 40):
        index.apply(crawl[start : start + 40])
    with connect(redis_url) as client:
        before = calls_of(client, "get")
        assert not any(outcome.new for outcome in index.apply(crawl[:60]))
        assert calls_of(client, "get") - before < 60  # the list is read for none
    assert index.counts()["versions"] == len(crawl)
    # (Out of order, they are found all the same.)
    index.apply([make(at) for at in (1000, 700, 900, 800)])
    assert not any(outcome.new for outcome in index.apply([make(at) for at in (700, 800, 900, 1000, 5, 398)]))
    index.close()


@pytest.mark.parametrize("make", [changing, turning])
@pytest.mark.parametrize("apart", [3, 40, 1000])
def test_versions_that_come_out_of_order_find_their_place(
    redis_url: str, prefix: str, make: Callable[[int], Sketch], apart: int
) -> None:
    """Each of them read the whole history of its URL: as of two crawlers that fetch it in turns."""
    in_order, index, in_memory = RedisIndex(redis_url, f"{prefix}o:"), RedisIndex(redis_url, prefix), MemoryIndex()
    times = [at for _, at in sorted((at + Random(at).randrange(apart), at) for at in range(1, 1000))]
    crawl = [make(at) for at in times]
    asked = []
    with connect(redis_url) as client:
        for one, pages in ((in_order, [make(at) for at in range(1, 1000)]), (index, crawl)):
            before = calls_of(client, "get")
            for start in range(0, len(crawl), 40):
                one.apply(pages[start : start + 40])
            asked.append(calls_of(client, "get") - before)
        listed = times_in(client.get(f"{prefix}{{0}}:o:1"))
        late = [int.from_bytes(one[:6], "big") for one in client.zrange(f"{prefix}{{0}}:ol:1", 0, -1)]
    assert asked[1] <= asked[0]
    in_memory.apply(crawl)
    assert (listed, late) == (sorted(listed), sorted(late))
    assert sorted(listed + late) == list(range(1, 999))
    assert bool(late) == (apart == 1000)
    assert index.versions_of([URL]) == in_memory.versions_of([URL])
    assert not any(outcome.new for outcome in index.apply(crawl))
    settled(index)
    assert partition(index) == expected(crawl)
    in_order.close()
    index.close()


def test_of_a_history_out_of_order_what_is_old_is_forgotten(redis_url: str, prefix: str) -> None:
    """Also what comes while it is looked through: be it by the next look, it leaves nothing."""
    index, in_memory = RedisIndex(redis_url, prefix), MemoryIndex()
    times = list(range(1, 1000))
    Random(5).shuffle(times)
    for one in (index, in_memory):
        one.apply([changing(at) for at in times])
    assert index.expire(400) == in_memory.expire(400) == 399
    assert index.versions_of([URL]) == in_memory.versions_of([URL])
    forgetting = index.expiring(700)
    for at, _ in enumerate(forgetting, 1000):
        for one in (index, in_memory):
            one.apply([changing(at), changing(at - 900), changing(at - 400)])
    index.expire(700)
    in_memory.expire(700)
    assert index.versions_of([URL]) == in_memory.versions_of([URL])
    settled(index)
    assert index.counts()["versions"] == len(index.versions_of([URL])[0])
    index.expire(10**6)
    settled(index)
    assert index.counts()["contents"] == index.counts()["versions"] == 1
    with connect(redis_url) as client:
        assert not client.exists(f"{prefix}{{0}}:o:1", f"{prefix}{{0}}:ol:1")
    index.close()


def test_a_list_that_an_earlier_version_wrote_hides_nothing_as_it_grows_short(redis_url: str, prefix: str) -> None:
    """It is in no order: what stands beside it may be later than what is forgotten of it."""
    index, in_memory = RedisIndex(redis_url, prefix), MemoryIndex()
    for one in (index, in_memory):
        one.apply([changing(at) for at in [*range(2, 2000, 2), 4000]])
    with connect(redis_url) as client:
        listed = client.get(f"{prefix}{{0}}:o:1")
        first = SUPERSEDED * 400
        client.set(f"{prefix}{{0}}:o:1", listed[first:] + listed[:first])  # four hundred were brought in last
        for one in (index, in_memory):
            one.apply([changing(1701)])
        assert client.exists(f"{prefix}{{0}}:ol:1")
        settled(index)
        assert index.expire(1500) == in_memory.expire(1500)
        assert index.versions_of([URL]) == in_memory.versions_of([URL])
        assert not any(outcome.new for outcome in index.apply([changing(at) for at in (1600, 1800)]))
        index.expire(3999)
        settled(index)
        assert index.counts()["contents"] == index.counts()["versions"] == 1
        assert not client.exists(f"{prefix}{{0}}:o:1", f"{prefix}{{0}}:ol:1")
    index.close()


def test_versions_of_one_time_are_told_by_their_texts(redis_url: str, prefix: str) -> None:
    """Be they more than are looked at together."""
    index = RedisIndex(redis_url, prefix)
    crawl = [page(URL, at, range(100 * number, 100 * number + 30)) for number in range(150) for at in (9, 7, 8)]
    assert all(outcome.new for outcome in index.apply(crawl))
    assert not any(outcome.new for outcome in index.apply(crawl))
    assert len(index.versions_of([URL])[0]) == len(crawl) == index.counts()["versions"]
    index.close()


def test_a_long_history_is_forgotten_without_being_written_anew_in_each_call(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix)
    crawl = [changing(at) for at in range(1, 1000)]
    for start in range(0, len(crawl), 60):
        index.apply(crawl[start : start + 60])
        settled(index)
    for at in (1500, 30, 2000, 700):  # (30 and 700 were superseded by later ones when they came)
        index.apply([page(URL, at, range(9000 + at, 9030 + at))])
    versions = index.versions_of([URL])[0]
    with connect(redis_url) as client:
        before, calls, gone = calls_of(client, "set"), 0, 0
        for some in index.expiring(901):
            calls, gone = calls + 1, gone + some
            assert len(index.versions_of([URL])[0]) == len(versions) - gone
        assert gone == 902
        assert calls > 10
        assert calls_of(client, "set") - before < 1.5 * calls  # each writes the counters
    assert index.versions_of([URL])[0] == [one for one in versions if one.fetched_at > 900]
    assert index.expire(901) == 0
    assert not any(outcome.new for outcome in index.apply(crawl[950:]))
    stopped = index.expiring(1800)
    assert next(stopped) == 64
    stopped.close()  # whoever died at it is followed by another
    assert not any(outcome.new for outcome in index.apply(crawl[964:]))
    assert index.versions_of([URL])[0] == [one for one in versions if one.fetched_at > 964]
    with connect(redis_url) as client:  # be that a daemon of an earlier version, which goes by the times that it finds
        listed = client.get(f"{prefix}{{0}}:o:1")
        assert min(times_in(listed)) > 964
        assert index.expire(965) == 0  # and who finds nothing more to be forgotten leaves no room for what was
        assert client.strlen(f"{prefix}{{0}}:o:1") == SUPERSEDED * (len(index.versions_of([URL])[0]) - 1)
    index.expire(1800)
    settled(index)
    assert [one.fetched_at for one in index.versions_of([URL])[0]] == [2000]
    assert index.counts()["contents"] == index.counts()["versions"] == 1
    with connect(redis_url) as client:
        assert not client.exists(f"{prefix}{{0}}:o:1")
        assert not any(client.get(f"{prefix}{{0}}:x") or b"")  # (who forgets the next time looks at no page)
    index.close()


def test_a_content_of_many_texts_goes_in_a_step(redis_url: str, prefix: str) -> None:
    """Of equal sketches: the texts go one by one, as the versions that showed them are forgotten."""
    index = RedisIndex(redis_url, prefix)
    urls = [f"http://h.example/{number}" for number in range(500)]
    index.apply([page(url, 1, range(50), order=url) for url in urls])
    index.apply([page(url, 2, range(100 * at, 100 * at + 30)) for at, url in enumerate(urls, 10)])
    with connect(redis_url) as client:
        before = calls_of(client, "getrange", "hget")
        settled(index)
        assert calls_of(client, "getrange", "hget") - before < len(urls) / 5
        assert index.expire(2) == len(urls)
        settled(index)
        assert not list(client.scan_iter(f"{prefix}*:t:*", count=10_000))
    assert index.counts()["contents"] == len(urls)
    index.close()


class Compared(int):
    """A time that counts how often it is compared."""

    times = 0

    def __lt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) < other

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_a_content_that_is_forgotten_before_it_is_dismissed_is_found_no_more(redis_url: str, prefix: str) -> None:
    """Nor does its identity take room."""
    index = RedisIndex(redis_url, prefix)
    index.apply([changing(1)])
    index.apply([changing(2)])
    assert index.expire(2) == 1
    settled(index)
    with connect(redis_url) as client:
        assert sum(client.strlen(key) for key in client.scan_iter(f"{prefix}{{0}}:c:*", count=10_000)) == 7
    index.close()


def test_in_memory_a_fetch_is_compared_with_few_of_those_before() -> None:
    index = MemoryIndex()
    crawl = [replace(changing(at), fetched_at=Compared(at)) for at in range(1, 1001)]
    index.apply(crawl[:900])
    Compared.times = 0
    index.apply(crawl[900:])
    index.apply(crawl[:100])
    assert Compared.times < 100 * len(crawl[800:])
    assert index.counts()["versions"] == len(crawl)
