"""Walls in the evidence: what a site shows for a while in place of pages is taken back, without the spider's help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd.learning.rulebook.arrivals import Arrivals
from clusterd.learning.rulebook.met import cut_contents
from clusterd.learning.rulebook.recall import ROWS, Recall
from clusterd.learning.watch import STRIKES
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.rows import GAP

HOST = "h.example"
H = f"http://{HOST}"
WALL = 99
#: Articles, each without a session and in one.
ARTICLES = 60


def crawled(wall: int = WALL, crawl: str = "one") -> list[Page]:
    """Return the pages of a crawl: articles with sessions, of which some in the middle show a wall."""
    shown = [(n, sid, 1_000 + n) for n in range(ARTICLES) for sid in ("", f"&sid=x{n}")]
    shown += [(n, f"&sid=y{n}", wall) for n in range(ARTICLES // 2)]
    shown += [(n, f"&sid=z{n}", 1_000 + n) for n in range(ARTICLES)]
    return [
        Page(f"{H}/a?t={n}{sid}", content, fetched_at=1 + 10 * at, crawl=crawl)
        for at, (n, sid, content) in enumerate(shown)
    ]


def trials_of(pages: Iterable[Page]) -> list[Page]:
    """Return pages that were fetched to watch a rule, in place of skips on these, and show something else."""
    return [
        replace(page, url=f"{page.url}&r=1", content=7_000 + n, fetched_at=9_000 + n, explored="r", instead_of=page.url)
        for n, page in enumerate(pages)
    ]


def rules(recall: Recall) -> list[str]:
    recall.learner.learn(1)
    assert isinstance(recall.learner, Learner)
    return [str(rule.transformation[0]) for rule in recall.learner.rules]


@pytest.fixture
def recall() -> Recall:
    return Recall(Learner(HOST), arrivals=Arrivals(HOST))


def test_a_rule_that_a_wall_has_ended_comes_back(recall: Recall) -> None:
    pages = crawled()
    recall.show(pages[: 2 * ARTICLES])
    assert rules(recall) == ["delete ?sid"]
    recall.show(pages[2 * ARTICLES :])
    assert rules(recall) == []
    gone = recall.taken_back()
    assert {page.url for page in gone} == {page.url for page in pages if page.content == WALL}
    assert recall.taken_back() == []
    recall.show(gone)
    assert rules(recall) == ["delete ?sid"]
    # It was no spider that took them back: what comes next waits for none.
    recall.show([last := Page(f"{H}/last", 5, fetched_at=9_999, crawl="one")])
    assert not recall.standing
    assert recall.arrivals.content_of(last.url) == 5


def test_a_learner_that_is_rebuilt_takes_back_nothing_once_more(recall: Recall) -> None:
    recall.show(pages := crawled())
    again = Recall(Learner(HOST), arrivals=Arrivals(HOST))
    again.show([*pages, *recall.taken_back()])
    assert again.taken_back() == []
    assert rules(again) == ["delete ?sid"]


def test_what_was_fetched_again_since_is_not_taken_back(recall: Recall) -> None:
    pages = crawled()
    walls = [page for page in pages if page.content == WALL]
    recall.show(
        [*pages, replace(walls[0], content=1_000, fetched_at=9_000), replace(walls[1], crawl="two", fetched_at=9_001)]
    )
    assert {page.url for page in recall.taken_back()} == {page.url for page in walls[2:]}


def test_each_crawl_has_its_rows() -> None:
    # Given two crawls whose pages come in turn, of which one is shown walls …
    one, two = crawled(), crawled(1_000_000, "two")
    two = [replace(page, content=8_000 + n) if page.content == 1_000_000 else page for n, page in enumerate(two)]
    pages = [page for both in zip(one, two, strict=True) for page in both]
    recall = Recall(Learner(HOST))
    recall.show(replace(page, url=f"{page.url}&c={page.crawl}") for page in pages)
    assert {page.crawl for page in recall.taken_back()} == {"one"}
    # … then those of a few crawls are followed.
    recall.show(Page(f"{H}/{n}", n, fetched_at=9_000 + n, crawl=f"c{n}") for n in range(3 * ROWS))
    assert len(recall.rows) == ROWS


def test_what_differs_from_a_page_that_may_have_shown_a_wall_is_no_trial(recall: Recall) -> None:
    # Given a wall that lasts, on which a rule has rested …
    pages = [page for page in crawled() if "sid=z" not in page.url]
    trials = trials_of(page for page in pages if page.content == WALL)
    recall.show([*pages, *trials[:9]])
    assert recall.failing() == {}
    assert not recall.waits
    # … then what its pages show otherwise speaks against it no more than once they are taken back.
    recall.show(Page(f"{H}/a?t={n}&sid=z{n}", 1_000 + n, fetched_at=9_500 + n, crawl="one") for n in range(GAP))
    gone = recall.taken_back()
    assert recall.failing() == {}
    recall.show(gone)
    recall.show(trials[9:])
    assert recall.failing() == {}
    assert recall.trials == {"r": [0, 0]}


def test_what_differs_from_a_row_that_is_no_wall_speaks_against_a_rule(recall: Recall) -> None:
    # Given a row on which a rule rests, in place of pages or so it seems …
    pages = [page for page in crawled() if "sid=z" not in page.url]
    trials = trials_of(page for page in pages if page.content == WALL)
    recall.show([*pages, *trials[:9]])
    assert recall.failing() == {}
    # … then what differs from it counts once that comes again among others.
    recall.show(
        Page(f"{H}/a?t={n}&sid=z{n}", WALL if n % 9 == 0 else 1_000 + n, fetched_at=9_500 + n, crawl="one")
        for n in range(3 * GAP)
    )
    assert recall.taken_back() == []
    assert recall.failing() == {"r": "9 of 9 watched pages differed"}


def test_what_differs_from_a_family_of_one_page_speaks_against_a_rule_at_once(recall: Recall) -> None:
    family = [Page(f"{H}/login?back={n}", WALL, fetched_at=5_000 + n, crawl="one") for n in range(40)]
    recall.show([*(page for page in crawled() if page.content != WALL), *family, *trials_of(family)[:9]])
    assert recall.failing() == {"r": "9 of 9 watched pages differed"}


def test_what_was_met_before_the_log_was_cut_is_no_wall(recall: Recall) -> None:
    pages = crawled()
    recall.met.add({crawl: [packed] for crawl, packed in cut_contents([replace(pages[0], content=WALL)], []).items()})
    recall.show(pages)
    assert recall.taken_back() == []


def test_a_rule_by_names_that_a_wall_has_ended_comes_back() -> None:
    learner = Learner(HOST)
    posts = [Page(f"{H}/v?p={5_000 + n}", WALL if n >= 70 else 1_000 + n, crawl="one") for n in range(100)]
    for n, post in enumerate(posts):
        topic = Page(f"{H}/v?t={n}", 1_000 + n, names=parse_names(f"anchor=p{5_000 + n}"), crawl="one")
        learner.observe([topic, post])
    learner.learn(1)
    assert not [rule for rule in learner.rules if rule.kind == "name"]
    learner.observe(replace(post, state="failed") for post in posts[70:])
    learner.learn(2)
    assert [rule.name for rule in learner.rules if rule.kind == "name"] == ["anchor"]


@pytest.mark.parametrize("gone", ["trials", "known pages"])
def test_trials_that_were_taken_back_retire_no_rule_with_later_ones(recall: Recall, gone: str) -> None:
    pages = crawled()[: 2 * ARTICLES]
    recall.show(pages)
    assert rules(recall) == ["delete ?sid"]
    assert isinstance(recall.learner, Learner)
    watched = [page for page in pages if "sid" not in page.url][:STRIKES]
    # Each shows another text, as a captcha with a number does, and none of the host was taken back before …
    trials = [replace(page, explored=recall.learner.rules[0].id) for page in trials_of(watched)]
    recall.show(trials[:-1])
    back = trials[:-1] if gone == "trials" else watched[:-1]
    recall.show([replace(page, state="failed", fetched_at=9_500, explored="", instead_of="") for page in back])
    # … and one that differs after that is the first.
    recall.show([replace(trials[-1], fetched_at=20_000), Page(f"{H}/later", 1, fetched_at=60_000, crawl="one")])
    assert recall.learner.watch.records
    assert recall.failing() == {}
    assert rules(recall) == ["delete ?sid"]
