"""Hosts of more pages than their log keeps: what their rules rest on stays, though hardly any more of it comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.rulebook.redis import RuleBook
from clusterd.learning.rulebook.reservoir import TOGETHER_SHARE, reservoir
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.rulebook.together import brought_together
from clusterd_crawler.names import name_hash
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.sketch import Name, Sketch

from tests.clusterd.made_up_rules import HOST, sid_rule, sketch

LIMIT = 1_000


@pytest.fixture
def service(book: RuleBook) -> Iterator[RuleService]:
    service = RuleService(book, evidence_limit=LIMIT)
    yield service
    service.close()


def ids(service: RuleService) -> set[str]:
    """Return the rules in force, but for that of print views."""
    return {rule.id for rule in service.rules() if "?print" not in rule.text}


def learn(service: RuleService, pages: Iterable[Sketch]) -> set[str]:
    """Show pages, and some with print views, so that there is something to learn each time; return `ids`."""
    shown = list(pages)
    at = shown[-1].fetched_at
    views = ((n, f"http://{HOST}/text/{n}{query}") for n in range(at, at + 25) for query in ("", "?print=1"))
    service.observe([*shown, *(sketch(url, 90_000 + n, n, crawl="c") for n, url in views)])
    service.learn_due(now=1)
    return ids(service)


@pytest.mark.parametrize("differing", [0, 40])
def test_a_rule_outlives_the_cut_of_what_it_was_found_in(service: RuleService, differing: int) -> None:
    """It keeps out what agrees with it, so that each page that comes has a key of its own."""
    at = count(1)

    def fetched(n: int, query: str = "", shows: int = 0) -> Sketch:
        return sketch(f"http://{HOST}/{n}/{query}", 100 + n + shows, next(at), crawl="c")

    for start in range(0, 90, 30):
        rules = learn(service, (fetched(n, query) for n in range(start, start + 30) for query in ("", "?ref=b")))
    assert len(rules) == 1
    for start in range(100, 4_000, 200):
        assert learn(service, (fetched(n) for n in range(start, start + 200))) == rules
    assert service.book.evidence(HOST).total <= LIMIT * 1.25
    # What came to differ stays as well.
    if differing:
        learn(service, (fetched(n, query, 50_000 * len(query)) for n in range(differing) for query in ("", "?ref=b")))
    for start in range(4_000, 6_000, 200):
        learn(service, (fetched(n) for n in range(start, start + 200)))
    assert ids(service) == (set() if differing else rules)


def test_what_rules_bring_together_has_its_share_where_a_second_crawl_came_to_half_of_it() -> None:
    """Of each URL that it fetched anew two fetches stay: these took all the room there is."""
    rules = RuleSet(HOST, 1, (sid_rule(),))
    first = [
        Page(f"http://{HOST}/{n}{sid}", n, fetched_at=n, crawl="a") for n in range(LIMIT) for sid in ("", "?sid=x")
    ]
    first += [Page(f"http://{HOST}/other{n % 50}/{n}", LIMIT + n, fetched_at=n, crawl="a") for n in range(LIMIT)]
    again = [replace(page, fetched_at=LIMIT + page.fetched_at, crawl="b") for page in first if page.content % 2]
    kept = reservoir([*first, *again], LIMIT, rules)
    assert len(kept) <= LIMIT
    together = sum("other" not in page.url for page in brought_together(kept, rules))
    assert together > LIMIT * TOGETHER_SHARE / 3
    assert any("other" in page.url for page in kept)


def test_what_pages_call_each_other_outlives_the_cut(service: RuleService) -> None:
    at = count(1)

    def fetched(n: int, url: str) -> Sketch:
        slug = f"http://{HOST}/{n}-title/"
        names = (Name("shortlink", name_hash(f"http://{HOST}/?p={n}")), Name("canonical", name_hash(slug)))
        return replace(sketch(url or slug, 100 + n, next(at), crawl="c"), names=names)

    rules = learn(service, (fetched(n, url) for n in range(100, 160) for url in ("", f"http://{HOST}/?p={n}")))
    assert rules == {rule.id for rule in service.rules() if rule.kind == "name"}
    for start in range(200, 4_000, 200):
        assert learn(service, (fetched(n, "") for n in range(start, start + 200))) == rules


def test_of_mirrors_the_same_pages_stay(service: RuleService, book: RuleBook) -> None:
    """Who learns them anew, as after a restart, found that what was left of the one was not what was of the other."""
    at = count(1)

    def fetched(n: int, scheme: str) -> Sketch:
        return sketch(f"{scheme}://www.{HOST}/{n % 100}/{n}", 100 + n, next(at), crawl="c")

    def mirrored(start: int) -> Iterator[Sketch]:
        return (
            fetched(n, scheme) for n in range(start, start + 200) for scheme in ("https", "http")[: 2 - (n % 5 > 0)]
        )

    (mirror,) = learn(service, (fetched(n, scheme) for n in range(200) for scheme in ("https", "http")))
    for start in range(200, 4_000, 200):
        assert learn(service, mirrored(start)) == {mirror}
    service.close()
    another = RuleService(book, evidence_limit=LIMIT)
    assert learn(another, mirrored(5_000)) == {mirror}
    another.close()
