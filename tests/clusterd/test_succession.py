"""Which pages that were there before count as having taken a lost one over."""

from __future__ import annotations

import pytest

from tests.clusterd.made_up_site import DAY, Site, words


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize(("sweeps", "match"), [("2", "https://a.example/book"), ("12", None)])
def test_a_page_ten_times_as_long_took_over_what_it_did_not_say_before(
    site: Site, sweeps: str, match: str | None
) -> None:
    """By how much of the lost page it holds: of the long one that is little, then and now."""
    site.add("https://a.example/lost", words("lost", 150), "1", at=DAY)
    for sweep in "12":
        part = words("lost", 150) if sweep in sweeps else words("else", 150)
        text = f"{words('before', 750)} {part} {words(f'behind {sweep}', 150)} {words('end', 750)}"
        site.add("https://a.example/book", text, sweep, at=int(sweep) * DAY)
    assert site.lost()["https://a.example/lost"].match == match


def test_a_page_thirty_times_as_long_took_over_as_much_as_a_new_one() -> None:
    """Few values tell how much of the lost page is in it, so no verdict claims it: it is there all the same."""
    found = []
    for sweeps in ("2", "12"):
        site = Site()
        for n in range(12):
            site.add(f"https://a.example/lost/{n}", words(f"lost {n}", 60), "1", at=DAY)
            for sweep in sweeps:
                parts = [words(f"before {n}", 1000), words(f"lost {n}", 60), words(f"behind {n}", 1000)]
                text = " ".join(parts if sweep == "2" else parts[::2])
                site.add(f"https://a.example/book/{n}", text, sweep, at=int(sweep) * DAY)
        found.append({url: one.match for url, one in site.lost().items() if one.match})
    assert found[0] == found[1] == {url: url.replace("lost", "book") for url in found[0]}
    assert len(found[0]) >= 4


def test_what_a_page_took_over_from_another_is_none_of_a_passage_of_that(site: Site) -> None:
    """The page now says what another did, which quoted the lost one all along: nothing of this has moved."""
    quote, other = words("quote", 120), words("other", 60)
    site.add("https://a.example/lost", f"{quote} {words('lost', 120)}", "1", at=DAY)
    site.add("https://a.example/other", f"{quote} {other}", "1", at=DAY)
    site.add("https://a.example/page", words("page"), "1", at=DAY)
    site.add("https://a.example/page", f"{quote} {other}", "2", at=2 * DAY)
    found = site.lost()
    assert found["https://a.example/other"].match == "https://a.example/page"
    assert found["https://a.example/lost"].match is None


@pytest.mark.parametrize(("shared", "match"), [(200, "https://a.example/new"), (250, None)])
def test_a_new_page_goes_back_to_an_earlier_one_that_it_resembles_by_half(
    site: Site, shared: int, match: str | None
) -> None:
    """Less than half of another page in it, and more than of the lost one, does not make it that page."""
    lost, other = words("lost"), words("other")
    site.add("https://a.example/lost", lost, "1", at=DAY)
    for sweep in (1, 2):
        site.add("https://a.example/other", other, f"{sweep}", at=sweep * DAY)
    parts = [*lost.split()[:60], *other.split()[:shared], *words("new", 80).split()]
    site.add("https://a.example/new", " ".join(parts), "2", at=2 * DAY)
    assert site.lost()["https://a.example/lost"].match == match
