"""Before a crawl ends it looks once more at what it skipped since a run of its own pages had brought nothing new."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.skipping.exploring import LAST_LOOK
from clusterd_crawler.skipping.known_pages import KnownPages

from tests.crawler.changing import HOST, Changing, held_up, kept_out
from tests.crawler.crawling import REST, SELDOM, at, crawl, publish_rules, published
from tests.crawler.site import Site

DAY = Key(name="day")
FAMILY = Rule("empty", HOST, (Condition(DAY, "any"),), (Edit(Key(), "family"),), crawl="c")
SKIPPED = LAST_LOOK + 20


@pytest.mark.parametrize("of_crawl", [True, False])
def test_pages_of_all_of_the_crawl_are_fetched_before_it_ends(
    of_crawl: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    rule = replace(FAMILY, host=site.host, crawl="c" if of_crawl else "")
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    steps = ["/page/1?day=0", REST, *[f"/page/1?day={day}" for day in range(1, SKIPPED + 1)]]
    done = crawl(tmp_path, at(site, steps), settings | SELDOM | {"CLUSTERD_CRAWL_ID": "c"})
    looked = LAST_LOOK if of_crawl else 0
    assert (done.stat("skipped"), done.stat("explored"), len(done.seen)) == (SKIPPED, looked, 1 + looked)
    told = [page for page in published(redis_url, prefix) if isinstance(page, Sketch) and page.explored == "empty"]
    days = sorted(int(page.url.partition("day=")[2]) for page in told)
    assert len(days) == looked
    assert not looked or (days[0] <= 2 and days[-1] == SKIPPED)


@pytest.mark.parametrize(
    ("share", "of_crawl", "before", "kept", "looked"),
    [
        (0.0001, "c", 0, 99, LAST_LOOK),
        (0.0001, "c", 7, 99, LAST_LOOK - 7),
        (0.0001, "c", LAST_LOOK, 99, 0),
        (0.0001, "c", 0, 3, 3),
        (0.0001, "", 0, 99, 0),
        (0, "c", 0, 99, 0),
    ],
)
def test_what_a_rule_keeps_out_is_looked_at_once_and_not_where_no_rule_is_watched(
    share: float, of_crawl: str, before: int, kept: int, looked: int
) -> None:
    known, family = KnownPages(explore=share), replace(FAMILY, crawl=of_crawl)
    known.load(RuleSet("h.com", 1, (family,)))
    known.fetched("http://h.com/?day=0", 1, content=1)
    known.explored["empty"] = before
    assert known.look_once_more(Counter({"empty": kept, "trap-1": 100})) == ({"empty"} if looked else set())
    known.load(RuleSet("h.com", 2, (family, replace(FAMILY, id="other", crawl=""))))
    skips = [known.decide(f"http://h.com/?day={day}", 2) for day in range(1, 100)]
    explored = [number for number, skip in enumerate(skips, 1) if skip and skip.explore]
    assert len(explored) == looked
    assert not looked or (explored[0] <= kept / looked + 1 and explored[-1] == kept)
    assert known.look_once_more(Counter({"empty": 2 * max(kept, LAST_LOOK) - 1})) == set()


def test_what_is_kept_out_after_a_look_is_looked_at_when_it_is_as_much_again() -> None:
    """As of a spider that is fed whenever it is idle. What was explored by then counts."""
    known = KnownPages(explore=0.0001)
    known.load(RuleSet("h.com", 1, (FAMILY,)))
    known.fetched("http://h.com/?day=0", 1, content=1)
    looks = []
    for kept, explored in [(5, 0), (59, 0), (60, 20), (119, 0), (120, 30), (240, 5)]:
        known.explored["empty"] += explored
        before = known.explored["empty"]
        known.look_once_more(Counter({"empty": kept}))
        for day in range(1, kept + 1):
            known.decide(f"http://h.com/?day={day}", 2)
        looks.append(known.explored["empty"] - before)
    assert looks == [5, 0, LAST_LOOK - 20, 0, 0, LAST_LOOK - 5]


def test_what_was_explored_before_a_rule_came_again_is_no_look_at_what_it_keeps_out_now() -> None:
    known = KnownPages(explore=0.0001)
    for version, rules in enumerate([(FAMILY,), (), (FAMILY,)], 1):
        known.load(RuleSet("h.com", version, rules))
        known.explored["empty"] += LAST_LOOK if version == 1 else 0
    assert known.look_once_more(Counter({"empty": 99})) == {"empty"}


@pytest.mark.parametrize("memory", [1000, 10])
def test_what_lies_on_the_disk_is_looked_at_too_whoever_tells_of_pages_just_then(memory: int, tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory, explore=0.0001)
        await changing.use(1, FAMILY)
        changing.known.fetched(f"http://{HOST}/a?day=0", 1, content=1)
        for day in range(1, SKIPPED + 1):
            await changing.changes.keep(kept_out("empty", f"day={day}"))
        for sid in range(20):
            await changing.changes.keep(kept_out("session", f"sid={sid}"))
        assert bool(changing.kept.has_spilled({"empty"})) == (memory < SKIPPED)
        changing.decisions._lock.acquire()  # as while pages of others are taken
        threading.Timer(0.05, changing.decisions._lock.release).start()
        assert changing.changes.look_once_more()
        assert changing.changes.busy
        await changing.loop.done()
        assert len(changing.fetched) == LAST_LOOK
        assert changing.kept.by_rule() == {"empty": SKIPPED - LAST_LOOK, "session": 20}
        assert not changing.changes.look_once_more()

    asyncio.run(scenario())


def test_the_crawl_does_not_end_while_requests_are_written_to_the_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        changing = Changing(tmp_path, memory=10)
        with held_up(changing.kept, "spill"):
            changing.loop.start(changing.changes.spill([kept_out("empty", "day=1")]))
            await asyncio.sleep(0)
            assert changing.changes.busy
        await changing.loop.done()
        assert not changing.changes.busy

    asyncio.run(scenario())
