"""Policies are removed: their clusters go, others stay, their places are taken again, whatever happens in between."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES, IDENTICAL, NEAR, Policy
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.redis_connection import connect
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import Sketch

from tests.contract.index_scheduler import Crash, ScheduledCalls, Scheduler
from tests.contract.index_world import Opened, World, expected, page, partition, settled
from tests.contract.test_index_homes import SHARDS, spread
from tests.contract.test_index_parting import Acting

LOOSE = Policy("loose", resemblance=0.2)
#: What homes keep of graded policies and of what waits (lua/forest.lua, lua/spans.lua, lua/settling.lua).
HELD = ("r:*", "a:*", "parts", "spans", "due", "tasks", "clear", "mv", "rl", "sp")


def held(redis_url: str, prefix: str) -> set[bytes]:
    """Return the keys under which a store keeps something of graded policies."""
    with connect(redis_url) as client:
        return {key for kind in HELD for key in client.scan_iter(f"{prefix}*}}:{kind}", count=10_000)}


def test_a_policy_that_is_removed_leaves_the_others_as_they_were(opened: Opened) -> None:
    crawl = World(7).crawl(90)
    index = opened()
    index.apply(crawl[:60])
    index.add_policy(LOOSE)
    settled(index)
    index.remove_policy("related")
    index.remove_policy("related")
    left = [policy for policy in (*DEFAULT_POLICIES, LOOSE) if policy.name != "related"]
    assert index.policies() == left
    index.apply(crawl[60:])
    settled(index)
    assert partition(index, left) == expected(crawl, left)
    assert {one.policy for one in index.splits()} <= {policy.name for policy in left}
    with pytest.raises(WrongInput, match="related"):
        list(index.clusters("related"))
    index.add_policy(Policy("related", containment=0.4))
    settled(index)
    assert partition(index, index.policies()) == expected(crawl, index.policies())


def test_a_cluster_falls_apart_also_after_another_policy_was_removed(opened: Opened) -> None:
    index = opened((*DEFAULT_POLICIES, LOOSE))
    chain = [page(f"http://h.example/{n}", 1, range(25 * n, 25 * n + 100)) for n in range(9)]
    index.apply(chain)
    index.remove_policy(LOOSE.name)
    settled(index)
    change = page(chain[4].url, 2, range(9000, 9100))
    index.apply([change])
    settled(index)
    assert partition(index) == expected([*chain, change])


def test_what_was_too_long_to_be_packed_is_packed_again(redis_url: str, prefix: str) -> None:
    """Also of contents that stood alone under the policies that are removed."""
    index = RedisIndex(redis_url, prefix, [Policy(f"r{n}", resemblance=0.3 if n < 5 else 0.99) for n in range(7)])
    index.apply([page(f"http://h.example/{n}", 1, [*range(100), *range(1000 * n, 1000 * n + 50)]) for n in range(9)])

    def encodings() -> set[bytes]:
        with connect(redis_url) as client:
            return {client.object("encoding", key) for key in client.scan_iter(f"{prefix}*:r:*", count=10_000)}

    assert encodings() == {b"hashtable"}
    index.remove_policy("r5")
    index.remove_policy("r6")
    settled(index)
    assert encodings() == {b"listpack"}
    index.close()


def test_the_only_policy_is_removed_which_has_no_place(opened: Opened) -> None:
    index = opened((IDENTICAL,))
    index.remove_policy(IDENTICAL.name)
    assert index.policies() == []


def test_the_first_policy_is_removed_and_hits_are_told_by_the_next(opened: Opened) -> None:
    index = opened()
    pages = [page(f"http://h.example/{n}", 1, [*range(100), *range(1000 * n, 1000 * n + 5)]) for n in range(2)]
    index.apply(pages)
    settled(index)
    index.remove_policy(NEAR.name)
    settled(index)
    known, found = index.sketch(pages[0].url), index.cluster_of(pages[0].url, "related")
    assert known is not None
    assert found is not None
    assert [hit.cluster for hit in index.similar(known, 1)] == [found.cluster] * 2


def test_a_place_is_taken_again_when_nothing_is_left_there(redis_url: str, prefix: str) -> None:
    index = RedisIndex(
        redis_url, prefix, [Policy(f"r{number}", resemblance=0.3 + 0.01 * number) for number in range(16)]
    )
    crawl = World(7).crawl(60)
    index.apply(crawl)
    settled(index)
    index.remove_policy("r7")
    with pytest.raises(WrongInput, match="one policy too many"):
        index.add_policy(LOOSE)
    settled(index)
    index.add_policy(LOOSE)
    settled(index)
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    index.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("clearing", [False, True])
def test_a_store_that_is_set_back_has_nothing_left_of_who_had_the_place(
    redis_url: str, prefix: str, homes: int, clearing: bool
) -> None:
    """A policy was removed, another has its place; the store comes back with the first, or while that was cleared."""
    crawl = spread(World(7).crawl(120))
    index = RedisIndex(redis_url, prefix, [*DEFAULT_POLICIES, LOOSE], shards=homes)
    index.apply(crawl[:80])
    settled(index)
    if clearing:
        index.remove_policy(LOOSE.name)
    with connect(redis_url) as client:
        kept = {key: client.dump(key) for key in client.scan_iter(f"{prefix}*", count=10_000)}
        index.remove_policy(LOOSE.name)
        settled(index)
        policies = [*DEFAULT_POLICIES, Policy("tight", resemblance=0.95)]
        index.add_policy(policies[-1])
        settled(index)
        client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
        for key, value in kept.items():
            client.restore(key, 0, value)
    index.apply(crawl[80:])
    settled(index)
    assert index.policies() == policies
    assert partition(index, policies) == expected(crawl, policies)
    index.close()


def test_what_is_left_to_clear_is_counted_and_grows_less_step_by_step(redis_url: str, prefix: str) -> None:
    """Who waits for a daemon gives up where `settling` stands still, and of a million pages clearing takes minutes."""
    index = RedisIndex(redis_url, prefix, [*DEFAULT_POLICIES, LOOSE])
    index.apply([page(f"http://h.example/{n}", 1, range(20 * n, 20 * n + 15)) for n in range(1200)])
    settled(index)
    index.remove_policy(LOOSE.name)
    left = [index.counts()["settling"]]
    while index.settle(1):
        left.append(index.counts()["settling"])
    assert left == [*range(10, 0, -1)]
    index.close()


def test_a_policy_that_is_removed_is_built_no_further(opened: Opened) -> None:
    index = opened()
    index.apply([page(f"http://h.example/{n}", 1, range(20 * n, 20 * n + 15)) for n in range(2600)])
    settled(index)
    index.add_policy(LOOSE)
    left = index.settle(1)
    index.remove_policy(LOOSE.name)
    assert index.counts()["settling"] < left  # else it would be more: what is built is to be cleared
    settled(index)


@pytest.mark.parametrize("removed", ["first", "second"])
def test_a_policy_is_built_to_its_end_though_another_one_that_was_built_with_it_is_removed(
    opened: Opened, removed: str
) -> None:
    index = opened()
    crawl = World(5).crawl(300)
    index.apply(crawl)
    settled(index)
    index.add_policy(Policy("first", resemblance=0.3))
    index.settle(1)
    index.add_policy(Policy("second", containment=0.4))
    index.settle(1)
    index.remove_policy(removed)
    settled(index)
    assert partition(index, index.policies()) == expected(crawl, index.policies())


def test_a_side_that_moved_under_a_removed_policy_as_the_store_was_kept_moves_no_more(
    redis_url: str, prefix: str
) -> None:
    """It would be one cluster under the policy that has the place by now, by which its pages are not alike."""
    urls = [f"http://h.example/{n}" for n in range(9)]
    crawl = [page(urls[n], 1, range(50 * n, 50 * n + 100)) for n in range(9)]
    kept: dict[bytes, bytes] = {}
    with connect(redis_url) as client:

        def keep() -> None:
            kept.update({key: client.dump(key) for key in client.scan_iter(f"{prefix}*", count=10_000)})

        index = RedisIndex(redis_url, prefix, [LOOSE], calls=lambda own: Acting(own, {"move": keep}))
        index.apply(crawl)
        crawl.append(page(urls[4], 2, range(9000, 9100)))
        index.apply(crawl[-1:])
        settled(index)
        assert f"{prefix}{{0}}:mv".encode() in kept
        policies = [NEAR]
        index.add_policy(Policy("other", resemblance=0.8))
        index.remove_policy(LOOSE.name)
        settled(index)
        index.add_policy(NEAR)
        index.remove_policy("other")
        settled(index)
        client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
        for key, value in kept.items():
            client.restore(key, 0, value)
        client.delete(f"{prefix}{{0}}:lock")
    copies = [page(f"{urls[n]}/copy", 3, range(50 * n, 50 * n + 101)) for n in range(9)]
    index.apply(copies)
    settled(index)
    assert index.policies() == policies
    assert partition(index, policies) == expected([*crawl, *copies], policies)
    index.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_policies_that_were_removed(redis_url: str, prefix: str, seed: int, homes: int) -> None:
    """Two workers add and remove policies between batches of pages; in the end all are removed, and added again."""
    dice = random.Random(seed)
    crawl = spread(World(seed, urls=24, families=4, length=[8, 40, 500][seed]).crawl(90))
    workers = [RedisIndex(redis_url, prefix, shards=homes) for _ in range(2)]
    for at in range(0, len(crawl), 6):
        index = dice.choice(workers)
        index.apply(crawl[at : at + 6])
        known = [policy.name for policy in index.policies() if not policy.identical]
        action = dice.random()
        if action < 0.3:
            index.add_policy(Policy(f"p{at}", **{dice.choice(["resemblance", "containment"]): dice.choice([0.2, 0.6])}))
        elif action < 0.6 and known:
            index.remove_policy(dice.choice(known))
        index.settle(dice.randrange(4))
    for index in workers:
        settled(index)
        assert partition(index, index.policies()) == expected(crawl, index.policies())
    policies = [policy for policy in index.policies() if not policy.identical]
    for policy in policies:
        index.remove_policy(policy.name)
    settled(workers[0])
    assert held(redis_url, prefix) == set()
    for policy in policies:
        index.add_policy(policy)
    settled(workers[0])
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    for index in workers:
        index.close()


def work(scheduler: Scheduler, worker: int, index: RedisIndex, messages: list[Sketch]) -> None:
    """Apply a page and settle a little, add a policy and remove one, by turns; after a crash do that again."""
    for at, message in enumerate(messages):
        done = False
        while not done:
            with suppress(Crash):
                index.apply([message], {str(worker): str(at + 1)}, index.position())
                index.settle(2)
                if at % 3 == 1:
                    index.add_policy(Policy(f"w{worker}n{at}", resemblance=(0.2, 0.7)[at % 2]))
                if at % 3 == 2:
                    index.remove_policy((f"w{1 - worker}n{at - 1}", "related")[worker])
                done = True
    scheduler.leave(worker)


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("seed", range(3))
def test_no_interleaving_brings_a_removed_policy_back(redis_url: str, prefix: str, seed: int, homes: int) -> None:
    scheduler = Scheduler(seed, 2, 0.02)
    scheduler.running = False
    indexes = [
        RedisIndex(redis_url, prefix, shards=homes, calls=lambda client, n=n: ScheduledCalls(client, scheduler, n))
        for n in range(2)
    ]
    scheduler.running = True
    crawl = spread(World(seed, urls=8, families=2, length=[8, 40, 500][seed]).crawl(24))
    threads = [threading.Thread(target=work, args=(scheduler, n, indexes[n], crawl[n::2])) for n in range(2)]
    scheduler.run(threads, redis_url, prefix)
    index = indexes[0]
    settled(index)
    assert "related" not in {policy.name for policy in index.policies()}
    assert partition(index, index.policies()) == expected(crawl, index.policies())
    for policy in index.policies():
        index.remove_policy(policy.name)
    settled(index)
    assert held(redis_url, prefix) == set()
    for index in indexes:
        index.close()


def test_names_of_clusters_over_homes_take_no_room_for_contents(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix, shards=SHARDS)
    for at in range(0, 600, 100):
        index.apply(spread([page(f"http://h.example/{n}", 1, range(50 * n, 50 * n + 50)) for n in range(at, at + 100)]))
        index.apply(spread([page(f"http://g.example/{n}", 1, range(50 * n, 50 * n + 50)) for n in range(at, at + 100)]))
    settled(index)
    with connect(redis_url) as client:
        blocks = [client.get(key) or b"" for key in client.scan_iter(f"{prefix}*}}:n:*", count=10_000)]
    assert all(block.strip(b"\0") for block in blocks)
    index.close()


def test_who_opens_a_store_without_policies_takes_those_that_it_has(redis_url: str, prefix: str) -> None:
    """A question about a store brings no policy back that was removed, nor do those that are set up at first."""
    index = RedisIndex(redis_url, prefix)
    index.remove_policy(NEAR.name)
    index.add_policy(LOOSE)
    policies = index.policies()
    index.close()
    again = RedisIndex(redis_url, prefix)
    assert again.policies() == policies
    again.close()


@pytest.mark.parametrize("homes", [1, SHARDS])
def test_splits_under_other_policies_are_still_told_when_one_is_removed(
    redis_url: str, prefix: str, homes: int
) -> None:
    left, right = range(100), range(1000, 1100)
    urls = [f"http://{name}.example/" for name in ("left", "bridge", "right")]
    index = RedisIndex(redis_url, prefix, shards=homes)
    index.apply([page(url, 1, of) for url, of in zip(urls, (left, [*left, *right], right), strict=True)])
    index.apply([page(urls[1], 2, range(7000, 7100))])
    settled(index)
    told = index.splits()
    assert [split.policy for split in told] == ["related", "contained"]
    index.remove_policy("contained")
    settled(index)
    assert index.splits() == told[:1]
    index.add_policy(Policy("another", containment=0.8))
    assert index.splits() == told[:1]
    index.close()
