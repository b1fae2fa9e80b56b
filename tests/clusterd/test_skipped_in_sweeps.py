"""Sweeps of crawls that skip: of each page they fetch one URL, not always the same; what they skipped is not lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.queries.stand_ins import Skipped
from clusterd_crawler.errors import NotFound
from clusterd_crawler.message import SkipReport
from clusterd_crawler.sketch import TEXT

from clusterd import queries
from tests.clusterd.made_up_rules import sid_rule
from tests.clusterd.made_up_site import DAY, Site, edited, url, words

HOST = "docs.example"
PAGES = 12


@pytest.fixture
def skipped(book: RuleBook) -> Skipped:
    RuleService(book).import_rules([sid_rule(HOST)], at=1)
    return Skipped(book)


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


def test_changes_counts_what_was_fetched_instead(site: Site, skipped: Skipped) -> None:
    first, second = queries.changes(site.index, TEXT, HOST, skipped)
    assert (first.unchanged, first.revised, first.moved, first.vanished, first.appeared) == (18, 2, 2, 2, 0)
    assert 0.5 < first.resemblance_quantiles["0.5"] < 0.8
    assert (second.unchanged, second.revised, second.moved, second.vanished, second.appeared) == (11, 0, 0, 0, 1)


def test_only_what_no_page_stands_for_is_lost(site: Site, skipped: Skipped) -> None:
    found = site.lost(skipped=skipped)
    assert {lost: one.match for lost, one in found.items()} == {
        **{sid("p1", session): None for session in (1, 2)},
        **{sid("p2", session): sid("renamed", 4) for session in (1, 2)},
    }


@pytest.mark.parametrize("path", ["p0", "p5"], ids=["revised", "unchanged"])
def test_who_asks_for_a_skipped_page_gets_the_one_that_was_fetched(site: Site, skipped: Skipped, path: str) -> None:
    (found,) = site.lost(sid(path, 1), skipped=skipped).values()
    assert (found.match, found.from_sweep, found.to_sweep) == (sid(path, 4), "first", "third")
    assert (found.resemblance == 1.0) == (path == "p5")
    with pytest.raises(NotFound, match="is not in the sweep second"):
        site.lost(sid(path, 1), skipped=skipped, from_sweep="second")
    site.add(sid(path, 9), words("first"), at=4 * DAY - 1, crawl="third")
    (found,) = site.lost(sid(path, 1), skipped=skipped).values()
    assert found.match == sid(path, 9)  # which was fetched first, so that the others were skipped for it


@pytest.mark.parametrize("to_sweep", ["second", "third"])
def test_so_he_does_of_one_that_was_written_anew_or_has_a_copy(site: Site, skipped: Skipped, to_sweep: str) -> None:
    """`changes` counts it as revised; of two sweeps nothing was said to be near, or the copy."""
    session = 3 if to_sweep == "second" else 4
    for n, at in (("anew", DAY), ("copied", DAY)):
        site.add(sid(n, 1), words(n), at=at, crawl="first")
    for crawl, later in (("second", 3), ("third", 4)):
        site.add(sid("anew", later), words("another"), at=later * DAY, crawl=crawl)
        site.add(sid("copied", later), edited(words("copied"), 40), at=later * DAY, crawl=crawl)
        site.add(sid("copy", later), words("copied"), at=later * DAY, crawl=crawl)
    for n in ("anew", "copied"):
        (found,) = site.lost(sid(n, 1), skipped=skipped, to_sweep=to_sweep).values()
        assert (found.match, found.to_sweep, found.via) == (sid(n, session), to_sweep, ())
        assert (found.resemblance < 0.02) == (n == "anew")
    assert not {sid("anew", 1), sid("copied", 1)} & site.lost(skipped=skipped, to_sweep=to_sweep).keys()


def test_without_rules_every_url_is_a_page_of_its_own(site: Site, book: RuleBook) -> None:
    nothing = Skipped(book)
    assert nothing.key_of(HOST) is None
    assert list(queries.changes(site.index, TEXT, HOST, nothing)) == list(queries.changes(site.index, TEXT, HOST))
    assert len(site.lost(skipped=nothing)) == 2 * PAGES + PAGES - 1


def test_of_many_hosts_only_those_that_have_rules_are_asked_for_them(
    site: Site, skipped: Skipped, book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(PAGES):
        for crawl, at in (("first", DAY), ("second", 3 * DAY)):
            site.add(f"http://www.{n}.example/", words(n), at=at, crawl=crawl)
    loads, load = [], book.load
    monkeypatch.setattr(book, "load", lambda host: (loads.append(host), load(host))[1])
    every = list(queries.changes(site.index, TEXT, skipped=skipped))
    assert loads == [HOST]
    assert [one for one in every if one.host == HOST] == list(queries.changes(site.index, TEXT, HOST, skipped))
    assert {one.host: one.unchanged for one in every if one.host != HOST} == {
        f"www.{n}.example": 1 for n in range(PAGES)
    }


def test_collections_hold_what_there_was(skipped: Skipped) -> None:
    """No rule stands between what was brought in from files: a print view that is gone is gone."""
    site = Site()
    for n in range(PAGES):
        site.add(url(f"p{n}"), words(n), "1", at=DAY)
        site.add(sid(f"p{n}", 1), words(n), "1", at=DAY)
        site.add(url(f"p{n}"), words(n), "2", at=2 * DAY)
    assert len(site.lost(skipped=skipped)) == PAGES


def test_rules_that_span_hosts_stand_in_too(site: Site, book: RuleBook) -> None:
    RuleService(book).import_rules([replace(sid_rule("example.org"), spans=True)], at=1)
    for n in range(PAGES):
        for session in (1, 2):
            page = f"http://www.example.org/{n}?sid={session}"
            site.add(page, words(f"org {n}"), at=session * DAY, crawl=f"{session}")
    (found,) = queries.changes(site.index, TEXT, "www.example.org", Skipped(book))
    assert (found.unchanged, found.moved, found.appeared) == (PAGES, 0, 0)


def test_what_a_crawl_skipped_for_an_earlier_one_s_pages_is_there(book: RuleBook) -> None:
    """`CLUSTERD_SKIP_WITHIN`: also what it did not ask for, since it did not follow the links of what it skipped."""
    site = Site()
    site.add(url("old"), words("old"), at=1, crawl="zero")
    for sweep, at in (("first", DAY), ("third", 3 * DAY)):
        for n in range(PAGES):
            if (n, sweep) != (1, "third"):
                site.add(url(f"p{n}"), words(n), at=at + n, crawl=sweep)
    for n in (0, 5):
        site.add(url(f"p{n}"), edited(words(n), 40), at=2 * DAY, crawl="second")
    site.add(url("new"), words("new"), at=2 * DAY, crawl="second")
    book.add_skips([SkipReport(url(p), "within", url(p), url(p), 2 * DAY, "second") for p in ("p7", "p2", "p9")])
    _, second, third = queries.changes(site.index, TEXT, HOST, Skipped(book))
    # Page 1 was fetched before page 2, so nobody knows that it would have been skipped.
    assert (second.unchanged, second.revised, second.moved, second.vanished, second.appeared) == (PAGES - 3, 2, 0, 1, 1)
    assert (third.unchanged, third.revised, third.moved, third.vanished, third.appeared) == (PAGES - 3, 2, 0, 1, 0)
    assert set(site.lost(skipped=Skipped(book), to_sweep="second")) == {url("old"), url("p1")}
    assert len(site.lost(to_sweep="second")) == PAGES - 1
