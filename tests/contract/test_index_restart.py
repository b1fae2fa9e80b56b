"""One Redis that comes back without its latest writes: numbers of contents are given anew, to others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import Lost, die, interrupted
from tests.services.redis_server import free_port, redis_server

A, B, C, D = (f"http://h.example/{letter}" for letter in "abcd")
FIRST, NEAR_IT = range(100), [*range(98), 500, 501]
ELSEWHERE, FAR = range(7000, 7100), range(9000, 9100)


def insist(index: RedisIndex, sketches: Sequence[Sketch]) -> None:
    """Apply as a worker does: again, where the store does not answer."""
    for _ in range(20):
        with suppress(Unreachable):
            index.apply(sketches)
            return
        time.sleep(0.1)
    raise AssertionError("the store does not answer")


@pytest.mark.parametrize("rest", [0, 1.2])
def test_what_was_posted_before_a_restart_does_not_count_after_it(tmp_path: Path, prefix: str, rest: float) -> None:
    """The lost content's number goes to one whose worker dies before it has posted it: that one stays pending."""
    port = free_port()
    with redis_server(tmp_path, port=port) as url, redis.Redis.from_url(url) as client:
        early = RedisIndex(url, prefix)
        early.apply([page(A, 1, FIRST)])
        early.settle()
        client.save()
        early.apply([page(B, 1, ELSEWHERE)])  # is posted; the store hears of it with the next call
    with redis_server(tmp_path, port=port) as url:
        dying = interrupted(url, prefix, "post", 1, die)
        with pytest.raises(Lost):
            dying.apply([page(C, 1, NEAR_IT)])
        time.sleep(rest)
        insist(early, [page(D, 1, FAR)])
        late = RedisIndex(url, prefix)
        late.apply([page(C, 1, NEAR_IT)])
        settled(late)
        assert partition(late) == expected([page(A, 1, FIRST), page(C, 1, NEAR_IT), page(D, 1, FAR)])
        for opened in (early, dying, late):
            opened.close()


def test_a_batch_that_a_restart_overtook_is_not_linked(redis_url: str, prefix: str) -> None:
    """Somebody else has noticed a restart between the posting and the linking of a batch."""
    crawl = [page(A, 1, FIRST), page(C, 1, NEAR_IT)]
    with redis.Redis.from_url(redis_url) as client:
        index = interrupted(redis_url, prefix, "link", 1, lambda: client.set(f"{prefix}{{0}}:back", 12345) and None)
        index.apply(crawl[:1])
        with pytest.raises(Unreachable, match="applied again"):
            index.apply(crawl[1:])
        assert all(len(members) == 1 for clusters in partition(index).values() for members in clusters)
        insist(index, crawl[1:])
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()


@pytest.mark.parametrize(("name", "nth"), [("register", 2), ("tell", 1)])
def test_what_a_restart_overtook_stays_pending_though_it_is_told_to_be_posted(
    redis_url: str, prefix: str, name: str, nth: int
) -> None:
    """Its postings may be lost: who meets it posts it once more."""
    with redis.Redis.from_url(redis_url) as client:
        index = interrupted(redis_url, prefix, name, nth, lambda: client.set(f"{prefix}{{0}}:back", 12345) and None)
        index.apply([page(A, 1, FIRST)])
        index.apply([page(C, 1, FIRST, order=C)] if name == "register" else [])
        index.close()
        assert client.smembers(f"{prefix}{{0}}:w") == {b"1"}
