"""``clusterd policy remove``: which policies stay, and who does what is left to do."""

from __future__ import annotations

from contextlib import closing

import pytest
from clusterd.services import Services, process_pending, publish_sketches
from clusterd_consumer.redis_scripts import Calls
from clusterd_crawler.page import sketch_plain

from clusterd import health
from tests.clusterd.command_line import Typed


def names(typed: Typed) -> list[str]:
    return [one["policy"] for one in typed("policy", "list")[1]]


def test_a_policy_that_the_settings_name_stays(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next daemon would only build it again."""
    monkeypatch.setenv("CLUSTERD_POLICIES", '{"near": {"resemblance": 0.9}, "mine": {"resemblance": 0.4}}')
    status, lines, err = typed("policy", "remove", "mine")
    assert (status, lines) == (2, [])
    assert err == "clusterd: policy remove mine: CLUSTERD_POLICIES names it, take it out there first\n"
    assert names(typed) == ["near", "mine"]
    monkeypatch.delenv("CLUSTERD_POLICIES")
    assert typed("policy", "remove", "mine")[0] == 0
    assert names(typed) == ["near"]


def test_the_only_policy_stays(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERD_POLICIES", '{"mine": {"resemblance": 0.4}}')
    assert names(typed) == ["mine"]
    monkeypatch.delenv("CLUSTERD_POLICIES")
    status, lines, err = typed("policy", "remove", "mine")
    assert (status, lines) == (2, [])
    assert err == "clusterd: policy remove mine: it is the only one, add another first (clusterd policy add)\n"
    assert names(typed) == ["mine"]


def test_where_a_daemon_works_it_does_what_is_left(typed: Typed, services: Services, prefix: str) -> None:
    publish_sketches(services, [sketch_plain("http://h.example/", "a page", fetched_at=1)])
    process_pending(services)
    with closing(Calls(services.redis)) as calls:
        health.beat(calls, prefix, health.Report())
    status, _, err = typed("policy", "add", "mine", "--resemblance", "0.4")
    assert (status, err) == (0, "the daemon builds its clusters; clusterd status tells when they have settled\n")
    [told] = typed("status")[1]
    assert (told["settling"], told["daemons"]) == (1, 1)
    status, _, err = typed("policy", "remove", "mine")
    assert (status, err) == (0, "the daemon frees what they took; clusterd status tells when all has settled\n")
