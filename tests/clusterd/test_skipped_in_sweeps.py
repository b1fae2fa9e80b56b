"""Sweeps of crawls that skip: of each page they fetch one URL, not always the same; what they skipped is not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterd.learning.rulebook.memory import MemoryRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.queries.stand_ins import KeysOf, keys_under
from clusterd_crawler.errors import NotFound
from clusterd_crawler.sketch import TEXT

from clusterd import queries
from tests.clusterd.made_up_rules import sid_rule
from tests.clusterd.made_up_site import DAY, Site, edited, url, words

HOST = "docs.example"
PAGES = 12


@pytest.fixture
def keys_of() -> KeysOf:
    book = MemoryRuleBook()
    RuleService(book).import_rules([sid_rule(HOST)], at=1)
    return keys_under(book)


def sid(path: str, session: int) -> str:
    return url(f"{path}?sid={session}")


@pytest.fixture
def site() -> Site:
    """Three crawls: the first fetched each page twice, the later ones once each, under other sessions.

    Page 0 is revised in the second, page 1 gone from it on, page 2 renamed in it; page `new` came with the third.
    """
    site = Site()
    for n in range(PAGES):
        for session in (1, 2):
            site.add(sid(f"p{n}", session), words(n), at=DAY + session, crawl="first")
    for crawl, session in (("second", 3), ("third", 4)):
        at = session * DAY
        site.add(sid("p0", session), edited(words(0), 40), at=at, crawl=crawl)
        site.add(sid("renamed", session), words(2), at=at, crawl=crawl)
        for n in range(3, PAGES):
            site.add(sid(f"p{n}", session), words(n), at=at, crawl=crawl)
    site.add(sid("new", 4), words("new"), at=4 * DAY, crawl="third")
    return site


def test_changes_counts_what_was_fetched_instead(site: Site, keys_of: KeysOf) -> None:
    first, second = queries.changes(site.index, TEXT, HOST, keys_of)
    assert (first.unchanged, first.revised, first.moved, first.vanished, first.appeared) == (18, 2, 2, 2, 0)
    assert 0.5 < first.resemblance_quantiles["0.5"] < 0.8
    assert (second.unchanged, second.revised, second.moved, second.vanished, second.appeared) == (11, 0, 0, 0, 1)


def test_only_what_no_page_stands_for_is_lost(site: Site, keys_of: KeysOf) -> None:
    found = site.lost(keys_of=keys_of)
    assert {lost: one.match for lost, one in found.items()} == {
        **{sid("p1", session): None for session in (1, 2)},
        **{sid("p2", session): sid("renamed", 4) for session in (1, 2)},
    }


@pytest.mark.parametrize("path", ["p0", "p5"], ids=["revised", "unchanged"])
def test_who_asks_for_a_skipped_page_gets_the_one_that_was_fetched(site: Site, keys_of: KeysOf, path: str) -> None:
    (found,) = site.lost(sid(path, 1), keys_of=keys_of).values()
    assert (found.match, found.from_sweep, found.to_sweep) == (sid(path, 4), "first", "third")
    assert (found.resemblance == 1.0) == (path == "p5")
    with pytest.raises(NotFound, match="is not in the sweep second"):
        site.lost(sid(path, 1), keys_of=keys_of, from_sweep="second")


def test_without_rules_every_url_is_a_page_of_its_own(site: Site) -> None:
    nothing = keys_under(MemoryRuleBook())
    assert nothing(HOST) is None
    assert list(queries.changes(site.index, TEXT, HOST, nothing)) == list(queries.changes(site.index, TEXT, HOST))
    assert len(site.lost(keys_of=nothing)) == 2 * PAGES + PAGES - 1


def test_collections_hold_what_there_was(keys_of: KeysOf) -> None:
    """No rule stands between what was brought in from files: a print view that is gone is gone."""
    site = Site()
    for n in range(PAGES):
        site.add(url(f"p{n}"), words(n), "1", at=DAY)
        site.add(sid(f"p{n}", 1), words(n), "1", at=DAY)
        site.add(url(f"p{n}"), words(n), "2", at=2 * DAY)
    assert len(site.lost(keys_of=keys_of)) == PAGES


def test_rules_that_span_hosts_stand_in_too(site: Site) -> None:
    book = MemoryRuleBook()
    RuleService(book).import_rules([replace(sid_rule("example.org"), spans=True)], at=1)
    for n in range(PAGES):
        for session in (1, 2):
            page = f"http://www.example.org/{n}?sid={session}"
            site.add(page, words(f"org {n}"), at=session * DAY, crawl=f"{session}")
    (found,) = queries.changes(site.index, TEXT, "www.example.org", keys_under(book))
    assert (found.unchanged, found.moved, found.appeared) == (PAGES, 0, 0)
