"""Rows of one content: which are shown in place of pages for a while, and which are what the site shows."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from clusterd_crawler.rules import RuleSet
from clusterd_crawler.skipping.known_pages import KnownPages
from clusterd_crawler.skipping.rows import GAP, KINDS, LONGEST, MIXED, ROW, TIMES, Rows

from tests.crawler.made_rules import DROP_SID, HOST, rule_set

H = f"http://{HOST}"
WALL = 99
LONG = 2 * GAP


def articles(first: int, number: int, content: int = 0) -> list[tuple[str, int]]:
    """Return pages of two kinds in turn, each showing its own content, or all one."""
    pages = range(first, first + number)
    return [(f"{H}/article/{n}{'?print=1' if n % 2 else ''}", content or 1_000 + n) for n in pages]


def walled(pages: Iterable[tuple[str, int]], rows: Rows | None = None) -> list[str]:
    """Return the URLs that turned out to have shown a wall."""
    rows, met, found = rows or Rows(), set[int](), list[str]()
    for url, content in pages:
        found += rows.add(url, content, content not in met)[1]
        met.add(content)
    return found


def test_a_wall_is_told_once_as_many_others_have_come() -> None:
    wall = articles(200, ROW, WALL)
    before, after = articles(0, LONG), articles(400, GAP)
    assert walled([*before, *wall, *after[:-1]]) == []
    assert walled([*before, *wall, *after]) == [url for url, _ in wall]
    assert walled([*before, *wall[1:], *after]) == []


def test_a_wall_takes_the_rest_of_its_row_along_but_what_always_showed_one_page() -> None:
    # Given a wall that pages of kinds that nobody knows yet have met as well, and forms that show another content …
    forms = [(f"{H}/posting?p={n}", 90) for n in range(20)]
    wall = articles(200, 2 * ROW, WALL)
    unknown = [(f"{H}/{folder}/list?p={n}", WALL) for folder in ("a", "b") for n in range(ROW)]
    known = [(f"{H}/posting?p={n}", WALL) for n in range(20, 24)]
    found = walled([*articles(0, LONG), *forms, *wall, *unknown, *known, *articles(400, LONG)])
    assert found == [url for url, _ in (*wall, *unknown)]
    # … then not where most of the row is of such kinds.
    more = [(f"{H}/{folder}/list?p={n}", WALL) for folder in "abcd" for n in range(ROW)]
    assert walled([*articles(0, LONG), *forms, *wall[:ROW], *more, *articles(400, LONG)]) == []


def named(number: int) -> str:
    """Return a word without digits for each number."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


@pytest.mark.parametrize("form", ["/{}/{}", "/{}/{}/index.html?print=1", "/{}/list?p={}"])
def test_a_wall_is_told_on_a_site_of_many_folders(form: str) -> None:
    # Given folders each of which has a page or two …
    pages = [(H + form.format(named(n % 70), n), 1_000 + n) for n in range(3 * LONG)]
    wall = [(url, WALL) for url, _ in pages[LONG : LONG + ROW]]
    assert walled([*pages[:LONG], *wall, *pages[2 * LONG :]]) == [url for url, _ in wall]


@pytest.mark.parametrize("form", ["/{}/edit", "/{}/page?action=edit", "/{}/page?action=edit&x={}", "/{}/{}/edit"])
def test_a_family_of_many_folders_that_is_one_page_is_no_wall(form: str) -> None:
    others = ["/{}/history", "/{}/page?action=history", "/{}/page?action=history&x={}", "/{}/{}/history", "/{}/{}"]
    pages = [
        (H + other.format(named(n), n), 5_000 + 10 * n + at) for n in range(LONG) for at, other in enumerate(others)
    ]
    family = [(H + form.format(named(n), n), WALL) for n in range(200)]
    assert walled([*pages[:LONG], *family, *pages[LONG:]]) == []


def test_around_its_edges_pages_may_mix() -> None:
    # Given a wall of which 16 requests were under way when it began, and as many when it ended …
    pages = [*articles(0, LONG), *articles(200, 2 * ROW, WALL), *articles(400, LONG)]
    chance = random.Random(7)
    mixed = [page for _, page in sorted((place + 16 * chance.random(), page) for place, page in enumerate(pages))]
    assert mixed != pages
    assert len(walled(mixed)) == 2 * ROW


@pytest.mark.parametrize(
    "form",
    ["/posting.php?p={}", "/article/{}?action=edit", "/user/{}", "/article/{}/edit", "/article/{}?action=edit&x={}"],
)
def test_a_family_that_is_one_page_is_no_wall(form: str) -> None:
    others = ["/view.php?p={}", "/article/{}?action=history", "/article/{}", "/article/{}?action=history&x={}"]
    pages = [(H + other.format(n, n), 5_000 + 10 * n + at) for n in range(LONG) for at, other in enumerate(others)]
    family = [(H + form.format(n, n), WALL) for n in range(200)]
    assert walled([*pages[:LONG], *family, *pages[LONG:]]) == []


@pytest.mark.parametrize("wordings", [2, 9])
def test_a_form_in_several_wordings_is_no_wall(wordings: int) -> None:
    # Given log-in forms whose wording changes with time …
    forms = [(f"{H}/index?title=Log-in&from={n}", 90 + n * wordings // 270) for n in range(270)]
    pages = [(f"{H}/index?title=A{n}&from={n}", 5_000 + n) for n in range(270)]
    mixed = [page for at in range(0, 270, 60) for page in (*pages[at : at + 60], *forms[at : at + 60])]
    assert walled(mixed) == []


def test_a_calendar_that_is_exhausted_is_no_wall() -> None:
    months = [
        (f"{H}/calendar?year={y}&month={m}", 12 * y + m if y < 2030 else WALL)
        for y in range(2020, 2040)
        for m in range(12)
    ]
    assert walled([*articles(0, LONG), *months, *articles(200, LONG)]) == []


def test_what_was_met_before_or_comes_again_among_others_is_no_wall() -> None:
    before, row, after = articles(0, LONG), articles(200, LONG, WALL), articles(400, LONG)
    assert walled([(f"{H}/login", WALL), *before, *row, *after]) == []
    scattered = [page for pair in zip(row, after, strict=True) for page in pair]
    assert walled([*before, *scattered]) == []


def test_what_comes_among_others_for_long_is_no_wall() -> None:
    # Given articles of which more than half are sold out …
    sold, others = articles(1_000, 4 * MIXED, WALL), articles(2_000, MIXED + 1)
    mixed = [page for n, other in enumerate(others) for page in (*sold[2 * n : 2 * n + 2], other)]
    assert walled([*articles(0, LONG), *mixed, *sold[-4:], *articles(5_000, LONG)]) == []
    # … and a wall, at the edges of which as many pages mix as may, and which is shown for some URLs thrice.
    wall = [page for n, page in enumerate(sold) for page in [page] * (3 if n % 9 == 0 else 1)]
    edge = [page for pair in zip(wall, others[: MIXED // 2], strict=False) for page in pair]
    assert len(walled([*articles(0, LONG), *edge, *wall[MIXED // 2 :], *articles(5_000, LONG)])) == len(sold)


def test_a_wall_that_comes_again_is_told_as_often_as_is_believed() -> None:
    pages = articles(0, LONG)
    for again in range(1, TIMES + 3):
        pages += articles(1_000 * again, ROW, WALL) + articles(1_000 * again + 500, LONG)
    assert len(walled(pages)) == TIMES * ROW


def test_a_row_that_is_too_long_is_what_the_site_shows() -> None:
    pages = [*articles(0, LONG), *articles(200, LONGEST + 1, WALL), *articles(9_000, LONG)]
    assert walled(pages) == []


def test_what_is_kept_is_bounded() -> None:
    rows = Rows()
    for number in range(3 * KINDS):
        rows.add(f"{H}/{number:x}z/page?q={number}", number, True)
        rows.add(f"{H}/{number}", WALL, True)
    assert len(rows._kinds) <= KINDS
    assert len(rows._rows) <= GAP + 1
    assert len(rows._rows[WALL].urls) <= LONGEST + 1


def test_pages_that_showed_a_wall_justify_no_skip_and_tear_no_key_once_rules_change() -> None:
    known = KnownPages(explore=0)
    known.load(rule_set(DROP_SID))
    asked = 0

    def fetch(pages: Iterable[tuple[str, int]]) -> None:
        nonlocal asked
        for url, content in pages:
            asked += 1
            known.fetched(url, asked, content=content)

    fetch(articles(0, LONG))
    # Given a wall in place of a page that is known in another session, and of new ones …
    fetch([*((f"{H}/article/{n}?sid=1", 1_000 + n) for n in (2, 4, 6)), *articles(200, ROW, WALL)])
    fetch([(f"{H}/article/0?sid=1", WALL), (f"{H}/article/900?sid=1", WALL)])
    assert known.decide(f"{H}/article/200?sid=3", asked) is not None
    fetch([*articles(400, GAP - 1), (f"{H}/article/4?sid=1", 1_004)])
    # … then no skip rests on them, and what was skipped is looked at again …
    assert known.decide(f"{H}/article/200?sid=3", asked) is None
    assert known.doubted == ROW + 2
    # … what leads to the wall leads to nothing new …
    assert known.led_elsewhere(f"{H}/article/2?sid=3", f"{H}/login", WALL) is None
    # … and the key that one of them tore is whole when the rules come again, for that page is known no more …
    assert known.decide(f"{H}/article/0?sid=3", asked) is None
    known.load(RuleSet(HOST, 2, (DROP_SID,)))
    assert known.decide(f"{H}/article/0?sid=3", asked) is not None
    # … but not where its pages differ.
    fetch([(f"{H}/article/0?sid=4", 7)])
    known.load(RuleSet(HOST, 3, (DROP_SID,)))
    assert known.decide(f"{H}/article/0?sid=3", asked) is None
