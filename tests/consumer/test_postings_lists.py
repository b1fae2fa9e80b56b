"""Posting lists: Redis does what the lists in memory do, its tables grow and shrink, and all memory comes back."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from clusterd_consumer.hash_tags import hash_tags
from clusterd_consumer.postings.buckets import ENTRY, FIRST, bucket_of
from clusterd_consumer.postings.lists import Lists
from clusterd_consumer.postings.redis_lists import LAG, LOAD, SPLITS, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import connect
from clusterd_consumer.redis_scripts import Calls

from tests.consumer.posted_lists import look_up, posting

SCHEME = Scheme(bound=5, latest=2)


@pytest.fixture(params=["redis_url", "redis_cluster_url"])
def lists(request: pytest.FixtureRequest, prefix: str) -> Iterator[RedisLists]:
    client = connect(request.getfixturevalue(request.param))
    yield RedisLists(Calls(client), prefix, hash_tags(1 if request.param == "redis_url" else 4), SCHEME)
    client.close()


def keys(numbers: list[int]) -> np.typing.NDArray[np.uint32]:
    """All lie in one bucket: what becomes of one list must leave the others there."""
    return np.unique(np.array(numbers, np.uint32) << np.uint32(16))


@pytest.mark.parametrize("seed", range(12))
def test_redis_and_memory_propose_the_same(redis_url: str, prefix: str, seed: int) -> None:
    """Lists become common, documents are posted again wherever they stand, and lists are forgotten."""
    dice, memory = random.Random(seed), Lists(SCHEME.bound, SCHEME.latest)
    with connect(redis_url) as client:
        store = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME)
        for _ in range(100):
            document, posted = dice.randrange(1, 16), keys(dice.sample(range(4), dice.randrange(5)))
            if dice.random() < 0.2:
                memory.withdraw(posted.tolist(), document)
                store.withdraw({document: posted})
            else:
                (found,), *_ = store.propose([posting(document, b"s", posted)])
                assert sorted(found) == memory.propose(posted.tolist(), document)
        every = keys(list(range(4)))
        assert look_up(store, every) == memory.look_up(every.tolist())
        asked = [[1, 2], [], [2], [0, 3]]
        found, _ = store.look_up([keys(numbers).tobytes() for numbers in asked])
        assert found == [memory.look_up(keys(numbers).tolist()) for numbers in asked]


def test_tables_grow_shrink_and_leave_nothing(lists: RedisLists, prefix: str, request: pytest.FixtureRequest) -> None:
    dice = np.random.default_rng(5)
    posted = {number: np.unique(dice.integers(0, 2**32, 16, dtype=np.uint32)) for number in range(1, 3001)}
    for start in range(1, 3001, 500):
        lists.propose([posting(n, b"x" * n, posted[n], fresh=True) for n in range(start, start + 500)])
    assert look_up(lists, np.concatenate([posted[7], posted[2999]])) == [7, 2999]
    assert lists.sketches([7, 2999, 4000]) == {7: b"x" * 7, 2999: b"x" * 2999, 4000: b""}
    shared = dict.fromkeys(range(1, 9), keys([1]))
    lists.propose([posting(n, b"x" * n, of) for n, of in shared.items()])
    lists.withdraw(shared)
    lists.withdraw(posted)
    lists.discard(list(posted))
    assert look_up(lists, np.concatenate(list(posted.values()))) == []
    url = request.getfixturevalue(request.node.callspec.params["lists"])
    with connect(url) as client:
        left = {key.rsplit(b":", 1)[1] for key in client.scan_iter(f"{prefix}*", count=10_000)}
    assert left <= {b"pb", b"pn", b"pv"}


def test_a_table_whose_worker_died_before_it_grew_is_grown_by_the_next_over_a_doubling_too(
    redis_url: str, prefix: str
) -> None:
    dice = np.random.default_rng(7)
    posted = {number: np.unique(dice.integers(0, 2**32, 16, dtype=np.uint32)) for number in range(1, 301)}
    with connect(redis_url) as client:
        store, base = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME), f"{prefix}{{0}}"
        store.post([posting(n, b"s", of, fresh=True) for n, of in posted.items()])
        for needed in (2 * FIRST - 8, 2 * FIRST + 8):
            while int(client.get(f"{base}:pb") or FIRST) < needed:
                client.set(f"{base}:pn", needed * LOAD)  # as many entries as ask for so many buckets
                RedisLists(Calls(client), prefix, hash_tags(1), SCHEME).propose([])
        made = int(client.get(f"{base}:pb") or 0)
        assert made == 2 * FIRST + 8
        after = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME)
        assert all(look_up(after, of[:1]) == [number] for number, of in posted.items())
        assert look_up(after, np.concatenate(list(posted.values()))) == sorted(posted)


@pytest.mark.parametrize("batch", [5000, 250], ids=["far behind", "a little behind"])
def test_a_table_that_lags_behind_grows_and_every_entry_lies_where_it_belongs(
    redis_url: str, prefix: str, batch: int
) -> None:
    dice = np.random.default_rng(6)
    posted = {number: np.unique(dice.integers(0, 2**32, 16, dtype=np.uint32)) for number in range(1, 5001)}
    with connect(redis_url) as client:
        store, base = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME), f"{prefix}{{0}}"
        for start in range(1, 5001, batch):
            store.propose([posting(n, b"s", posted[n], fresh=True) for n in range(start, start + batch)])
        made = int(client.get(f"{base}:pb") or 0)
        assert FIRST < 5000 * 16 // LOAD - LAG <= made <= 5000 * 16 // LOAD + 1
        if batch == 5000:
            assert made - FIRST > 2 * SPLITS
        calls = int(client.get(f"{base}:pv") or 0) - 1  # the first opened the table
        assert made - FIRST <= calls * SPLITS, "a call splits no more, however much was posted at once"
        listed = {
            (int(key.rsplit(b":", 1)[1]), upper, number)
            for key in client.scan_iter(f"{base}:p:*", count=10_000)
            for upper, number in ENTRY.iter_unpack(client.get(key) or b"")
        }
        keys_of = ((key, number) for number, keys in posted.items() for key in keys.tolist())
        assert listed == {(bucket_of(key, made), (key >> 8).to_bytes(3, "little"), number) for key, number in keys_of}
        store.withdraw({number: keys for number, keys in posted.items() if number > 9})
        assert int(client.get(f"{base}:pb") or 0) < made
        assert look_up(store, np.concatenate(list(posted.values()))) == list(range(1, 10))
        left = [(number, key.tobytes()) for number in range(1, 10) for key in posted[number]]
        assert store.look_up([key for _, key in left])[0] == [[number] for number, _ in left]


def test_what_is_withdrawn_from_a_bucket_leaves_the_others_there_whole(redis_url: str, prefix: str) -> None:
    """The oldest stays; a quarter of the others goes, whose places are then cleared."""
    of_one_bucket = {number: np.array([number << 16], np.uint32) for number in range(1, 9)}
    with connect(redis_url) as client:
        store = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME)
        store.propose([posting(number, b"s", keys, fresh=True) for number, keys in of_one_bucket.items()])
        store.withdraw({number: of_one_bucket[number] for number in (2, 3)})
        assert client.strlen(f"{prefix}{{0}}:p:0") == 6 * ENTRY.size
        assert {n: look_up(store, keys) for n, keys in of_one_bucket.items()} == {
            n: [] if n in (2, 3) else [n] for n in of_one_bucket
        }


def test_a_sketch_that_is_stored_anew_or_discarded_leaves_its_neighbours(lists: RedisLists) -> None:
    stored = {number: b"sketch %d" % number for number in range(1, 6)}
    none = keys([])
    lists.propose([posting(number, one, none, fresh=True) for number, one in stored.items()])
    lists.propose([posting(2, b"another", none), posting(4, stored[4], none)])
    lists.discard([3])
    assert lists.sketches(stored) == stored | {2: b"another", 3: b""}


def test_a_common_list_keeps_the_latest_and_is_forgotten_when_empty(lists: RedisLists) -> None:
    one = keys([1])
    for number in range(1, 20):
        lists.propose([posting(number, b"s", one)])
    assert look_up(lists, one) == [17, 18, 19]
    (found,), sketches, common = lists.propose([posting(20, b"t", one)])
    assert common == [1]
    assert sorted(found) == [15, 19]  # the last, and one `bound` back
    assert sketches == {15: b"s", 19: b"s"}
    lists.withdraw({19: one})
    assert look_up(lists, one) == [17, 18, 20]
    lists.withdraw(dict.fromkeys(range(1, 21), one))
    assert look_up(lists, one) == []
    (found,), *_ = lists.propose([posting(21, b"t", one)])
    assert found == []
