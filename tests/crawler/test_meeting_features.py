"""Real crawls in which what a crawl may do meets: trials, rewriting, keys that differ, rules that are withdrawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusterd_crawler.message import SkipReport
from clusterd_crawler.rules import Condition, Edit, Key, Rule, RuleSet
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.skipping.traps import RUN, TrapGuard

from tests.crawler.crawling import REST, SELDOM, Crawling, crawl, publish_rules, published, sid_rule
from tests.crawler.site import Site
from tests.services.waiting import wait_until

#: A bound that one trial or so stands for: the seventh skip is tried.
YOUNG = 0.25
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1}
REWRITE = {"CLUSTERD_REWRITE": True, **ONE_BY_ONE}


def rules(site: Site, version: int = 1, bound: float = 0.0, name: str = "r1", **fields: Any) -> RuleSet:
    return RuleSet(site.host, version, (replace(sid_rule(site.host, name), lower_bound=bound),), **fields)


def at(site: Site, paths: list[str]) -> list[str]:
    return [site.url + path for path in paths]


def tried(url: str, prefix: str, rule: str = "r1") -> list[str]:
    """Return the URLs that crawls reported as fetched to watch a rule."""
    return [one.url for one in published(url, prefix) if isinstance(one, Sketch) and one.explored == rule]


@pytest.mark.parametrize("fragment", ["", "#top"])
def test_what_is_to_be_tried_further_is_fetched(
    fragment: str, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A request is decided about when it is scheduled and when it is sent: that it is a trial holds for both."""
    publish_rules(redis_url, prefix, rules(site, bound=YOUNG))
    known = at(site, [f"/page/{n}" for n in range(10)])
    asked = at(site, [f"/page/{n}?sid=a{fragment}" for n in range(10)])
    done = crawl(tmp_path, [*known, REST, *asked], settings | SELDOM | ONE_BY_ONE)
    assert site.pages()["a"] == done.stat("explored") == len(tried(redis_url, prefix)) == 1
    assert done.stat("skipped") == 9


def test_what_is_queued_again_is_skipped_where_its_rule_is_back_before_it_is_sent(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """A rule that differs in a part of its site is gone until it is learned of the others, half a second later."""
    late, soon = ({"priority": priority} for priority in (-1, 1))
    queued, news = {"url": f"{site.url}/page/1?sid=a", "options": late}, {"url": f"{site.url}/page/2", "options": soon}
    before = [*at(site, ["/page/1"]), REST, *at(site, ["/slow/1", "/slow/2"]), queued]
    # Given one that is skipped as it is about to be sent (heard: the rule, the skip, that the rule is gone)
    steps = [*before, {"heard": 2}, *at(site, ["/slow/3", "/slow/4"]), {"heard": 3}, news]
    running = Crawling(tmp_path, steps, settings | SELDOM | ONE_BY_ONE)
    wait_until(lambda: site.hits["/slow/1"] or site.hits["/slow/2"])
    publish_rules(redis_url, prefix, rules(site))
    wait_until(lambda: site.hits["/slow/3"] or site.hits["/slow/4"])
    # When its rule is withdrawn, and is back while it still waits
    publish_rules(redis_url, prefix, RuleSet(site.host, 2, ()))
    wait_until(lambda: site.hits["/page/2"])
    publish_rules(redis_url, prefix, rules(site, version=3))
    done = running.result()
    # Then it is not fetched
    assert (done.stat("requeued"), done.stat("skipped"), site.pages()["a"]) == (1, 2, 0)


def test_what_another_rule_keeps_out_in_place_of_one_that_is_gone_is_tried_further(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """What is queued again for a trial is told as one, and not kept out by the next decision."""
    publish_rules(redis_url, prefix, rules(site))
    go = tmp_path / "go"
    known = at(site, [f"/page/{n}" for n in range(10)])
    asked = at(site, [f"/page/{n}?sid=a" for n in range(10)])
    steps = [*known, REST, *asked, {"file": str(go)}]
    running = Crawling(tmp_path, steps, settings | SELDOM | ONE_BY_ONE)
    wait_until(lambda: sum(isinstance(one, SkipReport) for one in published(redis_url, prefix)) == 10)
    publish_rules(redis_url, prefix, rules(site, version=2, bound=YOUNG, name="r2"))
    wait_until(lambda: tried(redis_url, prefix, "r2"))
    go.touch()
    assert running.result().stat("requeued") == site.pages()["a"] == 1


def rewriting(site: Site, first: list[str], then: list[str], last: list[str], after: tuple[Any, ...] = ()) -> list[Any]:
    """Return steps: some pages; then, one after the other, further ones while the last are linked already.

    What is asked for in the middle holds the slot until all are queued.
    """
    urgent = [{"url": url, "options": {"priority": 2}} for url in at(site, then)]
    return [*at(site, first), REST, *at(site, ["/page/29"]), *urgent, *at(site, last), *after]


QUEUED = {**REWRITE, "DOWNLOAD_DELAY": 0.3, "HTTPERROR_ALLOW_ALL": True, "RETRY_ENABLED": False}


def one_page(site: Site, edit: Edit, *pages: str) -> RuleSet:
    """Return the rule that these pages are one, by what is done to them."""
    found = Rule("r1", site.host, (Condition(edit.key, "in", pages),), (edit,))
    return RuleSet(site.host, 1, (found,))


def test_no_request_is_rewritten_to_a_key_whose_pages_differ(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, one_page(site, Edit(Key(start=4), "set", "1"), "2", "3", "4"))
    steps = [*at(site, ["/", "/page/2"]), REST, *rewriting(site, ["/page/4"], ["/page/3"], ["/page/1"])]
    # The pages 2 and 4 come before the rule is known: that is asked for with the first request to a host.
    done = crawl(tmp_path, steps, settings | QUEUED | {"CLUSTERD_EXPLORE": 1})
    assert site.hits["/page/3"] == site.hits["/page/1"] == 1
    assert done.stat("rewritten") == 0


def test_what_is_fetched_to_watch_a_rule_is_not_rewritten(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    steps = rewriting(site, ["/page/1?sid=x"], ["/page/1?sid=a"], ["/page/1"])
    crawl(tmp_path, steps, settings | QUEUED | {"CLUSTERD_EXPLORE": 1})
    assert site.hits["/page/1?sid=a"] == 1
    assert f"{site.url}/page/1?sid=a" in tried(redis_url, prefix)


def test_a_key_that_was_asked_for_in_vain_is_not_asked_for_again(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    done = crawl(tmp_path, rewriting(site, ["/", "/missing"], ["/missing?sid=a"], []), settings | QUEUED)
    assert site.hits["/missing"] == site.hits["/missing?sid=a"] == 1
    assert done.stat("rewritten") == 0


def test_where_robots_forbid_the_key_the_url_that_was_linked_is_fetched(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, one_page(site, Edit(Key(start=3), "set", "private"), "page"))
    steps = rewriting(site, ["/"], ["/page/1"], ["/private/1"])
    done = crawl(tmp_path, steps, settings | QUEUED | {"ROBOTSTXT_OBEY": True})
    assert "/page/1" in done.paths()
    assert done.stat("rewritten") == 1


def test_a_key_that_redirects_is_asked_for_once(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    done = crawl(tmp_path, rewriting(site, ["/"], ["/redir/5?sid=a"], ["/redir/5"]), settings | QUEUED)
    assert site.hits["/redir/5"] == done.stat("rewritten") == 1
    assert site.hits["/redir/5?sid=a"] == 0


def test_a_key_that_leads_to_what_is_known_answers_for_nothing(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    """Without a session the site shows its log-in page, whatever is asked for."""
    publish_rules(redis_url, prefix, rules(site))
    asked = [f"/members/{n}?sid=a" for n in range(3)]
    steps = rewriting(site, ["/login"], asked, [f"/members/{n}" for n in range(3)])
    done = crawl(tmp_path, steps, settings | QUEUED)
    assert done.stat("rewritten") == 3
    assert set(asked) < set(done.paths())


def test_a_key_that_leads_to_a_page_of_its_own_is_tried(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    steps = rewriting(site, ["/"], ["/redir/5?sid=a"], ["/redir/5"])
    done = crawl(tmp_path, steps, settings | QUEUED | {"CLUSTERD_EXPLORE": 1})
    assert done.stat("rewritten") == done.stat("explored") == site.hits["/redir/5?sid=a"] == 1


def test_where_a_key_leads_round_and_round_the_url_that_was_linked_is_fetched(
    site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    done = crawl(tmp_path, rewriting(site, ["/"], ["/round/1?sid=a"], ["/round/1"]), settings | QUEUED)
    assert done.stat("rewritten") == 1
    assert "/round/1?sid=a" in done.paths()
    assert site.hits["/round/1"] <= 2


@pytest.mark.parametrize("unskipped", [True, False])
def test_what_was_rewritten_is_fetched_when_the_rule_is_withdrawn_or_it_is_unskipped(
    unskipped: bool, site: Site, settings: dict[str, Any], redis_url: str, prefix: str, tmp_path: Path
) -> None:
    publish_rules(redis_url, prefix, rules(site))
    go = tmp_path / "go"
    steps = rewriting(site, ["/"], ["/page/1?sid=a", "/page/2?sid=b"], ["/page/1", "/page/2"], ({"file": str(go)},))
    running = Crawling(tmp_path, steps, settings | QUEUED)
    wait_until(lambda: sum(isinstance(one, SkipReport) for one in published(redis_url, prefix)) == 2)
    undone = (f"{site.url}/page/1?sid=a",)
    new = rules(site, version=2, unskip=undone) if unskipped else RuleSet(site.host, 2, ())
    publish_rules(redis_url, prefix, new)
    wait_until(lambda: site.hits["/page/1?sid=a"])
    go.touch()
    assert running.result().stat("rewritten") == 2
    assert site.hits["/page/2?sid=b"] == (not unskipped)
    assert site.hits["/page/1"] == site.hits["/page/2"] == 1


def test_what_a_trap_kept_out_is_fetched_once_it_brings_something_new(
    site: Site, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Of the days of a calendar that is only sampled one brings news: there is no trap any more."""
    guard = TrapGuard("sample")
    same = at(site, [f"/calendar/{year}-1-{day}" for year in range(2000, 2012) for day in range(1, 21)])
    for url in same[:RUN]:
        guard.fetched(url, 5, new=False)
    news = next(url for year in range(2020, 9999) if not guard.leaves(url := f"{site.url}/calendar/{year}-1-31"))
    steps = [*same[: RUN + 1], REST, *same[RUN + 1 :], REST, news]
    done = crawl(tmp_path, steps, settings | {"CLUSTERD_TRAP_GUARD": "sample"})
    assert done.stat("requeued") == done.stat("skipped") > 20
    assert len(done.seen) == len(same) + 1
