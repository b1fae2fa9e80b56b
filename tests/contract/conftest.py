"""The index under test: in memory, on a Redis, and on a Redis Cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd.clusters.opening import open_index
from clusterd_consumer.postings.scheme import DEFAULT, Scheme

from tests.contract.index_world import Opened


@pytest.fixture(params=["memory", "redis", "cluster"])
def opened(request: pytest.FixtureRequest, prefix: str) -> Iterator[Opened]:
    """Return a function that opens the index under test, the same one each time where it is a store."""
    made: list[Index] = []
    url = {"memory": None, "redis": "redis_url", "cluster": "redis_cluster_url"}[request.param]
    given = request.getfixturevalue(url) if url else None

    def opening(policies: tuple[Policy, ...] = DEFAULT_POLICIES, scheme: Scheme = DEFAULT) -> Index:
        made.append(open_index(given, prefix, policies, scheme))
        return made[-1]

    yield opening
    for index in made:
        index.close()


@pytest.fixture
def index(opened: Opened) -> Index:
    return opened()
