"""A crawl that has nothing more to do ends by itself: Scrapy's next look, in these crawls, is days away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet

from tests.crawler.crawling import MODES, REST, SELDOM, at, crawl, publish_rules
from tests.crawler.site import Site
from tests.crawler.spider import HEARTBEAT

DAY = Key(name="day")
FAR = {HEARTBEAT: 1e6}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("looks", [pytest.param(False, id="after a skip"), pytest.param(True, id="after a last look")])
def test_a_crawl_ends_when_nothing_holds_it_open_any_more(
    looks: bool, mode: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    rule = Rule("empty", site.host, (Condition(DAY, "any"),), (Edit(Key(), "family"),), crawl="c" if looks else "")
    publish_rules(redis_url, prefix, RuleSet(site.host, 1, (rule,)))
    steps = ["/page/1?day=0", REST, *[f"/page/1?day={day}" for day in range(1, 101)]]
    done = crawl(tmp_path, at(site, steps), settings | SELDOM | FAR | MODES[mode] | {"CLUSTERD_CRAWL_ID": "c"})
    assert done.stat("skipped") == 100
    assert (done.stat("explored") > 0) == looks
    assert done.stats["finish_reason"] == "finished"
