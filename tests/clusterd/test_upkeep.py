"""Upkeep: what takes long gives way to what else is due."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from clusterd.clusters.redis import retention
from clusterd.config import Config
from clusterd.health import Report
from clusterd.learning.rulebook.recall import LATE_MS
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.services import Services, open_services, publish_sketches
from clusterd.upkeep import Upkeep, learn, restore_rules, tell_splits
from clusterd_crawler import topics
from clusterd_crawler.clock import now_ms
from clusterd_crawler.errors import Unreachable

from tests.clusterd.made_up_rules import HOST, Log, SidLearner, duplicates, sid_rule, sketch
from tests.contract.index_world import page
from tests.flow.daemons import made_up_crawl
from tests.services.kafka_broker import KafkaBroker


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


def test_a_daemon_that_is_behind_retires_no_rule_before_it_has_read_on(
    services: Services, book: RuleBook, log: Log
) -> None:
    """After a pause of hours a page that watches a rule may be read long before the one of the same key."""
    ago, known = now_ms() - 2 * LATE_MS, [f"http://{HOST}/{number}" for number in range(50, 53)]
    shown = [sketch(url, number, ago, crawl="one") for number, url in enumerate(known, 50)]
    services.rulebook = RuleService(book, log.publish, make_learner=SidLearner)
    services.rulebook.observe(duplicates())
    learn(services)
    services.rulebook.forget()
    explored = [replace(one, url=f"{one.url}?sid=z", explored=sid_rule().id, instead_of=one.url) for one in shown]
    services.rulebook.observe(explored)
    publish_sketches(services, shown)
    upkeep = Upkeep(services, Report())
    upkeep.round(services)
    assert [rule.state for rule in services.rulebook.rules()] == ["live"]
    services.rulebook.observe(shown)
    learn(services)
    assert [turn.state for turn in services.rulebook.entry(sid_rule().id).history] == ["live"]


def test_the_log_of_rules_is_read_once_for_each_time_that_the_store_came_back(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, report = list[int](), Report()
    monkeypatch.setattr("clusterd.upkeep.restore_rules", lambda given: (read.append(1), restore_rules(given))[1])
    upkeep = Upkeep(services, report)
    for set_backs in (0, 0, 1, 1):
        report.set_backs = set_backs
        upkeep.round(services)
    assert len(read) == 2


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
def test_a_split_is_told_once_more_after_an_outage_and_not_again_and_again_during_it(
    own_broker: KafkaBroker, redis_url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream and the file of alerts got it every ten seconds for as long as Kafka was away."""
    monkeypatch.setattr("clusterd.upkeep.FLUSH_TIMEOUT", 0.5)
    file = tmp_path / "alerts.jsonl"
    own_broker.start()
    config = Config(redis=redis_url, redis_prefix=prefix, kafka=own_broker.bootstrap, alert_file=str(file))
    with open_services(config) as services:
        services.publisher.publish(topics.ALERTS, b"", b"{}")
        services.publisher.flush(10)
        bridge = [*range(100), *range(1000, 1100)]
        ends = [page("http://a/", 1, range(100)), page("http://c/", 1, range(1000, 1100))]
        services.index.apply([*ends, page("http://b/", 1, bridge)])
        services.index.apply([page("http://b/", 2, range(7000, 7100))])
        while services.index.settle():
            pass
        splits = len(services.index.splits())
        assert splits
        own_broker.kill()
        for _ in range(3):
            with pytest.raises(Unreachable):
                tell_splits(services)
        assert len(file.read_bytes().splitlines()) == len(list(services.alerts.since())) == splits
        own_broker.start()
        monkeypatch.setattr("clusterd.upkeep.FLUSH_TIMEOUT", 30.0)
        assert tell_splits(services) == splits
        assert tell_splits(services) == 0
        assert len(file.read_bytes().splitlines()) == 2 * splits
