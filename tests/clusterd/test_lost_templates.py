"""Lost & found where most pages of a site share a text: its template, or the page itself under many URLs."""

from __future__ import annotations

import pytest

from tests.clusterd.made_up_site import DAY, Site, edited, words


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("count", [5, 10, 30])
@pytest.mark.parametrize("folder", ["new/place/", "new/"], ids=["same names", "other names"])
def test_the_long_template_of_a_small_site_is_no_match(site: Site, count: int, folder: str) -> None:
    """Each page of the later sweep has it: of ten pages 291 shingles weighed as much as 29 that only one has."""
    for sweep, where in (("1", "old/"), ("2", folder)):
        for n in range(count):
            name = n if folder == "new/place/" else f"{sweep}{n}"
            text = f"{words('template', 200)} {words(f'{n} {sweep}', 250)}"
            site.add(f"https://a.example/{where}{name}", text, sweep, at=int(sweep) * DAY)
        site.add(f"https://a.example/{sweep}", f"{words('template', 200)} {words('moved')}", sweep, at=int(sweep) * DAY)
    found = site.lost()
    assert {url for url, one in found.items() if one.match} == {"https://a.example/1"}
    assert len(found) == count + 1


def test_of_two_short_pages_the_template_is_no_match(site: Site) -> None:
    """It is more than a fifth of what both pages say, and less than half."""
    for sweep in ("1", "2"):
        for n in range(2):
            text = f"{words('template', 100)} {words(f'{n} {sweep}', 60)}"
            site.add(f"https://a.example/{sweep}{n}", text, sweep, at=int(sweep) * DAY)
    assert [one.match for one in site.lost().values()] == [None, None]


@pytest.mark.parametrize("short", [2, 3])
def test_the_template_of_a_small_site_is_no_match_where_a_long_page_shows_little_of_it(site: Site, short: int) -> None:
    """Of 20,000 words one value in 64 is kept: by such pages, one or forty, most of the template was none."""
    for sweep in ("1", "2"):
        at = int(sweep) * DAY
        site.add("https://a.example/long", f"{words('template', 200)} {words('long', 20_000)}", sweep, at=at)
        for n in range(short):
            rest = words(f"kept {n}", 60) if n == 0 else ""
            text = f"{words('template', 200)} {rest} {words(f'{n} {sweep}', 250)}"
            site.add(f"https://a.example/{sweep}{n}", text, sweep, at=at)
    found = {url[-1]: one.match for url, one in site.lost().items()}
    assert found == {"0": "https://a.example/20", **{f"{n}": None for n in range(1, short)}}


def test_the_versions_of_a_page_that_make_up_a_site_are_no_template(site: Site) -> None:
    """Each answer has another counter, so that no two texts are equal."""
    for sweep, text in (("1", words("entry")), ("2", edited(words("entry"), 60))):
        for n in range(10):
            site.add(f"https://a.example/?sid={sweep}{n}", f"visitor {sweep}{n} of {text}", sweep, at=int(sweep) * DAY)
    assert all(found.match for found in site.lost().values())


@pytest.mark.parametrize("every", [60, 30])
def test_a_page_of_many_copies_that_was_edited_is_no_template(site: Site, every: int) -> None:
    """Under thirty session ids then, thirty others now: what is on thirty pages weighed a thirtieth, none was near."""
    for sweep, text in (("1", words("entry", 90)), ("2", edited(words("entry", 90), every))):
        for n in range(30):
            site.add(f"https://a.example/?sid={sweep}{n}", text, sweep, at=int(sweep) * DAY)
    assert {found.match for found in site.lost().values()} <= {f"https://a.example/?sid=2{n}" for n in range(30)}


@pytest.mark.parametrize("copies", [31, 32, 200])
def test_many_copies_of_a_page_that_is_nearer_hide_no_match(site: Site, copies: int) -> None:
    """They quote it under so many session ids, as they did before: none took its place, and all that was looked at."""
    quote, rest = words("quote", 180), words("rest", 120)
    site.add("https://a.example/lost", f"{quote} {rest}", "1", at=DAY)
    site.add("https://a.example/new/place", f"{rest} {words('new', 60)}", "2", at=2 * DAY)
    for sweep in (1, 2):
        for n in range(copies):
            site.add(f"https://a.example/list?sid={n}", f"{quote} {words('list', 120)}", f"{sweep}", at=sweep * DAY)
    assert site.lost()["https://a.example/lost"].match == "https://a.example/new/place"
