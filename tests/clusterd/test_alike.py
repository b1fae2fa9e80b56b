"""Questions on the fly, to an index in memory and on Redis: what lists leave out, and what they hold by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from clusterd.clusters.contract import Hit, Index, Policy
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.clusters.redis.index import RedisIndex
from clusterd.queries import documents
from clusterd.queries.likeness import likeness
from clusterd_consumer.resemblance import estimate
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.sketch import COMPACT, SHORT, TEXT, Profile, sketch_text

from clusterd import queries


@pytest.fixture(params=["memory", "redis", "cluster"])
def index(request: pytest.FixtureRequest, prefix: str) -> Iterator[Index]:
    if request.param == "memory":
        yield MemoryIndex()
        return
    url = request.getfixturevalue("redis_url" if request.param == "redis" else "redis_cluster_url")
    index = RedisIndex(url, prefix)
    yield index
    index.close()


def fill(index: Index, texts: dict[str, str], profile: Profile = TEXT) -> None:
    index.apply([sketch_plain(url, text, profile=profile, fetched_at=1) for url, text in texts.items()])
    while index.settle():
        pass


def words(name: str, count: int) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def test_holders_of_a_widely_distributed_text_are_all_found(index: Index) -> None:
    """Each copy has words of its own, a third is in a longer page: lists of 400 pages are bounded at 128."""
    source, ruling = random.Random(4), words("ruling", 300)
    copies = {}
    for n in range(400):
        own = list(ruling)
        own[source.randrange(300)] = f"local{n}"
        around = words(f"site{n}x", 300) if n % 3 == 0 else []
        copies[f"https://h{n}.example/"] = " ".join(around + own)
    fill(index, copies | {f"https://o{n}.example/": " ".join(words(f"other{n}x", 300)) for n in range(50)})

    asked = documents.of_text(" ".join(ruling), TEXT)
    found = list(queries.holders(index, asked, TEXT))
    assert len({holder.url for holder in found} & copies.keys()) >= 396
    assert [h.query_in_match for h in found] == sorted((h.query_in_match for h in found), reverse=True)

    known = queries.document("https://h7.example/", index, TEXT)
    assert len(queries.similar(index, known, TEXT, 1000)) >= 395


def test_many_copies_on_one_site_do_not_hide_another_that_holds_the_whole_text() -> None:
    """A copy resembles the text more than a page ten times as long that quotes it; both hold it whole."""
    index, notice = MemoryIndex(), " ".join(words("notice", 30))
    copy = sketch_plain("http://a.example/", notice, profile=TEXT, fetched_at=1)
    index.apply([replace(copy, url=f"http://a.example/{n}") for n in range(12_000)])
    fill(index, {"http://b.example/": " ".join([notice, *words("other", 300)])})
    found = list(queries.holders(index, documents.of_text(notice, TEXT), TEXT))
    assert len(found) == 12_001
    assert found[-1].host == "b.example"


def test_of_holders_of_the_whole_text_the_one_that_carries_least_besides_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Estimates of two whole copies differ behind the sixth place, which nobody is shown."""
    index, asked = MemoryIndex(), documents.of_text("alpha beta", TEXT)
    hits = [Hit("http://a.example/", 0.07, 1.0, 0.07, None), Hit("http://b.example/", 0.08, 1.0 - 1e-9, 0.08, None)]
    monkeypatch.setattr(index, "similar", lambda query, profile, *_: hits if profile == TEXT.code else [])
    assert [one.host for one in queries.holders(index, asked, TEXT)] == ["b.example", "a.example"]


def test_holders_are_found_in_pages_many_times_as_long(index: Index) -> None:
    """A ruling of 150 words, in pages of 3,000, or its first half in pages of 1,500; and in none of as many others."""
    ruling = words("ruling", 150)
    texts = {f"https://o{n}.example/": " ".join(words(f"other{n}x", 3000)) for n in range(60)}
    for n in range(60):
        size = 1500 if n % 2 else 750
        around = words(f"site{n}x", 2 * size)
        texts[f"https://h{n}.example/"] = " ".join([*around[:size], *ruling[: size // 10], *around[size:]])
    fill(index, texts)
    asked = documents.of_text(" ".join(ruling), TEXT)
    found = {holder.host: holder.query_in_match for holder in queries.holders(index, asked, TEXT)}
    whole = [found.get(f"h{n}.example", 0.0) for n in range(1, 60, 2)]
    half = [found.get(f"h{n}.example", 0.0) for n in range(0, 60, 2)]
    assert min(whole) > 0.7
    assert sum(0.25 < share < 0.75 for share in half) >= 29
    assert {host[0] for host in found} == {"h"}
    hits = queries.similar(index, asked, TEXT, 100)
    assert {hit.url.removeprefix("https://").rstrip("/") for hit in hits} == set(found)


def test_of_a_cluster_those_are_named_that_share_something(index: Index) -> None:
    """Pages that resemble one another hold the same stored values, so that chance makes all of them alike or none."""
    site = words("site", 2600)
    texts = {f"https://h.example/{n}": " ".join([*site, *words(f"own{n}x", 400)]) for n in range(60)}
    fill(index, texts)
    found = 0
    for n in range(30):
        asked = documents.of_text(" ".join([*words(f"asked{n}x", 100), *words(f"own{n}x", 80)]), TEXT)
        named = [hit.url for hit in queries.similar(index, asked, TEXT, 100)]
        assert named in ([], [f"https://h.example/{n}"])
        found += len(named)
    assert found >= 20


def test_a_large_store_is_not_looked_through_for_what_is_similar(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    ruling = words("edict", 150)
    fill(index, {f"https://h{n}.example/": " ".join(words(f"site{n}x", 3000) + ruling) for n in range(60)})
    asked = documents.of_text(" ".join(ruling), TEXT)
    assert len(queries.similar(index, asked, TEXT, 100)) == 60
    monkeypatch.setattr("clusterd.queries.alike.SMALL", 59)
    assert len(queries.similar(index, asked, TEXT, 100)) < 60
    assert len(queries.similar(index, asked, TEXT, 100, "all")) == 60


def test_the_equal_page_is_the_first_of_many_alike(index: Index) -> None:
    ruling = words("ruling", 300)
    copies = {f"https://h{n}.example/": " ".join([*ruling[:n], f"local{n}", *ruling[n:]]) for n in range(300)}
    fill(index, copies)
    for n in (3, 100, 250):
        hits = queries.similar(index, documents.of_text(copies[f"https://h{n}.example/"], TEXT), TEXT, 3)
        assert (hits[0].url, hits[0].resemblance) == (f"https://h{n}.example/", 1.0)


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_of_many_copies_no_more_are_named_than_asked_for(index: Index, limit: int) -> None:
    """Whether the page itself is among the first of them or not; of two profiles the best of both."""
    text = " ".join(words("page", 60))
    copies = [f"http://b.example/{n}" for n in range(5)]
    fill(index, dict.fromkeys(copies, text), SHORT)
    for place in (0, 4):
        asked = queries.document(copies[place], index, TEXT)
        others = [url for url in copies if url != copies[place]]
        assert [hit.url for hit in queries.similar(index, asked, TEXT, limit)] == others[:limit]
    edited = [f"http://a.example/{n}" for n in range(5)]
    fill(index, dict.fromkeys(edited, text.replace("page0 ", "another ")), TEXT)
    found = queries.similar(index, queries.document(f"text:{text}", index, TEXT), TEXT, limit)
    assert [hit.url for hit in found] == [*copies, *edited][:limit]


def test_a_page_of_another_profile_that_a_key_proposes_by_chance_is_no_answer(index: Index) -> None:
    """Under the short profile a shingle of this text has a key under which this page of the text profile is posted."""
    fill(index, {"https://a.example/": " ".join(words("d3183w", 60))})
    asked = " ".join(f"q{n}" for n in range(43800, 43807))
    assert queries.similar(index, documents.of_text(asked, TEXT), TEXT) == []


def test_pages_of_two_profiles_that_share_a_key_by_chance_are_both_taken(index: Index) -> None:
    fill(index, {"https://a.example/": " ".join(words("d3183w", 60))})
    fill(index, {"https://b.example/": " ".join(f"q{n}" for n in range(43800, 43807))}, SHORT)
    index.add_policy(Policy("loose", resemblance=0.1))
    while index.settle():
        pass
    for policy in ("related", "loose"):
        assert [found.size for found in index.clusters(policy, min_size=1)] == [1, 1]


def test_a_walk_goes_no_further_than_its_bound(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterd.clusters.redis.asking.members.WALKED", 20)
    monkeypatch.setattr("clusterd.clusters.memory.alike.WALKED", 20)
    ruling = words("ruling", 300)
    fill(index, {f"https://h{n}.example/": " ".join([*ruling[:n], f"local{n}", *ruling[n:]]) for n in range(299)})
    found = queries.similar(index, documents.of_text(" ".join(ruling), TEXT), TEXT, 1000, "clusters")
    assert 20 <= len(found) < 280


def test_a_book_compared_by_shingles_of_another_length_keeps_as_much_of_its_sketch() -> None:
    source = random.Random(5)
    book = [f"w{source.randrange(20_000)}" for _ in range(100_000)]
    chapter = [*book[5_000:5_600], *words("own", 600)]
    a, b = (documents.of_text(" ".join(of), TEXT) for of in (chapter, book))
    of_nine = replace(TEXT, w=9)
    as_sketched = estimate(sketch_text(" ".join(chapter), of_nine), sketch_text(" ".join(book), of_nine), of_nine)
    assert queries.compare(a, b, TEXT, 9).estimated == as_sketched


@pytest.mark.parametrize(("profile", "resemblance"), [(TEXT, 1.0), (COMPACT, 0.0)])
def test_sketches_that_were_made_otherwise_are_not_compared(profile: Profile, resemblance: float) -> None:
    """Of two stores; the values of two profiles would agree by chance."""
    indexes = MemoryIndex(), MemoryIndex()
    for index, made in zip(indexes, (TEXT, profile), strict=True):
        fill(index, {"http://a/": " ".join(words("w", 300))}, made)
    first, second = (index.sketch("http://a/") for index in indexes)
    assert first is not None
    assert second is not None
    assert likeness(first, second, TEXT).resemblance == resemblance


def test_pages_of_the_store_of_two_profiles_are_compared_only_if_one_is_given_as_a_file() -> None:
    index = MemoryIndex()
    for url, profile in (("http://h.example/long", TEXT), ("http://h.example/short", SHORT)):
        index.apply([sketch_plain(url, "a rose is a rose is a rose", profile=profile, fetched_at=0)])
    text = documents.document("text:a rose is a rose is a rose", index, TEXT)
    long, short = (documents.document(f"http://h.example/{name}", index, TEXT) for name in ("long", "short"))
    with pytest.raises(WrongInput, match=r"long and .*short were sketched with the profiles text and short"):
        queries.compare(long, short, TEXT)
    assert [queries.compare(one, text, TEXT).estimated.resemblance for one in (long, short)] == [1, 1]
