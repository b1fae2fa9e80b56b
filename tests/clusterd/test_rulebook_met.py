"""Hosts of more pages than their log keeps: what watches their rules is judged by all that their crawls have met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.rulebook.contract import Evidence
from clusterd.learning.rulebook.groups import Groups
from clusterd.learning.rulebook.met import Met, cut_contents
from clusterd.learning.rulebook.recall import LATE_MS
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd_crawler.clock import now_ms
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.urls import hash_of

from tests.clusterd.made_up_rules import HOST, sketch

LIMIT = 500
H = f"http://{HOST}"


def page(number: int, content: int, **changes: object) -> Page:
    return replace(Page(f"{H}/{number}", content, fetched_at=number, crawl="one"), **changes)  # type: ignore[arg-type]


def met(*parts: dict[str, bytes]) -> Met:
    made = Met()
    for part in parts:
        made.add({crawl: [contents] for crawl, contents in part.items()})
    return made


def test_what_a_crawl_has_met_on_pages_that_are_cut_is_known_of_it_alone() -> None:
    whole = [page(n, 2**63 + n) for n in range(10)] + [page(20, 70, crawl="two"), page(21, 80, state="file")]
    known = met(cut_contents(whole[:5], whole[:2]), cut_contents(whole[5:], []))
    assert [n for n in range(12) if known.knows("one", 2**63 + n)] == list(range(2, 10))
    assert [known.knows(crawl, 70) for crawl in ("one", "two", "three")] == [False, True, False]
    assert [known.has_met(content) for content in (70, 80, 90)] == [True, True, False]
    assert [known.has_cut("one", page(n, 0).url) for n in (1, 2, 21, 22)] == [False, True, True, False]
    assert not known.has_forgotten("one")


def test_what_says_nothing_of_its_url_or_watches_a_rule_was_met_by_no_crawl() -> None:
    whole = [page(1, 1, explored="a rule"), page(2, 2, state="soft"), page(3, 0, state="failed")]
    known = met(cut_contents(whole, []))
    assert not any(known.has_met(content) for content in (0, 1, 2))
    # It has come all the same, as another page may be fetched instead of it in its turn.
    assert [known.has_cut("one", page.url) for page in whole] == [True, False, False]


def test_a_redirect_to_another_host_shows_its_address() -> None:
    known = met(cut_contents([page(1, 0, state="redirected", target="http://other.example/")], []))
    assert known.knows("one", hash_of("http://other.example/"))


def test_a_crawl_of_which_a_part_is_gone_is_forgotten() -> None:
    known = Met()
    known.add({"one": [b"", b"\1\0\0\0"], "two": [b"\2\0\0\0"], "three": [b""]})
    assert [known.has_forgotten(crawl) for crawl in ("one", "two", "three", "four")] == [True, False, True, False]
    assert [known.has_met(content) for content in (0, 1, 2)] == [False, True, True]


class Host:
    """A host of five times as many pages as its log keeps, each fetched with ``ref=a``; ``ref`` means nothing on it."""

    def __init__(self, book: RuleBook) -> None:
        self.at = count(now_ms() - LATE_MS // 2)
        self.book = book
        self.service = RuleService(book, evidence_limit=LIMIT)
        self.learn(*(self.fetched(n, ref) for n in range(100) for ref in "ab"))
        self.crawl("one")
        (rule,) = self.service.rules()
        self.rule = rule.id

    def fetched(self, n: int, ref: str, crawl: str = "one", shows: int = 0, **explored: str) -> Sketch:
        return sketch(f"{H}/{n % 50}/item?id={n}&ref={ref}", shows or 100 + n, next(self.at), crawl=crawl, **explored)

    def crawl(self, crawl: str) -> None:
        for start in range(0, 5 * LIMIT, 250):
            self.learn(*(self.fetched(n, "a", crawl) for n in range(start, start + 250)))

    def learn(self, *pages: Sketch) -> None:
        self.service.observe(pages)
        self.service.learn_due(now=1)

    def cut(self) -> list[int]:
        """Return pages that are no more in the log."""
        left = {page.url for page in self.book.evidence(HOST).pages}
        return [n for n in range(100, 5 * LIMIT) if self.fetched(n, "a").url not in left]

    def tried(self, n: int, crawl: str = "one", shows: int = 0) -> Sketch:
        known = self.fetched(n, "a").url
        return self.fetched(n, "b", crawl, shows, explored=self.rule, instead_of=known)

    def taken_over(self) -> None:
        """Let another worker learn it, which knows no more than the store does."""
        self.service.close()
        self.service = RuleService(self.book, evidence_limit=LIMIT)

    def contradicted(self) -> bool:
        reasons = (entry.last.reason for entry in self.service.entries(every=True))
        return any("differed" in reason or "contradicted" in reason for reason in reasons)


@pytest.fixture
def host(book: RuleBook) -> Iterator[Host]:
    made = Host(book)
    yield made
    made.service.close()


TakesOver = Callable[[Host], None]


@pytest.mark.parametrize("takes_over", [lambda host: None, Host.taken_over])
def test_a_page_speaks_against_a_rule_though_what_it_is_judged_by_was_cut(host: Host, takes_over: TakesOver) -> None:
    """On a host of twelve times as many pages 332 trials over all of it found nothing, of which 33 differed."""
    takes_over(host)
    old = host.cut()
    assert len(old) > LIMIT
    # Given pages that show what their crawl has met, on pages that were cut, then some that do not …
    host.learn(*(host.tried(n) for n in old[:300:10]))
    assert not host.contradicted()
    host.learn(*(host.tried(n, shows=90_000 + n) for n in old[300:400:10]))
    # … these are found.
    assert host.contradicted()
    assert not list(host.service.rules())


def test_what_a_crawl_before_has_met_speaks_neither_for_a_rule_nor_against(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page itself showed to the crawl before is not what the known page shows."""
    monkeypatch.setattr("clusterd.learning.rulebook.recall.EARLY_SECONDS", 0.0)
    old = host.cut()
    host.learn(*(host.tried(n, "two") for n in old[:100:5]))
    assert not host.contradicted()
    host.learn(*(host.tried(n, "two", 90_000 + n) for n in old[100:200:10]))
    assert host.contradicted()


def test_nothing_is_counted_of_a_crawl_that_is_forgotten(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.learning.rulebook.redis.BYTES", 0)
    old = host.cut()
    host.crawl("two")
    host.taken_over()
    host.learn(*(host.tried(n, "one", 90_000 + n) for n in old[:100:5]))
    assert not host.contradicted()


def test_a_group_is_told_of_pages_that_are_cut_before_it_has_read_them(book: RuleBook) -> None:
    """Each of its hosts is learned first, and its log may be cut then."""
    groups, sites = Groups(book, "identical"), (HOST, f"www.{HOST}")
    for number, site in enumerate(sites):
        groups.note([Page(f"http://{site}/", 1)])
        book.add_pages({site: [Page(f"http://{site}/", 1, fetched_at=number, crawl="one")]})
    recall = groups.caught_up(HOST)
    known = page(5, 55)
    book.add_pages({HOST: [known]})
    whole = book.evidence(HOST)
    assert book.rewrite(HOST, whole.mark, whole.pages[:1], cut_contents(whole.pages, whole.pages[:1]))
    watching = [page(6, 55, instead_of=known.url), page(7, 77, instead_of=known.url)]
    watching = [replace(one, url=one.url.replace("//", "//www."), explored="a rule") for one in watching]
    book.add_pages({sites[1]: watching})
    assert groups.caught_up(HOST) is recall
    assert recall.trials == {"a rule": [1, 1]}


def test_what_another_worker_cuts_before_a_log_is_packed_anew_is_known(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one that took the host over, as the first stood still for longer than its lease."""
    monkeypatch.setattr("clusterd.learning.rulebook.service.LOOSE_BLOCKS", 0)
    service, read = RuleService(book), book.evidence
    known, watching = page(5, 55), page(6, 55, explored="a rule", instead_of=page(5, 55).url)
    for one in (page(1, 11), known, watching):
        book.add_pages({HOST: [one]})

    def cut_then(host: str, after: str = "") -> Evidence:
        found = read(host, after)
        kept = [page for page in found.pages if page != known]
        assert book.rewrite(HOST, found.mark, kept, cut_contents(found.pages, kept))
        monkeypatch.setattr(book, "evidence", read)
        return found

    monkeypatch.setattr(book, "evidence", cut_then)
    service.learn_due(now=1)
    recall = service._recalls.get(HOST)
    assert recall is not None
    assert recall.trials == {"a rule": [1, 0]}
    service.close()


def test_what_is_left_out_as_a_log_is_packed_anew_is_known_to_who_takes_the_host_over(
    book: RuleBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that change from crawl to crawl: of those of old crawls only what watched a rule is left, which agreed."""
    monkeypatch.setattr("clusterd.learning.rulebook.service.LOOSE_BLOCKS", 0)
    at = count()
    for crawl in range(6):
        known = page(1, 100 + crawl, crawl=f"{crawl}", fetched_at=next(at))
        watching = replace(page(10 + crawl, known.content, crawl=known.crawl, fetched_at=next(at)), explored="a rule")
        for one in (known, replace(watching, instead_of=known.url)):
            book.add_pages({HOST: [one]})
    for _ in range(2):
        service = RuleService(book)
        service.learn_due(now=1)
        recall = service._recalls.get(HOST)
        assert recall is not None
        assert recall.trials == {"a rule": [6, 0]}
        service.close()
        book.add_pages({HOST: [page(99, 99)]})
    assert book.evidence(HOST).blocks < 6
