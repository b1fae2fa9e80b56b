"""Before a crawl ends it looks once more at what it skipped since a run of its own pages had brought nothing new."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scrapy
from clusterd_crawler.crawling.requests.kept import Kept, KeptOut
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.skipping.exploring import LAST_LOOK
from clusterd_crawler.skipping.skips import KnownPages

from tests.crawler.crawling import at, crawl, publish_rules, published
from tests.crawler.site import Site

DAY = Key(name="day")
FAMILY = Rule("empty", "h.com", (Condition(DAY, "any"),), (Edit(Key(), "family"),), crawl="c")
SKIPPED = LAST_LOOK + 20


@pytest.mark.parametrize("of_crawl", [True, False])
def test_pages_of_all_of_the_crawl_are_fetched_before_it_ends(
    of_crawl: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    rule = replace(FAMILY, host=site.host, crawl="c" if of_crawl else "")
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    steps = ["/page/1?day=0", {"pause": 0.5}, *[f"/page/1?day={day}" for day in range(1, SKIPPED + 1)]]
    more = {"CLUSTERD_EXPLORE": 0.0001, "CLUSTERD_CRAWL_ID": "c"}
    done = crawl(tmp_path, at(site, steps), settings | more)
    looked = LAST_LOOK if of_crawl else 0
    assert (done.stat("skipped"), done.stat("explored"), len(done.seen)) == (SKIPPED, looked, 1 + looked)
    told = [page for page in published(redis_url, prefix) if isinstance(page, Sketch) and page.explored == "empty"]
    days = sorted(int(page.url.partition("day=")[2]) for page in told)
    assert len(days) == looked
    assert not looked or (days[0] <= 2 and days[-1] == SKIPPED)


@pytest.mark.parametrize(
    ("share", "of_crawl", "explored", "kept", "looked"),
    [
        (0.0001, "c", 0, 99, LAST_LOOK),
        (0.0001, "c", 7, 99, LAST_LOOK - 7),
        (0.0001, "c", LAST_LOOK, 99, 0),
        (0.0001, "c", 0, 2, 2),
        (0.0001, "", 0, 99, 0),
        (0, "c", 0, 99, 0),
    ],
)
def test_what_a_rule_keeps_out_is_looked_at_once_and_not_where_no_rule_is_watched(
    share: float, of_crawl: str, explored: int, kept: int, looked: int
) -> None:
    known = KnownPages(explore=share)
    known.load(RuleSet("h.com", 1, (replace(FAMILY, crawl=of_crawl),)))
    known.fetched("http://h.com/?day=0", 1, content=1)
    known.explored["empty"] = explored
    assert known.look_once_more(Counter({"empty": kept, "trap-1": 100})) == ({"empty": looked} if looked else {})
    skips = [known.decide(f"http://h.com/?day={day}", 2) for day in range(1, 100)]
    assert [skip.explore for skip in skips if skip] == [number < looked for number in range(99)]
    assert known.look_once_more(Counter({"empty": 100})) == {}


@pytest.mark.parametrize(("count", "taken"), [(2, [4, 9]), (3, [2, 5, 9]), (10, list(range(10)))])
def test_what_is_looked_at_is_spread_over_what_is_kept(count: int, taken: list[int], tmp_path: Path) -> None:
    kept = Kept(scrapy.Spider("kept"), tmp_path, disk_bytes=0)
    for number in range(10):
        for rule in ("empty", "other"):
            kept.add(KeptOut(rule, scrapy.Request(f"http://h.com/{number}"), filtered=True))
    assert kept.held() == {"empty": 10, "other": 10}
    found = kept.spread("empty", count)
    assert [(one.rule, int(one.request.url[-1])) for one in found] == [("empty", number) for number in taken]
    assert len(kept) == 20 - len(taken)
