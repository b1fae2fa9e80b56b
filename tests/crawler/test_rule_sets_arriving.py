"""Rule sets that arrive while others are put to use: of one host, of many hosts of a domain, and one of no use."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from clusterd_crawler import signals
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import KeptOut
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.changing import HOST, Changing, drop, held_up, kept_out


def test_a_set_that_cannot_be_used_does_not_hold_up_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        bad = replace(drop("s", "one"), transformation=cast(Any, (None,)))
        with held_up(changing.decisions, "load"):
            changing.changes.arrived(RuleSet(HOST, 1, (bad,)))
            await asyncio.sleep(0)  # it is in hand: one that waits is replaced
            changing.changes.arrived(RuleSet("other.com", 1, ()))
        await changing.use(2, drop("s", "two"))
        assert len(changing.loop.tasks) == 1  # one after the other
        assert not changing.changes.busy
        skip = changing.known.decide(f"http://{HOST}/a?s=1", 2)
        assert skip is not None
        assert skip.rule == "two"

    asyncio.run(scenario())


def test_a_set_that_cannot_be_used_keeps_no_other_of_its_domain_out_of_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are put to use together."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        bad = replace(drop("s", "one"), host=f"www.{HOST}", transformation=cast(Any, (None,)))
        changing.changes.arrived(RuleSet("other.com", 1, ()))  # in hand as these arrive
        changing.changes.arrived(RuleSet(f"www.{HOST}", 1, (bad,)))
        changing.changes.arrived(RuleSet(HOST, 1, (drop("s", "two"),)))
        await changing.loop.done()
        skip = changing.known.decide(f"http://{HOST}/a?s=1", 2)
        assert skip is not None
        assert skip.rule == "two"

    asyncio.run(scenario())
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.getMessage() == f"Version 1 of the rules of www.{HOST} cannot be used"


def test_of_sets_in_use_each_that_cannot_be_followed_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where Scrapy's queue takes no more. Of two that arrived together nothing was said."""

    def full(kept: KeptOut) -> None:
        raise OSError("the disk is full")

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        await changing.use(1, drop("s", "one"))
        changing.kept.add(kept_out("one", "s=1"))
        changing.changes._fetch = full
        changing.changes.arrived(RuleSet(HOST, 2, ()))
        changing.changes.arrived(RuleSet(f"www.{HOST}", 1, (drop("t", "two"),)))
        await changing.loop.done()
        assert [said["rule"].id for signal, said in changing.told if signal is signals.rule_learned] == ["one", "two"]

    asyncio.run(scenario())
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.getMessage() == f"Not all that version 2 of the rules of {HOST} lets go is fetched"


def test_of_the_sets_of_a_host_that_wait_the_latest_is_used_and_tells_why_rules_went(tmp_path: Path) -> None:
    """Each has the keys of all known pages of the host made anew."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        await changing.use(1, drop("s", "one"), drop("t", "two"))
        changing.kept.add(kept_out("one", "s=1"))
        changing.told.clear()
        changing.changes.arrived(RuleSet(HOST, 2, (drop("t", "two"),), retired=(("one", "differed"),)))
        changing.changes.arrived(RuleSet(HOST, 4, (drop("v", "three"),), retired=(("brief", "of no use"),)))
        changing.changes.arrived(RuleSet(HOST, 3, (drop("u", "brief"),), retired=(("two", "too few"),)))
        await changing.loop.done()
        used = changing.known.rules_of(HOST)
        assert used is not None
        assert used.version == 4
        assert [(signal, said["rule"], said.get("reason")) for signal, said in changing.told] == [
            (signals.rule_learned, drop("v", "three"), None),
            (signals.rule_retired, "one", "differed"),
            (signals.rule_retired, "two", "too few"),
        ]
        assert changing.fetched == [f"http://{HOST}/a?s=1"]
        changing.told.clear()
        await changing.use(3, drop("s", "one"))  # one that was late
        assert changing.told == []

    asyncio.run(scenario())


class Recorded(Decisions):
    """Decisions that remember which sets were taken together."""

    def __init__(self, known: KnownPages) -> None:
        super().__init__(known, 1000)
        self.taken: list[list[str]] = []

    def load(self, *sets: RuleSet) -> None:
        self.taken.append([rules.host for rules in sets])
        super().load(*sets)


def blog(number: int, version: int = 1) -> RuleSet:
    """Return rules of a host that has a domain with many others."""
    host = f"b{number}.blogs.com"
    return RuleSet(host, version, (replace(drop("s", f"rule{number}-{version}"), host=host),))


def test_sets_of_many_hosts_of_a_domain_are_put_to_use_together(tmp_path: Path) -> None:
    """Each took a pass over the pages of them all: 500 sets and 50,000 pages 122 s of CPU, without a skip meanwhile."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.changes._decisions = decisions = Recorded(changing.known)
        changing.known.fetched("http://b7.blogs.com/a", 1)
        for number in range(40):
            changing.changes.arrived(blog(number))
        changing.changes.arrived(blog(3, version=2))
        await changing.loop.done()
        assert [len(hosts) for hosts in decisions.taken] == [40]
        learned = [arguments["rule"].id for signal, arguments in changing.told if signal is signals.rule_learned]
        assert sorted(learned) == sorted(f"rule{number}-{1 + (number == 3)}" for number in range(40))
        assert decisions.decide("http://b7.blogs.com/a?s=1", 2) is not None

    asyncio.run(scenario())


def test_sets_of_other_hosts_of_a_domain_of_many_pages_wait_for_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.changes._decisions = decisions = Recorded(changing.known)
        for number in range(20_000):
            changing.known.fetched(f"http://b{number % 50}.blogs.com/{number}", 1)
        changing.changes.arrived(blog(1))
        while not decisions.taken or changing.changes.busy:
            await asyncio.sleep(0.001)
        # The crawl of a host goes on with its own as ever, and so do other domains
        for rules in (blog(2), RuleSet(HOST, 1, (drop("s", "one"),)), blog(3)):
            changing.changes.arrived(rules)
        await changing.loop.done()
        assert decisions.taken == [["b1.blogs.com"], [HOST], ["b2.blogs.com", "b3.blogs.com"]]
        changing.changes.arrived(RuleSet("b3.blogs.com", 2, ()))
        changing.changes.arrived(RuleSet("b2.blogs.com", 2, ()))
        changing.changes.arrived(RuleSet(HOST, 2, ()))
        await changing.loop.done()
        assert decisions.taken[3:] == [["b3.blogs.com", "b2.blogs.com"], [HOST]]

    asyncio.run(scenario())
