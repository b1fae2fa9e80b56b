"""Parameters of which a URL bears some, and hardly two the same: what they do is learned of all together."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from clusterd.learning.edits.edit import DropUnordered
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.learner import accept
from clusterd.learning.replay import CrawlRow, replay
from clusterd.learning.trials.contexts import refine
from clusterd.learning.trials.pooled import pools
from clusterd_crawler.urls import parse

from tests.clusterd.learning.one_host import HOST, key, learned
from tests.clusterd.learning.shop import FILTERS, VIEWS, shop

TAGS = ("utm_source", "utm_medium", "utm_campaign", "gclid", "fbclid", "ref", "sid", "mc_cid", "ga", "kwcid")


def tagged(pages: int, *, shuffled: bool = False) -> list[tuple[str, int]]:
    """Return articles of one to five URLs, each with up to four of ten tags; some have a page, which matters."""
    dice = random.Random(1)
    found: dict[str, int] = {}
    for article in range(pages):
        for _ in range(dice.choice((1, 1, 2, 3, 5))):
            page = dice.choice((0, 0, 1, 2, 3))
            tags = sorted(dice.sample(TAGS, dice.randrange(5)), key=TAGS.index)
            query = [f"page={page}"] if page else []
            query += [f"{tag}={dice.choice(('a', 'b', dice.randrange(10**6)))}" for tag in tags]
            if shuffled:
                dice.shuffle(query)
            path = f"news/item-{article}"
            found[f"{path}?{'&'.join(query)}" if query else path] = 10 * article + page
    return list(found.items())


def snapshot_of(paths: list[tuple[str, int]]) -> Snapshot:
    evidence = Evidence()
    for path, content in paths:
        url = f"http://{HOST}/{path}"
        evidence.add(url, content, parse(url))
    return Snapshot(evidence)


def test_the_pool_is_what_does_not_matter() -> None:
    names = Counter({(name, 1): 50 for name in (*TAGS, "page")})
    assert set(*pools(snapshot_of(tagged(600)), names)) == {(tag, 1) for tag in TAGS}


def test_of_very_many_pages_those_of_some_keys_tell_what_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.learning.trials.pooled.PAGES", 800)
    names = Counter({(name, 1): 50 for name in (*TAGS, "page")})
    assert set(*pools(snapshot_of(tagged(1200)), names)) == {(tag, 1) for tag in TAGS}


def test_tags_of_which_urls_bear_any_are_dropped_and_the_page_is_kept() -> None:
    rules = learned(tagged(600))
    plain = key(rules, "news/item-9999")
    assert key(rules, "news/item-9999?utm_source=x&gclid=77&kwcid=b") == plain
    assert key(rules, "news/item-9999?" + "&".join(f"{tag}=1" for tag in TAGS)) == plain
    assert key(rules, "news/item-9999?page=2&sid=4") == key(rules, "news/item-9999?page=2") != plain


def test_so_are_tags_in_any_order() -> None:
    rules = learned(tagged(600, shuffled=True))
    assert key(rules, "news/item-9999?kwcid=b&utm_source=x&gclid=77") == key(rules, "news/item-9999")
    assert key(rules, "news/item-9999?gclid=1&page=2") == key(rules, "news/item-9999?page=2")


def test_a_crawl_of_them_saves_most_and_loses_nothing() -> None:
    rows = [CrawlRow(f"http://{HOST}/{path}", content) for path, content in tagged(1500)]
    said = replay(rows, order="random", seed=3)
    possible = 1 - len({row.content for row in rows}) / len(rows)
    assert said["skip_precision"] == 1.0
    assert said["lost_contents"] == 0
    assert said["reduction"] > 0.6 * possible


def test_a_tag_that_all_combinations_have_is_asked_for() -> None:
    # Given: tags that were only ever tried beside a commit's id, which makes each of them meaningless.
    dice = random.Random(2)
    pages: dict[str, int] = {}
    for file in range(400):
        pages[f"blame/{file}"] = file
        for _ in range(2):
            tags = sorted(dice.sample(TAGS, dice.randrange(5)), key=TAGS.index)
            pages[f"blame/{file}?id={dice.randrange(99)}" + "".join(f"&{tag}={dice.choice('ab')}" for tag in tags)] = (
                file
            )
    rules = learned(list(pages.items()))
    assert key(rules, "blame/7?id=3&ref=a&sid=b&ga=a") == key(rules, "blame/7")
    assert key(rules, "blame/7?ref=a&sid=b&ga=a") != key(rules, "blame/7")


def test_a_pool_of_a_parameter_that_matters_now_and_then_is_none() -> None:
    # Given: of every tenth article, the tag `ref` shows another text.
    pages = []
    for path, content in tagged(600):
        other = "ref=" in path and content // 10 % 10 == 0
        pages.append((path, content + 5 if other else content))
    names = Counter({(name, 1): 50 for name in TAGS})
    assert all(("ref", 1) not in pool for pool in pools(snapshot_of(pages), names))


def test_sixteen_parameters_that_matter_on_one_part_of_a_site() -> None:
    rows = shop(HOST, 3000)
    said = replay(rows)
    possible = 1 - len({row.content for row in rows}) / len(rows)
    assert said["skip_precision"] == 1.0
    assert said["lost_contents"] == 0
    assert said["reduction"] > 0.4 * possible


def test_a_pool_of_a_part_is_found_beside_that_of_the_site() -> None:
    rows = [(row.url.removeprefix(f"http://{HOST}/"), row.content) for row in shop(HOST, 8000)]
    found = pools(snapshot_of(rows), Counter({(name, 1): 50 for name in FILTERS + VIEWS}))
    assert [{name for name, _ in pool} for pool in found] == [{*FILTERS, *VIEWS}, {*VIEWS}]


def test_what_another_rule_drops_by_now_goes_out_of_a_pool() -> None:
    rows = [(row.url.removeprefix(f"http://{HOST}/"), row.content) for row in shop(HOST, 12000)]
    snapshot = snapshot_of(rows)
    everywhere = refine(snapshot, DropUnordered(tuple((name, 1) for name in VIEWS)))
    assert everywhere is not None
    accept(snapshot, everywhere)
    on_products = refine(snapshot, DropUnordered(tuple((name, 1) for name in FILTERS + VIEWS)))
    assert on_products is not None
    assert {name for name, _ in on_products.edit.own} == {*FILTERS}
    assert on_products.outcome.differed == 0
