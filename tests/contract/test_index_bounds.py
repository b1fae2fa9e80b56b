"""What a stream that is made to hurt may cost: bounds that hold whatever comes, however much of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd.clusters.memory.index import MemoryIndex
from clusterd.clusters.redis import posting
from clusterd.clusters.redis.index import BACKLOG, RedisIndex
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.redis_connection import Client, connect
from clusterd_consumer.redis_scripts import Calls, Request
from clusterd_crawler.sketch import Sketch

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.test_index_homes import SHARDS

URL = "http://h.example/clock"


class Counted(Calls):
    """Calls that count what is asked."""

    asked = 0

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        Counted.asked = 0

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        Counted.asked += len(requests)
        return super().ask(requests)


class Judged:
    """Counts the candidates that are verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self.all = 0
        judge_many = posting.judge_many

        def counted(query: bytes, candidates: list[bytes], bits: int) -> Any:
            self.most, self.all = max(self.most, len(candidates)), self.all + len(candidates)
            return judge_many(query, candidates, bits)

        monkeypatch.setattr(posting, "judge_many", counted)


def clock(at: int) -> Sketch:
    """A page of which two words change whenever it is fetched."""
    return page(URL, at, [*range(300), 10_000 + at, 20_000 + at])


@pytest.mark.parametrize(
    ("beyond", "kept"),
    [
        ({"fetched_at": -5}, (0, 200, 50, 59)),
        ({"fetched_at": 2**60}, (2**48 - 1, 200, 50, 59)),
        ({"status": 70_000}, (5, 65_535, 50, 59)),
        ({"shingles": 2**30}, (5, 200, 2**24 - 1, 59)),
        ({"tokens": 2**30}, (5, 200, 50, 2**24 - 1)),
    ],
)
def test_what_no_field_of_a_record_holds_is_cut_to_what_it_holds(
    redis_url: str, prefix: str, beyond: dict[str, int], kept: tuple[int, ...]
) -> None:
    made = page(URL, 5, range(50))
    of_stream = {name: value for name, value in beyond.items() if name in ("shingles", "tokens")}
    of_page = {name: value for name, value in beyond.items() if name not in of_stream}
    index = RedisIndex(redis_url, prefix)
    for _ in range(2):  # a repeated delivery is the same version
        index.apply([replace(made, main=replace(made.main, **of_stream), **of_page)])
    (version,), sketch = index.versions_of([URL])[0], index.sketch(URL)
    assert sketch is not None
    assert (version.fetched_at, version.status, sketch.shingles, sketch.tokens) == kept
    index.close()


def test_a_url_fetched_again_and_again_is_compared_with_a_few(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document a call, and nobody settles: the worker itself keeps what waits, and what is proposed, small."""
    judged = Judged(monkeypatch)
    index = RedisIndex(redis_url, prefix, calls=Counted)
    fetches = 600
    for at in range(1, fetches + 1):
        index.apply([clock(at)])
        assert index.counts()["settling"] <= BACKLOG + 1
    assert judged.most <= BACKLOG + 1
    assert Counted.asked < 40 * fetches
    settled(index)
    assert index.expire(fetches) == fetches - 1
    assert index.counts()["contents"] == index.counts()["versions"] == 1
    assert partition(index) == expected([clock(fetches)])
    index.close()


def test_versions_that_a_batch_supersedes_itself_are_never_posted(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(monkeypatch)
    index = RedisIndex(redis_url, prefix)
    index.apply([clock(at) for at in range(1, 61)])
    assert judged.all == 0
    with connect(redis_url) as client:
        assert int(client.get(f"{prefix}{{0}}:pn") or 0) < 3 * 20
    assert [hit.url for hit in index.similar(clock(60).main, clock(60).profile)] == [URL]
    settled(index)
    assert partition(index) == expected([clock(60)])
    index.close()


def test_clusters_that_come_and_go_leave_nothing_behind(redis_url: str, prefix: str) -> None:
    index = RedisIndex(redis_url, prefix)
    for at in range(1, 101):
        index.apply([page(f"{URL}/{n}", at, range(1000 * at + 2 * n, 1000 * at + 2 * n + 100)) for n in range(2)])
        settled(index)
    with connect(redis_url) as client:
        elements = list(client.scan_iter(f"{prefix}{{0}}:e:*", count=10_000))
        assert sum(client.strlen(key) for key in elements) == 127 * 16  # one block; some 300 were made
    index.close()


@pytest.mark.parametrize("server", ["redis_url", "redis_cluster_url"])
def test_pages_whose_lists_are_common_leave_none_behind(
    server: str, prefix: str, request: pytest.FixtureRequest
) -> None:
    """Those with hardly another list are posted by super-shingles, too, and leave these as they go."""
    url = request.getfixturevalue(server)
    notice = range(90)
    crawl = [page(f"http://h.example/{n}", 1, [*notice, *range(1000 + 20 * n, 1010 + 20 * n)]) for n in range(60)]
    later = [page(one.url, 2, range(500, 600)) for one in crawl]
    for name, fetches in (("both:", (crawl, later)), ("later:", (later,))):
        index = RedisIndex(url, prefix + name, scheme=Scheme(bound=8, latest=2))
        for fetched in fetches:
            index.apply(fetched)
            settled(index)
        index.close()
    assert entries(url, f"{prefix}both:") == entries(url, f"{prefix}later:") > 0


@pytest.mark.parametrize("homes", [1, SHARDS])
@pytest.mark.parametrize("seed", range(3))
def test_crowded_pages_that_come_and_go_join_what_is_alike_and_leave_no_entry(
    redis_url: str, prefix: str, seed: int, homes: int
) -> None:
    """Lists become common, are emptied and begun anew; pages are delivered twice, and settled late."""
    dice = random.Random(seed)
    scheme = Scheme(bound=dice.randrange(3, 9), latest=2)
    indexes: list[Index] = [RedisIndex(redis_url, prefix + "both:", scheme=scheme, shards=homes)]
    indexes.append(MemoryIndex(DEFAULT_POLICIES, scheme))
    crawl: list[Sketch] = []
    for at in range(1, 21):
        batch = []
        for _ in range(dice.randrange(1, 16)):
            notice, own = 10**6 * min(at // 7, dice.randrange(3)), 100 * dice.randrange(100, 130)
            words = [*range(notice, notice + 90), *range(own, own + dice.choice([0, 3, 10, 20]))]
            batch.append(page(f"http://h{dice.randrange(40)}.example/", at, words))
        again = dice.sample(crawl, min(2, len(crawl)))
        crawl += batch
        steps = dice.randrange(8)
        for index in indexes:
            index.apply([*batch, *again])
            index.settle(steps)
    last = [page(f"http://h{n}.example/", 100, range(10**9 + 100 * n, 10**9 + 100 * n + 50)) for n in range(40)]
    uncapped = expected(crawl)
    for index in indexes:
        settled(index)
        for policy, clusters in partition(index).items():
            assert all(any(found <= whole for whole in uncapped[policy]) for found in clusters)
        index.apply(last)
        settled(index)
    indexes.append(RedisIndex(redis_url, prefix + "last:", scheme=scheme, shards=homes))
    indexes[-1].apply(last)
    assert entries(redis_url, f"{prefix}both:") == entries(redis_url, f"{prefix}last:") > 0
    for index in indexes:
        index.close()


@pytest.mark.parametrize("kind", ["memory", "redis", "homes"])
def test_pages_with_a_long_notice_find_their_near_duplicates_among_others(
    redis_url: str, prefix: str, kind: str
) -> None:
    """Of 100 pairs 92 do; without super-shingles, as hardly a list is not of the notice, 74 would."""
    scheme = Scheme(bound=4, latest=1)
    together = matched = 0
    for crawl in range(5):
        index: Index = MemoryIndex(DEFAULT_POLICIES, scheme)
        if kind != "memory":
            index = RedisIndex(redis_url, f"{prefix}{crawl}:", scheme=scheme, shards=SHARDS if kind == "homes" else 1)
        made = []
        for number in range(60):
            own = 10**6 * (crawl + 1) + 100 * (number % 40)  # the last 20 are the first once more, with a few words
            words = [*range(10**6 * crawl, 10**6 * crawl + 120), *range(own, own + 15)]
            made.append(
                page(f"http://h.example/{number}", 1, words + [own + 50 + at for at in range(number // 40 * 4)])
            )
        for one in made[:40]:
            index.apply([one])
        matched += sum(hit is not None and hit.url == made[n].url for n, hit in enumerate(index.matches(made[40:])))
        for one in made[40:]:
            index.apply([one])
        near = partition(index)["near"]
        assert {len(cluster) for cluster in near} == {1, 2}  # a notice alone makes no near duplicates
        together += sum({made[n].url, made[40 + n].url} in near for n in range(20))
        index.close()
    assert together >= 85
    assert matched >= 85


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_that_is_added_later_is_built_of_crowded_pages_in_memory_as_on_redis(
    redis_url: str, prefix: str, seed: int
) -> None:
    """By what each page is posted by, not only by the latest of the lists that all pages stand in."""
    dice = random.Random(seed)
    crawl = []
    for number in range(60):
        own = 100 * dice.randrange(100, 120)
        crawl.append(page(f"http://h{number}.example/", 1, [*range(60), *range(own, own + 20 + dice.randrange(3, 20))]))
    scheme, strict = Scheme(bound=4, latest=1), [one for one in DEFAULT_POLICIES if one.name != "related"]
    indexes: list[Index] = [MemoryIndex(strict, scheme), RedisIndex(redis_url, prefix, strict, scheme=scheme)]
    (added,) = set(DEFAULT_POLICIES) - set(strict)
    for index in indexes:
        for one in crawl:
            index.apply([one])
        index.add_policy(added)
        settled(index)
    in_memory, on_redis = (partition(index) for index in indexes)
    assert in_memory == on_redis
    assert 60 > len(on_redis["near"]) > len(on_redis["related"])
    indexes[1].close()


def entries(url: str, prefix: str) -> int:
    """Return how many entries and common lists the posting lists hold."""
    with connect(url) as client:
        counted = sum(int(client.get(key) or 0) for key in client.scan_iter(f"{prefix}*:pn", count=10_000))
        return counted + sum(1 for _ in client.scan_iter(f"{prefix}*:f:*", count=10_000))


def test_a_page_of_a_giant_cluster_has_a_few_neighbours(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page is a near duplicate of every other; a common list proposes its latest few alone."""
    judged = Judged(monkeypatch)
    scheme = Scheme(bound=16, latest=3)
    index = RedisIndex(redis_url, prefix, scheme=scheme)
    crawl = [page(f"http://h.example/{n}", 1, [*range(200), 1000 + n]) for n in range(600)]
    for start in range(0, len(crawl), 20):
        index.apply(crawl[start : start + 20])
    assert partition(index)["near"] == {frozenset(one.url for one in crawl)}
    begun, judged.most = judged.all, 0
    late = [page(f"http://h.example/late{n}", 1, [*range(200), 5000 + n]) for n in range(40)]
    for one in late:
        index.apply([one])
    lists = scheme.small_prefix + 200 // scheme.modulus + 8
    assert judged.most <= lists * (scheme.latest + 1)
    assert judged.all - begun <= len(late) * 3 * (scheme.latest + 1)
    index.close()


def test_a_giant_cluster_holds_together_when_a_third_of_it_departs(redis_url: str, prefix: str) -> None:
    """Whoever is proposed the last few alone is cut off as soon as those are gone."""
    dice = random.Random(4)
    index = RedisIndex(redis_url, prefix, scheme=Scheme(bound=64, latest=3))
    urls = [f"http://h.example/{n}" for n in range(900)]
    for start in range(0, len(urls), 30):
        index.apply([page(url, 1, [*range(200), 1000 + int(url[17:])]) for url in urls[start : start + 30]])
    leaving = set(dice.sample(urls, 300))
    index.apply([page(url, 2, range(9000 + 50 * n, 9050 + 50 * n)) for n, url in enumerate(sorted(leaving))])
    settled(index)
    left = index.cluster_of(next(url for url in urls if url not in leaving), "near")
    assert left is not None
    assert set(left.members) == set(urls) - leaving
    index.close()


def size_of(client: Client, prefix: str) -> int:
    return sum(client.memory_usage(key) or 0 for key in client.scan_iter(f"{prefix}*", count=10_000))


@pytest.mark.parametrize("share", [1, 8], ids=["all-change", "an-eighth-changes"])
def test_memory_returns_after_expiry(redis_url: str, prefix: str, share: int) -> None:
    """A soak in small: pages recrawled round after round, old versions expired, beside a fresh store of the same."""
    begins = [1000 * n for n in range(600)]
    prefixes = [f"{prefix}{name}:" for name in ("used", "fresh")]
    index, fresh = (RedisIndex(redis_url, one) for one in prefixes)

    def fetched(round_: int) -> list[Sketch]:
        return [page(f"http://h.example/{n}", round_, range(at, at + 90)) for n, at in enumerate(begins)]

    with connect(redis_url) as client:
        index.apply(fetched(1))
        for round_ in range(2, 2 + 6 * share):
            for n in range(round_ % share, len(begins), share):
                begins[n] += 50 * (n % 3)
            index.apply(fetched(round_))
            settled(index)
            index.expire(round_)
            settled(index)
        fresh.apply(fetched(99))
        settled(fresh)
        postings = [client.get(f"{one}{{0}}:pn") for one in prefixes]
        sizes = [size_of(client, one) for one in prefixes]
    assert index.counts()["contents"] == index.counts()["versions"] == 600
    assert postings[0] == postings[1]
    assert sizes[0] < 1.2 * sizes[1]
    for one in (index, fresh):
        one.close()


def keys_of_nodes(client: Client, prefix: str) -> int:
    return sum(client.memory_usage(key) or 0 for key in client.scan_iter(f"{prefix}*:n:*", count=10_000))


def test_pages_that_stay_do_not_hold_the_memory_of_those_that_change(redis_url: str, prefix: str) -> None:
    """Every tenth page stays as it is: what was packed with it goes all the same, and it is found, linked, let go."""
    loose = Policy("loose", resemblance=0.3)
    index = RedisIndex(redis_url, prefix, whole=True)

    def fetched(round_: int, lasting: int) -> list[Sketch]:
        changing = (200 * n + (20 * lasting if n % 10 == 0 else 20 * round_) for n in range(600))
        return [page(f"http://h.example/{n}", round_, range(at, at + 150)) for n, at in enumerate(changing)]

    with connect(redis_url) as client:
        sizes = []
        for round_ in range(1, 9):
            index.apply(fetched(round_, 0))
            settled(index)
            index.expire(round_)
            settled(index)
            sizes.append(keys_of_nodes(client, prefix))
        assert sizes[-1] < 1.2 * sizes[1]
        assert list(client.scan_iter(f"{prefix}*:n:*:left", count=10_000))
        index.add_policy(loose)
        settled(index)
        policies = [*DEFAULT_POLICIES, loose]
        assert partition(index, policies) == expected(fetched(8, 0), policies)
        # Twins of the pages that stayed: their records are read and written where they lie now.
        twins = [replace(one, url=f"{one.url}/twin") for one in fetched(9, 0)[::10]]
        other = [
            page(f"{one.url}/order", 9, range(20 * n * 100, 20 * n * 100 + 150), order="b")
            for n, one in enumerate(twins)
        ]
        index.apply([*fetched(9, 0), *twins, *other])
        settled(index)
        assert partition(index, policies) == expected([*fetched(9, 0), *twins, *other], policies)
        assert {hit.url for hit in index.similar(twins[1].main, twins[1].profile, limit=2)} <= {
            f"http://h.example/10{end}" for end in ("", "/twin", "/twin/order")
        }
        index.apply(
            [*fetched(11, 13), *(page(one.url, 11, range(-1 - n, -n)) for n, one in enumerate([*twins, *other]))]
        )
        settled(index)
        index.expire(11)
        settled(index)
        assert index.counts()["contents"] == index.counts()["versions"] == 720
        assert not list(client.scan_iter(f"{prefix}*:n:0*", count=10_000))
    index.close()
