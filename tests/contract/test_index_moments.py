"""What happens at the worst moment: another worker acts between two chosen store operations of the first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.redis.asking import members
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import Lost, die, interrupted

A, B, C, D, E = (f"http://h.example/{letter}" for letter in "abcde")
LEFT, RIGHT, BRIDGE = range(100), range(1000, 1100), [*range(100), *range(1000, 1100)]
ELSEWHERE = range(7000, 7100)


def parted(url: str, prefix: str, name: str, nth: int, arrivals: Sequence[Sketch]) -> RedisIndex:
    """Let B, which held A and C together, leave; at this moment of their parting pages arrive by another worker.

    What comes of it is what the batch says; return the worker's index.
    """
    other = RedisIndex(url, prefix)
    crawl = [page(A, 1, LEFT), page(B, 1, BRIDGE), page(C, 1, RIGHT), page(B, 2, ELSEWHERE)]
    happened: list[bool] = []

    def arrive() -> None:
        happened.append(True)
        other.apply(arrivals)

    index = interrupted(url, prefix, name, nth, arrive)
    for one in crawl:
        other.apply([one])
    settled(index)
    if not happened:
        arrive()
    settled(index)
    assert partition(index) == expected([*crawl, *arrivals])
    other.close()
    return index


@pytest.mark.parametrize("name", ["MGET", "withdraw", "dismiss", "near", "part", "move"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("come", [[D], [D, E]])
def test_a_bridge_that_comes_while_a_cluster_parts(
    redis_url: str, prefix: str, name: str, nth: int, come: list[str]
) -> None:
    """A and C were held together by B, which left; while they are parted, D (and E) hold them together again."""
    arrivals = [page(url, 1, BRIDGE, order=url) for url in come]
    parted(redis_url, prefix, name, nth, arrivals).close()


def test_an_old_version_that_comes_late_does_not_pass_for_the_posting_of_its_content(
    redis_url: str, prefix: str
) -> None:
    """Another worker meets a content by a version superseded long ago, while its own worker dies before it posts it."""
    other = RedisIndex(redis_url, prefix)
    crawl = [page(B, 5, ELSEWHERE), page(B, 1, LEFT), page(A, 1, LEFT), page(C, 1, [*LEFT][:-1])]
    other.apply(crawl[:1])

    def act() -> None:
        other.apply(crawl[1:2])
        raise KeyboardInterrupt

    dying = interrupted(redis_url, prefix, "post", 1, act)
    with pytest.raises(KeyboardInterrupt):
        dying.apply(crawl[2:3])
    for one in crawl[2:]:
        other.apply([one])
    settled(other)
    assert partition(other) == expected(crawl)
    for opened in (dying, other):
        opened.close()


@pytest.mark.parametrize("side", [LEFT, RIGHT], ids=["left", "right"])
@pytest.mark.parametrize("name", ["MGET", "withdraw", "dismiss", "near", "part", "move"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_page_that_comes_to_one_side_while_a_cluster_parts(
    redis_url: str, prefix: str, name: str, nth: int, side: range
) -> None:
    """It finds that side where it stood, or on its way, and is to go with it: it holds nothing else there."""
    index = parted(redis_url, prefix, name, nth, [page(D, 1, [*side][:-1])])
    assert [split.size for split in index.splits() if split.policy == "contained"] in ([1], [2])
    index.close()


def test_pieces_of_two_clusters_that_a_page_joins_before_either_is_searched(redis_url: str, prefix: str) -> None:
    """Two long chains lose their last link but one at once; a page joins both ends: the long pieces stay apart."""
    index = RedisIndex(redis_url, prefix)
    crawl = [
        page(f"http://h.example/{chain}{n}", 1, range(first + 25 * n, first + 25 * n + 100))
        for chain, first in (("a", 0), ("b", 100_000))
        for n in range(14)
    ]
    gone = [page("http://h.example/a12", 2, ELSEWHERE), page("http://h.example/b12", 2, range(8000, 8100))]
    bridge = page(D, 1, [*range(325, 425), *range(100_325, 100_425)])
    index.apply(crawl)
    index.apply(gone)
    assert index.settle(1) > 1
    index.apply([bridge])
    settled(index)
    assert partition(index) == expected([*crawl, *gone, bridge])
    index.close()


@pytest.mark.parametrize("name", ["register", "post", "MGET", "link"])
def test_a_candidate_that_departs_while_two_pages_are_on_their_way_to_it(
    redis_url: str, prefix: str, name: str
) -> None:
    """D and E resemble B, not each other; B changes before they are linked to it: they stay apart."""
    other = RedisIndex(redis_url, prefix)
    other.apply([page(B, 1, BRIDGE)])

    def depart() -> None:
        other.apply([page(B, 2, ELSEWHERE)])
        settled(other)
        other.expire(10**9)

    index = interrupted(redis_url, prefix, name, 1, depart)
    index.apply([page(D, 1, LEFT), page(E, 1, RIGHT)])
    settled(index)
    current = [page(D, 1, LEFT), page(E, 1, RIGHT), page(B, 2, ELSEWHERE)]
    assert partition(index) == expected(current)
    assert entries(redis_url, prefix) == entries_of(redis_url, prefix, current)
    for opened in (index, other):
        opened.close()


def test_a_home_shard_that_alone_loses_its_last_second(redis_url: str, prefix: str) -> None:
    """Its numbers are given anew, to other pages, while the sketches' shards remember who had them before."""
    with connect(redis_url) as client:
        client.hset(f"{prefix}{{0}}:m", "shards", 16)  # on one server, as on a cluster of many nodes
        index = RedisIndex(redis_url, prefix)
        index.apply([page(A, 1, BRIDGE)])

        def home() -> list[bytes]:
            spread = tuple(f"{prefix}{{0}}:{kind}".encode() for kind in "kpf")
            return [key for key in client.scan_iter(f"{prefix}{{0}}*", count=10_000) if not key.startswith(spread)]

        kept = {key: client.dump(key) for key in home()}
        lost = [page(f"http://h.example/{n}", 1, range(1000 * n, 1000 * n + 100)) for n in range(24)]
        index.apply(lost)
        client.delete(*home())
        for key, value in kept.items():
            client.restore(key, 0, value)
        like = [page(f"http://h.example/{n}.html", 1, range(1000 * n, 1000 * n + 103)) for n in range(24)]
        index.apply([*reversed(lost), *like])
        assert partition(index) == expected([page(A, 1, BRIDGE), *lost, *like])
        index.close()


@pytest.mark.parametrize("leaves", range(10))
def test_a_cluster_that_changes_while_its_members_are_asked_for(
    redis_url: str, prefix: str, leaves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain is walked three members at a time; a link leaves meanwhile, or the very URL that was asked for."""
    monkeypatch.setattr(members, "CHUNK", 3)
    urls = [f"http://h.example/{n:02}" for n in range(10)]
    crawl = [page(url, 1, range(25 * n, 25 * n + 100)) for n, url in enumerate(urls)]
    other = RedisIndex(redis_url, prefix)
    other.apply(crawl)
    change = page(urls[leaves], 2, ELSEWHERE)

    def act() -> None:
        other.apply([change])
        settled(other)

    index = interrupted(redis_url, prefix, "members", 2, act)
    clusters = expected([*crawl, change])["related"]
    for asked in (0, 9):
        found = index.cluster_of(urls[asked], "related")
        assert found is not None
        assert set(found.members) == next(one for one in clusters if urls[asked] in one)
    for opened in (index, other):
        opened.close()


@pytest.mark.parametrize("emptied", [False, True])
def test_a_store_that_is_set_back_under_an_open_index(redis_url: str, prefix: str, emptied: bool) -> None:
    """It has lost a label, or all labels and policies, that the index knows; another label would take the number."""
    index = RedisIndex(redis_url, prefix)
    first, second = (
        replace(page(url, 1, [*LEFT, at]), crawl=crawl) for url, crawl, at in ((A, "one", 1), (B, "two", 2))
    )
    with connect(redis_url) as client:
        index.apply([first])
        kept = {key: client.dump(key) for key in client.scan_iter(f"{prefix}*", count=10_000) if not emptied}
        index.apply([second])
        client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
        for key, value in kept.items():
            client.restore(key, 0, value)
    other = RedisIndex(redis_url, prefix) if not emptied else None
    if other:
        other.apply([replace(page(C, 1, RIGHT), crawl="three")])
    index.apply([first, second])
    assert [(one.url, one.crawl) for url in (A, B) for one in index.versions_of([url])[0]] == [(A, "one"), (B, "two")]
    assert index.cluster_of(A, "near") == index.cluster_of(B, "near")
    assert index.policies() == list(DEFAULT_POLICIES)
    for opened in (index, other or RedisIndex(redis_url, prefix)):
        opened.close()


@pytest.mark.parametrize(("name", "nth"), [("post", 1), ("tell", 1)])
def test_a_page_whose_message_is_lost_is_waited_for_and_then_given_up(
    redis_url: str, prefix: str, name: str, nth: int
) -> None:
    """D's worker dies and its message never returns; D changes: its first content departs for good after a while."""
    lost = interrupted(redis_url, prefix, name, nth, die)
    with pytest.raises(Lost):
        lost.apply([page(D, 1, LEFT)], {})
    patient, hasty = RedisIndex(redis_url, prefix), RedisIndex(redis_url, prefix, patience=0.0)
    patient.apply([page(D, 2, ELSEWHERE), page(E, 1, LEFT, order="e"), page(C, 1, [*LEFT, 1])])
    assert patient.settle() == 1
    assert patient.only_awaits()
    assert hasty.settle() == 0
    hasty.expire(10**9)
    current = [page(D, 2, ELSEWHERE), page(E, 1, LEFT, order="e"), page(C, 1, [*LEFT, 1])]
    assert hasty.settle() == 0
    assert partition(hasty) == expected(current)
    assert entries(redis_url, prefix) == entries_of(redis_url, prefix, current)
    for opened in (lost, patient, hasty):
        opened.close()


def test_a_page_whose_message_is_lost_is_not_waited_for_until_a_clock_that_was_ahead_is_right(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store counted as unsettled for a year where the clock had been wrong by one."""
    lost, index = interrupted(redis_url, prefix, "post", 1, die), RedisIndex(redis_url, prefix)
    with pytest.raises(Lost):
        lost.apply([page(D, 1, LEFT)], {})
    index.apply([page(D, 2, ELSEWHERE)])
    right = time.time
    monkeypatch.setattr("time.time", lambda: right() + 365 * 86_400)
    assert (index.settle(), index.only_awaits()) == (1, True)
    monkeypatch.setattr("time.time", right)
    assert index.settle() == 0
    for opened in (lost, index):
        opened.close()


def test_a_late_page_that_expires_while_it_is_pending(redis_url: str, prefix: str) -> None:
    """Who applied it has not told the store yet that it is done when another worker's retention takes it."""
    index = RedisIndex(redis_url, prefix)

    def expire() -> None:
        assert [index.expire(3), index.expire(3)] == [1, 0]
        assert index.counts()["contents"] == 2

    other = interrupted(redis_url, prefix, "tell", 2, expire)
    other.apply([page(D, 5, LEFT)], {})
    other.apply([page(D, 4, LEFT), page(D, 1, RIGHT)], {})
    assert index.expire(3) == 0
    assert index.counts()["contents"] == 1
    for opened in (index, other):
        opened.close()


def test_a_late_page_whose_worker_died_is_given_up_when_nothing_else_expires(redis_url: str, prefix: str) -> None:
    """It would be pending for ever where the log does not bring it again."""
    patient, hasty = RedisIndex(redis_url, prefix), RedisIndex(redis_url, prefix, patience=0.0)
    died = interrupted(redis_url, prefix, "tell", 2, die)
    died.apply([page(D, 5, LEFT)], {})
    with pytest.raises(Lost):
        died.apply([page(D, 1, RIGHT)], {})
    counted = []
    for index in (patient, patient, hasty):
        index.expire(3)
        counted.append(index.counts()["contents"])
    assert counted == [2, 2, 1]
    with connect(redis_url) as client:
        left = [key.rpartition(b":")[2] for key in client.scan_iter(f"{prefix}*", count=10_000)]
        assert not {b"late", b"wt", b"trash"} & set(left)
    for opened in (patient, hasty, died):
        opened.close()


def test_a_page_that_is_posted_after_it_was_given_up_joins_nobody(redis_url: str, prefix: str) -> None:
    """D's worker sleeps before it posts; D changes and is given up: what the worker then does changes nothing."""
    other = RedisIndex(redis_url, prefix, patience=0.0)

    def give_up() -> None:
        other.apply([page(D, 2, ELSEWHERE), page(E, 1, RIGHT), page(C, 1, LEFT)])
        assert other.settle() == 0
        other.expire(10**9)
        assert other.settle() == 0

    index = interrupted(redis_url, prefix, "post", 1, give_up)
    index.apply([page(D, 1, BRIDGE)])
    settled(index)
    index.apply([page(A, 1, BRIDGE)])
    assert partition(index) == expected(
        [page(D, 2, ELSEWHERE), page(E, 1, RIGHT), page(C, 1, LEFT), page(A, 1, BRIDGE)]
    )
    for opened in (index, other):
        opened.close()


@pytest.mark.parametrize("name", ["post", "tell"])
def test_a_page_that_changes_while_it_is_posted_leaves_no_posting(redis_url: str, prefix: str, name: str) -> None:
    """A newer version of D arrives while the first is on its way: what is posted late is withdrawn all the same."""
    other = RedisIndex(redis_url, prefix)

    def change() -> None:
        other.apply([page(D, 2, ELSEWHERE)])
        other.settle()

    index = interrupted(redis_url, prefix, name, 1, change)
    (outcome,) = index.apply([page(D, 1, LEFT)])
    assert outcome.new
    settled(index)
    index.expire(10**9)
    settled(index)
    assert entries(redis_url, prefix) == entries_of(redis_url, prefix, [page(D, 2, ELSEWHERE)])
    for opened in (index, other):
        opened.close()


def entries(url: str, prefix: str) -> tuple[int, int]:
    """Return how many postings and contents a store holds."""
    with connect(url) as client:
        postings = client.get(f"{prefix}{{0}}:pn")
        return int(postings or 0), Home(Calls(client), prefix).counters().contents


def entries_of(url: str, prefix: str, sketches: Sequence[Any]) -> tuple[int, int]:
    """Return how many it would hold had only these been applied."""
    index = RedisIndex(url, f"{prefix}fresh:")
    index.apply(sketches)
    index.close()
    return entries(url, f"{prefix}fresh:")
