"""The slots of shards: spread over the nodes of a cluster, whatever their number."""

from __future__ import annotations

from collections import Counter

import pytest
from clusterd_consumer.hash_tags import HOME, hash_tags
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot


@pytest.mark.parametrize("nodes", range(1, 17))
def test_no_node_of_an_even_cluster_holds_more_than_its_share_and_one(nodes: int) -> None:
    held = Counter(key_slot(tag.encode()) * nodes // REDIS_CLUSTER_HASH_SLOTS for tag in hash_tags(16))
    assert sum(held.values()) == 16
    assert max(held.values()) <= -(-16 // nodes) + (16 % nodes > 0)
    assert len(held) >= min(nodes, 12)


@pytest.mark.parametrize("shards", [1, 2, 3, 16, 64])
def test_every_shard_has_a_tag_of_its_own_and_the_first_is_home(shards: int) -> None:
    tags = hash_tags(shards)
    assert tags[0] == HOME
    assert len(set(tags)) == shards


def test_the_tags_of_stores_stay_the_same() -> None:
    """A store is found by them."""
    assert " ".join(hash_tags(16)) == "0 1 2 3 18 19 48 49 58 59 60 61 62 63 102 103"
