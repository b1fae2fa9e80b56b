"""Buckets: compiled and plain code write and read the same bytes; what is odd is mended; a split keeps what belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from clusterd_consumer.core.compiled import BUCKETS as CORE
from clusterd_consumer.hash_tags import hash_tags
from clusterd_consumer.postings import buckets
from clusterd_consumer.postings.redis_lists import LOAD, SWAP, RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import Client
from clusterd_consumer.redis_scripts import Calls, Request
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.consumer.posted_lists import look_up, posting

SCHEME = Scheme(bound=5, latest=2)
KEYS = st.integers(0, 2**32 - 1) | st.integers(0, 3).map(lambda n: n * 2**20 + 7)
DOCUMENTS = st.lists(st.tuples(st.integers(1, 9), st.lists(KEYS, max_size=6, unique=True)), max_size=6)


def packed(keys: list[int]) -> bytes:
    return np.array(keys, "<u4").tobytes()


def reply(strings: Sequence[bytes | None]) -> bytes:
    """Return strings as a server answers them."""
    parts = [b"$-1\r\n" if one is None else b"$%d\r\n%s\r\n" % (len(one), one) for one in strings]
    return b"*%d\r\n%s" % (len(parts), b"".join(parts))


def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "CORE", None)


@pytest.mark.core
@settings(max_examples=150, deadline=None)
@given(
    DOCUMENTS,
    DOCUMENTS,
    st.integers(256, 2000),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, buckets.ENTRY.size - 1),
)
def test_compiled_and_plain_agree(
    written: list[tuple[int, list[int]]],
    asked: list[tuple[int, list[int]]],
    known: int,
    shards: int,
    bound: int,
    looking: bool,
    half: int,
) -> None:
    assert CORE is not None
    stored: dict[int, bytes] = {}
    for number, keys in [*written, *asked]:
        for key in keys:
            bucket = buckets.bucket_of(key, known)
            stored[bucket] = stored.get(bucket, b"") + buckets.ENTRY.pack(key.to_bytes(4, "little")[1:], number)
    documents = [(number, packed(keys)) for number, keys in asked]
    arguments = b"x:{0}:p:", b"x:{0}:pb", documents, known, 0, shards
    with pytest.MonkeyPatch.context() as patch:
        made = buckets.plan(*arguments)
        steps = list(buckets.STEP.iter_unpack(made[3]))
        read = [stored.get(bucket) for bucket in dict.fromkeys(step[0] for step in steps)]
        read = [one and one + one[:half] for one in read]  # what is no whole entry is passed over
        answer = reply([*read, b"%d" % (known + 40) if known > 256 else None])
        found = buckets.find(made[3], len(documents), bound, looking, answer)
        struck = buckets.strikes(made[3], answer)
        plainly(patch)
        assert buckets.plan(*arguments) == made
        assert buckets.find(made[3], len(documents), bound, looking, answer) == found
        assert buckets.strikes(made[3], answer) == struck


@pytest.mark.core
@given(
    st.dictionaries(st.integers(0, 4), st.lists(st.tuples(st.integers(0, 11), st.binary(max_size=20)), max_size=14)),
    st.sets(st.integers(0, 59)),
)
def test_sketches_are_picked_from_their_blocks(stored: dict[int, list[tuple[int, bytes]]], wanted: set[int]) -> None:
    numbers = sorted(wanted)
    blocks = {
        block: b"".join(buckets.SKETCH.pack(place | len(one) << 5) + one for place, one in entries)
        for block, entries in stored.items()
    }
    answer = reply([blocks.get(block) for block in dict.fromkeys(number // 12 for number in numbers)])
    sketches = {12 * block + place: one for block, entries in stored.items() for place, one in entries}  # the last
    with pytest.MonkeyPatch.context() as patch:
        for plain in (False, True):
            if plain:
                plainly(patch)
            assert buckets.pick(packed(numbers), 12, answer) == [sketches.get(number, b"") for number in numbers]


@pytest.mark.core
@pytest.mark.parametrize("known", [256, 2**15 + 1, 2**20, 2**23 + 1])
def test_steps_are_in_order_however_many_buckets_there_are(known: int) -> None:
    # They are sorted by a byte of the bucket at a time: an odd number of passes leaves them elsewhere than an even one.
    keys = np.random.default_rng(5).integers(0, 2**32, (9, 40), np.uint32)
    arguments = b"x:p:", b"x:pb", [(number, row.tobytes()) for number, row in enumerate(keys, 1)], known, 0, 1
    made = buckets.plan(*arguments)
    with pytest.MonkeyPatch.context() as patch:
        plainly(patch)
        assert buckets.plan(*arguments) == made


@pytest.mark.core
def test_what_is_no_sketch_is_put_into_no_block() -> None:
    with pytest.raises(TypeError):
        buckets.fill([(0, b"a sketch"), (1, None)], 12)  # type: ignore[list-item]


@pytest.mark.core
@given(st.dictionaries(st.integers(0, 70), st.binary(max_size=9)))
def test_blocks_are_filled_with_what_is_picked_from_them(sketches: dict[int, bytes]) -> None:
    given_ = sorted(sketches.items())
    filled = buckets.fill(given_, 12)
    with pytest.MonkeyPatch.context() as patch:
        plainly(patch)
        assert buckets.fill(given_, 12) == filled
    assert [block for block, *_ in filled] == sorted({number // 12 for number in sketches})
    assert sum(count for _, count, _, _ in filled) == len(sketches)
    assert [block for block, _, full, _ in filled if full] == [n // 12 for n, _ in given_ if n % 12 == 11]
    read = reply([data for _, _, _, data in filled])
    assert buckets.pick(packed([number for number, _ in given_]), 12, read) == [one for _, one in given_]


@pytest.mark.core
@given(st.binary(max_size=60), st.sets(st.integers(0, 99)))
def test_a_block_that_is_none_is_not_misread(noise: bytes, numbers: set[int]) -> None:
    assert CORE is not None
    picked = CORE.pick(packed(sorted(numbers)), 12, reply([noise] * 9))
    assert all(one in noise for one in picked)


@pytest.mark.core
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"*1\r\n",
        b"*2\r\n$3\r\nabc\r\n",
        b"*9999999999\r\n",
        b"+OK\r\n",
        b"*1\r\n:5\r\n",
        b"*1\r\n$5\r\nabc\r\n",
        b"*-1\r\n",
    ],
)
def test_what_is_no_list_of_strings_is_refused(answer: bytes) -> None:
    assert CORE is not None
    for ask in (
        lambda: CORE.pick(packed([1]), 12, answer),
        lambda: CORE.find(b"", answer, 1, 5, False),
        lambda: CORE.strikes(b"", answer),
    ):
        with pytest.raises(ValueError, match="not a list of strings"):
            ask()


def test_buckets_are_split_in_the_order_in_which_they_were_made() -> None:
    keys = range(0, 2**20, 37)
    for known in (256, 257, 511, 512, 700, 4000):
        for key in keys:
            before, after = buckets.bucket_of(key, known), buckets.bucket_of(key, known + 1)
            assert before == key % 2 ** (known.bit_length() - 1) or before == key % 2 ** known.bit_length()
            assert after in (before, before + 2 ** (known.bit_length() - 1))


ENTRIES = st.lists(st.tuples(st.integers(0, 2**24 - 1), st.integers(0, 9)), max_size=40)


@pytest.mark.core
@settings(max_examples=100, deadline=None)
@given(ENTRIES, st.integers(256, 3000), st.data())
def test_halves_hold_what_belongs_compiled_and_plain(
    entries: list[tuple[int, int]], known: int, data: st.DataObject
) -> None:
    depth = known.bit_length() - 1
    bucket = data.draw(st.sampled_from(buckets.sources(known, 2 << depth)))
    keys = [(tag << 8 | bucket & 255, number) for tag, number in entries]
    keys += [(tag << depth & 0xFFFFFFFF | bucket, number) for tag, number in entries]
    value = b"".join(buckets.ENTRY.pack(key.to_bytes(4, "little")[1:], number) for key, number in keys)
    low, high, dropped = buckets.split(value, bucket, known)
    assert buckets.split(value + value[:6], bucket, known) == (low, high, dropped)
    with pytest.MonkeyPatch.context() as patch:
        plainly(patch)
        assert buckets.split(value + value[:6], bucket, known) == (low, high, dropped)
    after = [buckets.bucket_of(key, 2 << depth) for key, number in keys if number]
    assert len(low) == after.count(bucket) * buckets.ENTRY.size
    assert len(high) == after.count(bucket + (1 << depth)) * buckets.ENTRY.size
    assert len(low) + len(high) + dropped * buckets.ENTRY.size == len(after) * buckets.ENTRY.size


@pytest.mark.core
@pytest.mark.parametrize("answer", [[None, b"0"], [None, b"1"], [b"256"], [None, None, b"256"], []])
def test_a_number_of_buckets_that_cannot_be_is_refused(answer: list[bytes | None]) -> None:
    assert CORE is not None
    with pytest.raises(ValueError, match="two buckets"):
        CORE.find(buckets.STEP.pack(7, 7, 1, 0), reply(answer), 1, 5, False)
    with pytest.raises(ValueError, match="of no document"):
        CORE.find(buckets.STEP.pack(7, 7, 1, 0), reply([None, b"256"]), 0, 5, False)


def test_the_buckets_that_are_split_are_those_that_lie_elsewhere_afterwards() -> None:
    for known, wanted in ((256, 300), (300, 512), (300, 900), (700, 701), (4000, 5000)):
        top = min(wanted, 1 << known.bit_length())
        moved = {
            buckets.bucket_of(key, known)
            for key in range(0, 2**20, 37)
            if buckets.bucket_of(key, known) != buckets.bucket_of(key, top)
        }
        assert set(buckets.sources(known, wanted)) == moved
        assert len(buckets.sources(known, wanted)) == top - known


def test_a_client_that_knows_an_old_number_of_buckets_posts_and_finds_all_the_same(client: Client, prefix: str) -> None:
    dice = np.random.default_rng(3)
    keys = {number: np.unique(dice.integers(0, 2**32, 9, dtype=np.uint32)) for number in range(1, 6001)}
    ahead, behind = (RedisLists(Calls(client), prefix, hash_tags(1), SCHEME) for _ in range(2))
    behind.propose([posting(1, b"s", keys[1])])
    for start in range(2, 6000, 300):
        ahead.post([posting(n, b"s", keys[n]) for n in range(start, min(start + 300, 6000))])
    ahead.propose([])
    late = [np.unique(np.concatenate([keys[17], keys[6000]])), keys[18], keys[19]]
    found, sketches, _ = behind.propose([posting(n, b"t", of, fresh=True) for n, of in enumerate(late, 6000)])
    assert found == [[17], [18], [19]]
    assert sketches == {17: b"s", 18: b"s", 19: b"s"}
    assert look_up(ahead, keys[6000]) == [6000]
    assert look_up(behind, keys[4711]) == [4711]
    entries = int(client.get(f"{prefix}{{0}}:pn") or 0)
    stored = [client.get(key) or b"" for key in client.scan_iter(f"{prefix}{{0}}:p:*", count=10_000)]
    assert entries == sum(number > 0 for one in stored for _, number in buckets.ENTRY.iter_unpack(one)) == 9 * 6003
    assert entries / len(stored) < 1.5 * LOAD


@pytest.mark.parametrize("meanwhile", ["nothing", "appended", "withdrawn", "split"])
def test_a_bucket_that_changed_since_it_was_read_is_not_swapped(client: Client, prefix: str, meanwhile: str) -> None:
    calls = Calls(client)
    lists = RedisLists(calls, prefix, hash_tags(1), SCHEME)
    keys = np.array([n << 16 for n in range(1, 9)], np.uint32)  # all lie in the first bucket, which is split first
    lists.propose([posting(1, b"s", keys)])
    base, bucket = f"{prefix}{{0}}", f"{prefix}{{0}}:p:0"
    before = client.get(bucket) or b""
    version = client.get(f"{base}:pv") or 0
    halves = (0, len(before), *buckets.split(before, 0, 256))
    if meanwhile == "appended":
        lists.propose([posting(2, b"t", keys[:1], fresh=True)])
        assert client.get(f"{base}:pv") == version
    elif meanwhile == "withdrawn":
        lists.withdraw({1: keys[:1]})
    elif meanwhile == "split":
        calls.run(SWAP, base, [256, version, *halves])
    swapped = calls.run(SWAP, base, [256, version, *halves])
    assert swapped == (257 if meanwhile in ("nothing", "split") else 256)
    assert look_up(lists, keys[1:]) == [1]
    assert look_up(lists, keys[:1]) == {"appended": [1, 2], "withdrawn": []}.get(meanwhile, [1])


class Meanwhile(Calls):
    """Calls that let something happen before documents are withdrawn."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.act: Callable[[], None] = lambda: None

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        if any(request.name == "withdraw" for request in requests):
            self.act()
        return super().ask(requests)


@pytest.mark.parametrize("meanwhile", ["nothing", "appended", "withdrawn", "mended", "common", "grown"])
def test_who_is_withdrawn_is_found_wherever_the_entries_have_gone(client: Client, prefix: str, meanwhile: str) -> None:
    calls = Meanwhile(client)
    lists, other = (
        RedisLists(calls, prefix, hash_tags(1), SCHEME),
        RedisLists(Calls(client), prefix, hash_tags(1), SCHEME),
    )
    every = {n: np.array(sorted([n << 16, 5, 6]), np.uint32) for n in range(1, 4)}
    lists.propose([posting(n, b"s", keys, fresh=True) for n, keys in every.items()])
    many = {n: np.array([n << 8 | 1], np.uint32) for n in range(10, 10 + 300 * LOAD)}

    def act() -> None:
        calls.act = lambda: None
        if meanwhile == "appended":
            other.propose([posting(7, b"t", every[1], fresh=True)])
        elif meanwhile == "withdrawn":
            other.withdraw({1: every[1]})
        elif meanwhile == "mended":
            other.propose([posting(3, b"s", every[3], fresh=True)])  # as after a crash: appended again
        elif meanwhile == "common":
            other.propose([posting(n, b"t", every[1][:1], fresh=True) for n in range(4, 9)])
        elif meanwhile == "grown":
            other.propose([posting(n, b"t", keys, fresh=True) for n, keys in many.items()])

    calls.act = act
    lists.withdraw({n: every[n] for n in (1, 2)})
    left = {"appended": [3, 7], "common": [3, 6, 7, 8]}.get(meanwhile, [3])
    assert look_up(lists, np.array([1 << 16, 2 << 16, 3 << 16, 5, 6], np.uint32)) == left
    base = f"{prefix}{{0}}"
    stored = {key: client.get(key) or b"" for key in client.scan_iter(f"{base}:p:*", count=10_000)}
    listed = [(key, head, n) for key, one in stored.items() for head, n in buckets.ENTRY.iter_unpack(one) if n]
    assert int(client.get(f"{base}:pn") or 0) == len(listed) == len(set(listed))
    assert not {1, 2} & {n for _, _, n in listed}


def test_what_is_posted_again_is_there_once(client: Client, prefix: str) -> None:
    lists = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME)
    keys = np.array([5, 6, 7], np.uint32)
    for fresh in (True, False, False):
        lists.propose([posting(1, b"first", keys, fresh), posting(2, b"other", keys[:1], fresh)])
    assert look_up(lists, keys) == [1, 2]
    assert lists.sketches([1, 2]) == {1: b"first", 2: b"other"}
    assert int(client.get(f"{prefix}{{0}}:pn") or 0) == 4
    assert client.strlen(f"{prefix}{{0}}:k:0") == 2 * (buckets.SKETCH.size + 5)


class Noted(Calls):
    """Calls that note what is asked."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.asked: list[str] = []

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        self.asked += [request.name for request in requests]
        return super().ask(requests)


def test_what_lies_in_its_place_already_is_read_and_not_written(client: Client, prefix: str) -> None:
    calls = Noted(client)
    lists = RedisLists(calls, prefix, hash_tags(1), SCHEME)
    keys = np.array([5, 6, 7], np.uint32)
    lists.propose([posting(1, b"first", keys, fresh=True), posting(2, b"other", keys[:1], fresh=True)])
    kept = {key: client.get(key) for key in client.scan_iter(f"{prefix}*", count=10_000)}
    calls.asked.clear()
    assert lists.propose([posting(1, b"first", keys), posting(2, b"other", keys[:1])])[0] == [[2], [1]]
    assert calls.asked == ["keep", "look", "MGET"]
    assert {key: client.get(key) for key in client.scan_iter(f"{prefix}*", count=10_000)} == kept
    assert lists.propose([posting(1, b"first", keys), posting(3, b"third", keys[1:], fresh=True)])[0] == [[2, 3], [1]]


@pytest.mark.parametrize("fresh", [True, False], ids=["appended", "posted again"])
def test_pages_of_a_batch_that_fill_a_list_hold_together_with_those_before(
    client: Client, prefix: str, fresh: bool
) -> None:
    lists = RedisLists(Calls(client), prefix, hash_tags(1), SCHEME)
    key = np.array([9], np.uint32)
    together = {1: {1}}
    for start in range(1, 41, 8):
        found, *_ = lists.propose([posting(n, b"s", key, fresh) for n in range(start, start + 8)])
        for number, others in zip(range(start, start + 8), found, strict=True):
            joined = set.union({number}, *(together.get(other, {other}) for other in others))
            together.update(dict.fromkeys(joined, joined))
    assert together[40] == set(range(1, 41))
    assert found[-1] == [35, 39]  # the last, and one `bound` back
    assert look_up(lists, key) == [38, 39, 40]
    assert int(client.get(f"{prefix}{{0}}:pn") or 0) == 1, "of a common list a bucket has one entry"


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["as-read", "changed"])
def test_who_stands_in_a_list_twice_is_withdrawn_twice(
    client: Client, prefix: str, plain: bool, meanwhile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two had a document in hand; one of them died when it had appended, and had not looked yet."""
    if plain:
        plainly(monkeypatch)
    calls = Meanwhile(client)
    lists = RedisLists(calls, prefix, hash_tags(1), SCHEME)
    keys = np.array([5, 6, 7], np.uint32)
    lists.propose([posting(2, b"t", keys)])
    lists.propose([posting(1, b"s", keys, fresh=False)])
    dying = calls.ask([one.appends for one in lists._plans([(1, keys.tobytes())]) if one.appends])
    assert dying == [9]  # entries
    if meanwhile:
        calls.act = lambda: RedisLists(Calls(client), prefix, hash_tags(1), SCHEME).withdraw({2: keys[:1]})
    lists.withdraw({1: keys})
    stored = [client.get(key) or b"" for key in client.scan_iter(f"{prefix}{{0}}:p:*", count=10_000)]
    left = [number for one in stored for _, number in buckets.ENTRY.iter_unpack(one) if number]
    assert left == [2, 2] if meanwhile else left == [2, 2, 2]
    assert int(client.get(f"{prefix}{{0}}:pn") or 0) == len(left)
