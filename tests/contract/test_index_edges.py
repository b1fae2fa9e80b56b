"""Edges as a home keeps them, side by side: one is never taken for another, and none outlives its policy."""

from __future__ import annotations

import struct

from clusterd.clusters.contract import Policy
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import OWN
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.test_index_removal import LOOSE
from tests.contract.test_index_spans import on, opened

MIDDLE = [*range(120)]


def test_bytes_of_two_neighbours_are_not_taken_for_a_third(redis_url: str, prefix: str) -> None:
    """The middle has the neighbours 1 and 2: where the one ends and the other begins lie the bytes of 512."""
    sides = [[n for n in MIDDLE if n // 40 != side] for side in range(3)]
    texts = {"first": sides[0], "second": sides[1], "middle": MIDDLE, "like-first": [*sides[0], *range(200, 280)]}
    crawl = [page(f"http://h.example/{name}", 1, text) for name, text in texts.items()]
    crawl += [page(f"http://h.example/{n}", 1, [1000 * n]) for n in range(5, 512)]
    crawl.append(page("http://h.example/third", 1, sides[2]))
    index = RedisIndex(redis_url, prefix)
    index.apply(crawl)
    with connect(redis_url) as client:
        assert Home(Calls(client), prefix).counters().nodes == 512
    for at, name in enumerate(("third", "middle"), 2):  # these go
        crawl.append(page(f"http://h.example/{name}", at, range(10**6 * at, 10**6 * at + 50)))
        index.apply(crawl[-1:])
        settled(index)
        assert partition(index) == expected(crawl)
    index.close()


def test_a_home_takes_up_no_edge_of_a_policy_that_is_gone(redis_url: str, prefix: str) -> None:
    """Whoever unites two tells one of an edge that the other had, by when the policy was removed and cleared."""
    index = opened(redis_url, prefix)
    crawl = [page(on(0, "a"), 1, range(100)), page(on(1, "b"), 1, range(60, 160))]
    index.apply(crawl)
    index.add_policy(LOOSE)
    settled(index)
    a, b = 1, (1 << OWN) + 1
    ((other, bits),) = struct.iter_unpack("<IH", index._spans.near([a])[a])
    assert other == b
    index.remove_policy(LOOSE.name)
    settled(index)
    assert index._spans._accepted([(a, b, bits)]) == {(a, b): True}
    assert index._spans.near([a, b]) == {a: b"", b: b""}
    index.add_policy(Policy("tight", resemblance=0.95))
    settled(index)
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    index.close()
