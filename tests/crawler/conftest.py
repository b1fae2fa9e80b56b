"""What tests that really crawl share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.crawler.site import Site, running


@pytest.fixture
def site() -> Iterator[Site]:
    with running() as made:
        yield made


@pytest.fixture
def settings(redis_url: str, prefix: str) -> dict[str, Any]:
    """Return settings of a crawl on the shared Redis that fetches nothing for the sake of watching rules."""
    return {"CLUSTERD_REDIS": redis_url, "CLUSTERD_REDIS_PREFIX": prefix, "CLUSTERD_EXPLORE": 0}
