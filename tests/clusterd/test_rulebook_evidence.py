"""Pages as bytes, and the reservoir that a hostile host cannot turn against its own counter-evidence."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from clusterd.learning.contract import Page
from clusterd.learning.rulebook.blocks import VERSION, pack, unpack
from clusterd.learning.rulebook.reservoir import SAME_CONTENT, _witnesses, latest, reservoir
from clusterd_crawler.errors import MessageError
from clusterd_crawler.purpose import Purpose
from clusterd_crawler.sketch import Name
from hypothesis import given, settings
from hypothesis import strategies as st

words = st.integers(0, 2**64 - 1)
names = st.builds(Name, st.sampled_from(["canonical", "shortlink", "og", "anchor"]), words)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
pages = st.builds(
    Page,
    url=text,
    content=words,
    words=words,
    names=st.lists(names, max_size=4).map(tuple),
    fetched_at=st.integers(-(2**63), 2**63 - 1),
    explored=text,
    instead_of=text,
    crawl=text,
    state=st.sampled_from(["good", "soft", "failed", "file"]),
    purpose=st.builds(Purpose, words, words, st.integers(0, 2**32 - 1)),
)
pages = st.one_of(pages, st.builds(Page, url=text, content=words, state=st.just("redirected"), target=text))


@settings(deadline=None)
@given(st.lists(pages, max_size=20))
def test_pages_come_back_from_their_block(given_pages: list[Page]) -> None:
    assert unpack(pack(given_pages)) == given_pages


@settings(deadline=None)
@given(st.lists(pages, min_size=1, max_size=5), st.data())
def test_a_damaged_block_is_refused_or_reads_as_pages(given_pages: list[Page], data: st.DataObject) -> None:
    block = bytearray(pack(given_pages))
    place = data.draw(st.integers(0, len(block) - 1))
    block[place] ^= data.draw(st.integers(1, 255))
    cut = bytes(block[: data.draw(st.integers(0, len(block)))])
    try:
        read = unpack(cut)
    except MessageError:
        return
    assert all(isinstance(page, Page) for page in read)


def test_pages_of_one_host_pack_to_few_bytes() -> None:
    many = [Page(f"http://example.com/viewtopic.php?t={n}&sid=abc", n * 2**40, 300, (), n) for n in range(1000)]
    assert len(pack(many)) < 40 * len(many)


def test_another_version_is_refused() -> None:
    with pytest.raises(MessageError, match="version"):
        unpack(bytes((VERSION + 1,)) + pack([])[1:])
    with pytest.raises(MessageError):
        unpack(b"")


def page(number: int, content: int | None = None, at: int = 0, explored: str = "", folder: str = "p") -> Page:
    url = f"http://example.com/{folder}/{number}"
    return Page(url, number if content is None else content, fetched_at=at, explored=explored)


def test_the_last_fetch_of_a_url_counts_whatever_came_first() -> None:
    old, new, other = page(1, 5, at=1), page(1, 6, at=2), page(2, at=0)
    assert latest([new, old, other]) == [other, new]


def test_within_the_limit_everything_stays() -> None:
    many = [page(n, 7) for n in range(SAME_CONTENT * 2)]
    assert len(reservoir(many, len(many))) == len(many)


def test_a_flood_of_one_page_pushes_nothing_else_out() -> None:
    flood = [page(n, 7, at=n, folder="flood") for n in range(20_000)]
    honest = [page(n, 100 + n, at=n) for n in range(700)]
    kept = reservoir([*flood, *honest], 1_000)
    assert set(honest) <= set(kept)
    assert sum(p.content == 7 for p in kept) == SAME_CONTENT


def test_watched_pages_stay_and_have_a_share_of_their_own() -> None:
    flood = [page(n, at=n) for n in range(5_000)]
    watched = [page(n, 1, at=n, explored="r", folder="w") for n in range(300)]
    kept = reservoir([*watched, *flood], 1_000)
    assert len(kept) == 1_000
    assert set(watched[-100:]) <= set(kept)
    assert sum(p.explored == "r" for p in kept) <= SAME_CONTENT


def test_a_watched_page_is_judged_by_the_first_good_page_that_shows_the_same() -> None:
    says_it_is_none, first, second = replace(page(1, 7), state="soft"), page(2, 7), page(3, 7)
    watched = page(4, 7, explored="r")
    assert _witnesses([watched], [says_it_is_none, first, second, watched]) == [first]


def test_families_stay_or_go_whole() -> None:
    many = [page(n, folder=f"f{n % 100}") for n in range(2_000)]
    sizes = Counter(p.url.split("/")[3] for p in reservoir(many, 1_000))
    assert sum(size == 20 for size in sizes.values()) >= len(sizes) - 1


def test_the_choice_does_not_depend_on_the_order() -> None:
    many = [page(n, n % 300, at=n % 7, folder=f"f{n % 13}") for n in range(3_000)]
    shuffled = list(many)
    random.Random(5).shuffle(shuffled)
    assert set(reservoir(many, 500)) == set(reservoir(shuffled, 500))
