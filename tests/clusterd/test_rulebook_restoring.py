"""Rule sets that the store has lost come back from the log: what operators did meanwhile is in no page."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from clusterd.config import Config
from clusterd.health import Report
from clusterd.learning.rulebook.entries import rules_to_bytes
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.restoring import reconcile, restore
from clusterd.learning.rulebook.service import RuleService
from clusterd.services import Services, publish_sketches
from clusterd.upkeep import Upkeep, learn, restore_rules
from clusterd.working import make_worker
from clusterd_consumer.transport import kafka_topics
from clusterd_consumer.transport.kafka_records import records
from clusterd_crawler import topics
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.rules import Key, RuleSet
from kafka import KafkaAdminClient  # type: ignore[import-untyped]

from tests.clusterd.made_up_rules import HOST, Log, Serve, SidLearner, duplicates, offered_set, sid_rule, sketch
from tests.crawler.outage import Server
from tests.flow.daemons import daemons, made_up_crawl, until, wait_until_done
from tests.services.kafka_broker import KafkaBroker
from tests.services.waiting import wait_until

REF, LANG = sid_rule(key=Key("ref")), sid_rule(key=Key("lang"))


def logged(*sets: RuleSet) -> list[tuple[bytes, bytes]]:
    return [(rules.host.encode(), rules_to_bytes(rules)) for rules in sets]


def test_what_operators_did_is_restored(serve: Serve, book: RuleBook, another_book: RuleBook, log: Log) -> None:
    service = serve()
    service.import_rules([REF, sid_rule()], at=1)
    backup = book.load(HOST)
    # This is lost: …
    elsewhere = Log()
    another_book.save(backup, another_book.load(HOST))
    lost = RuleService(another_book, elsewhere.publish, make_learner=SidLearner)
    lost.retire(sid_rule().id, at=2)
    lost.import_rules([LANG], at=3)
    lost.pin(REF.id, at=4)
    lost.unskip(f"http://{HOST}/1", at=5)
    # … and read from the log again, as often as anybody likes.
    unreadable = [(b"x", b""), (b"\xff", b"none"), (HOST.encode(), b'{"version": 1e999}')]
    assert restore(book, [*unreadable, *logged(*log.sets, *elsewhere.sets)], at=9) == 4
    assert restore(book, logged(*elsewhere.sets), at=10) == 0
    assert {rule.id: rule.state for rule in service.rules(every=True)} == {
        REF.id: "pinned",
        LANG.id: "live",
        sid_rule().id: "retired",
    }
    assert service.entry(sid_rule().id).last.reason == "by hand"
    assert book.load(HOST).rules == elsewhere.sets[-1] == offered_set(book, HOST)
    assert book.announced(HOST) == 5
    # What was retired stays so whatever the pages say, and what comes next is of a later version.
    service.observe(duplicates())
    service.learn_due(now=4)
    assert {rule.id for rule in service.rules()} == {REF.id, LANG.id}
    service.retire(REF.id, at=4)
    assert log.sets[-1].version == 6


def test_what_the_log_has_lost_is_announced_again(serve: Serve, log: Log) -> None:
    service = serve()
    service.import_rules([REF, sid_rule("other.org")], at=1)
    service.retire(REF.id, at=2)
    service.retire(sid_rule("other.org").id, at=3)
    announced = list(log.sets)
    assert reconcile(service, logged(*announced), at=4) == 0
    assert log.sets == announced  # the log has them all
    latest = {rules.host: rules for rules in announced}
    assert len(latest) >= 2
    assert reconcile(service, logged(*(rules for rules in announced if rules not in latest.values())), at=5) == 0
    assert {rules.host: rules for rules in log.sets[len(announced) :]} == latest
    assert reconcile(service, [], at=6) == 0
    assert len(log.sets) == len(announced) + 2 * len(latest)


def test_exempted_urls_of_a_host_without_rules_are_announced_again(serve: Serve, log: Log) -> None:
    """The rule that keeps them out may be that of a mirror, in the set of their domain, or a trap of the crawl's."""
    service = serve()
    service.unskip(f"http://{HOST}/1", at=1)
    (announced,) = log.sets
    assert announced.unskip == (f"http://{HOST}/1",)
    assert reconcile(service, logged(announced), at=2) == 0
    assert log.sets == [announced]
    assert reconcile(service, [], at=3) == 0
    assert log.sets == [announced, announced]


def test_of_a_rule_that_went_in_between_the_log_has_no_reason(serve: Serve, book: RuleBook) -> None:
    service = serve()
    service.import_rules([sid_rule()], at=1)
    assert restore(book, logged(RuleSet(HOST, 9, (REF,))), at=10) == 1
    assert "lost" in service.entry(sid_rule().id).last.reason
    assert [rule.id for rule in service.rules()] == [REF.id]


def test_a_restored_rule_is_watched(serve: Serve, book: RuleBook) -> None:
    service = serve()
    restore(book, logged(RuleSet(HOST, 9, (REF,))), at=10)
    service.observe([sketch(f"http://{HOST}/{number}", number + 1) for number in range(3)])
    service.learn_due(now=11)
    assert [rule.id for rule in service.rules()] == [REF.id]
    for number in range(3):
        known = f"http://{HOST}/{number}"
        service.observe([sketch(f"{known}?ref=1", 900 + number, 20, explored=REF.id, instead_of=known)])
    service.learn_due(now=21)
    assert service.entry(REF.id).last.by == "watch"


def test_of_a_store_that_came_back_from_the_past_all_evidence_is_learned_from(
    redis_url: str, prefix: str, book: RuleBook, log: Log
) -> None:
    first, second, third = (duplicates(3)[at : at + 2] for at in (0, 2, 4))
    report = Report()
    with Services(Config(redis=redis_url, redis_prefix=prefix)) as services:
        services.rulebook = RuleService(book, log.publish, make_learner=SidLearner)
        upkeep, client = Upkeep(services, report), cast(Any, services.redis)
        upkeep.round(services)
        services.rulebook.observe(first)
        learn(services)
        backup = {
            key: client.dump(key)
            for kind in ("log", "meta")
            for key in client.scan_iter(f"{prefix}rb:*:{kind}", count=10_000)
        }
        services.rulebook.observe(second)
        learn(services)
        for key, value in backup.items():
            client.restore(key, 0, value, replace=True)
        for again in ([*second, *third], [sketch(f"http://{HOST}/other", 99)]):  # in other blocks than before
            services.rulebook.observe(again)
        report.set_backs += 1
        wait_until(lambda: upkeep.round(services) or log.sets)
    assert [rule.id for rule in log.sets[-1].rules] == [sid_rule().id]


def test_sites_that_the_store_has_lost_are_noted_again(prefix: str, tmp_path: Path) -> None:
    """Else nobody would look for mirrors among them until another daemon met them."""
    sites, server = [f"http://{HOST}", f"http://www.{HOST}"], Server(tmp_path)
    with server.running(), Services(Config(redis=server.url, redis_prefix=prefix)) as services:
        worker, handing = make_worker(services, Report(), 0.05)
        client: Any = services.redis
        for number in range(2):
            publish_sketches(services, [sketch(f"{site}/{number}", number) for site in sites])
            wait_until(lambda: worker.step() == 2)
            assert services.rulebook.book.sites(HOST) == sites
            client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
            server.stop()
            server.start()
        worker.leave()
        handing.close()


@pytest.mark.kafka
def test_a_store_that_is_empty_has_the_rules_of_the_log(redis_url: str, prefix: str, kafka_bootstrap: str) -> None:
    named = prefix.replace(":", "-")
    config = Config(redis=redis_url, redis_prefix=prefix, kafka=kafka_bootstrap, kafka_prefix=named)
    with Services(replace(config, redis_prefix=f"{prefix}none:")) as empty:
        assert restore_rules(empty) == 0  # no topic yet
    kafka_topics.ensure(kafka_bootstrap, named)
    with Services(config) as before:
        before.rulebook.import_rules([REF, sid_rule("other.org")], at=1)
        before.rulebook.retire(REF.id, at=2)
        published = before.rulebook.book.load("other.org").rules
    with Services(replace(config, redis_prefix=f"{prefix}back:")) as back:
        assert restore_rules(back) >= 2
        assert restore_rules(back) == 0
        assert back.rulebook.book.load("other.org").rules == published
        assert json.loads(rules_to_bytes(back.rulebook.book.load(HOST).rules))["rules"] == []


@pytest.mark.kafka
def test_a_daemon_whose_store_is_emptied_restores_the_rules(
    redis_url: str, prefix: str, kafka_bootstrap: str, tmp_path: Path
) -> None:
    settings = {"redis": redis_url, "redis_prefix": prefix, "kafka": kafka_bootstrap}
    settings |= {"kafka_prefix": prefix.replace(":", "-"), "group": prefix.replace(":", "-"), "kafka_partitions": "2"}
    with daemons(settings, tmp_path) as group, Services(group.config()) as services:
        group.start()
        publish_sketches(services, made_up_crawl(20, seed=1))
        wait_until_done(services)
        services.rulebook.import_rules([REF], at=1)
        services.rulebook.pin(REF.id, at=2)
        client: Any = services.redis
        client.delete(*client.scan_iter(f"{prefix}*", count=10_000))
        until(lambda: [rule.state for rule in services.rulebook.rules()] == ["pinned"], say=group.said)
        until(lambda: services.index.counts()["documents"] > 0, say=group.said)


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see collect_sockets
def test_a_log_that_comes_back_older_or_is_made_anew_has_the_rules_of_the_store_again(
    own_broker: KafkaBroker, redis_url: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crawls that began then knew of no rule that was learned after the backup, until another daemon started."""
    monkeypatch.setattr("clusterd.upkeep.LAG_INTERVAL", 0.0)
    own_broker.start()
    kafka_topics.ensure(own_broker.bootstrap, "")
    with Services(Config(redis=redis_url, redis_prefix=prefix, kafka=own_broker.bootstrap)) as services:
        upkeep, book, hosts = Upkeep(services, Report()), services.rulebook.book, (HOST, "other.org")
        services.rulebook.import_rules([REF], at=1)
        own_broker.end()
        shutil.copytree(own_broker.folder / "log", tmp_path / "backup")
        own_broker.start()
        services.rulebook.import_rules([LANG, sid_rule("other.org")], at=2)
        latest = dict(logged(*(book.load(host).rules for host in hosts)))
        wait_until(lambda: went_round(upkeep, services))
        assert dict(records(own_broker.bootstrap, topics.RULES)) == latest
        own_broker.end()
        shutil.rmtree(own_broker.folder / "log")
        shutil.move(tmp_path / "backup", own_broker.folder / "log")
        own_broker.start()
        assert dict(records(own_broker.bootstrap, topics.RULES)) != latest
        until(lambda: went_round(upkeep, services) and dict(records(own_broker.bootstrap, topics.RULES)) == latest)
        admin = KafkaAdminClient(bootstrap_servers=own_broker.bootstrap)
        admin.delete_topics([topics.RULES])
        admin.close()
        until(lambda: went_round(upkeep, services) and dict(records(own_broker.bootstrap, topics.RULES)) == latest)


def went_round(upkeep: Upkeep, services: Services) -> bool:
    """Do a round of upkeep, if Kafka lets us."""
    with suppress(Unreachable):
        upkeep.round(services)
        return True
    return False
