"""Upkeep: what takes long gives way to what else is due."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from clusterd.clusters.redis import retention
from clusterd.config import Config
from clusterd.health import Report
from clusterd.services import open_services
from clusterd.upkeep import Upkeep

from tests.flow.daemons import made_up_crawl


def test_a_long_round_of_retention_gives_way_to_settling_and_goes_on(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one over a million versions held up settling and learning for half a minute."""
    monkeypatch.setattr("clusterd.upkeep.RETENTION_SECONDS", 0.0)
    monkeypatch.setattr(retention, "CHUNK", 10)
    first = made_up_crawl(60, seed=20)
    second = [replace(now, url=before.url, fetched_at=before.fetched_at + 1) for before, now in pairwise(first)]
    with open_services(Config(redis=redis_url, redis_prefix=prefix, retention=1.0)) as services:
        services.index.apply([*first, *second])
        held = [services.index.counts()["versions"]]
        documents = services.index.counts()["documents"]
        assert held[0] - documents > 30
        upkeep, settled = Upkeep(services, Report()), []
        settle = services.index.settle
        monkeypatch.setattr(services.index, "settle", lambda *given: settled.append(None) or settle(*given))
        while held[-1] > documents and len(held) < 100:
            upkeep.round(services)
            held.append(services.index.counts()["versions"])
        assert held[-1] == documents
        assert len(settled) == len(held) - 1 > 3, "each of several rounds settles, too"
