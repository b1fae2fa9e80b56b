"""Rules of any path and of scripts: how many skips rest on how few trials, and of which rules no more are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusterd_crawler.rules import HOST, SCHEME, Condition, Edit, Key, Rule, RuleSet, rule_id
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.resting import SKIPS
from clusterd_crawler.skipping.skip import Skip
from clusterd_crawler.skipping.trial_budget import MANY

VIEW = Condition(Key(name="view"), "within", ("mobile",))
ONLY = Condition(Key(), "only", ("view",))
HTTPS, WWW = Condition(SCHEME, "is", ("https",)), Condition(HOST, "is", ("www.h.com",))
DROP = (Edit(Key(name="view"), "delete"),)
PATHS = tuple(f"page-{number}" for number in range(1000))
#: Lower bounds of 18 and of 100 clean trials.
YOUNG, OLD = 0.8693, 0.9737


def rule(context: tuple[Condition, ...] = (VIEW, ONLY), edits: tuple[Edit, ...] = DROP, bound: float = YOUNG) -> Rule:
    spans = edits[0].key in {HOST, SCHEME}
    return Rule(rule_id("h.com", context, edits), "h.com", context, edits, spans=spans, lower_bound=bound)


def known_under(*rules: Rule) -> KnownPages:
    known = KnownPages(explore=0.0001)
    known.load(RuleSet("h.com", 1, rules))
    return known


def explored(known: KnownPages, pages: range, form: str = "http://h.com/page-{}?view=mobile") -> int:
    """Fetch pages, ask for each under its other name, and fetch what is explored; return how many that were."""
    found = 0
    for number in pages:
        known.fetched(f"http://h.com/page-{number}", 1, content=number + 1)
        skip = known.decide(form.format(number), 2)
        assert isinstance(skip, Skip)
        if skip.explore:
            known.fetched(skip.url, 3, content=number + 1)
        found += skip.explore
    return found


def test_more_is_tried_as_skips_grow_and_more_seldom_where_trials_are_many() -> None:
    known = known_under(rule())
    assert explored(known, range(SKIPS * 18 - 1)) <= 1
    assert abs(explored(known, range(1000, 1000 + (SKIPS + 1) * (MANY - 18))) - (MANY - 18)) <= 3
    # Skips grow with the square of the trials: 6,000 rest on some 316.
    assert abs(explored(known, range(2000, 2000 + 5400)) - 200) <= 20


def test_what_rests_on_many_trials_is_skipped_the_longer() -> None:
    assert explored(known_under(rule(bound=OLD)), range(SKIPS * 99)) <= 1


@pytest.mark.parametrize(
    ("unwatched", "form"),
    [
        (rule((VIEW, Condition(Key(), "in", PATHS))), "http://h.com/page-{}?view=mobile"),
        (rule(bound=0.0), "http://h.com/page-{}?view=mobile"),
        (rule(bound=1.0), "http://h.com/page-{}?view=mobile"),
        (replace(rule(), crawl="night"), "http://h.com/page-{}?view=mobile"),
        (rule((WWW,), (Edit(HOST, "set", "h.com"),)), "http://www.h.com/page-{}"),
        (rule((Condition(HOST, "is", ("h.com:8080",)),), (Edit(HOST, "set", "h.com"),)), "http://h.com:8080/page-{}"),
        (rule((HTTPS,), (Edit(SCHEME, "set", "http"),)), "https://h.com/page-{}"),
        (rule((HTTPS, WWW), (Edit(HOST, "set", "h.com"), Edit(SCHEME, "set", "http"))), "https://www.h.com/page-{}"),
    ],
    ids=("stated paths", "written by somebody", "certain", "of one crawl", "www", "port", "scheme", "scheme and www"),
)
def test_stated_paths_and_one_server_are_not_tried_further(unwatched: Rule, form: str) -> None:
    assert explored(known_under(unwatched), range(1000), form) <= 3


def test_what_drops_all_that_its_context_does_not_state_is_not_tried_further() -> None:
    of_any_post = Condition(Key(), "is", ("posting.php",)), Condition(Key(), "only", ("p",))
    known = known_under(rule(of_any_post, (Edit(Key(name="p"), "delete"),)))
    known.fetched("http://h.com/posting.php?p=0", 1, content=1)
    skips = [known.decide(f"http://h.com/posting.php?p={number}", 2) for number in range(1, 1000)]
    assert sum(skip is not None and not skip.explore for skip in skips) >= 996


@pytest.mark.parametrize("came", [False, True])
def test_trials_that_wait_in_the_queue_count_for_the_rule_that_takes_the_place_of_theirs(came: bool) -> None:
    """Those that came are among the figures with which it comes: here they are not, and as many are tried again."""
    known, waiting, kept = known_under(rule()), [], []
    for number in range(600):
        known.fetched(f"http://h.com/page-{number}", 1, content=number + 1)
        skip = known.decide(f"http://h.com/page-{number}?view=mobile", 2)
        assert isinstance(skip, Skip)
        (waiting if skip.explore else kept).append(skip.url)
    assert len(waiting) > 60
    for url in waiting if came else ():
        known.fetched(url, 3, good=False)
    longer = rule((Condition(Key(name="view"), "within", ("mobile", "phone")), ONLY))
    known.load(RuleSet("h.com", 2, (longer,)))
    again = [known.decide(url, 4) for url in kept]
    assert (sum(skip is not None and skip.explore for skip in again) > 50) is came


def test_a_page_to_which_many_links_lead_is_one_that_may_be_lost() -> None:
    known, url = known_under(rule()), "http://h.com/page-1?view=mobile"
    known.fetched("http://h.com/page-1", 1, content=2)
    assert known.decide(url, 2) is not None
    again = [known.decide(url, 2, again=True) for _ in range(SKIPS * MANY)]
    assert all(skip is not None and not skip.explore for skip in again)
    assert explored(known, range(2, SKIPS * 18)) <= 1


def test_a_page_that_names_another_is_skipped_by_that_however_few_were_tried() -> None:
    """Each page says itself which one it is: that of another says nothing more of it."""
    short = Condition(Key(), "is", ("",)), Condition(Key(name="p"), "any"), Condition(Key(), "only", ("p",))
    ours = (Condition(Key(), "any"), Condition(Key(), "only"))
    by_name = Rule("n", "h.com", short, (), kind="name", name="shortlink", carrier=ours, lower_bound=YOUNG)
    known = known_under(by_name)
    for number in range(1000):
        names = parse_names(f"shortlink=http://h.com/?p={number}")
        known.fetched(f"http://h.com/page-{number}", 1, names, content=number + 1)
    skips = [known.decide(f"http://h.com/?p={number}", 2) for number in range(1000)]
    assert sum(skip is not None and not skip.explore for skip in skips) >= 997


SCRIPT, ID = Condition(Key(), "is", ("view.php",)), Key(name="id")


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (rule((VIEW, SCRIPT, Condition(Key(), "only", ("id", "view")))), "id=a{}&view=mobile"),
        (rule((VIEW, SCRIPT, Condition(ID, "any"), Condition(Key(), "only", ("id", "view")))), "id=a{}&view=mobile"),
        (rule((VIEW, SCRIPT)), "id=a{}&view=mobile"),
        (rule((SCRIPT, Condition(Key(), "only", ("id",))), (Edit(ID, "lower"),)), "id=A{}"),
    ],
    ids=("identifier not stated", "any identifier", "any other parameter", "identifier converted"),
)
def test_what_one_script_shows_is_tried_further(script: Rule, asked: str) -> None:
    """That a parameter changes nothing of some pages of a script says little of its thousand others."""
    known, found = known_under(script), 0
    for number in range(500):
        known.fetched(f"http://h.com/view.php?id=a{number}", 1, content=number + 1)
        skip = known.decide(f"http://h.com/view.php?{asked.format(number)}", 2)
        assert isinstance(skip, Skip)
        if skip.explore:
            known.fetched(skip.url, 3, content=number + 1)
        found += skip.explore
    assert 40 < found < 80


def test_of_a_rule_of_which_a_trial_differed_more_is_tried() -> None:
    exceptional = replace(rule(bound=OLD), support=99, precision=0.99)
    assert explored(known_under(exceptional), range(SKIPS * 99)) > 20


def fetch_both(known: KnownPages, number: int, mobile: int) -> None:
    """Fetch a page, and its other name, of which the content is stated."""
    known.fetched(f"http://h.com/page-{number}", 4, content=number + 1)
    known.fetched(f"http://h.com/page-{number}?view=mobile", 5, content=mobile)


def test_after_a_trial_that_differs_what_rests_on_too_few_is_decided_anew() -> None:
    known = known_under(rule(bound=OLD))
    assert explored(known, range(500)) <= 1
    fetch_both(known, 500, mobile=501)
    assert not known.reopened()
    fetch_both(known, 501, mobile=9999)
    assert known.reopened() == {rule().id}
    # Three skips rest on each of a hundred trials, and on each that is made now.
    again = [known.decide(f"http://h.com/page-{number}?view=mobile", 6) for number in range(500)]
    assert abs(sum(skip is not None and skip.explore for skip in again) - 50) <= 5


def test_few_skips_stay_after_a_trial_that_differs() -> None:
    known = known_under(rule(bound=OLD))
    explored(known, range(200))
    for _ in range(3):  # of a key each trial after the first says no more
        fetch_both(known, 500, mobile=9999)
    assert not known.reopened()


def test_what_differs_in_the_evidence_of_a_rule_is_counted_with_it_alone() -> None:
    """The same page at two fetches is no trial, nor are pages that were fetched before the rule came."""
    known = KnownPages(explore=0.0001)
    fetch_both(known, 500, mobile=9999)
    known.load(RuleSet("h.com", 1, (rule(bound=OLD),)))
    assert explored(known, range(500)) <= 1
    for content in (9997, 9998):
        known.fetched("http://h.com/page-501?view=mobile", 6, content=content)
    assert not known.reopened()


def test_pages_that_are_one_by_a_rule_are_not_tried_further() -> None:
    """Links to quote a post all lead to the log-in page: that is a family, which has its own share."""
    mode, post = Condition(Key(name="mode"), "is", ("quote",)), Condition(Key(name="p"), "any")
    path, only = Condition(Key(), "is", ("post.php",)), Condition(Key(), "only", ("mode", "p"))
    known = known_under(rule((path, mode, post, only), (Edit(Key(name="p"), "delete"),)))
    known.fetched("http://h.com/post.php?mode=quote&p=0", 1, content=1)
    skips = [known.decide(f"http://h.com/post.php?mode=quote&p={number}", 2) for number in range(1, 1000)]
    assert sum(skip is not None and skip.explore for skip in skips) <= 3


def test_a_site_for_phones_is_tried_further() -> None:
    phones = rule((Condition(HOST, "is", ("m.h.com",)),), (Edit(HOST, "set", "h.com"),))
    assert explored(known_under(phones), range(500), "http://m.h.com/page-{}") > 40


def test_trials_that_meet_what_is_shown_in_place_of_pages_ask_for_no_more() -> None:
    known = known_under(rule(bound=OLD))
    for number in range(2000, 2020):  # first "asked too often" under all of these, then each page
        known.fetched(f"http://h.com/page-{number}", 1, content=5000)
        known.fetched(f"http://h.com/page-{number}?view=mobile", 2, content=number)
    # Of the first two it was not known yet: a third of what 100 trials bear, where all twenty left a twentieth.
    assert explored(known, range(SKIPS * 33)) <= 2
