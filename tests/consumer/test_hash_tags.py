"""The slots of shards: spread over the nodes of a cluster, and off the node of the home shard."""

from __future__ import annotations

from collections import Counter

import pytest
from clusterd_consumer.hash_tags import HOME, hash_tags, spread_tags
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot


def node_of(tag: str, nodes: int) -> int:
    """Which of so many nodes, which share the slots evenly, holds a tag's slot."""
    return key_slot(tag.encode()) * nodes // REDIS_CLUSTER_HASH_SLOTS


@pytest.mark.parametrize("nodes", range(2, 17))
def test_shards_are_spread_evenly_over_the_nodes_below_the_home_s(nodes: int) -> None:
    held = Counter(node_of(tag, nodes) for tag in hash_tags(16))
    assert sum(held.values()) == 16
    assert max(held.values()) <= 16 / (nodes * 2 / 3) + 1
    assert len(held) >= int(nodes * 2 / 3)
    assert node_of(HOME, nodes) not in held or nodes == 2


@pytest.mark.parametrize("nodes", range(2, 17))
def test_homes_are_spread_evenly_over_all_nodes(nodes: int) -> None:
    tags = spread_tags(16)
    held = Counter(node_of(tag, nodes) for tag in tags)
    assert tags[0] == HOME
    assert len(held) >= min(nodes, 12)
    assert max(held.values()) <= 16 / nodes + 1


@pytest.mark.parametrize("shards", [2, 3, 16, 64])
def test_every_shard_has_a_tag_of_its_own(shards: int) -> None:
    assert len(set(hash_tags(shards)) - {HOME}) == shards
    assert len(set(spread_tags(shards))) == shards


def test_a_store_that_is_not_spread_has_one_slot() -> None:
    assert hash_tags(1) == (HOME,)


def test_the_tags_of_stores_stay_the_same() -> None:
    """A store is found by them."""
    assert " ".join(spread_tags(16)) == "0 1 2 3 18 19 48 49 58 59 60 61 62 63 102 103"
    assert " ".join(hash_tags(16)) == "1 2 3 10 11 12 29 42 50 51 60 61 63 130 133 153"
