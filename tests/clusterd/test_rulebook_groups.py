"""Groups whose hosts have more pages than one learner takes: read in a sample that agrees and contradicts as all do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterd.learning.contract import Page
from clusterd.learning.rulebook.groups import Groups, sampled
from clusterd.learning.rulebook.redis import RuleBook

GROUP = "example.com"
SITES = ("http://example.com", "http://www.example.com")
LIMIT = 400


def pages_of(book: RuleBook, pages: Iterator[Page], groups: Groups) -> None:
    given = list(pages)
    groups.note(given)
    for site in SITES:
        book.add_pages({site.removeprefix("http://"): [page for page in given if page.url.startswith(f"{site}/")]})


def mirrored(numbers: range, at: int = 0) -> Iterator[Page]:
    return (Page(f"{site}/a/{n}", n, 9, (), at + 2 * n, crawl="one") for n in numbers for site in SITES)


def watching(numbers: range) -> Iterator[Page]:
    """Fetched to watch a rule; the host's own rules say besides that ``sid`` means nothing."""
    known, mirror = SITES
    return (Page(f"{mirror}/a/{n}?sid={n}", n, 9, (), 10_000 + n, "a rule", f"{known}/a/{n}", "one") for n in numbers)


def test_of_a_group_of_many_pages_no_more_are_held_than_its_learner_takes(book: RuleBook) -> None:
    groups = Groups(book, "identical", LIMIT)
    pages_of(book, mirrored(range(1000)), groups)
    recall = groups.caught_up(GROUP)
    assert LIMIT / 4 < len(recall.arrivals) <= LIMIT
    # Under every site the same paths, so that it is seen that they are mirrors.
    assert len({page.content for page in sampled(mirrored(range(1000)), recall.halved)}) == len(recall.arrivals) / 2
    found = recall.learner.learn(1)
    assert found is not None
    assert [rule.spans for rule in found.rules] == [True]


def test_watched_pages_stay_with_those_that_they_are_judged_by(book: RuleBook) -> None:
    groups = Groups(book, "identical", LIMIT)
    pages_of(book, (page for pages in (mirrored(range(1000)), watching(range(1000))) for page in pages), groups)
    recall = groups.caught_up(GROUP)
    agreed, differed = recall.trials["a rule"]
    assert agreed > 20
    assert differed == 0
    assert not recall.early


def test_a_group_that_grows_is_read_in_a_smaller_sample(book: RuleBook) -> None:
    groups = Groups(book, "identical", LIMIT)
    pages_of(book, mirrored(range(150)), groups)
    first = groups.caught_up(GROUP)
    assert (len(first.arrivals), first.halved) == (300, 0)
    for start in range(150, 1000, 50):
        pages_of(book, mirrored(range(start, start + 50)), groups)
        recall = groups.caught_up(GROUP)
        assert LIMIT / 4 < len(recall.arrivals) <= LIMIT + 100  # (What is beyond it is seen at the next look.)
    assert recall.halved >= 2


def test_of_hosts_whose_log_was_rewritten_what_is_new_is_read(book: RuleBook) -> None:
    groups = Groups(book, "identical", LIMIT)
    pages_of(book, mirrored(range(100)), groups)
    first = groups.caught_up(GROUP)
    evidence = book.evidence(GROUP)
    assert book.rewrite(GROUP, evidence.mark, evidence.pages)
    pages_of(book, mirrored(range(90, 120), at=1000), groups)
    recall = groups.caught_up(GROUP)
    # The learner is the same, and has seen no page twice.
    assert recall is first
    assert len(recall.arrivals) == 240
    assert recall.learner.evidence.fetched == 200 + 60  # type: ignore[attr-defined]


def test_redirects_to_pages_that_are_not_read_show_something_of_their_own() -> None:
    """On one site the articles are there, on the other nothing but the way to log in: these are no mirrors."""
    known, mirror = SITES
    to_log_in = Page("", 0, state="redirected", target=f"{mirror}/login", crawl="1", explored="a rule")
    redirects = [replace(to_log_in, url=f"{mirror}/a/{n}") for n in range(90)]
    halved = next(halved for halved in range(1, 20) if not sampled([Page(f"{mirror}/login", 1)], halved))
    kept = sampled(redirects, halved)
    assert kept
    assert {(page.state, page.explored) for page in kept} == {("good", "")}
    assert len({page.content for page in kept}) == 1
    # A redirect from one site to the other stays one: what it leads to stays with it.
    to_the_other = [Page(f"{mirror}/a/{n}", 0, state="redirected", target=f"{known}/a/{n}") for n in range(90)]
    assert {page.state for page in sampled(to_the_other, halved)} == {"redirected"}
