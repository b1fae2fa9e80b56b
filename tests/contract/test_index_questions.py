"""Questions that are asked by the thousand: many sketches at once, resemblance without a walk, whose copy a page is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from clusterd.clusters.contract import Index, Look
from clusterd.clusters.opening import open_index
from clusterd.clusters.redis.index import RedisIndex
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import Client
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import SHORT, TEXT

from tests.contract.index_world import page, settled, stream

URLS = [f"http://h.example/{n}" for n in range(60)]
#: Pages of several hosts, each with its number.
PLACED = [(n, f"http://h{n % 5}.example/{n}") for n in range(300)]


class Trips(Calls):
    """Calls that count how often is waited for answers."""

    made = 0

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        Trips.made = 0

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        Trips.made += 1
        return super().ask(requests)


@pytest.fixture(params=["memory", "redis", "cluster"])
def index(request: pytest.FixtureRequest, prefix: str) -> Iterator[Index]:
    name = {"memory": None, "redis": "redis_url", "cluster": "redis_cluster_url"}[request.param]
    opened = open_index(request.getfixturevalue(name) if name else None, prefix, scheme=Scheme(bound=8, latest=2))
    yield opened
    opened.close()


def test_sketches_of_many_versions_are_those_of_each(index: Index) -> None:
    index.apply([page(url, at, range(n, n + 50 * at)) for at in (1, 2) for n, url in enumerate(URLS)])
    settled(index)
    asked: list[tuple[str, int | None]] = [(url, at) for url in URLS for at in (2, None, 1, 3)]
    asked += [("http://h.example/unknown", None), (URLS[0], 1), ("http://h.example/\udcff", None)]
    found = index.sketches(asked)
    assert found == [index.sketch(url, at) for url, at in asked]
    assert [one is None for one in found[:4]] == [False, False, False, True]
    assert [one is None for one in found[-3:]] == [True, False, True]
    assert index.sketches([]) == []


def test_what_is_asked_of_many_is_what_each_says(index: Index) -> None:
    """Also of URLs that are unknown, or given twice, and where a limit cuts pages that resemble a query equally."""
    hosts = [f"http://h{n}.example/" for n in range(7)]
    index.apply([page(url, at, [*range(40 * (n % 9), 40 * (n % 9) + 30 * at)]) for at in (1, 2) for n, url in PLACED])
    settled(index)
    urls = [url for _, url in PLACED]
    asked = [*urls, *hosts, "http://h.example/\udcff", "", *urls[::7], *hosts]
    assert index.versions_of(asked) == [index.versions_of([url])[0] for url in asked]
    for policy in ("identical", "near", "contained"):
        clusters = [index.cluster_of(url, policy) for url in asked]
        assert index.cluster_names(asked, policy) == [one and one.cluster for one in clusters]
    queries = [stream(range(40 * n, 40 * n + 60)) for n in [*range(20), 3]]
    for limit in (0, 1, 5, 30, 100):
        assert index.listed(queries, TEXT.code, limit) == [
            index.similar(query, TEXT.code, limit, look="lists") for query in queries
        ]
    assert (index.versions_of([]), index.cluster_names([], "near"), index.listed([], TEXT.code)) == ([], [], [])
    for none in ([], hosts):
        with pytest.raises(WrongInput, match="there is no policy 'new'"):
            index.cluster_names(none, "new")


def test_many_sketches_take_few_calls(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix, calls=Trips)
    index.apply([page(url, 1, range(n, n + 50)) for n, url in enumerate(URLS)])
    before = Trips.made
    assert None not in index.sketches([(url, 1) for url in URLS])
    assert Trips.made - before <= 2
    index.close()


def test_the_pages_of_many_hosts_are_those_of_each(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hosts of few pages, of exactly as many as are read at a time, of more, of none."""
    monkeypatch.setattr("clusterd.clusters.redis.asking.questions.CHUNK", 7)
    sizes = {f"{n}.example": size for n, size in enumerate((1, 2, 3, 7, 8, 1, 0, 20, 6, 1, 1, 5, 2, 4, 1, 1))}
    urls = [
        (at, f"http://{host}/{n}") for at in (1, 2) for host, size in sizes.items() for n in range(size) if at < n + 2
    ]
    index.apply([page(url, at, range(at, n + 50), sweep=f"{at}") for n, (at, url) in enumerate(urls)])
    settled(index)
    hosts = [*reversed(sizes), "unknown.example", "0.example"]
    found = list(index.pages_of(hosts))
    assert found == [(host, list(index.pages(host))) for host in hosts]
    assert [len({version.url for version in of}) for _, of in found] == [sizes.get(host, 0) for host in hosts]
    assert list(index.pages_of([])) == []


def test_of_all_pages_those_that_have_shown_several_texts_are_told(index: Index) -> None:
    """Not those that were fetched again, or have shown no other text since; also those that show their first again."""
    shown = {"once": "a", "again": "aaa", "revised": "aab", "returned": "aba", "empty": ["", ""], "emptied": ["a", ""]}
    texts = {"a": range(50), "b": range(7, 57), "": ()}
    for host in ("1.example", "2.example"):
        for name, texts_of in shown.items():
            for at, text in enumerate(texts_of, 1):
                index.apply([page(f"http://{host}/{name}", at, texts[text], sweep=f"{at}")])
    settled(index)
    several = [one for one in index.pages() if one.url.endswith(("revised", "returned", "emptied"))]
    assert len(several) == 2 * (3 + 3 + 2)
    assert list(index.pages(revised=True)) == several
    assert list(index.pages("2.example", revised=True)) == [one for one in several if "2.example" in one.url]


def test_a_text_that_came_back_as_a_new_content_is_the_same_text(index: Index) -> None:
    """A late version goes to the content that departed, a later one to the new one."""
    for host, at, text in [("a", 10, 0), ("a", 20, 100), ("b", 40, 0), ("b", 30, 0)]:
        index.apply([page(f"http://h.example/{host}", at, range(text, text + 60))])
        settled(index)
    assert {one.url for one in index.pages(revised=True)} == {"http://h.example/a"}


def test_the_pages_of_many_hosts_take_few_calls(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix, calls=Trips)
    hosts = [f"{n}.example" for n in range(60)]
    index.apply([page(f"http://{host}/{n}", 1, range(n, n + 50), sweep="1") for n in range(2) for host in hosts])
    before = Trips.made
    assert sum(len(of) for _, of in index.pages_of(hosts)) == 120
    assert Trips.made - before <= 4  # the labels of sweeps are read once
    index.close()


def test_the_matches_of_many_pages_are_those_of_each(index: Index) -> None:
    """Of pairs alike, equal ones, ones alone, and a profile of its own; what is shown no more is no match."""
    pairs = [page(url, 1, range(100 * n, 100 * n + 90 + m)) for n in range(20) for m, url in enumerate(URLS[n::20])]
    equal = [page(f"http://h.example/equal/{n}", 1, range(-99, -9)) for n in range(2)]
    alone = [page("http://h.example/alone", 1, range(-500, -400))]
    short = [page(f"http://h.example/short/{n}", 1, range(90 + n), profile=SHORT) for n in range(2)]
    gone = page("http://h.example/gone", 1, range(92))
    index.apply([gone, *pairs, *equal, *alone, *short, page(gone.url, 2, range(-900, -800))])
    settled(index)
    asked = [*pairs, *equal, *alone, *short]
    found = index.matches(asked)
    assert [hit and hit.url for hit in index.matches(asked[::-1])] == [hit and hit.url for hit in found[::-1]]
    assert {one.url for one, hit in zip(asked, found, strict=True) if hit is None} == {alone[0].url}
    for one, hit in zip(asked, found, strict=True):
        others = (other for other in index.similar(one.main, one.profile, 9, look="lists") if other.url != one.url)
        assert (hit and hit.resemblance) == next((other.resemblance for other in others), None)
    assert [hit.url for hit in found[60:62] if hit] == [equal[1].url, equal[0].url]
    assert [hit.url for hit in found[-2:] if hit] == [short[1].url, short[0].url]
    assert index.matches([]) == []


def test_many_matches_take_few_calls(redis_url: str, prefix: str) -> None:
    """One by one they kept a daemon eight times as long as all else of a second crawl of near-duplicates."""
    index = RedisIndex(redis_url, prefix, calls=Trips)
    sketches = [page(url, 1, [*range(90), 1000 + n % 7]) for n, url in enumerate(URLS)]
    index.apply(sketches)
    before = Trips.made
    assert None not in index.matches(sketches)
    assert Trips.made - before <= 5
    index.close()


def test_without_a_walk_what_lists_propose_is_found(index: Index) -> None:
    index.apply([page(url, 1, [*range(200), 1000 + n]) for n, url in enumerate(URLS)])
    settled(index)
    query = stream([*range(200), 5000])
    looks: tuple[Look, ...] = ("lists", "clusters", "all")
    proposed, walked, every = (index.similar(query, 1, 100, look=look) for look in looks)
    assert {hit.url for hit in walked} == {hit.url for hit in every} == set(URLS)
    assert 0 < len(proposed) < len(walked)
    assert set(proposed) <= set(walked)


def test_all_pages_are_looked_at_where_that_is_asked_for(index: Index) -> None:
    """Pages that carry the first sixty shingles among others, sixteen times as many; and as many pages without."""
    held = [page(url, 1, [*range(60), *range(1000 * n + 1000, 1000 * n + 1900)]) for n, url in enumerate(URLS)]
    index.apply(
        [*held, *(page(f"http://o.example/{n}", 1, range(10**6 + 1000 * n, 10**6 + 1000 * n + 960)) for n in range(60))]
    )
    index.apply([page(URLS[0], 2, range(5 * 10**6, 5 * 10**6 + 960))])  # it carries them no more
    settled(index)
    hits = index.similar(stream(range(60)), 1, 100, look="all")
    assert {hit.url for hit in hits} == set(URLS[1:])
    assert all(abs(hit.query_in_match - 1) < 0.3 for hit in hits)
    assert len(index.similar(stream(range(60)), 1, 100)) < 50


def test_what_left_the_store_hides_no_page_that_carries_a_text(index: Index) -> None:
    """How much may be chance is told by how many contents there are, not by how many there ever were."""
    carriers = [[*range(100 * n, 100 * n + n), *range(10_000 * n, 10_000 * n + 1500)] for n in range(1, 20)]
    index.apply([page(f"http://h.example/{n}", 1, numbers) for n, numbers in enumerate(carriers)])

    def carrying() -> list[int]:
        asked = (stream(range(100 * n, 100 * n + 20)) for n in range(1, 20))
        return [len(index.similar(one, 1, look="all")) for one in asked]

    before = carrying()
    for at in range(10):
        index.apply([page("http://h.example/a", 300 * at + n, [10**7 + 300 * at + n]) for n in range(300)])
    settled(index)
    index.expire(10**6)
    settled(index)
    assert 0 in before
    assert carrying() == before


def test_pages_with_a_word_of_their_own_are_copies_of_the_first(index: Index) -> None:
    """Far more than a list holds: the lists propose the latest only."""
    pages = [page(URLS[n], n, [*range(200), 1000 + n]) for n in range(60)]
    for one in pages:
        index.apply([one])
    settled(index)
    asked = [(url, n) for n, url in enumerate(URLS)]
    assert index.originals("near", asked) == [pages[0].main.text] * 60
    assert index.originals("identical", asked) == [one.main.text for one in pages]


def test_the_ends_of_a_chain_are_no_copies_of_each_other(index: Index) -> None:
    """Each page shares 97 % with the next, so that all are one cluster; the tenth shares 77 % with the first."""
    windows = [range(8 * n, 8 * n + 520) for n in range(40)]
    pages = [page(URLS[n], 1, window) for n, window in enumerate(windows)]
    index.apply(pages)
    settled(index)
    found = index.cluster_of(URLS[0], "near")
    assert found is not None
    assert found.size == 40
    window_of = {one.main.text: set(window) for one, window in zip(pages, windows, strict=True)}
    originals = [window_of[text or 0] for text in index.originals("near", [(url, None) for url in URLS[:40]])]
    for own, original in zip(map(set, windows), originals, strict=True):
        assert len(own & original) / len(own | original) > 0.85
    assert len(set(map(frozenset, originals))) > 3
    assert sum(original != set(own) for own, original in zip(windows, originals, strict=True)) > 30


def test_a_page_alone_is_its_own_and_so_is_one_without_words(index: Index) -> None:
    pages = [page(URLS[0], 1, range(50)), page(URLS[1], 1, ()), page(URLS[2], 1, ()), page(URLS[3], 5, range(900, 950))]
    index.apply(pages)
    asked = [(url, None) for url in URLS[:5]] + [(URLS[3], 4)]
    assert index.originals("near", asked) == [*(one.main.text for one in pages), None, None]
    assert index.originals("near", []) == []


def test_the_version_that_is_asked_for_is_answered(index: Index) -> None:
    first, second = page(URLS[0], 1, range(200)), page(URLS[1], 2, [*range(200), 500])
    changed = page(URLS[1], 3, range(5000, 5200))
    index.apply([first, second])
    index.apply([changed])
    assert index.originals("near", [(URLS[1], 2), (URLS[1], 3)])[1] == changed.main.text
    assert index.originals("near", [(URLS[0], 1)]) == [first.main.text]
