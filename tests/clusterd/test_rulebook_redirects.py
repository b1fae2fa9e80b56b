"""Redirects as evidence: shown as what they lead to, whatever came first; trials that a site redirects."""

from __future__ import annotations

import random

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.rulebook import arrivals, redirecting
from clusterd.learning.rulebook.arrivals import Arrivals
from clusterd.learning.rulebook.identity import redirected
from clusterd.learning.rulebook.recall import Recall
from clusterd.learning.rulebook.redirecting import APART, OWN, PATIENCE, SEVERAL
from clusterd.learning.rulebook.reservoir import SAME_CONTENT, reservoir
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.watch import STRIKES
from clusterd_crawler import topics
from clusterd_crawler.fetches import Fetch, unpack
from clusterd_crawler.message import Redirect
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clusterd.made_up_rules import HOST, Serve, SidLearner, duplicates, sketch

H = f"http://{HOST}"


def page(name: object, content: int, at: int = 0, **changes: object) -> Page:
    return Page(f"{H}/{name}", content, 300, fetched_at=at, crawl="one", **changes)  # type: ignore[arg-type]


def redirect(name: object, target: object, at: int = 0, **changes: object) -> Page:
    leads = f"{H}/{target}"
    return Page(f"{H}/{name}", 0, fetched_at=at, crawl="one", state="redirected", target=leads, **changes)  # type: ignore[arg-type]


def with_redirects_of_that_kind() -> Arrivals:
    """Return what has seen so many of the folder ``leads`` that they count."""
    known = Arrivals()
    list(known.fresh([page("seed", 5000), *(redirect(f"leads/s{n}", "seed") for n in range(SEVERAL))]))
    return known


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 9), max_size=10), st.randoms(use_true_random=False))
def test_each_url_is_shown_once_as_what_it_leads_to(leads: dict[int, int], chance: random.Random) -> None:
    """Given ten URLs, some of which lead to others, in loops too; the third is no good page."""
    names = {n: f"{'leads' if n in leads else 'shows'}/{n}" for n in range(10)}
    fetched = [page(names[n], 100 + n, n, state="soft" if n == 3 else "good") for n in range(10) if n not in leads]
    sent = fetched + [redirect(names[n], names[target], n) for n, target in leads.items()]
    delivered = chance.sample(sent, len(sent)) + chance.choices(sent, k=5)

    def end(n: int) -> int | None:
        for _ in range(10):
            if n not in leads:
                return None if n == 3 else n
            n = leads[n]
        return None

    known = with_redirects_of_that_kind()
    blocks = [delivered[:4], delivered[4:]]
    shown = [(one.url, one.content, one.state) for block in blocks for one in known.fresh(block)]
    ends = {n: end(n) for n in range(10)}
    expected = [(f"{H}/{names[n]}", 100 + to, "good") for n, to in ends.items() if to is not None]
    expected += [(f"{H}/{names[3]}", 103, "soft")] if 3 not in leads else []
    assert sorted(shown) == sorted(expected)


def test_what_leads_to_itself_or_to_no_url_says_nothing() -> None:
    for target, says in ((f"{H}/b", True), (f"{H}/a", False), (f"{H}:80/a#part", False), ("http://[", False)):
        assert (redirected(Redirect(f"{H}/a", 5, target)) is not None) is says


def test_a_redirect_is_shown_as_a_page_of_its_own_crawl_only() -> None:
    other = Page(f"{H}/a", 7, fetched_at=1, crawl="two")
    known = with_redirects_of_that_kind()
    assert [one.url for one in known.fresh([other, redirect("leads/b", "a", 2)])] == [f"{H}/a"]
    assert [one.url for one in known.fresh([page("a", 8, 3)])] == [f"{H}/leads/b", f"{H}/a"]


@pytest.mark.parametrize(
    ("form", "shows", "counts"),
    [
        ("edit/{}", "wiki/{}", True),
        ("edit/{}/", "wiki/{}/", True),
        ("of/{}/edit", "of/{}/wiki", True),
        ("of/{}/edit/", "of/{}/wiki/", True),
        ("topic/{}/post-{}", "topic/{}/page-{}", True),
        ("index.php?action=edit&title=t{}", "index.php?action=show&title=t{}", True),
        ("topic/{}?sid=a{}", "topic/{}?sid=b{}", False),
        ("topic/5?sid=a{}", "topic/5?sid=b{}", False),
        ("topic/n{}/?sid=a{}", "topic/m{}/?sid=b{}", False),
        ("topic?t={}&sid=a{}", "topic?t={}&sid=b{}", False),
    ],
)
def test_redirects_count_where_urls_of_their_kind_do_nothing_else(form: str, shows: str, counts: bool) -> None:
    """The others are sent away by a site that is asked too often."""
    known = Arrivals()
    list(known.fresh(page(shows.format(n, n), n + 1, n) for n in range(30)))
    list(known.fresh([page("login", 99, 30)]))
    for n in range(30):
        shown = [one.url for one in known.fresh([redirect(form.format(n, n), "login", 40 + n)])]
        urls = [f"{H}/{form.format(m, m)}" for m in range(n + 1)]
        assert shown == ([] if not counts or n + 1 < SEVERAL else urls if n + 1 == SEVERAL else urls[-1:])
    # When one of them shows something after all, no more of them count
    list(known.fresh([page(form.format(60, 60), 77, 90)]))
    assert list(known.fresh([redirect(form.format(61, 61), "login", 91)])) == []


@pytest.mark.parametrize(("leads", "counts"), [("its own", True), ("one busy page", False), ("both", True)])
def test_redirects_beside_pages_of_their_kind_count_where_each_leads_to_its_own(leads: str, counts: bool) -> None:
    """What keeps somebody out shows the same to all; of a page that lies elsewhere nobody else is led there."""
    known = Arrivals()
    shown = list(known.fresh(page(f"show?id={n}&v=1", n, n) for n in range(30)))
    sent = [redirect(f"show?id={n}&v=1", f"of/{n}", 40 + n) for n in range(100, 130) if leads != "one busy page"]
    busy = [redirect(f"show?id={n}&v=1", f"busy?for={n}", 40 + n) for n in range(200, 230) if leads != "its own"]
    shown += known.fresh(one for pair in zip(sent or busy, busy or sent, strict=True) for one in pair)
    assert len(shown) == 30
    ends = [page(f"of/{n}", 1000 + n, 50 + n) for n in range(100, 130)]
    ends += [page(f"busy?for={n}", 999, 50 + n) for n in range(200, 230)]
    random.Random(1).shuffle(ends)
    led = [
        one for one in known.fresh([*ends, *(page(f"more/{n}", 500 + n, 99) for n in range(PATIENCE))]) if one.target
    ]
    assert {one.content for one in led if one.content != 999} == set(range(1100, 1130) if counts else ())
    assert sum(one.content == 999 for one in led) <= OWN


def test_a_trial_that_leads_to_a_page_of_its_own_speaks_against_its_rule_beside_pages_of_its_kind() -> None:
    recall = Recall(SidLearner(HOST))
    recall.show([page(f"show?id={n}&sid=1", n, 1) for n in range(30)])
    for n in range(APART + PATIENCE + STRIKES):
        known = f"{H}/show?id={n}&sid=1"
        trial = redirect(f"show?id={n}&sid=2", f"of/{n}", 10 + n, explored="r", instead_of=known)
        recall.show([trial, page(f"of/{n}", 100 + n, 11 + n)])
    assert recall.trials["r"][1] >= STRIKES
    assert list(recall.failing()) == ["r"]


@pytest.mark.parametrize(("query", "counts"), [("", True), ("?for={}", False)])
def test_what_leads_to_other_hosts_counts_as_what_its_address_says(query: str, counts: bool) -> None:
    """Their pages do not arrive. A host that has people log in elsewhere does so at one path."""
    known = Arrivals(HOST)
    list(known.fresh(page(f"show?id={n}&v=1", n, n) for n in range(30)))
    for n in range(100, 130):
        target = f"http://other.example/{n if counts else 'login'}{query.format(n)}"
        leading = Page(f"{H}/show?id={n}&v=1", 0, fetched_at=n, crawl="one", state="redirected", target=target)
        assert list(known.fresh([leading])) == []
    shown = [one for one in known.fresh(page(f"more/{n}", 500 + n, 999) for n in range(PATIENCE)) if one.target]
    assert len({one.content for one in shown}) == (30 if counts else 0)


def test_a_trial_that_leads_to_a_file_speaks_against_its_rule() -> None:
    recall = Recall(SidLearner(HOST), arrivals=with_redirects_of_that_kind())
    recall.show([page("known", 1, 1)])
    for n in range(STRIKES):
        trial = redirect(f"leads/{n}", f"to/{n}.pdf", 10, explored="r", instead_of=f"{H}/known")
        recall.show([trial, Page(f"{H}/to/{n}.pdf", 50 + n, 0, fetched_at=11, crawl="one", state="file")])
    assert list(recall.failing()) == ["r"]


def test_redirects_that_are_held_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirecting, "HELD", 3)
    known = Arrivals()
    list(known.fresh([page("login", 99), *(page(f"of/{n}/wiki", n + 1) for n in range(30))]))
    assert list(known.fresh(redirect(f"of/{n}/edit", "login", 9) for n in range(30))) == []


def test_what_counts_takes_no_room_from_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The links to edit each page of a wiki: every title is a kind as well, of which there is one redirect."""
    monkeypatch.setattr(redirecting, "HELD", 100)
    known = Arrivals()
    list(known.fresh([page("login", 99), page("index.php?title=t&action=show", 1)]))
    edits = [redirect(f"index.php?title=t{n}&action=edit", "login", 9) for n in range(200)]
    assert len(list(known.fresh(edits))) == 200
    assert len(list(known.fresh(redirect(f"goto/{n}", "login", 9) for n in range(SEVERAL)))) == SEVERAL


def test_redirects_that_may_lead_to_pages_of_their_own_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirecting, "HELD", 3)
    known = Arrivals()
    list(known.fresh(page(f"show?id={n}&v=1", n, n) for n in range(100)))
    led = [one for n in range(100, 110) for one in (redirect(f"show?id={n}&v=1", f"of/{n}", n), page(f"of/{n}", n, n))]
    shown = list(known.fresh([*led, *(page(f"more/{n}", 500 + n, 999) for n in range(2 * PATIENCE))]))
    assert [one.content for one in shown if one.target] == [100, 101, 102]


def test_redirects_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "WAITING", 3)
    known = with_redirects_of_that_kind()
    assert list(known.fresh(redirect(f"leads/{n}", f"to/{n}") for n in range(9))) == []
    shown = [one.url for one in known.fresh(page(f"to/{n}", n + 1) for n in range(9))]
    assert [url for url in shown if "leads" in url] == [f"{H}/leads/{n}" for n in (6, 7, 8)]
    assert len(list(known.fresh([redirect("leads/late", "to/late"), page("to/late", 77)]))) == 2


@pytest.mark.parametrize("first", ["the redirect", "its page"])
@pytest.mark.parametrize("shows", ["what the skip rested on", "what was known", "something new"])
def test_a_trial_that_is_redirected_speaks_for_its_rule_or_against_it(first: str, shows: str) -> None:
    """Something new speaks against it where nothing else led to that page, which is not known if it came first."""
    recall = Recall(SidLearner(HOST), arrivals=with_redirects_of_that_kind())
    recall.show([page("known", 1, 1), page("other", 2, 1)])
    for n in range(STRIKES):
        content = {"what the skip rested on": 1, "what was known": 2}.get(shows, 50 + n)
        trial = redirect(f"leads/{n}", f"to/{n}", 10, explored="r", instead_of=f"{H}/known")
        target = page(f"to/{n}", content, 11 if first == "the redirect" else 9)
        recall.show([trial, target] if first == "the redirect" else [target, trial])
    against = shows == "something new" and first == "the redirect"
    assert recall.failing() == ({"r": f"{STRIKES} of {STRIKES} watched pages differed"} if against else {})
    agreed = shows == "what the skip rested on" or (shows == "what was known" and first == "the redirect")
    assert recall.trials == ({"r": [0, STRIKES]} if against else {"r": [STRIKES, 0]} if agreed else {})


def test_what_leads_to_one_page_does_not_fill_the_log() -> None:
    """A host whose every link to edit something leads to its log-in page."""
    pages = [redirect(f"edit/{n}", "login", n) for n in range(3 * SAME_CONTENT)]
    kept = reservoir([*pages, *(page(n, n + 1, n) for n in range(100))], 2 * SAME_CONTENT)
    assert sum(one.state == "redirected" for one in kept) <= SAME_CONTENT
    assert sum(one.state == "good" for one in kept) == 100


def redirects(count: int = SEVERAL) -> list[Redirect]:
    return [Redirect(f"{H}/{n}?sid=r", 5, f"{H}/{n}", "one") for n in range(count)]


def served(serve: Serve) -> tuple[RuleService, list[Fetch]]:
    """Return a service, and where the pages go that it shares with the crawls."""
    service, shared = serve(), []
    service._publish = lambda topic, key, value: shared.extend(unpack(value) if topic == topics.KNOWN else ())
    return service, shared


def test_rules_are_learned_from_redirects(serve: Serve) -> None:
    service, _ = served(serve)
    service.note_redirects([*redirects(), Redirect(f"{H}/a", 5, f"{H}/a", "one"), Redirect("nothing", 5, H, "one")])
    assert service.learn_due(now=1) == []
    service.observe([sketch(f"{H}/{n}", 10 + n, 6, crawl="one") for n in range(SEVERAL)])
    assert [len(rules.rules) for rules in service.learn_due(now=2)] == [1]
    assert [rule.support for rule in service.rules()] == [SEVERAL]


def test_no_redirect_is_told_to_crawls_as_a_page(serve: Serve) -> None:
    """Its crawl alone knows on which pages a skip may rest; to others it would be a fetch that failed."""
    service, shared = served(serve)
    pages = [sketch(one.url, one.content, 1, crawl="one") for one in duplicates(SEVERAL)]
    service.observe(pages)
    leading = [Redirect(f"{H}/leads/{n}", 5, f"{H}/{n % 3}", "one") for n in range(2 * SEVERAL)]
    service.note_redirects(leading[:SEVERAL])
    service.learn_due(now=1)
    service.note_redirects(leading[SEVERAL:])
    service.learn_due(now=2)
    assert {fetch.url for fetch in shared} == {page.url for page in pages}
