"""Families of several combinations of a few values, each too small to be a family by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, product

import numpy as np
import pytest
from clusterd.learning.contract import Page
from clusterd.learning.evidence.columns import Evidence
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.families.joint import ALONE, EACH, OF_ONE, TRIALS
from clusterd.learning.families.one_page import FAMILY, families
from clusterd.learning.learner import Learner
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.urls import canonical, parse

from tests.clusterd.learning.one_host import learned_of
from tests.crawler.made_rules import key_under

Crawl = list[tuple[str, int]]
SPACES = ("alpha", "beta", "gamma")
TABS = ("files", "search", "upload")


def media(pages: int, content: Callable[[str, str, int], int], tabs: Iterable[str] = TABS[:2]) -> Crawl:
    """Return a wiki's media manager: from each of so many pages, every namespace under every tab."""
    numbers = count(1)
    return [
        (f"/doku.php?do=media&ns={space}&tab={tab}&id=page{number}", content(space, tab, number))
        for space, tab in product(SPACES, tabs)
        for number in (next(numbers) for _ in range(pages))
    ]


def by_combination(space: str, tab: str, number: int) -> int:
    """Return the content of a page that its ``id`` has no part in."""
    return SPACES.index(space) * 10 + TABS.index(tab)


def learned(crawl: Crawl) -> RuleSet:
    return learned_of("h.com", ((f"http://h.com{path}", content) for path, content in crawl))


def proposed(crawl: Crawl) -> int:
    """Return how many families the evidence says."""
    evidence = Evidence()
    for path, content in crawl:
        url = canonical(f"http://h.com{path}")
        evidence.add(url, content, parse(url))
    return len(list(families(Snapshot(evidence))))


def same(rules: RuleSet, first: str, second: str) -> bool:
    return key_under(rules, f"http://h.com{first}")[0] == key_under(rules, f"http://h.com{second}")[0]


def test_small_combinations_are_a_family_together() -> None:
    rules = learned(media(6, by_combination))
    alpha, other = "/doku.php?do=media&ns=alpha&tab=files&id=", "/doku.php?do=media&ns=beta&tab=files&id="
    assert same(rules, alpha + "page1", alpha + "page999")
    assert same(rules, other + "page1", other + "page999")
    assert not same(rules, alpha + "page1", other + "page1")
    assert not same(rules, alpha + "page1", alpha.replace("files", "upload") + "page1")
    assert not same(rules, alpha + "page1", "/doku.php?do=media&ns=delta&tab=files&id=page1")


def test_a_session_in_the_path_is_as_one_in_the_query() -> None:
    """Of 25 lists, each under 40 sessions, no two contents more than 50 trials: every session was fetched."""
    rules = learned([(f"/list.do;jsessionid=A{n}?cat={n % 25}", n % 25) for n in range(1000)])
    new = [key_under(rules, f"http://h.com/list.do;jsessionid=A{n}?cat=7")[0] for n in (8001, 8002)]
    assert new[0] == new[1]
    assert new[0] != key_under(rules, "http://h.com/list.do;jsessionid=A8001?cat=8")[0]
    rules = learned([(f"/login.do;jsessionid=A{n}", 1) for n in range(200)])
    assert len({key_under(rules, f"http://h.com/login.do;jsessionid=A{n}000")[0] for n in (1, 2)}) == 1


def test_too_few_trials_together_are_no_family() -> None:
    each = 1 + (TRIALS - 1) // 6
    assert each >= EACH
    assert proposed(media(each, by_combination)) == 0
    assert proposed(media(each + 1, by_combination)) == 1


def test_values_whose_pages_differ_are_left_out() -> None:
    def content(space: str, tab: str, number: int) -> int:
        return 100 + number if space == "gamma" else by_combination(space, tab, number)

    rules = learned(media(12, content, TABS))
    alpha, gamma = "/doku.php?do=media&ns=alpha&tab=files&id=", "/doku.php?do=media&ns=gamma&tab=files&id="
    assert same(rules, alpha + "page1", alpha + "page999")
    assert not same(rules, gamma + "page1", gamma + "page999")
    assert [rule.coverage for rule in rules.rules] == [2 * len(TABS) * 12]


def test_a_clean_value_among_many_that_are_not_is_luck() -> None:
    def content(space: str, tab: str, number: int) -> int:
        return 7 if space == "alpha" else 100 + number // 2

    assert proposed(media(8, content)) == 0


@pytest.mark.parametrize(("every", "families_of"), [(12, 0), (1000, 1)])
def test_clean_values_are_luck_where_others_seldom_differ(every: int, families_of: int) -> None:
    tabs = [f"tab{number}" for number in range(6)]

    def content(space: str, tab: str, number: int) -> int:
        return SPACES.index(space) * 10 + tabs.index(tab) if number % every or space == "alpha" else 1000 + number

    assert proposed(media(6, content, tabs)) == families_of


@pytest.mark.parametrize("seen_of_it", [0, EACH - 1])
def test_combinations_that_were_not_seen_often_are_not_covered(seen_of_it: int) -> None:
    crawl = media(9, by_combination, TABS)
    rare = [page for page in crawl if "ns=alpha&tab=upload" in page[0]]
    rules = learned([page for page in crawl if page not in rare[seen_of_it:]])
    unseen = "/doku.php?do=media&ns=alpha&tab=upload&id="
    assert not same(rules, unseen + "page1", unseen + "page999")
    seen = "/doku.php?do=media&ns=beta&tab=files&id="
    assert same(rules, seen + "page1", seen + "page999")


def test_combinations_of_which_no_value_has_all_are_no_family() -> None:
    crawl = media(20, by_combination, TABS)
    paired = [
        page for page in crawl if any(f"ns={ns}&tab={tab}" in page[0] for ns, tab in zip(SPACES, TABS, strict=True))
    ]
    assert proposed(crawl) > 0
    assert proposed(paired) == 0


def test_random_contents_are_no_family() -> None:
    chance = np.random.default_rng(3)
    for _ in range(30):
        assert proposed(media(9, lambda space, tab, number: int(chance.integers(3)))) == 0


def test_one_content_has_to_be_tried_as_often_as_an_open_parameter() -> None:
    # Given: a log that is empty for nearly every page, whichever type is asked for.
    def empty(space: str, tab: str, number: int) -> int:
        return 7

    # When, then: a few trials of each combination are no family, as many as an open parameter asks for are.
    each = ALONE // 6
    assert proposed(media(each, empty)) == 0
    assert proposed(media(each + 2, empty)) == 1


def test_a_parameter_of_one_value_asks_for_no_fewer_pages_of_a_family() -> None:
    # Given: tags of which nothing was written yet, always linked in one order.
    def tags(pages: int) -> Crawl:
        return [(f"/tag?t={number}&sort=new", 7) for number in range(pages)]

    # When, then
    assert proposed(tags(FAMILY - 1)) == 0
    assert proposed(tags(FAMILY)) == 1


def test_a_wall_that_other_forms_show_too_is_known_sooner() -> None:
    # As several contents are, and no sooner.
    each = TRIALS // 6 + 1
    assert [proposed([*media(pages, lambda *page: 7), ("/login.php", 7)]) for pages in (each, each + 1)] == [0, 1]


def test_an_empty_tab_of_another_script_makes_no_wall() -> None:
    """Some reports had no reviews, in the words in which an article has none: those of all others were lost."""
    reports = [(f"/report.php?id={number}&tab=reviews", 7) for number in range(ALONE // 2)]
    assert proposed([*reports, ("/article.php?nr=5&tab=reviews", 7)]) == 0
    assert proposed([*reports, ("/article.php?nr=5&tab=history", 7)]) == 1


@pytest.mark.parametrize("walls", [1, TRIALS // OF_ONE])
def test_walls_lend_no_trials_to_what_is_empty_for_most_values(walls: int) -> None:
    """That every article's wish list asks for a log-in does not tell which articles have reviews."""
    each = ALONE // 2 + 1
    logins = [(f"/login.php?for={wall}", 10 + wall) for wall in range(walls)]
    wishes = [(f"/shop?do=wish{wall}&id={number}", 10 + wall) for wall in range(walls) for number in range(each)]
    reviews = [(f"/shop?do=reviews&id={number}", 8) for number in range(each)]

    rules = learned([*logins, *wishes, *reviews])

    assert same(rules, "/shop?do=wish0&id=1", "/shop?do=wish0&id=999")
    assert not same(rules, "/shop?do=reviews&id=1", "/shop?do=reviews&id=999")


def test_few_texts_are_believed_each_on_its_own_trials() -> None:
    """A calendar that was followed into its empty years shows one page as a day, a week, a month and a list."""

    def views(pages: int) -> Crawl:
        return [(f"/calendar?date={n}&view={view}", view) for view in range(4) for n in range(pages)]

    assert [proposed(views(pages)) for pages in (2 * ALONE // 4, ALONE, FAMILY)] == [0, 0, 4]


def test_several_contents_do_without_a_wall_beside_them() -> None:
    wishes = [(f"/doku.php?do=wish&ns={space}&tab=files&id={n}", 7) for space in SPACES for n in range(EACH)]
    rules = learned([("/login.php", 7), *wishes, *media(6, by_combination)])
    alpha = "/doku.php?do=media&ns=alpha&tab=files&id="
    assert same(rules, alpha + "page1", alpha + "page999")


def test_what_a_family_shows_that_no_page_beside_it_does_ends_it() -> None:
    """Of 400 empty months three are not, within one in a hundred: these are all that the calendar has."""
    calendar = [(f"/months?y={year}", 7 if year < 397 else year) for year in range(400)]
    events = [(f"/events/{year}", year) for year in (397, 398, 399)]
    assert [proposed([*calendar, *events[:known]]) for known in (0, 2, 3)] == [0, 0, 1]


def test_what_the_crawl_has_taken_back_is_no_family() -> None:
    wall = 7
    urls = [f"http://h.com{path}" for path, _ in media(2 * EACH, lambda *_: wall)]
    learner = Learner("h.com")
    learner.observe(Page(url, wall, crawl="one") for url in (*urls, "http://h.com/login"))
    assert learner.learn(1) is not None
    learner.observe(Page(url, wall, crawl="one", state="failed") for url in urls)
    learner.learn(2)
    assert not learner.rules


def crawled(learner: Learner, crawl: str, pages: int, content: Callable[[str, str, int], int]) -> None:
    """Let a crawl fetch so many pages of each combination, of ``id``s that no other has met."""
    urls = [(path.replace("id=page", f"id={crawl}"), shown) for path, shown in media(pages, content)]
    learner.observe(Page(f"http://h.com{path}", shown, crawl=crawl) for path, shown in urls)
    learner.learn(1)


def test_what_a_combination_shows_may_change_from_crawl_to_crawl() -> None:
    learner = Learner("h.com")
    crawled(learner, "one", 6, by_combination)
    (before,) = learner.rules
    for crawl, changed in (("two", 100), ("three", 200)):
        crawled(learner, crawl, 1, lambda *page, changed=changed: changed + by_combination(*page))  # type: ignore[misc]
        assert [rule.transformation for rule in learner.rules] == [before.transformation]


def test_what_differs_in_a_later_crawl_counts() -> None:
    learner = Learner("h.com")
    crawled(learner, "one", 6, by_combination)
    crawled(learner, "two", 3, lambda space, tab, number: 100 + number)
    assert not learner.rules
