"""Withdrawn rules: whatever they kept out is fetched, however much that is and whenever they are withdrawn."""

from __future__ import annotations

import asyncio
import resource
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
import scrapy
from clusterd_crawler import signals
from clusterd_crawler.crawling.event_loop import EventLoop
from clusterd_crawler.crawling.requests.decisions import Decisions
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut, unpack
from clusterd_crawler.crawling.rule_changes import RuleChanges
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.skipping.skips import KnownPages

HOST = "h.com"


def drop(name: str, rule_id: str) -> Rule:
    key = Key(name=name)
    return Rule(rule_id, HOST, (Condition(key, "any"),), (Edit(key, "delete"),))


class Spider(scrapy.Spider):
    name = "changes"


class Tasks:
    """The crawl's loop: runs what is started."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    async def done(self) -> None:
        while any(not task.done() for task in self.tasks):
            await asyncio.gather(*self.tasks)


class Changing:
    """Rule changes over real decisions and kept requests."""

    def __init__(self, folder: Path, memory: int, explore: float = 0) -> None:
        self.loop = Tasks()
        self.known = KnownPages(explore=explore)
        self.kept = Kept(Spider(), folder, disk_bytes=10**6, memory=memory)
        self.fetched: list[str] = []
        self.told: list[tuple[object, dict[str, Any]]] = []
        self.decisions = decisions = Decisions(self.known, 1000)
        self.changes = RuleChanges(
            cast(EventLoop, self.loop),
            decisions,
            self.kept,
            lambda kept: self.fetched.append(kept.request.url),
            lambda signal, **arguments: self.told.append((signal, arguments)),
            lambda request, counted: decisions.decide(request.url, 5, again=counted),
        )

    async def use(self, version: int, *rules: Rule) -> None:
        self.changes.arrived(RuleSet(HOST, version, rules))
        await self.loop.done()

    def kept_urls(self) -> list[str]:
        written = BytesIO()
        self.kept.write(written)
        written.seek(0)
        return [one.request.url for one in unpack(written, "", Spider()) if one is not None]


def kept_out(rule: str, query: str) -> KeptOut:
    return KeptOut(rule, scrapy.Request(f"http://{HOST}/a?{query}"), filtered=False)


def test_what_another_rule_keeps_out_from_now_on_stays_kept_however_much_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        one, two = drop("s", "one"), drop("s", "two")
        await changing.use(1, one)
        for number in range(100):
            old = changing.kept.add(kept_out("one", f"s={number}"))
            if old:
                await changing.changes.spill(old)
        # When one rule takes another's place, then the new one keeps out what the old one did
        await changing.use(2, two)
        assert len(changing.kept) == 100
        assert changing.fetched == []
        # And when that is withdrawn too, all is fetched
        await changing.use(3)
        assert sorted(changing.fetched) == sorted(f"http://{HOST}/a?s={number}" for number in range(100))

    asyncio.run(scenario())


def test_what_is_decided_anew_while_pages_of_others_are_taken_is_not_fetched_for_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        await changing.use(1, drop("s", "one"))
        with changing.decisions._lock:
            deciding = asyncio.create_task(changing.changes.decide_anew([kept_out("one", "s=1")]))
            await asyncio.sleep(0.1)
            assert not deciding.done()
        await deciding
        assert changing.fetched == []
        assert len(changing.kept) == 1

    asyncio.run(scenario())


def test_what_is_on_its_way_to_the_disk_when_its_rule_is_withdrawn_is_fetched(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1)
        await changing.use(1, drop("s", "one"))
        old = changing.kept.add(kept_out("one", "s=1")) or changing.kept.add(kept_out("one", "s=2"))
        await changing.use(2)
        await changing.changes.spill(old)
        assert sorted(changing.fetched) == [f"http://{HOST}/a?s={number}" for number in (1, 2)]

    asyncio.run(scenario())


def test_what_is_withdrawn_while_the_crawl_closes_stays_kept_for_when_it_goes_on(tmp_path: Path) -> None:
    """The scheduler takes nothing more by then: what it was given was lost to a crawl that is paused."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        await changing.use(1, drop("s", "one"))
        for number in range(15):
            changing.loop.start(changing.changes.spill(changing.kept.add(kept_out("one", f"s={number}"))))
        await asyncio.sleep(0)
        await changing.changes.close()
        everything = sorted(f"http://{HOST}/a?s={number}" for number in range(15))
        assert sorted(changing.kept_urls()) == everything
        await changing.use(2)
        assert sorted(changing.kept_urls()) == everything
        assert changing.fetched == []

    asyncio.run(scenario())


@pytest.mark.parametrize("unskipped", [False, True])
def test_what_is_being_decided_about_when_the_crawl_closes_is_kept(unskipped: bool, tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1000)
        await changing.use(1, drop("s", "one"))
        for number in range(300):
            changing.kept.add(kept_out("one", f"s={number}"))
        asked = tuple(f"http://{HOST}/a?s={number}" for number in range(300))
        undone = RuleSet(HOST, 2, (drop("s", "one"),), unskip=asked)
        changing.changes.arrived(undone if unskipped else RuleSet(HOST, 2, ()))
        while not changing.fetched:
            await asyncio.sleep(0)
        await changing.changes.close()
        left = changing.kept_urls()
        assert sorted(changing.fetched + left) == sorted(f"http://{HOST}/a?s={number}" for number in range(300))
        assert left

    asyncio.run(scenario())


def test_what_is_looked_at_when_the_crawl_closes_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1000, explore=0.0001)
        family = Rule("one", HOST, (Condition(Key(name="s"), "any"),), (Edit(Key(), "family"),), crawl="c")
        await changing.use(1, family)
        for number in range(50):
            changing.kept.add(kept_out("one", f"s={number}"))
        assert changing.changes.look_once_more()
        assert changing.changes.busy
        await changing.changes.close()
        everything = sorted(f"http://{HOST}/a?s={number}" for number in range(50))
        assert sorted(changing.kept_urls()) == everything
        await asyncio.sleep(0)  # what was begun begins now: the crawl is writing down what is kept
        assert sorted(changing.kept_urls()) == everything
        assert not changing.changes.busy
        assert changing.fetched == []

    asyncio.run(scenario())


def test_what_is_unskipped_is_fetched_whatever_kept_it_out(tmp_path: Path) -> None:
    """A rule of the domain's own set that spans its hosts, what was fetched within the time asked for, a trap."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=3)
        await changing.use(1, drop("s", "one"))
        other = replace(drop("s", "other"), host="other.com")
        changing.changes.arrived(RuleSet("other.com", 1, (other,)))
        asked = [f"http://www.{HOST}/a?s={number}" for number in range(4)]
        for rule, url in zip(("one", "within", "trap-0a1b2c3d", "other"), asked, strict=True):
            await changing.changes.spill(changing.kept.add(KeptOut(rule, scrapy.Request(url), filtered=False)))
        await changing.changes.spill(changing.kept.add(kept_out("within", "s=not+asked+for")))
        changing.changes.arrived(RuleSet(f"www.{HOST}", 1, (), unskip=tuple(asked[:3])))
        await changing.loop.done()
        assert sorted(changing.fetched) == asked[:3]
        assert set(changing.kept.by_rule()) == {"other", "within"}

    asyncio.run(scenario())


@pytest.mark.parametrize("is_there", [False, True])
def test_what_a_withdrawn_rule_kept_out_is_fetched_as_far_as_it_is_still_there(tmp_path: Path, is_there: bool) -> None:
    """Somebody deletes the spool during the crawl: what lies in memory is fetched, what lay on the disk is counted.

    So it is where something is there that can be neither read nor deleted.
    """

    async def scenario() -> None:
        changing = Changing(tmp_path / "spool", memory=10)
        await changing.use(1, drop("s", "one"))
        for number in range(16):  # of eleven the older five go to the disk, twice
            if old := changing.kept.add(kept_out("one", f"s={number}")):
                changing.kept.spill(old)
        (written,) = tmp_path.rglob("*.requests")
        shutil.rmtree(tmp_path / "spool")
        if is_there:
            written.mkdir(parents=True)
        await changing.use(2)
        assert (len(changing.fetched), changing.kept.forgotten, len(changing.kept)) == (6, 10, 0)

    asyncio.run(scenario())


def test_a_set_that_cannot_be_used_does_not_hold_up_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        bad = replace(drop("s", "one"), transformation=cast(Any, (None,)))
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


def test_everything_is_decided_anew_where_a_page_that_it_rests_on_is_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        changing.known.fetched(f"http://{HOST}/a", 1)
        await changing.use(1, drop("s", "one"))
        changing.kept.add(kept_out("one", "s=1"))
        for everything in (False, True):
            changing.changes.look_again(everything)
            assert changing.changes.busy == everything
            await changing.loop.done()
        assert changing.fetched == []
        changing.known.fetched(f"http://{HOST}/a", 2, good=False)
        changing.changes.look_again(everything=True)
        await changing.loop.done()
        assert changing.fetched == [f"http://{HOST}/a?s=1"]

    asyncio.run(scenario())


def test_what_is_decided_anew_as_a_page_is_gone_is_tried_no_further_where_it_stays_kept_out(tmp_path: Path) -> None:
    """Or a callback that raises now and then would have all that is kept out tried, a part each time."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1000, explore=0.00001)
        changing.known.fetched(f"http://{HOST}/a", 1)
        await changing.use(1, replace(drop("s", "one"), lower_bound=0.25))  # of which the seventh skip is tried
        for number in range(6):
            kept = kept_out("one", f"s={number}")
            skip = changing.decisions.decide(kept.request.url, 2)
            assert skip is not None
            assert not skip.explore
            changing.kept.add(kept)
        for _ in range(3):
            changing.changes.look_again(everything=True)
            await changing.loop.done()
        assert changing.fetched == []
        assert changing.known.skipped["one"] == len(changing.kept) == 6

    asyncio.run(scenario())


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """Refuse to let any file grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_that_the_disk_takes_half_of_spoils_no_other(tmp_path: Path) -> None:
    kept = Kept(Spider(), tmp_path, disk_bytes=10**6)
    with full_beyond(20):
        assert len(kept.spill([kept_out("r", "s=0")])) == 1
    kept.spill([kept_out("r", "s=1")])
    size = next(tmp_path.rglob("*.requests")).stat().st_size
    with full_beyond(size + 20):
        (unwritten,) = kept.spill([kept_out("r", "s=2")])
    kept.spill([kept_out("r", "s=3")])
    (found,) = kept.read({"r"})
    assert [one.request.url for one in (*found, unwritten)] == [f"http://{HOST}/a?s={number}" for number in (1, 3, 2)]
    kept.close()


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
