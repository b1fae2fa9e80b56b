"""Two workers have one page in hand: what the slower posts after it is gone leaves the lists again."""

from __future__ import annotations

import struct

import pytest
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler.sketch import SHORT, TEXT, Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import Lost, StandingStill, die, interrupted
from tests.contract.test_index_bounds import entries
from tests.contract.test_index_homes import SHARDS

A, B = "http://h.example/a", "http://h.example/b"


def sketches(url: str, prefix: str) -> int:
    """Return how many bytes the stored sketches take."""
    with connect(url) as client:
        return sum(client.strlen(key) for key in client.scan_iter(f"{prefix}*:k:*", count=10_000))


def versions(old: bool) -> tuple[Sketch, Sketch, Sketch, Sketch]:
    """Return what a page showed, what two workers have in hand, a page beside that, and what the page shows at last."""
    in_hand, changed = page(A, 4, range(300, 400)), page(A, 6, range(99))
    return page(A, 5 if old else 1, range(100)), in_hand, page(B, 1, range(340, 440)), changed


def check_that_nothing_is_left(url: str, prefix: str, homes: int, index: RedisIndex, old: bool) -> None:
    """Compare the store with one that has seen nothing but what is there at last."""
    first, in_hand, beside, changed = versions(old)
    fresh = RedisIndex(url, f"{prefix}fresh:", shards=homes)
    fresh.apply([beside, changed])
    assert partition(index) == partition(fresh) == expected([first, in_hand, beside, changed])
    assert entries(url, f"{prefix}used:") == entries(url, f"{prefix}fresh:") > 0
    assert sketches(url, f"{prefix}used:") == sketches(url, f"{prefix}fresh:") > 0
    fresh.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("old", [False, True], ids=["a-page", "an-old-version"])
@pytest.mark.parametrize(
    ("name", "forgotten"),
    [("APPEND", False), ("post", False), ("look", False), ("tell", False), ("APPEND", True), ("tell", True)],
)
def test_what_is_posted_after_it_was_dismissed_is_withdrawn(
    redis_url: str, prefix: str, name: str, forgotten: bool, old: bool, homes: int
) -> None:
    first, in_hand, beside, changed = versions(old)
    other = RedisIndex(redis_url, f"{prefix}used:", shards=homes)
    other.apply([first])

    def act() -> None:
        other.apply([in_hand])  # it is pending: the first was slow to post it
        other.apply([changed])
        settled(other)
        if forgotten:
            other.expire(6)
            settled(other)

    index = interrupted(redis_url, f"{prefix}used:", name, 1, act, shards=homes)
    index.apply([in_hand], {})
    index.apply([beside])
    index.apply([changed])
    for one in (index, other):
        settled(one)
    other.expire(6)
    settled(other)
    check_that_nothing_is_left(redis_url, prefix, homes, index, old)
    assert index.counts()["contents"] == 2
    for one in (index, other):
        one.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("old", [False, True], ids=["a-page", "an-old-version"])
@pytest.mark.parametrize("name", ["MGET", "withdraw", "dismiss"])
def test_what_is_posted_between_the_steps_of_who_dismisses_it_is_withdrawn(
    redis_url: str, prefix: str, name: str, old: bool, forgotten: bool, homes: int
) -> None:
    """It has left the lists already, and is in the graph still."""
    first, in_hand, beside, changed = versions(old)
    used = f"{prefix}used:"
    posting = StandingStill()
    other = RedisIndex(redis_url, used, shards=homes)
    slow = interrupted(redis_url, used, "post", 1, posting.wait, shards=homes)
    settler = interrupted(redis_url, used, name, 1, posting.let_go_on, shards=homes)
    other.apply([first])
    posting.begin(lambda: [slow.apply([in_hand], {}), slow.apply([beside])])
    other.apply([in_hand])
    other.apply([changed])
    if forgotten:
        other.expire(6)
    settled(settler)
    posting.let_go_on()  # where that moment has not come
    slow.apply([changed])
    settled(other)
    other.expire(6)
    settled(other)
    check_that_nothing_is_left(redis_url, prefix, homes, slow, old)
    for one in (slow, other, settler):
        one.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
def test_a_late_version_of_a_text_whose_worker_died_is_stored_and_not_posted(
    redis_url: str, prefix: str, homes: int
) -> None:
    """Nobody shows the text any more, and it is pending when another page that showed it once is told of."""
    used = f"{prefix}used:"
    crawl = [page(A, 5, range(99)), page(B, 5, range(300, 400))]
    old = [page(url, 1, range(700, 800)) for url in (A, B)]
    index = RedisIndex(redis_url, used, shards=homes)
    index.apply(crawl)
    died = interrupted(redis_url, used, "APPEND", 1, die, shards=homes)
    with pytest.raises(Lost):
        died.apply(old[:1], {})
    (outcome,) = index.apply(old[1:])
    assert (outcome.new, outcome.identity, outcome.match) == (True, None, None)
    fresh = RedisIndex(redis_url, f"{prefix}fresh:", shards=homes)
    fresh.apply(crawl)
    assert entries(redis_url, used) == entries(redis_url, f"{prefix}fresh:") > 0
    assert index.sketches([(one.url, 1) for one in old])[1] is not None
    for one in (index, died, fresh):
        one.close()


def test_a_page_whose_message_is_lost_is_waited_for_from_the_first_try_on(redis_url: str, prefix: str) -> None:
    """However often it is tried meanwhile."""
    died = interrupted(redis_url, prefix, "post", 1, die)
    with pytest.raises(Lost):
        died.apply([page(A, 1, range(100))], {})
    index = RedisIndex(redis_url, prefix)
    index.apply([page(A, 2, range(500, 600))])
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        (ghost,) = home.command("LRANGE", "g", 0, -1)
        packed = struct.pack("<Q", int(ghost))
        assert home.run("lease", "token", "") == 1
        assert [home.run("dismiss", "token", 60, 0, packed, now) for now in (1000, 1040, 1059, 1060)] == [0, 0, 0, 1]
        home.command("DEL", "lock")
    assert index.settle() == 0
    for one in (index, died):
        one.close()


@pytest.mark.parametrize("again", ["as it is", "not known any more"])
def test_what_waits_twice_to_be_dismissed_is_freed_once(redis_url: str, prefix: str, again: str) -> None:
    """Its worker was late, and had it withdrawn once more."""
    index = RedisIndex(redis_url, prefix)
    crawl = [page(A, 1, range(100)), page(B, 1, range(500, 600)), page(A, 2, range(700, 800))]
    for one in crawl:
        index.apply([one])
    index.expire(2)
    with connect(redis_url) as client:
        home = Home(Calls(client), prefix)
        (ghost,) = home.command("LRANGE", "g", 0, -1)
        home.command("RPUSH", "g", ghost if again == "as it is" else int(ghost) | 255)
        settled(index)
        assert home.command("HGETALL", "b") == [b"0", b"1"]
        assert client.getrange(f"{prefix}{{0}}:n:0", 56, 111) == bytes(56)  # (a record has 56 bytes)
    assert index.counts()["contents"] == 2
    assert partition(index) == expected(crawl)
    index.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
def test_a_page_that_comes_again_under_another_profile_is_not_posted_in_its_place(
    redis_url: str, prefix: str, homes: int
) -> None:
    """Its worker died, and whoever reads the archive again has it sketched otherwise."""
    died = interrupted(redis_url, prefix, "APPEND", 1, die, shards=homes, patience=0.0)
    index = RedisIndex(redis_url, prefix, shards=homes, patience=0.0)
    long = range(1000)
    with pytest.raises(Lost):
        died.apply([page(A, 1, long, profile=SHORT)], {})
    crawl = [page(A, 1, long, profile=TEXT), page(A, 2, range(5000, 5100))]
    for one in crawl:
        index.apply([one])
        settled(index)
    index.expire(2)
    assert partition(index) == expected(crawl)
    assert index.counts()["contents"] == 1
    for one in (index, died):
        one.close()
