"""Withdrawn rules: whatever they kept out is fetched, however much that is and whenever they are withdrawn."""

from __future__ import annotations

import asyncio
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import scrapy
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.turn import IN_LOOP

from tests.crawler.changing import HOST, Changing, Spider, drop, held_up, kept_out


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


@pytest.mark.parametrize("unskipped", [False, True])
def test_the_loop_has_its_turn_soon_however_long_it_takes_to_queue_a_request_again(
    unskipped: bool, tmp_path: Path
) -> None:
    """As where the scheduler writes to a slow disk. A number of requests a turn would take as many times as long."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1000)
        changing.changes._fetch = lambda kept: (changing.fetched.append(kept.request.url), time.sleep(IN_LOOP))[0]
        await changing.use(1, drop("s", "one"))
        for number in range(20):
            changing.kept.add(kept_out("one", f"s={number}"))
        asked = tuple(f"http://{HOST}/a?s={number}" for number in range(20))
        undone = RuleSet(HOST, 2, (drop("s", "one"),), unskip=asked)
        changing.changes.arrived(undone if unskipped else RuleSet(HOST, 2, ()))
        fetched = [0]
        while fetched[-1] < 20:
            await asyncio.sleep(0)
            fetched.append(len(changing.fetched))
        assert max(after - before for before, after in pairwise(fetched)) == 1

    asyncio.run(scenario())


def test_what_is_on_its_way_to_the_disk_when_its_rule_is_withdrawn_is_fetched(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1)
        await changing.use(1, drop("s", "one"))
        old = changing.kept.add(kept_out("one", "s=1")) or changing.kept.add(kept_out("one", "s=2"))
        await changing.use(2)
        await changing.changes.spill(old)
        await changing.loop.done()
        assert sorted(changing.fetched) == [f"http://{HOST}/a?s={number}" for number in (1, 2)]

    asyncio.run(scenario())


def test_what_a_rule_that_came_back_keeps_out_is_written_to_the_disk_as_ever(tmp_path: Path) -> None:
    """Not decided anew each time, which writes it to the disk again, and so on."""

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1)
        changing.known.fetched(f"http://{HOST}/a", 1)
        for version, rules in enumerate([(drop("s", "one"),), (), (drop("s", "one"),)], 1):
            await changing.use(version, *rules)
        decided = []
        changing.changes._decide = lambda kept, counted: decided.append(kept)
        for number in range(6):
            await changing.changes.keep(kept_out("one", f"s={number}"))
        await changing.loop.done()
        assert (decided, len(changing.kept)) == ([], 6)

    asyncio.run(scenario())


def test_what_cannot_be_written_is_let_go_as_all_else_is(tmp_path: Path) -> None:
    urls = [f"http://{HOST}/a?s={number}" for number in (1, 2)]

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1)
        changing.known.fetched(f"http://{HOST}/a", 1)
        await changing.use(1, drop("s", "one"))
        changing.kept.add(KeptOut("one", scrapy.Request(urls[0], callback=lambda response: None), filtered=False))
        with held_up(changing.kept, "spill"):
            changing.loop.start(changing.changes.keep(kept_out("one", "s=2")))
            await asyncio.sleep(0.05)
            changing.changes.arrived(RuleSet(HOST, 2, (drop("s", "one"),), unskip=tuple(urls)))
            await asyncio.sleep(0.1)
        await changing.loop.done()
        assert sorted(changing.fetched) == urls

    asyncio.run(scenario())


@pytest.mark.parametrize("why", ["withdrawn", "unskipped", "a page is gone"])
@pytest.mark.parametrize("anew", [False, True], ids=["skipped", "decided anew"])
def test_what_is_being_written_to_the_disk_is_let_go_as_all_else_is(tmp_path: Path, why: str, anew: bool) -> None:
    urls = [f"http://{HOST}/a?s={number}" for number in (1, 2)]

    async def scenario() -> None:
        changing = Changing(tmp_path, memory=1)
        changing.known.fetched(f"http://{HOST}/a", 1)
        await changing.use(1, drop("s", "one"))
        with held_up(changing.kept, "spill"):
            changing.kept.add(kept_out("one", "s=1"))
            if anew:
                changing.loop.start(changing.changes.decide_anew([kept_out("one", "s=2")]))
            else:
                changing.loop.start(changing.changes.spill(changing.kept.add(kept_out("one", "s=2"))))
            await asyncio.sleep(0.05)
            if why == "a page is gone":
                changing.known.fetched(f"http://{HOST}/a", 2, good=False)
                changing.changes.look_again(everything=True)
            else:
                rules = (drop("s", "one"),) if why == "unskipped" else ()
                changing.changes.arrived(RuleSet(HOST, 2, rules, unskip=tuple(urls) if rules else ()))
            await asyncio.sleep(0.1)
        await changing.loop.done()
        assert sorted(changing.fetched) == urls
        assert len(changing.kept) == 0

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
        assert len(changing.kept) == 6

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
