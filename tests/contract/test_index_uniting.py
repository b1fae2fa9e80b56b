"""What a batch brings together over the borders of homes: one pair is enough, and what is left is due."""

from __future__ import annotations

import struct
from typing import NoReturn

import pytest
from clusterd.clusters.redis.home import pairs
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.linking import Linker
from clusterd.clusters.redis.spans.standings import RECORD, SPANNED, Span
from clusterd.clusters.redis.spans.steps import MOVED, TWO, Pair
from clusterd.clusters.redis.spans.uniting import Uniting, meetings_of
from clusterd_crawler.errors import Unreachable

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.test_index_spans import BRIDGE, LEFT, RIGHT, on, opened

URLS = [f"http://h{number}.example/" for number in range(12)]


def test_of_pairs_that_bring_the_same_clusters_together_one_is_enough() -> None:
    stand = {(0, 1): (1, 1), (0, 2): (SPANNED + 7, 2), (0, 3): (SPANNED + 9, 1), (0, 4): (4, 1)}
    roots = {7: Span(7, 0, 7, 3, 0), 9: Span(7, 0, 7, 3, 0)}
    (meeting,) = meetings_of([Pair(0, 1, 2), Pair(0, 1, 3), Pair(0, 4, 1), Pair(0, 4, 2)], stand, roots)
    assert meeting.spans == {7}
    assert meeting.alone == {1: (1, 2), 4: (4, 1)}
    assert meeting.tree == [Pair(0, 1, 2), Pair(0, 4, 1)]


def test_what_stands_under_one_root_needs_nothing() -> None:
    stand = {(0, 2): (SPANNED + 7, 2), (0, 3): (SPANNED + 9, 1)}
    roots = {7: Span(7, 0, 7, 3, 0), 9: Span(7, 0, 7, 3, 0)}
    (meeting,) = meetings_of([Pair(0, 2, 3)], stand, roots)
    assert not meeting.tree


def test_what_a_worker_left_that_died_before_it_united_is_united_by_who_settles(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> NoReturn:
        raise Unreachable("the worker has died")

    index = RedisIndex(redis_url, prefix, shards=4)
    monkeypatch.setattr(Uniting, "unite", die)
    with pytest.raises(Unreachable):
        index.apply([page(url, 1, range(100)) for url in URLS])
    monkeypatch.undo()
    settled(index)
    assert [set(cluster.members) for cluster in index.clusters("near")] == [set(URLS)]
    assert index.counts()["settling"] == 0
    index.close()


def test_a_batch_leaves_nothing_due(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix, shards=4)
    outcomes = index.apply([page(url, 1, range(100)) for url in URLS])
    assert index.counts()["settling"] == 0
    assert {outcome.clusters["near"][1] for outcome in outcomes} == {len(URLS)}
    index.close()


def test_a_page_that_departs_while_its_batch_is_linked_was_enough_for_nobody(redis_url: str, prefix: str) -> None:
    """It is the first that brings two pages of other homes together, which resemble each other besides."""
    crawl = [page(on(number, "page"), 1, [*range(90), 1000 + number]) for number in range(3)]
    crawl.append(page(crawl[0].url, 2, range(5000, 5100)))
    other = opened(redis_url, prefix)

    def depart() -> None:
        other.apply(crawl[3:])

    index = opened(redis_url, prefix, "accept", 1, depart)
    index.apply(crawl[:3])
    while sum(one.settle() for one in (index, other)):
        pass
    assert partition(index) == expected(crawl)
    for one in (index, other):
        one.close()


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_a_page_that_departs_before_it_is_linked_brings_nobody_together(
    redis_url: str, prefix: str, order: tuple[int, ...]
) -> None:
    """It resembles a page of another home on either side; both have heard of it, and it takes up no edge itself."""
    row = [page(on(2 - n, "row"), 1, range(25 * n, 25 * n + 100)) for n in range(3)]
    crawl = [*(row[n] for n in order), page(row[1].url, 2, range(7000, 7100))]
    other = opened(redis_url, prefix)

    def depart() -> None:
        other.apply(crawl[3:])

    index = opened(redis_url, prefix, "link", 1, depart)
    other.apply(crawl[:1])
    index.apply(crawl[1:3])
    while sum(one.settle() for one in (index, other)):
        pass
    assert partition(index) == expected(crawl)
    for one in (index, other):
        one.close()


#: Two clusters over two homes each, with a side of both in the first home; a page there that resembles these two alone.
SIDES = [
    page(on(0, "left"), 1, LEFT),
    page(on(1, "far-left"), 1, [*LEFT, *range(2000, 2100)]),
    page(on(0, "right"), 1, RIGHT),
    page(on(2, "far-right"), 1, [*RIGHT, *range(3000, 3100)]),
]
JOINT = page(on(0, "joint"), 1, BRIDGE)


def test_a_page_of_one_home_unites_what_hangs_on_its_neighbours_elsewhere(redis_url: str, prefix: str) -> None:
    index = opened(redis_url, prefix)
    for one in SIDES:
        index.apply([one])
    (outcome,) = index.apply([JOINT])
    assert outcome.clusters["related"][1] == 5
    settled(index)
    assert partition(index) == expected([*SIDES, JOINT])
    index.close()


def test_so_does_who_settles_where_the_worker_died_as_its_home_had_joined_them(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> NoReturn:
        raise Unreachable("the worker has died")

    index = opened(redis_url, prefix)
    for one in SIDES:
        index.apply([one])
    monkeypatch.setattr(Linker, "_unite_joined", die)
    with pytest.raises(Unreachable):
        index.apply([JOINT])
    monkeypatch.undo()
    settled(index)
    assert partition(index) == expected([*SIDES, JOINT])
    index.close()


def test_a_span_that_was_put_under_another_meanwhile_stays_there(redis_url: str, prefix: str) -> None:
    """Whoever saw it as a root is about to close it, or to widen it. One whose record is lost is made anew."""
    index = opened(redis_url, prefix)
    home = index._homes.first
    span, root, lost = 5, 3, 9
    home.command("HSET", "spans", span, RECORD.pack(root, 7, 3, 1))
    era = (home.command("GET", "era") or b"0").decode()
    assert home.run("shut", struct.pack("<IBI", span, 1, 0)) == 1
    assert home.run("widen", era, struct.pack("<IIB", span, 4, 1)) == b"\0"
    assert home.run("lead", struct.pack("<II", lost, root)) == 1
    assert dict(pairs(home.command("HGETALL", "spans"))) == {b"5": RECORD.pack(root, 7, 3, 1)}
    assert home.run("under", era, struct.pack("<IIIB", lost, root, 7, 1)) == struct.pack("<BI", 1, 7)
    assert home.command("HGET", "spans", lost) == RECORD.pack(root, lost, 7, 1)
    assert home.command("LRANGE", "due", 0, -1) == [TWO.pack(MOVED, lost, root)]
    index.close()


def test_a_span_is_released_only_as_it_was_counted(redis_url: str, prefix: str) -> None:
    """Not where edges were cut, or parts have moved, or the home has joined the parts of two spans since."""
    index = opened(redis_url, prefix)
    crawl = [page(on(0, "a"), 1, range(100)), page(on(1, "b"), 1, range(100))]
    index.apply(crawl)
    home = index._homes.first
    span = int(min(home.command("HKEYS", "parts")))
    era, merged = ((home.command("GET", key) or b"0").decode() for key in ("era", "merged"))
    released = struct.pack("<II", span, 1)
    assert home.run("release", era + "1", merged, released) == b""
    assert home.run("release", era, merged + "1", released) == b""
    assert partition(index) == expected(crawl)
    before = int(home.command("HLEN", "parts"))
    assert home.run("release", era, merged, released) == b"1"
    assert int(home.command("HLEN", "parts")) == before - 1
    index.close()
