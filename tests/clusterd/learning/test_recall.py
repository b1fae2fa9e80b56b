"""What a worker remembers of a host: which rules the pages that are fetched to watch them speak against."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.learner import Learner
from clusterd.learning.rulebook.arrivals import LATEST_MS
from clusterd.learning.rulebook.recall import EARLY_SECONDS, LATE_MS, Recall
from clusterd.learning.watch import AGREEMENTS, STRIKES
from clusterd_crawler.clock import now_ms

from tests.clusterd.made_up_rules import SidLearner

H = "http://h.example"


def watched(rule: str, number: int, content: int) -> Page:
    return Page(f"{H}/{rule}/{number}", content, 300, fetched_at=number, explored=rule, crawl="one")


@pytest.fixture
def recall() -> Recall:
    made = Recall(SidLearner("h.example"))
    made.show([Page(f"{H}/", 1, fetched_at=1, crawl="one")])
    return made


def test_a_rule_fails_at_its_third_strike_and_once(recall: Recall) -> None:
    for strike in range(1, STRIKES + 1):
        assert recall.failing() == {}
        recall.show([watched("r", strike, 1000 + strike)])
    assert recall.failing() == {"r": f"{STRIKES} of {STRIKES} watched pages differed"}
    assert recall.failing() == {}


def test_a_rule_stands_where_a_hundred_times_as_many_agree(recall: Recall) -> None:
    agreed = STRIKES * AGREEMENTS
    for rule, agreeing in (("stands", agreed), ("fails", agreed - 1)):
        recall.show(watched(rule, number, 1) for number in range(2, agreeing + 2))
        recall.show(watched(rule, agreed + number, 1000 + number) for number in range(2, STRIKES + 2))
    assert recall.failing() == {"fails": f"{STRIKES} of {agreed - 1 + STRIKES} watched pages differed"}


def test_a_page_that_is_delivered_again_is_one_witness(recall: Recall) -> None:
    for _ in range(STRIKES):
        recall.show([watched("r", 2, 1002)])
    assert recall.failing() == {}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page waits for another."""
    monkeypatch.setattr("clusterd.learning.rulebook.recall.EARLY_SECONDS", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_page_agrees_with_the_known_page_of_an_earlier_crawl(recall: Recall) -> None:
    # Given pages of a crawl before, on which skips rest for a time (CLUSTERD_SKIP_WITHIN), then those that show them …
    recall.show(Page(f"{H}/old/{number}", 50 + number, fetched_at=number, crawl="one") for number in range(9))
    recall.show(
        Page(f"{H}/{rule}/{number}", shows, 0, (), 100 + number, rule, f"{H}/old/{number}", "two")
        for number in range(9)
        for rule, shows in (("agrees", 50 + number), ("differs", 200 + number))
    )
    # … contradict no rule, though their own crawl had not met what they show.
    assert recall.failing() == {"differs": "9 of 9 watched pages differed"}


@pytest.mark.usefixtures("impatient")
def test_a_page_instead_of_one_that_nobody_told_of_speaks_only_by_what_is_new_to_all(recall: Recall) -> None:
    # Given what a first crawl has shown, and a later one from the HTTP cache, of whose pages nothing is told but of
    # those that watch a rule: what these stand for the first crawl had skipped …
    recall.show(Page(f"{H}/old/{number}", 50 + number, fetched_at=number, crawl="one") for number in range(9))
    recall.show(
        Page(f"{H}/{rule}/{number}", shows, 0, (), 100 + number, rule, f"{H}/skipped/{number}", "two")
        for number in range(9)
        for rule, shows in (("says nothing", 50 + number), ("differs", 200 + number))
    )
    # … what the first crawl has met contradicts no rule, nor is it taken for a trial by the learner.
    assert recall.failing() == {"differs": "9 of 9 watched pages differed"}
    assert isinstance(recall.learner, SidLearner)
    assert {page.explored for page in recall.learner.pages} == {"", "differs"}


@pytest.mark.parametrize("age", [0, LATE_MS + 1])
def test_a_page_that_comes_before_the_one_it_was_fetched_instead_of_waits_for_it(
    recall: Recall, monkeypatch: pytest.MonkeyPatch, age: int
) -> None:
    # Given pages that watch two rules, read from partitions that are ahead of those with the known pages, be it after
    # hours in which no daemon was at work …
    at = now_ms() - age
    pages = [
        Page(f"{H}/{rule}/{number}", shows, 0, (), at, rule, f"{H}/known/{number}", "one")
        for number in range(9)
        for rule, shows in (("agrees", 50 + number), ("differs", 200 + number))
    ]
    recall.show(pages)
    assert (recall.trials, recall.failing()) == ({}, {})
    # … they are judged once these are there: by what these show.
    recall.show(Page(f"{H}/known/{number}", 50 + number, fetched_at=at - 1, crawl="one") for number in range(9))
    assert recall.trials == {"agrees": [9, 0], "differs": [0, 9]}
    assert isinstance(recall.learner, SidLearner)
    assert {page.explored for page in recall.learner.pages} == {"", "agrees", "differs"}
    # … and after a minute where they do not come.
    lost = Page(f"{H}/lost", 999, 0, (), at, "differs", f"{H}/never", "one")
    recall.show([lost])
    assert recall.trials["differs"] == [0, 9]
    later = time.monotonic() + 2 * EARLY_SECONDS
    monkeypatch.setattr("clusterd.learning.rulebook.recall.monotonic", lambda: later)
    monkeypatch.setattr("clusterd.learning.rulebook.recall.now_ms", lambda: at - 86_400_000)  # (set back meanwhile)
    recall.show([])
    assert recall.trials["differs"] == [0, 10]


@pytest.mark.parametrize("age", [0, LATE_MS + 1])
def test_a_learner_that_is_rebuilt_judges_as_the_one_before(recall: Recall, age: int) -> None:
    at = now_ms() - age
    pages = [Page(f"{H}/{n}?sid", 50 + n, 0, (), at, "agrees", f"{H}/{n}", "one") for n in range(9)]
    recall.show([*pages, *(Page(f"{H}/{n}", 50 + n, fetched_at=at - 1, crawl="one") for n in range(9))])
    assert recall.trials == {"agrees": [9, 0]}


def test_a_learner_that_is_made_before_a_log_is_read_to_its_end_waits_for_what_follows() -> None:
    recall, at = Recall(SidLearner("h.example")), now_ms() - LATE_MS - 1
    recall.take([Page(f"{H}/{n}?sid", 50 + n, 0, (), at, "r", f"{H}/{n}", "one") for n in range(9)], None, whole=False)
    assert recall.waits
    recall.take([Page(f"{H}/{n}", 50 + n, fetched_at=at - 1, crawl="one") for n in range(8)], None, whole=False)
    assert recall.trials == {"r": [8, 0]}
    recall.take([], None)
    assert recall.trials == {"r": [8, 1]}
    assert not recall.waits


def test_a_page_that_says_that_it_is_none_is_no_witness_and_no_evidence(recall: Recall) -> None:
    # Given a site that keeps the crawler out for a while, under pages that it watches and under others …
    recall.show(
        replace(page, state="soft")
        for number in range(2, 20)
        for page in (
            watched("r", number, 1000 + number),
            Page(f"{H}/doc/{number}?sid=1", 7, 0, (), number, crawl="one"),
        )
    )
    # … no rule is contradicted, and none learned.
    assert recall.failing() == {}
    assert isinstance(recall.learner, SidLearner)
    assert len(recall.learner.pages) == 1
    recall.show([Page(f"{H}/doc/2?sid=1", 7, fetched_at=40, crawl="one")])
    assert len(recall.learner.pages) == 2


def test_a_file_speaks_against_the_rule_that_took_it_for_a_page(recall: Recall) -> None:
    # Given requests that a rule took for pages, and that brought files, which justify no skip, or nothing at all …
    for rule, state in (("files", "file"), ("nothing", "soft")):
        recall.show(replace(watched(rule, number, 1000 + number), state=state) for number in range(2, 2 + STRIKES))
    # … the files contradict it.
    assert list(recall.failing()) == ["files"]


def test_a_file_is_evidence_that_it_is_no_page(recall: Recall) -> None:
    assert isinstance(recall.learner, SidLearner)
    before = len(recall.learner.pages)
    recall.show([Page(f"{H}/doc/90?sid=1", 7, fetched_at=40, crawl="one", state="file")])
    assert len(recall.learner.pages) == before + 1
    # It justifies no skip, in no crawl.
    recall.live = True
    recall.show([Page(f"{H}/doc/91?sid=1", 8, fetched_at=41, crawl="one", state="file")])
    assert [page.state for page in recall.fresh] == ["file"]


@pytest.mark.parametrize("fetched_again", [False, True])
def test_what_a_crawl_takes_back_speaks_against_no_rule(fetched_again: bool) -> None:
    # Given a host of sessions that shows its log-in form for a while, on which the spider's callback raises …
    recall = Recall(Learner("h.example"))
    form, articles = 1, range(60)
    recall.show(Page(f"{H}/a?t={n}", 100 + n, fetched_at=n, crawl="one") for n in articles)
    walled = [Page(f"{H}/a?t={n}&sid=x", form if n % 2 else 100 + n, fetched_at=100 + n, crawl="one") for n in articles]
    recall.show(walled)
    recall.learner.learn(1)
    assert recall.learner.rules == ()
    recall.show(replace(page, content=0, fetched_at=300, state="failed") for page in walled if page.content == form)
    if fetched_again:
        recall.show(replace(page, fetched_at=400, content=100 + n) for n, page in enumerate(walled))
    recall.show([Page(f"{H}/b", 900, fetched_at=2_000, crawl="one")])
    # … then the pages on which it did not are all that the learner knows, or those that came instead.
    recall.learner.learn(2)
    (rule,) = recall.learner.rules
    assert str(rule.transformation[0]) == "delete ?sid"
    assert rule.support == (60 if fetched_again else 30)


@pytest.mark.parametrize("before", [True, False])
def test_a_trial_that_a_crawl_takes_back_is_none(recall: Recall, before: bool) -> None:
    # Given a site that shows a captcha, another one each time, on which the spider's callback raises …
    for number in range(1, STRIKES + 1):
        recall.show([captcha := watched("r", number, 1000 + number)])
        recall.show([replace(captcha, content=0, fetched_at=captcha.fetched_at + 1, explored="", state="failed")])
    # … also on the page that another was fetched instead of, before that comes or after …
    for number in range(20, 20 + STRIKES):
        shown = Page(f"{H}/known/{number}", 1000 + number, fetched_at=number, crawl="one")
        trial = replace(watched("r", number, 3000 + number), instead_of=shown.url)
        gone = replace(shown, content=0, fetched_at=number + 1, state="failed")
        recall.show([shown])
        recall.show([trial, gone] if before else [gone, trial])
    recall.show([Page(f"{H}/other", 1, fetched_at=1_000, crawl="one")])
    assert isinstance(recall.learner, SidLearner)
    # (The first was shown before it was known of the host that its pages are taken back.)
    assert {page.url for page in recall.learner.pages if page.explored} == {f"{H}/r/1"}
    # … what another crawl does not get takes nothing back …
    recall.show([watched("r", number, 5000 + number) for number in range(1_010, 1_010 + STRIKES)])
    recall.show([Page(f"{H}/r/1010", 0, fetched_at=1_090, crawl="two", state="failed")])
    # … then only the others were trials, once it is late to take these back.
    assert recall.failing() == {}
    recall.show([Page(f"{H}/later", 1, fetched_at=3_000, crawl="one")])
    assert recall.failing() == {"r": f"{STRIKES} of {STRIKES} watched pages differed"}


@pytest.mark.parametrize("in_time", [True, False])
def test_what_may_be_taken_back_as_late_as_others_were_says_nothing_until_then(in_time: bool) -> None:
    # Given a small host of sessions, whose spider raises on log-in forms, each another one, after four seconds …
    recall = Recall(Learner("h.example"))
    pages = [Page(f"{H}/a?t={n}{sid}", 100 + n, fetched_at=n, crawl="one") for n in range(30) for sid in ("", "&sid=x")]
    recall.show([*pages, replace(pages[0], content=1), Page(f"{H}/b", 2, fetched_at=4_000, crawl="one")])
    recall.show([replace(pages[0], fetched_at=4_001, state="failed")])
    recall.show([Page(f"{H}/c", 3, fetched_at=9_000, crawl="one")])
    recall.learner.learn(1)
    assert [str(rule.transformation[0]) for rule in recall.learner.rules] == ["delete ?sid"]
    # … then no form shown under a URL that watches its rule speaks against that while it may yet be taken back …
    (rule,) = recall.learner.rules
    forms = [
        Page(f"{H}/a?t={n}&sid=y", 900 + n, 0, (), 10_000, rule.id, f"{H}/a?t={n}", "one")
        for n in range(1, 2 + STRIKES)
    ]
    recall.show([*forms, Page(f"{H}/d", 4, fetched_at=14_000, crawl="one")])
    recall.learner.learn(2)
    assert (recall.failing(), recall.waits, recall.learner.rules) == ({}, True, (rule,))
    # … nor later, where it was.
    if in_time:
        recall.show(replace(page, content=0, fetched_at=14_001, explored="", state="failed") for page in forms)
    recall.show([Page(f"{H}/e", 5, fetched_at=19_000, crawl="one")])
    recall.learner.learn(3)
    assert (not recall.failing(), not recall.waits, recall.learner.rules == (rule,)) == (in_time, True, in_time)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("shows", [1000, 50])
def test_a_page_that_another_crawl_did_not_get_keeps_no_trial_from_being_one(recall: Recall, shows: int) -> None:
    # Given pages of a crawl which another one does not get, as a site keeps that out …
    for number in range(10, 10 + STRIKES):
        recall.show([known := Page(f"{H}/{number}", 50 + number, fetched_at=number, crawl="one")])
        recall.show([Page(known.url, 0, fetched_at=number + 100, crawl="two", state="failed")])
        # … then what differs from these speaks against its rule all the same.
        recall.show([replace(watched("r", number, shows + number), fetched_at=number + 200, instead_of=known.url)])
        recall.show([])
    assert recall.trials == {"r": [0, STRIKES] if shows == 1000 else [STRIKES, 0]}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_learner_that_is_rebuilt_is_shown_what_the_one_before_was(at_once: bool) -> None:
    # Given a host whose pages are taken back within four seconds …
    recall = Recall(SidLearner("h.example"))
    first = Page(f"{H}/first", 1, fetched_at=0, crawl="one")
    recall.show([first, replace(first, fetched_at=4_000, state="failed")])
    # … and forms in place of pages that watch a rule, one of which is fetched again …
    log = [Page(f"{H}/{n}", 100 + n, fetched_at=10_000 * n, crawl="one") for n in range(1, 10)]
    forms = [replace(watched("r", n, 900 + n), fetched_at=10_000 * n + 10) for n in range(1, 4)]
    log += [*forms, *(replace(form, fetched_at=form.fetched_at + 2_000, state="failed") for form in forms)]
    log.append(again := replace(forms[0], fetched_at=forms[0].fetched_at + 3_000, content=800))
    log.sort(key=lambda page: page.fetched_at)
    for pages in [log] if at_once else [[page] for page in log]:
        recall.show(pages)
    # … then the learner is shown the latter alone, whether it sees one page after the other or the whole log.
    assert isinstance(recall.learner, SidLearner)
    assert [page.fetched_at for page in recall.learner.pages if page.explored] == [again.fetched_at]
    assert [page.url for page in recall.learner.pages if not page.explored] == [f"{H}/{n}" for n in range(1, 9)]
    assert recall.trials == {"r": [0, 1]}


def test_where_few_pages_come_one_waits_for_the_next(recall: Recall, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a host that is asked for a page every five seconds, whose spider raises on captchas after four: of each it
    # is told that it is none, with the time of its fetch, before another page comes …
    clock = time.monotonic()
    monkeypatch.setattr("clusterd.learning.rulebook.recall.monotonic", lambda: clock)
    for number in range(10):
        captcha = replace(watched("r", number, 900 + number), fetched_at=100 + 5_000 * number)
        recall.show([captcha])
        for _ in range(3):  # looks at what has come
            clock += 1
            recall.show([])
        clock += 1
        recall.show([replace(captcha, content=0, fetched_at=captcha.fetched_at + 1, explored="", state="failed")])
        clock += 1
    # … then only the first is shown, and the last page where none comes any more.
    recall.show([Page(f"{H}/last", 7, fetched_at=60_000, crawl="one")])
    assert isinstance(recall.learner, SidLearner)
    assert [page.url for page in recall.learner.pages] == [f"{H}/", f"{H}/r/0"]
    clock += LATEST_MS / 1000
    recall.show([])
    assert recall.learner.pages[-1].url == f"{H}/last"


def test_what_another_crawl_does_not_get_is_not_taken_back() -> None:
    recall = Recall(Learner("h.example"))
    recall.show(Page(f"{H}/a?t={n}" + sid, n, fetched_at=n, crawl="one") for n in range(60) for sid in ("", "&sid=x"))
    recall.show(Page(f"{H}/a?t={n}&sid=x", 0, fetched_at=100, crawl="two", state="failed") for n in range(60))
    recall.learner.learn(1)
    assert len(recall.learner.rules) == 1
