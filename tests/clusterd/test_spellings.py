"""A page is found by its address however that is spelled: as it was stored, in canonical form, as people write it."""

from __future__ import annotations

import pytest
from clusterd.queries import document, find_lost, group
from clusterd.queries.documents import known_url
from clusterd.queries.grouping import alternatives
from clusterd.queries.spellings import spellings
from clusterd_crawler.sketch import TEXT
from clusterd_crawler.urls import canonical

from tests.clusterd.made_up_site import DAY, Site, words

STORED = (
    "http://h.example/%7Euser/a",
    "http://h.example/%7euser/b%c3%a9?x=%2f",
    "http://h.example/caf\u00e9 au lait?q=\u00fc",
    "http://m\u00fcnchen.example/~user/c",
    "http://m\u00fcnchen.example:8080/caf\u00e9",
    "http://h.example:80/d",
    "https://port.example:443",
    "http://h.example?x=%C3%A9",
)


@pytest.mark.parametrize("stored", STORED)
def test_a_stored_page_is_found_by_its_canonical_form(stored: str) -> None:
    site = Site()
    site.add(stored, words(1), "1", DAY)
    asked = canonical(stored)
    assert asked != stored
    assert known_url(asked, site.index) == stored
    assert document(asked, site.index, TEXT).url == stored
    assert alternatives(site.index, asked, "near").members == (stored,)
    assert [one.members for one in group(site.index, [asked, stored], "near")] == [(asked, stored)]


def test_a_lost_page_is_found_by_its_canonical_form() -> None:
    site = Site()
    site.add("http://h.example/%7Ea", words(1), "1", DAY)
    site.add("http://h.example/%7Eb", words(1), "2", 2 * DAY)
    (found,) = find_lost(site.index, TEXT, ["http://h.example/~a"])
    assert (found.url, found.match) == ("http://h.example/%7Ea", "http://h.example/%7Eb")


def test_the_spelling_that_is_asked_for_comes_first() -> None:
    site = Site()
    for number, stored in enumerate(("http://h.example/%7ea", "http://h.example/~a", "http://h.example/%7Ea")):
        site.add(stored, words(number), "1", DAY)
        assert known_url(stored, site.index) == stored
    assert known_url("HTTP://h.example/%7Ea", site.index) == "http://h.example/~a"


def test_no_other_page_is_taken_for_it_and_few_are_tried() -> None:
    long = "http://xn--mnchen-3ya.example/?" + "&".join(f"a{n}=%C3%A9~%2F%25%23%5C%0A" for n in range(1000))
    first, others = spellings(long)
    assert first == [long]
    assert 10 < len(others) < 64
    assert {canonical(one) for one in others} == {long}
    assert spellings("no url") == (["no url"], [])
    (given,), escaped = spellings("http://h.example/\udcff")
    assert given == "http://h.example/%ED%B3%BF"
    assert all(one.isascii() for one in escaped)
