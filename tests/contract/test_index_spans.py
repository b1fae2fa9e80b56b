"""Clusters over several homes at the worst moment: another acts between two calls, one dies, a home is set back."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import mmh3
import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.redis import marks as redis_marks
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.policies import change, text_of
from clusterd.clusters.redis.spans.steps import pairs_of
from clusterd_consumer.hash_tags import spread_tags
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import interrupted
from tests.contract.test_index_homes import SHARDS, depart
from tests.contract.test_index_marks import Reader

LEFT, RIGHT, ELSEWHERE = range(100), range(1000, 1100), range(7000, 7100)
BRIDGE = [*LEFT, *RIGHT]


def on(home: int, name: str) -> str:
    """Return the URL of a page in a home."""
    hosts = (f"{name}{n}.example" for n in count())
    return next(f"http://{one}/" for one in hosts if mmh3.hash(one.encode(), signed=False) % SHARDS == home)


#: A and C resemble nobody but B, each in a home of its own; D is another that holds the two together.
A, B, C, D = on(0, "a"), on(1, "b"), on(2, "c"), on(2, "d")


def opened(url: str, prefix: str, name: str = "", nth: int = 0, act: Callable[[], None] = print) -> RedisIndex:
    """Open a store of several homes; something happens before the nth call of a name."""
    return interrupted(url, prefix, name, nth, act, shards=SHARDS)


class Died(Exception):
    """Whoever was at it dies here."""


def free(url: str, prefix: str) -> None:
    """Let the leases of a settler that died run out."""
    with connect(url) as client:
        for key in client.scan_iter(f"{prefix}*:lock", count=10_000):
            client.delete(key)


def test_a_worker_that_looks_at_a_pair_as_it_departs_does_not_hide_who_hung_on_it(redis_url: str, prefix: str) -> None:
    """B has been taken from the edges of A and C, and is about to be dismissed with its own."""
    other = opened(redis_url, prefix)
    crawl = [page(A, 1, LEFT), page(B, 1, BRIDGE), page(C, 1, RIGHT), page(B, 2, ELSEWHERE)]
    for one in crawl[:3]:
        other.apply([one])
    settled(other)
    numbers = [home << 27 | 1 for home in range(SHARDS)]
    pairs = [pair for end in (numbers[0], numbers[2]) for pair in pairs_of(numbers[1], end, 0b111)]
    index = opened(redis_url, prefix, "dismiss", 1, lambda: other._spans.unite(pairs) and None)
    other.apply(crawl[3:])
    settled(index)
    assert partition(index) == expected(crawl)
    for one in (index, other):
        one.close()


@pytest.mark.parametrize("name", ["accept", "link", "crown", "roots", "widen", "HMGET", "LREM"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("dies", [False, True], ids=["goes_on", "dies"])
def test_a_page_departs_while_another_is_united_with_it(
    redis_url: str, prefix: str, name: str, nth: int, dies: bool
) -> None:
    """What was made for the two is part of nothing any more, and is counted as nothing; the message comes again."""
    other = opened(redis_url, prefix)
    crawl = [page(A, 1, LEFT), page(B, 1, BRIDGE), page(A, 2, ELSEWHERE)]

    def depart_() -> None:
        other.apply(crawl[2:])
        settled(other)
        if dies:
            raise Died

    other.apply(crawl[:1])
    index = opened(redis_url, prefix, name, nth + 2 * (name == "HMGET"), depart_)  # (two as it is opened)
    try:
        index.apply(crawl[1:2])
    except Died:
        other.apply(crawl[1:2])
    other.apply(crawl[2:])
    settled(other)
    assert partition(other) == expected(crawl)
    with suppress(Died):
        index.close()
    depart(redis_url, prefix, other, crawl)
    other.close()


@pytest.mark.parametrize("name", ["shut", "lead", "release", "adopt", "widen", "HMGET"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("come", [D, on(0, "e")], ids=["elsewhere", "here"])
def test_a_page_joins_what_is_tidied(redis_url: str, prefix: str, name: str, nth: int, come: str) -> None:
    """A span is left with A alone, and the page joins A with another span, by another home or in A's own."""
    other = opened(redis_url, prefix)
    near_a, with_c = on(1, "f"), [on(0, "g"), C]
    crawl = [
        page(A, 1, LEFT),
        page(near_a, 1, [*LEFT][:-1]),
        *(page(one, 1, [*RIGHT, n]) for n, one in enumerate(with_c)),
    ]
    arrival = [page(come, 1, BRIDGE)]
    other.apply(crawl)
    settled(other)
    crawl.append(page(near_a, 2, ELSEWHERE))
    other.apply(crawl[-1:])
    happened: list[bool] = []

    def arrive() -> None:
        happened.append(True)
        other.apply(arrival)

    index = opened(redis_url, prefix, name, nth, arrive)
    settled(index)
    if not happened:
        arrive()
    settled(index)
    assert partition(index) == expected([*crawl, *arrival])
    other.close()
    depart(redis_url, prefix, index, [*crawl, *arrival])
    index.close()


@pytest.mark.parametrize("first", range(4))
def test_a_settler_that_dies_at_any_call_is_followed_by_another(redis_url: str, prefix: str, first: int) -> None:
    """Spans that were put under others are forgotten; one is left with one part; another falls into two."""
    for at in range(10 + 4 * first, 10 + 4 * first + 90, 16):
        store = f"{prefix}{at}:"
        other = opened(redis_url, store)
        crawl = [page(on(n % 3, f"x{n}"), 1, range(25 * n, 25 * n + 100)) for n in (0, 2, 4, 6, 1, 3, 5)]
        other.apply(crawl)
        crawl += [page(crawl[place].url, 2, range(9000 + 200 * place, 9100 + 200 * place)) for place in (2, 5)]
        other.apply(crawl[-2:])
        calls = Dying(at)
        index = RedisIndex(redis_url, store, shards=SHARDS, calls=calls.of)
        calls.running = True
        try:
            settled(index)
        except Died:
            free(redis_url, store)
        settled(other)
        assert partition(other) == expected(crawl), at
        depart(redis_url, store, other, crawl)
        other.close()


def test_a_policy_that_reached_the_first_home_alone_is_told_to_the_others_by_who_meets_it(
    redis_url: str, prefix: str
) -> None:
    """Whoever added it died at it; a page of another home resembles one of the first."""
    later, calls = replace(DEFAULT_POLICIES[1], name="later"), Dying(1000)
    index = RedisIndex(redis_url, prefix, shards=SHARDS, calls=calls.of)
    calls.running = True
    crawl = [page(A, 1, LEFT), page(B, 1, BRIDGE)]
    index.apply(crawl[:1])
    known = index._policies.agree()
    change(index._home, known, [*known.texts, text_of(later)], 0)
    index.apply(crawl[1:])
    settled(index)
    policies = [*DEFAULT_POLICIES, later]
    assert partition(index, policies) == expected(crawl, policies)
    index.close()


def test_a_search_from_a_content_after_which_the_others_are_called_ends(redis_url: str, prefix: str) -> None:
    """It was dismissed meanwhile, so it stands nowhere, whatever name the others have: it has not been brought back."""
    index = opened(redis_url, prefix)
    crawl = [page(A, 1, LEFT), page(B, 1, LEFT), page(on(0, "g"), 1, [*LEFT][:-1]), page(B, 2, ELSEWHERE)]
    for one in crawl:
        index.apply([one])
        settled(index)
    cluster, dismissed = index.cluster_of(A, "near"), 1 << 27 | 1
    assert cluster is not None
    assert cluster.cluster == f"near-{dismissed}"
    for apart, rest in ((1, dismissed), (dismissed, 1)):
        index._homes.all[2].command("RPUSH", "tasks", struct.pack("<BI2I", 0, 0, apart, rest))
        deadline = time.monotonic() + 60
        while index.settle():
            assert time.monotonic() < deadline
        assert (index.cluster_of(A, "near"), index.splits()) == (cluster, [])
    assert partition(index) == expected(crawl)
    index.close()


class Dying:
    """Lets an index die before its nth request."""

    def __init__(self, nth: int) -> None:
        self.left = nth
        self.running = False

    def of(self, client: Client) -> Calls:
        return CallsOfDying(client, self)

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.running = False
            raise Died


class CallsOfDying(Calls):
    """Calls that are made one by one while they are counted."""

    def __init__(self, client: Client, dying: Dying) -> None:
        super().__init__(client)
        self._dying = dying

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        replies: list[Any] = []
        for at, request in enumerate(requests):
            if not self._dying.running:
                return replies + super().ask(requests[at:])
            self._dying.count()
            replies += super().ask([request])
        return replies


@pytest.mark.parametrize("name", ["accept", "link", "crown"])
def test_a_policy_is_added_while_two_pages_are_linked(redis_url: str, prefix: str, name: str) -> None:
    """One end has heard of the pair by the policies of before, the other by those of now."""
    other = opened(redis_url, prefix)
    later = replace(DEFAULT_POLICIES[2], name="later")
    crawl = [page(A, 1, LEFT), page(B, 1, [*LEFT, 1]), page(C, 1, [*LEFT, 2])]
    other.apply(crawl[:1])

    def add() -> None:
        other.add_policy(later)
        settled(other)

    index = opened(redis_url, prefix, name, 1, add)
    index.apply(crawl[1:])
    settled(index)
    policies = [*DEFAULT_POLICIES, later]
    assert partition(index, policies) == expected(crawl, policies)
    for one in (index, other):
        one.close()


@pytest.mark.parametrize("home", range(1, SHARDS))
def test_a_home_that_alone_is_set_back(redis_url: str, prefix: str, home: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost spans that others have parts of, and parts of spans that others know of (the first has the marks)."""
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)
    index = opened(redis_url, prefix)
    reader = Reader(index)

    def stage(at: int, shift: int) -> list[Sketch]:
        return [
            page(on((n + shift) % 3, f"p{n}x{shift}"), at, [*range(1000 * n, 1000 * n + 100), 10**6 + shift])
            for n in range(9)
        ]

    crawl = [*stage(1, 0), *stage(1, 1)[:5]]
    reader.work(crawl)
    pattern = f"{prefix}{{{spread_tags(SHARDS)[home]}}}:*"
    with connect(redis_url) as client:
        kept = {key: client.dump(key) for key in client.scan_iter(pattern, count=10_000)}
        more = [*stage(1, 1)[5:], *stage(1, 2), page(on(0, "bridge"), 1, [*range(3000, 3100), *range(5000, 5100)])]
        more += [page(crawl[n].url, 2, range(9000 + 200 * n, 9100 + 200 * n)) for n in (1, 4)]
        reader.work(more)
        client.delete(*client.scan_iter(pattern, count=10_000))
        for key, value in kept.items():
            client.restore(key, 0, value)
        client.set(pattern.replace("*", "process"), "0" * 40)  # another server's, as where a node comes back
    reader.work([])
    settled(index)
    assert partition(index) == expected([*crawl, *more])
    index.close()


def test_who_could_not_say_that_it_went_back_goes_back_again_at_once(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another node goes away as the first has come back."""
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)

    def away() -> None:
        raise Unreachable("another node has gone away")

    index = opened(redis_url, prefix, "DEL", 1, away)
    for url in (A, B):
        index.apply([page(url, 1, LEFT)])
        index.settle()
        assert not index.went_back()
        with connect(redis_url) as client:
            client.set(f"{prefix}{{{spread_tags(SHARDS)[1]}}}:mark", 0)
        index.settle()
        index.position()
        assert index.went_back()
        index.settle()
    index.close()


def test_a_span_that_lost_all_its_parts_with_their_homes_is_forgotten(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A's home made it, and has no part any more; the others come back with nothing."""
    monkeypatch.setattr(redis_marks, "INTERVAL", 0.0)
    index = opened(redis_url, prefix)
    reader = Reader(index)
    crawl = [page(B, 1, LEFT), page(A, 1, LEFT), page(C, 1, LEFT), page(A, 2, ELSEWHERE)]
    for one in crawl:
        reader.work([one])
    with connect(redis_url) as client:
        for tag in spread_tags(SHARDS)[1:]:
            client.delete(*client.scan_iter(f"{prefix}{{{tag}}}:*", count=10_000))
    reader.work([])
    settled(index)
    assert partition(index) == expected(crawl)
    depart(redis_url, prefix, index, crawl)
    index.close()


def test_spans_whose_records_are_lost_are_made_again(redis_url: str, prefix: str) -> None:
    """All that is left of them is what homes have a part of; larger ones come under smaller ones all the same."""
    index = opened(redis_url, prefix)
    crawl = [
        page(on(n % 3, f"p{n}"), 1, [*range(1000 * (n // 4), 1000 * (n // 4) + 100), 10**6 + n]) for n in range(12)
    ]
    index.apply(crawl)
    settled(index)
    with connect(redis_url) as client:
        lost = [key for key in client.scan_iter(f"{prefix}*", count=10_000) if key.endswith((b":spans", b":spanned"))]
        assert lost
        client.delete(*lost)
        for tag in spread_tags(SHARDS):
            client.set(f"{prefix}{{{tag}}}:review", "p0")
    bridge = page(on(1, "bridge"), 1, [*range(100), *range(2000, 2100)])
    index.apply([bridge])
    begun = time.monotonic()
    settled(index)
    assert time.monotonic() - begun < 8
    assert partition(index) == expected([*crawl, bridge])
    depart(redis_url, prefix, index, [*crawl, bridge])
    index.close()
