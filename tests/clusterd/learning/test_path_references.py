"""Parameters whose values are components of another page's path."""

from __future__ import annotations

from clusterd_crawler.rules import RuleSet

from tests.clusterd.learning.one_host import learned_of
from tests.crawler.made_rules import key_under

HOST = "http://w.com"
#: Clean trials that a value never seen asks for.
BOUND = 52


def wiki(pages: int, both: int) -> list[tuple[str, int]]:
    """Return what links to each page, under the address with the title in the path, and of some in the query too."""
    found = []
    for n in range(pages):
        found.append((f"/index.php/Special:Links/Page_{n}_of_{n % 7}", n))
        if n < both:
            found.append((f"/index.php?title=Special:Links&target=Page+{n}+of+{n % 7}", n))
    return found


def learned(pages: list[tuple[str, int]]) -> RuleSet:
    return learned_of("w.com", ((HOST + url, content) for url, content in pages))


def test_a_title_in_the_query_is_the_one_in_the_path() -> None:
    rules = learned(wiki(80, BOUND))
    written = HOST + "/index.php/Special:Links/Some_new_page"
    asked = HOST + "/index.php?title=Special:Links&target=Some+new+page"
    assert key_under(rules, asked)[0] == key_under(rules, written)[0]
    assert key_under(rules, key_under(rules, asked)[0])[0] == written


def test_other_parameters_and_other_values_are_not_covered() -> None:
    rules = learned(wiki(80, BOUND))
    for query in ("title=Special:Links", "title=Special:Links&target=A&limit=5", "title=Other&target=A", "target=A"):
        assert key_under(rules, f"{HOST}/index.php?{query}")[0] == f"{HOST}/index.php?{query}"


def test_fewer_trials_are_not_enough() -> None:
    assert learned(wiki(80, BOUND - 1)).rules == ()


def test_pages_that_differ_are_no_reference() -> None:
    pages = wiki(80, 60) + [
        (f"/index.php?title=Special:Links&target=Page+{n}+of+{n % 7}", 1000 + n) for n in range(60, 66)
    ]
    assert learned(pages).rules == ()


def test_a_rule_that_holds_of_what_another_makes_too_is_said_once() -> None:
    """``article.php?id=7`` is ``article/7``; then ``article-7.html`` is found to be ``article.php?id=7``."""
    ways = ("article/{}", "article.php?id={}", "article-{}.html")
    pages = [(f"/{way.format(n)}", n) for n in range(360) for at, way in enumerate(ways) if n % 3 != at]
    rules = learned(pages).rules
    assert len(rules) > 1
    assert len({rule.id for rule in rules}) == len(rules)
