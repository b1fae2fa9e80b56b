"""The second stream: whole pages are found beside main texts; what no page shows any more leaves nothing behind."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from clusterd.clusters.contract import Index
from clusterd.clusters.opening import open_index
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.stream import BURIED
from clusterd_consumer.postings.buckets import FIRST
from clusterd_consumer.postings.redis_lists import LOAD
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import TEXT, Sketch

from tests.contract.index_world import page, settled, stream
from tests.contract.moments import Lost, interrupted

A, B, C, D = (f"http://h.example/{letter}" for letter in "abcd")
MAIN, CHROME, OTHER = range(100), range(5000, 5100), range(9000, 9100)


def framed(url: str, at: int, main: range, chrome: range) -> Sketch:
    """A page whose main text stands in a frame."""
    return replace(page(url, at, main), whole=stream([*main, *chrome]))


@pytest.fixture(params=["memory", "redis", "cluster"])
def index(request: pytest.FixtureRequest, prefix: str) -> Iterator[Index]:
    url = {"memory": None, "redis": "redis_url", "cluster": "redis_cluster_url"}[request.param]
    made = open_index(request.getfixturevalue(url) if url else None, prefix, whole=True)
    yield made
    made.close()


def found(index: Index, *parts: range) -> list[tuple[str, float]]:
    hits = index.similar(stream([number for part in parts for number in part]), TEXT.code, stream="whole")
    return [(hit.url, round(hit.resemblance, 1)) for hit in hits]


def test_pages_are_found_by_their_frames(index: Index) -> None:
    index.apply([framed(A, 1, MAIN, CHROME), framed(B, 1, MAIN, OTHER), framed(C, 1, MAIN, CHROME)])
    assert found(index, MAIN, CHROME) == [(A, 1.0), (C, 1.0), (B, 0.3)]
    assert found(index, OTHER) == [(B, 0.5)]
    assert [hit.url for hit in index.similar(stream(MAIN), TEXT.code)] == [A, B, C]


def test_one_text_of_one_time_shows_the_frame_that_came_last(index: Index) -> None:
    index.apply([framed(A, 1, MAIN, CHROME), framed(A, 1, MAIN, OTHER)])
    settled(index)
    assert found(index, MAIN, OTHER) == [(A, 1.0)]


def test_pages_leave_a_frame_and_return_to_it_one_by_one(index: Index) -> None:
    urls, dice = [f"{A}{n}" for n in range(6)], random.Random(4)
    index.apply([framed(url, 1, MAIN, CHROME) for url in urls])
    shown = set(urls)
    for at in range(2, 40):
        url = dice.choice(urls)
        shown ^= {url}
        index.apply([framed(url, at, MAIN, CHROME if url in shown else OTHER)])
        assert found(index, CHROME) == [(one, 0.5) for one in sorted(shown)]


def test_a_recrawled_page_shows_its_latest_frame_in_whatever_order(index: Index) -> None:
    index.apply([framed(A, 2, MAIN, CHROME), framed(B, 1, MAIN, CHROME)])
    index.apply([framed(A, 1, MAIN, OTHER)])
    assert found(index, MAIN, CHROME) == [(A, 1.0), (B, 1.0)]
    index.apply([framed(A, 3, MAIN, OTHER)])
    settled(index)
    assert found(index, MAIN, CHROME) == [(B, 1.0), (A, 0.3)]
    index.apply([framed(B, 3, OTHER, range(0)), framed(B, 3, OTHER, range(0))])
    settled(index)
    assert found(index, CHROME) == []
    index.apply([framed(C, 4, MAIN, CHROME)])
    assert found(index, CHROME) == [(C, 0.5)]


def test_a_worker_that_was_slow_shows_no_frame_that_is_older(redis_url: str, prefix: str) -> None:
    """Another has the page's later version in hand, and is done with it first."""
    other = RedisIndex(redis_url, prefix, whole=True)
    index = interrupted(redis_url, prefix, "enter", 1, lambda: other.apply([framed(A, 2, MAIN, CHROME)]) and None)
    index.apply([framed(A, 1, MAIN, OTHER)])
    for one in (index, other):
        settled(one)
        assert found(one, MAIN, CHROME) == [(A, 1.0)]
        one.close()


def test_an_empty_page_is_like_nothing(index: Index) -> None:
    index.apply([framed(A, 1, range(0), range(0)), framed(B, 1, MAIN, CHROME)])
    index.apply([framed(B, 2, range(0), range(0))])
    settled(index)
    assert found(index, MAIN, CHROME) == []


def test_a_frame_that_returns_before_it_is_buried_is_shown_by_who_brings_it_back(index: Index) -> None:
    index.apply([framed(A, 1, MAIN, CHROME), framed(B, 1, MAIN, OTHER)])
    index.apply([framed(A, 2, MAIN, OTHER)])
    index.apply([framed(C, 1, MAIN, CHROME)])
    assert found(index, CHROME) == [(C, 0.5)]
    settled(index)
    assert found(index, CHROME) == [(C, 0.5)]
    assert found(index, OTHER) == [(A, 0.5), (B, 0.5)]


def test_as_many_are_found_as_are_asked_for(index: Index) -> None:
    urls = [f"http://h.example/{n:03}" for n in range(2 * BURIED)]
    index.apply([framed(url, 1, MAIN, range(1000 * n, 1000 * n + n)) for n, url in enumerate(urls, start=1)])
    for limit in (1, BURIED, BURIED + 1, len(urls)):
        hits = index.similar(stream(MAIN), TEXT.code, limit=limit, stream="whole")
        assert [hit.url for hit in hits] == urls[:limit]


def test_a_page_asks_by_the_frame_that_it_shows_now(index: Index) -> None:
    index.apply([framed(A, 1, MAIN, CHROME), framed(B, 1, MAIN, OTHER), framed(C, 1, range(300, 400), CHROME)])
    index.apply([framed(A, 2, MAIN, OTHER), framed(D, 1, range(0), range(0))])
    settled(index)
    asked = index.whole_sketch(A)
    assert asked is not None
    assert (asked.shingles, asked.complete) == (200, True)
    hits = index.similar(asked, TEXT.code, stream="whole")
    assert [(hit.url, hit.resemblance) for hit in hits] == [(A, 1.0), (B, 1.0)]
    wordless = index.whole_sketch(D)
    assert wordless is not None
    assert (wordless.shingles, index.similar(wordless, TEXT.code, stream="whole")) == (0, [])
    assert index.whole_sketch("http://h.example/never") is None


def test_a_long_page_asks_as_its_text_does(index: Index) -> None:
    long, longer = range(5000), range(5600)
    index.apply([framed(A, 1, long, CHROME), framed(B, 1, longer, OTHER)])
    asked = index.whole_sketch(A)
    assert asked is not None
    assert (asked.complete, asked.parity != b"") == (False, True)
    text = stream([*long, *CHROME])
    assert abs(asked.shingles / text.shingles - 1) < 0.001
    of_page = index.similar(asked, TEXT.code, stream="whole")
    assert of_page == index.similar(text, TEXT.code, stream="whole")
    assert [hit.url for hit in of_page] == [A, B]


def test_a_frame_is_posted_once(redis_url: str, prefix: str) -> None:
    asked: list[str] = []

    class Noted(Calls):
        def ask(self, requests: Sequence[Request]) -> list[Any]:
            asked.extend(request.name for request in requests)
            return super().ask(requests)

    index = RedisIndex(redis_url, prefix, calls=Noted, whole=True)
    index.apply([framed(A, 1, MAIN, CHROME)])
    index.apply([framed(B, 1, MAIN, CHROME)])  # with this the store is told that it was posted
    asked.clear()
    index.apply([framed(C, 1, MAIN, CHROME), framed(D, 1, MAIN, CHROME)])
    assert asked == ["register", "enter"]
    assert found(index, CHROME) == [(url, 0.5) for url in (A, B, C, D)]
    index.close()


@pytest.mark.parametrize("on", ["memory", "redis"])
def test_a_stream_that_is_not_kept_is_not_asked(redis_url: str, prefix: str, on: str) -> None:
    index = open_index(redis_url if on == "redis" else None, prefix)
    with pytest.raises(WrongInput, match="whole"):
        index.similar(stream(MAIN), TEXT.code, stream="whole")
    with pytest.raises(WrongInput, match="whole"):
        index.whole_sketch(A)
    index.close()


def test_frames_that_are_gone_leave_nothing(redis_url: str, prefix: str) -> None:
    index = open_index(redis_url, prefix, whole=True)
    index.apply([framed(f"{A}{n}", 1, MAIN, range(n * 1000, n * 1000 + 90)) for n in range(1, 400)])
    index.apply([framed(f"{A}{n}", 2, MAIN, range(0)) for n in range(1, 400)])
    assert [index.settle(0), index.settle(1), index.settle(2)] == [399, 399 - BURIED, 399 - 3 * BURIED]
    settled(index)
    with connect(redis_url) as client:
        kinds = [key.split(b":whole:")[1] for key in client.scan_iter(f"{prefix}{{0}}:whole:*", count=10_000)]
        assert int(client.get(f"{prefix}{{0}}:whole:of:pn") or 0) == 1
        postings = int(client.get(f"{prefix}{{0}}:whole:pn") or 0)
    assert postings == len([kind for kind in kinds if kind.startswith(b"p:") and kind[2:].isdigit()]) > 0
    assert len([kind for kind in kinds if kind.startswith(b"k:")]) == 1
    index.close()


def test_the_table_of_frames_grows_and_shrinks_with_them(redis_url: str, prefix: str) -> None:
    index, base = open_index(redis_url, prefix, whole=True), f"{prefix}{{0}}:whole:of"
    with connect(redis_url) as client:
        client.set(f"{base}:pn", 300 * LOAD)  # as many as ask for so many buckets
        index.apply([framed(A, 1, MAIN, CHROME)])
        grown = int(client.get(f"{base}:pb") or 0)
        client.set(f"{base}:pn", 1)
        index.apply([framed(A, 2, MAIN, OTHER)])
        settled(index)
        assert grown > FIRST == int(client.get(f"{base}:pb") or 0)
    index.close()


def test_frames_that_outlived_most_of_their_block_leave_nothing(redis_url: str, prefix: str) -> None:
    """What was left of the block was kept text by text."""
    index = RedisIndex(redis_url, prefix, whole=True)
    urls = [f"{A}{n}" for n in range(1, 300)]
    index.apply([framed(url, 1, MAIN, range(n * 1000, n * 1000 + 30)) for n, url in enumerate(urls, 1)])
    blocks = {}
    with connect(redis_url) as client:
        for at, some in enumerate((urls[:100], urls[100:120], urls[120:]), 2):
            index.apply([framed(url, at, MAIN, range(0)) for url in some])
            settled(index)
            keys = client.scan_iter(f"{prefix}{{0}}:whole:of:n:*", count=10_000)
            blocks[at] = {key.partition(b":of:")[2] for key in keys}
    assert blocks == {2: {b"n:0:left", b"n:1", b"n:2"}, 3: {b"n:0:left", b"n:1", b"n:2"}, 4: {b"n:2"}}
    index.close()


@pytest.mark.parametrize("name", ["enter", "post", "look"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("once", [True, False], ids=["a-batch", "two-workers"])
def test_a_frame_that_is_gone_before_it_is_posted_leaves_nothing(
    redis_url: str, prefix: str, name: str, nth: int, once: bool
) -> None:
    """Between any two steps of a worker another takes what it is at, and buries what no page shows any more."""
    first, second = framed(A, 1, MAIN, OTHER), framed(A, 2, MAIN, range(0))
    other = RedisIndex(redis_url, prefix, whole=True)

    def act() -> None:
        if not once:
            other.apply([second])
        settled(other)

    index = interrupted(redis_url, prefix, name, nth, act)
    index.apply([framed(B, 1, range(0), range(0))])
    index.apply([first, second] if once else [first])
    index.apply([second])
    settled(index)
    with connect(redis_url) as client:
        assert int(client.get(f"{prefix}{{0}}:whole:of:pn") or 0) == 1  # its main text alone
        kept = list(client.scan_iter(f"{prefix}{{0}}:whole:k:*", count=10_000))
        postings = int(client.get(f"{prefix}{{0}}:whole:pn") or 0)
    fresh = RedisIndex(redis_url, f"{prefix}fresh:", whole=True)
    fresh.apply([second])
    with connect(redis_url) as client:
        assert postings == int(client.get(f"{prefix}fresh:{{0}}:whole:pn") or 0) > 0
    assert len(kept) == 1
    assert found(index, OTHER) == []
    for one in (index, other, fresh):
        one.close()


@pytest.mark.parametrize("name", ["bury", "LREM"])
def test_a_frame_that_returns_and_goes_while_two_settle_leaves_nothing(redis_url: str, prefix: str, name: str) -> None:
    other = RedisIndex(redis_url, prefix, whole=True)
    happened: list[bool] = []

    def act() -> None:
        happened.append(True)
        settled(other)
        other.apply([framed(B, 2, MAIN, range(0))])

    index = interrupted(redis_url, prefix, name, 1, act)
    index.apply([framed(A, 1, MAIN, OTHER)])
    index.apply([framed(A, 2, MAIN, range(0)), framed(B, 1, MAIN, OTHER)])
    settled(index)
    if not happened:
        act()
    settled(index)
    assert found(index, OTHER) == []
    with connect(redis_url) as client:
        assert int(client.get(f"{prefix}{{0}}:whole:of:pn") or 0) == 1  # the main text of both
        assert len(list(client.scan_iter(f"{prefix}{{0}}:whole:k:*", count=10_000))) == 1
    for one in (index, other):
        one.close()


@pytest.mark.parametrize("name", ["enter", "post", "look"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_page_that_was_half_applied_is_found_when_it_is_delivered_again(
    redis_url: str, prefix: str, name: str, nth: int
) -> None:
    left = [nth]

    class Dying(Calls):
        def ask(self, requests: list[Request]) -> list[object]:  # type: ignore[override]
            if any(request.name == name for request in requests):
                left[0] -= 1
                if left[0] == 0:
                    raise Lost
            return super().ask(requests)

    dying = RedisIndex(redis_url, prefix, calls=Dying, whole=True)
    for _ in range(3):
        try:
            dying.apply([framed(A, 1, MAIN, CHROME)])
        except Lost:
            continue
    assert found(dying, MAIN, CHROME) == [(A, 1.0)]
    dying.close()


def test_whole_pages_are_kept_from_the_beginning_or_not_at_all(redis_url: str, prefix: str) -> None:
    RedisIndex(redis_url, prefix + "with:", whole=True).close()
    follower = RedisIndex(redis_url, prefix + "with:")
    follower.apply([framed(A, 1, MAIN, CHROME)])
    assert found(follower, CHROME) == [(A, 0.5)]
    follower.close()
    RedisIndex(redis_url, prefix + "without:").close()
    with pytest.raises(WrongInput, match="begun without whole pages"):
        RedisIndex(redis_url, prefix + "without:", whole=True)
