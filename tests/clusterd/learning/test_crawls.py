"""Pages of several crawls: what changed between two of them speaks neither for a rule nor against it."""

from __future__ import annotations

import random
import time
from array import array

import numpy as np
import pytest
from clusterd.learning.contract import Page
from clusterd.learning.evidence.columns import Novelty
from clusterd.learning.evidence.crawls import CRAWLS, Crawls
from clusterd.learning.learner import Learner
from clusterd.learning.names import NameEvidence
from clusterd.learning.rulebook.reservoir import reservoir, sightings
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.urls import parse

from tests.crawler.made_rules import key_under

HOST = "h.com"


def page(path: str, content: int, crawl: str, at: int = 0) -> Page:
    return Page(f"http://{HOST}{path}", content, fetched_at=at, crawl=crawl)


def rules_of(learner: Learner) -> RuleSet:
    return RuleSet(HOST, 1, learner.rules)


def merges(learner: Learner, first: str, second: str) -> bool:
    keys = {key_under(rules_of(learner), f"http://{HOST}{path}")[0] for path in (first, second)}
    return len(keys) == 1


def shown(learner: Learner, pages: list[Page]) -> Learner:
    """Show a learner pages one after the other, as a worker does."""
    for one in pages:
        learner.observe([one])
        if learner.due():
            learner.learn(1)
    return learner


def first_crawl() -> list[Page]:
    return [page(f"/view?t={n}" + (f"&sid={n}x{s}" if s else ""), n, "first") for n in range(60) for s in (0, 1)]


def test_a_rule_outlives_a_crawl_that_finds_most_pages_changed() -> None:
    # Given a rule of the first crawl, and a second one that finds half of the articles changed, each under one URL …
    learner = shown(Learner(HOST), first_crawl())
    assert merges(learner, "/view?t=3", "/view?t=3&sid=new")
    for n in range(60):
        learner.observe([page(f"/view?t={n}", n + 1000 * (n % 2), "second")])
        learner.learn(2)
        # … then the rule stays, since nobody has seen its pages differ.
        assert merges(learner, "/view?t=3", "/view?t=3&sid=new"), n
    # And so in a third one, in which what the second changed changes again.
    shown(learner, [page(f"/view?t={n}", n + 5000, "third") for n in range(60)])
    assert merges(learner, "/view?t=3", "/view?t=3&sid=new")


def test_pages_that_one_crawl_sees_differ_end_the_rule() -> None:
    learner = shown(Learner(HOST), first_crawl())
    second = [
        page(f"/view?t={n}" + (f"&sid={n}x{s}" if s else ""), n + 1000 * s, "2") for n in range(60) for s in (0, 1)
    ]
    learner.observe(second)
    learner.learn(2)
    assert not merges(learner, "/view?t=3", "/view?t=3&sid=3x1")


def test_nothing_is_learned_of_pages_that_no_crawl_saw_beside_each_other() -> None:
    # Given a parameter that matters for every fourth record, with other values in each crawl, each record once a crawl.
    def crawl(number: int) -> list[Page]:
        return [
            page(f"/rec?id={n}&b={number}x{n}", n if n % 4 else 1000 * (number + 1) + n, str(number))
            for n in range(200)
        ]

    learner = shown(Learner(HOST), [one for number in range(3) for one in crawl(number)])
    # To count the three that agree and not the fourth, which may have changed between the crawls, would make a rule.
    assert learner.rules == ()


def test_what_agrees_between_crawls_counts_no_more_than_what_differs() -> None:
    # Given records of one crawl, and then under other values of a parameter; three of four show what they showed.
    learner = Learner(HOST)
    for number in (1, 2):
        learner.observe(
            page(f"/rec?id={n}&b={number}", n if n % 4 else 1000 * number + n, str(number)) for n in range(200)
        )
        learner.learn(1)
    assert learner.rules == ()


def test_session_ids_of_a_crawl_are_not_judged_by_those_of_the_crawl_before() -> None:
    dice = random.Random(1)
    learner = Learner(HOST)
    for number in range(3):
        crawl = [page(f"/a/{n}?sid={dice.getrandbits(60):x}", n + 1000 * number, str(number)) for n in [*range(60)] * 3]
        dice.shuffle(crawl)
        shown(learner, crawl)
        assert merges(learner, "/a/3?sid=new", "/a/3?sid=newer")


def test_duplicates_not_fetched_again_follow_those_that_are() -> None:
    contents = array("q", [0, 0, 1, 1, 2, 2, 3])
    crawls = Crawls()
    for _ in contents:
        crawls.first(crawls.begin("first", contents))
    present, seen = crawls.present(np.array(contents))
    assert present.tolist() == list(contents)
    assert seen is None

    bit = crawls.begin("second", contents)
    for row, now in ((0, 0), (2, 5), (4, 6), (5, 7)):
        crawls.again(row, bit, contents[row], now)
        contents[row] = now
    present, seen = crawls.present(np.array(contents))
    # Unchanged; changed; two that have come to differ; one of which nothing new is known.
    assert present.tolist() == [0, 0, 5, 5, 6, 7, 3]
    assert seen is None  # (The first crawl has seen them all, and what it saw of them still holds.)

    # A third crawl finds 5 changed under one URL, and comes to a new page.
    bit = crawls.begin("third", contents)
    crawls.first(bit)
    contents.append(8)
    crawls.again(3, bit, contents[3], 9)
    contents[3] = 9
    present, seen = crawls.present(np.array(contents))
    assert present.tolist() == [0, 0, 9, 9, 6, 7, 3, 8]
    assert seen is not None
    assert seen.tolist() == [3, 3, 7, 7, 3, 3, 1, 4]


def test_what_was_taken_back_or_an_earlier_crawl_fetches_late_says_nothing_of_its_like() -> None:
    contents = array("q", [0, 0, 0, 1, 1])
    crawls = Crawls()
    first = crawls.begin("first", contents)
    for _ in contents[:4]:
        crawls.first(first)
    # Two pages in whose place a wall was shown, as it is to say nothing also where no other crawl has come yet, …
    crawls.take_back(0)
    crawls.take_back(1)
    assert np.array_equal(crawls.present(np.array(contents))[1], [0, 0, 1, 1])  # type: ignore[arg-type]
    # … of which the next one fetches one; and a page that it was the first to fetch.
    second = crawls.begin("second", contents)
    crawls.first(second)
    for row, bit, now in ((0, second, 5), (4, first, 6)):
        crawls.again(row, bit, contents[row], now)
        contents[row] = now
    present, seen = crawls.present(np.array(contents))
    assert present.tolist() == [5, 0, 0, 1, 6]
    assert np.array_equal(seen, [2, 0, 1, 1, 3])  # type: ignore[arg-type]
    # What follows the page of that text is not what was a wall.
    crawls.again(2, second, contents[2], 7)
    contents[2] = 7
    present, seen = crawls.present(np.array(contents))
    assert present.tolist() == [5, 0, 7, 1, 6]
    assert np.array_equal(seen, [2, 0, 3, 1, 3])  # type: ignore[arg-type]


def test_what_has_come_to_differ_says_nothing_of_its_like_that_was_not_fetched() -> None:
    contents = array("q", [0, 0, 0])
    crawls = Crawls()
    for _ in contents:
        crawls.first(crawls.begin("first", contents))
    bit = crawls.begin("second", contents)
    for row, now in ((0, 0), (1, 1)):
        crawls.again(row, bit, contents[row], now)
        contents[row] = now
    for crawl in ("second", "third", "fourth"):
        crawls.begin(crawl, contents)
        _, seen = crawls.present(np.array(contents))
        assert seen is not None
        assert seen.tolist() == [3, 3, 0]


def test_crawls_without_end_are_told_apart() -> None:
    contents = array("q", [0, 1])
    crawls = Crawls()
    for number in range(3 * CRAWLS):
        bit = crawls.begin(str(number), contents)
        assert 0 < bit < 1 << CRAWLS
        if not number:
            crawls.first(bit)
            crawls.first(bit)
        else:
            crawls.again(0, bit, contents[0], contents[0])
    _, seen = crawls.present(np.array(contents))
    assert seen is not None  # The first crawl, the only one that saw the second page, is forgotten.
    assert seen[1] == 0


@pytest.mark.parametrize("before", [1, CRAWLS - 1])
def test_the_latest_crawl_decides_however_many_came_before(before: int) -> None:
    def crawl(name: str, version: int, printed: int) -> list[Page]:
        urls = [(n, f"/view?t={n}&sid={n}{name}{s}{p}", p) for n in range(60) for s in (0, 1) for p in ("", "&print=1")]
        return [page(url, n + version + printed * bool(p), name) for n, url, p in urls]

    # Given a crawl that finds the printed articles to be the others, after as many as can be told apart with it …
    learner = Learner(HOST)
    learner.observe(page("/other", number, str(number)) for number in range(before))
    learner.observe(crawl("last but one", 1000, 0))
    learner.learn(1)
    assert merges(learner, "/view?t=3&sid=new", "/view?t=3&sid=new&print=1")
    # … and one that finds each of them to be another page, under new session ids.
    learner.observe(crawl("last", 2000, 500))
    learner.learn(2)
    assert merges(learner, "/view?t=3&sid=new", "/view?t=3&sid=newer")
    assert not merges(learner, "/view?t=3&sid=new", "/view?t=3&sid=new&print=1")


def test_many_crawls_of_one_host_at_a_time_teach_what_one_does() -> None:
    dice = random.Random(1)
    topics = [dice.randrange(100) for _ in range(1200)]
    pages = [page(f"/t?t={topic}&sid={n}", topic + 1, f"crawl{n % 12}", n) for n, topic in enumerate(topics)]
    assert merges(shown(Learner(HOST), pages), "/t?t=5&sid=x", "/t?t=5&sid=y")


def test_what_crawls_have_brought_is_counted_and_forgotten_with_them() -> None:
    known = Novelty()
    for number in range(3 * CRAWLS):
        assert [known.add(f"crawl{number}", content) for content in (1, 2, 1)] == [True, True, False]
        assert len(known) == 2 * min(number + 1, CRAWLS)


def test_a_crawl_that_begins_costs_little_on_a_large_host() -> None:
    contents = array("q", range(50_000))
    crawls = Crawls()
    for _ in contents:
        crawls.first(1)
    began = time.perf_counter()
    assert all(number >= 0 for number in contents)
    one_by_one = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(CRAWLS + 200):  # of more than are told apart, one begins anew with nearly each page
        crawls.begin(str(number), contents)
    assert time.perf_counter() - began < 50 * one_by_one


def test_names_are_not_disbelieved_since_pages_changed_between_crawls() -> None:
    evidence = NameEvidence()

    def see(url: str, content: int, crawl: str, names: str = "") -> None:
        evidence.observe(url, content, parse_names(names), parse(url), crawl)

    for n in range(20):
        see(f"http://h.com/2020/slug{n}/index.html", n, "first", f"shortlink=http://h.com/?p={n}")
        see(f"http://h.com/?p={n}", n, "first")
    for n in range(20):
        see(f"http://h.com/2020/slug{n}/index.html", n + 100, "second", f"shortlink=http://h.com/?p={n}")
    (rule,) = evidence.rules(HOST, "identical", 1)
    assert rule.precision == 1.0
    for n in range(20):
        see(f"http://h.com/?p={n}", n + 200, "second")
    assert list(evidence.rules(HOST, "identical", 1)) == []


def test_a_log_that_is_packed_makes_the_same_rules() -> None:
    pages = first_crawl()
    pages += [page(f"/view?t={n}", n + 1000 * crawl, str(crawl)) for crawl in (2, 3, 4, 5, 6) for n in range(60)]
    pages = [page(one.url.removeprefix(f"http://{HOST}"), one.content, one.crawl, at) for at, one in enumerate(pages)]
    packed = sightings(pages)
    # Of the pages fetched again the first crawl's fetch stays too, and the last.
    assert len(packed) == 180
    assert [one.fetched_at for one in packed] == sorted(one.fetched_at for one in packed)
    assert sightings(packed) == packed
    for log in (pages, packed):
        assert merges(shown(Learner(HOST), log), "/view?t=3", "/view?t=3&sid=new")


def test_a_log_that_is_cut_keeps_all_fetches_of_the_pages_that_stay() -> None:
    pages = [page(f"/f{n % 20}/{n}", n, "1", n) for n in range(400)]
    pages += [page(f"/f{n % 20}/{n}", n, "2", 1000 + n) for n in range(300)]
    kept = reservoir(pages, 200)
    assert 150 < len(kept) <= 200
    assert {(one.url, one.crawl) for one in kept} == {
        (one.url, one.crawl) for one in pages if one.url in {p.url for p in kept}
    }


def test_a_rule_outlives_crawls_that_fetch_each_page_once_under_new_session_ids() -> None:
    # Given a rule about session ids, of which every crawl gets new ones; it keeps each article's second URL out …
    learner = shown(Learner(HOST), first_crawl())
    for crawl in ("2", "3", "4"):
        for n in range(60):
            # … (one article in two has changed since the crawl before) …
            learner.observe([page(f"/view?t={n}&sid={n}y{crawl}", n + 1000 * int(crawl) * (n % 2), crawl)])
            learner.learn(2)
            # … then it stays: what the first crawl saw is contradicted by nobody.
            assert merges(learner, "/view?t=3", "/view?t=3&sid=new"), (crawl, n)


def test_what_a_crawl_fetched_twice_decides_over_what_earlier_ones_saw() -> None:
    learner = shown(Learner(HOST), first_crawl())
    learner.observe([page(f"/view?t={n}&sid={n}y{s}", n + 1000 * s, "2") for n in range(60) for s in (0, 1)])
    learner.learn(2)
    assert not merges(learner, "/view?t=3", "/view?t=3&sid=3x1")


def test_a_family_of_one_page_outlives_a_crawl_that_fetches_one_of_it() -> None:
    def login(numbers: range, crawl: str) -> list[Page]:
        return [page(f"/login?return=p{n}", 7, crawl) for n in numbers]

    learner = shown(Learner(HOST), first_crawl() + login(range(300), "first"))
    learner.learn(1)
    assert merges(learner, "/login?return=p8000", "/login?return=p9000")
    learner.observe([page("/view?t=1", 1, "2"), *login(range(1000, 1001), "2")])
    learner.learn(2)
    assert merges(learner, "/login?return=p8000", "/login?return=p9000")
    # What the crawl sees beside that page speaks against the family.
    learner.observe(page(f"/login?return=p{2000 + n}", 5000 + n, "2") for n in range(20))
    learner.learn(3)
    assert not merges(learner, "/login?return=p8000", "/login?return=p9000")


def test_a_page_that_shows_an_older_content_again_does_not_keep_its_host_from_being_learned() -> None:
    # Given a second crawl whose first page shows what another page showed, and no longer the content met last.
    learner = shown(Learner(HOST), [*first_crawl(), page("/last", 60, "first")])
    learner.observe([page("/last", 3, "second")])
    learner.learn(2)
    assert merges(learner, "/view?t=3", "/view?t=3&sid=new")
