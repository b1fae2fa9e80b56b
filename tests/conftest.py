"""Services that tests share. Every test uses its own key prefix, topic and group; nothing is flushed globally."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.services.redis_server import redis_cluster, redis_server


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Redis, one for the test session; ``CLUSTERD_TEST_REDIS`` names one that runs already."""
    given = os.environ.get("CLUSTERD_TEST_REDIS")
    if given:
        yield given
        return
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Redis Cluster of three nodes, one for the test session."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def prefix() -> str:
    """Return a key prefix of this test's own."""
    return f"t{uuid.uuid4().hex[:10]}:"
