"""Pairs of a collection that is read twice: what is counted is all that there is, each pair once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pytest
from clusterd.batch import pairs, whole_profile
from clusterd_consumer.resemblance import exact
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.sketch import TEXT, StreamSketch

COMMON = 10


def found_in(texts: Sequence[str], threshold: float, containment: bool) -> list[tuple[int, int]]:
    def again(places: Collection[int]) -> Iterator[tuple[int, StreamSketch]]:
        yield from ((n, sketch_plain("", texts[n], profile=whole_profile(TEXT), fetched_at=0).main) for n in places)

    sketches = [sketch_plain(f"http://a/{n}", text, fetched_at=0) for n, text in enumerate(texts)]
    return sorted((one.a, one.b) for one in pairs(sketches, threshold, containment, again=again, common=COMMON))


@pytest.mark.parametrize("own", [1, 20])
@pytest.mark.parametrize("containment", [False, True])
@pytest.mark.parametrize("threshold", [1, 0.9, 0.6, 0.35])
def test_pages_that_share_a_template_and_more_are_each_found_once(
    threshold: float, containment: bool, own: int
) -> None:
    """Two after two have passages of their own; what the template adds to these is looked up nowhere."""
    template = [f"t{n}" for n in range(60)]
    texts = [
        " ".join([*template, *(f"pair{page // 2}x{n}" for n in range(40)), *(f"own{page}x{n}" for n in range(own))])
        for page in range(2 * COMMON)
    ]
    texts.append(texts[0])
    wanted = []
    for b in range(len(texts)):
        for a in range(b):
            one = exact(texts[a].split(), texts[b].split(), TEXT.w)
            if (one.containment if containment else one.resemblance) >= threshold:
                wanted.append((a, b))
    assert found_in(texts, threshold, containment) == sorted(wanted)


@pytest.mark.parametrize(("most", "found"), [(400, 380), (370, 0)])
def test_notices_of_common_shingles_are_left_out_where_they_make_too_many_pairs(
    most: int, found: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those alone count that are to be compared: not short notices with long ones."""
    monkeypatch.setattr("clusterd.batch.crowds.MOST", most)
    texts = [
        " ".join([*(f"t{length}x{n}" for n in range(length)), f"signed{m}"]) for length in (60, 190) for m in range(20)
    ]
    assert len(found_in(texts, 0.9, False)) == found
    assert ("are left out" in caplog.text) is not bool(found)


def test_every_phrase_of_a_book_is_found_in_it() -> None:
    """Also that whose one shingle is the last of all values."""
    book = [f"w{n}" for n in range(1000)]
    phrases = [" ".join(book[at : at + TEXT.w]) for at in range(len(book) - TEXT.w + 1)]
    assert found_in([*phrases, " ".join(book)], 0.9, True) == [(n, len(phrases)) for n in range(len(phrases))]


@pytest.mark.parametrize("length", [150, 3000])
def test_notices_of_common_shingles_are_found_in_documents_that_hold_much_else(length: int) -> None:
    """All that a notice is made of is too common to be looked up; of what holds it that is little."""
    notice = [f"t{n}" for n in range(60)]
    notices = [" ".join([*notice, f"signed{n}"]) for n in range(2 * COMMON)]
    holders = [" ".join([*notice, *(f"rest{n}x{m}" for m in range(length))]) for n in range(3)]
    among = [(a, b) for b in range(len(notices)) for a in range(b)]
    held = [(a, len(notices) + b) for a in range(len(notices)) for b in range(len(holders))]
    assert found_in([*notices, *holders], 0.9, True) == sorted([*among, *held])
