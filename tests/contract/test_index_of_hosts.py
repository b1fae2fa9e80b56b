"""The clusters of a host are those of the whole list that one of its pages is in, however few of all pages it has."""

from __future__ import annotations

from random import Random

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES, Index
from clusterd.clusters.redis.asking.listing import WALKS, Listing
from clusterd.clusters.redis.asking.members import Members
from clusterd.clusters.redis.homes import CHUNK
from clusterd.clusters.redis.index import RedisIndex
from clusterd_crawler.sketch import Sketch
from clusterd_crawler.urls import host_of

from tests.contract.index_world import page
from tests.contract.test_index_homes import SHARDS


def crawl(seed: int) -> list[Sketch]:
    """Copies, near-duplicates and parts of forty texts on hosts of one to a hundred pages, some fetched again."""
    random = Random(seed)
    sketches = []
    for number in range(300):
        text = random.randrange(40)
        shingles = list(range(1000 * text, 1000 * text + 60))
        change = random.choice(["", "", "edit", "part", "other"])
        if change == "edit":
            shingles[0] = 10**6 + number
        elif change == "part":
            shingles = shingles[:30]
        elif change == "other":
            shingles = [10**6 + 100 * number + n for n in range(60)]
        host = random.choice(["large", "large", "small", "small", f"one{number}"])
        sketches.append(page(f"http://{host}.example/{random.randrange(120)}", number, shingles))
    return sketches


@pytest.mark.parametrize("seed", range(3))
def test_the_clusters_of_a_host(index: Index, seed: int) -> None:
    index.apply(crawl(seed))
    while index.settle():
        pass
    hosts = index.hosts()
    assert any(WALKS * len(list(index.pages(host))) < len(list(index.pages())) for host in hosts)
    for policy in DEFAULT_POLICIES:
        for least in (1, 2, 4):
            every = list(index.clusters(policy.name, least))
            for host in hosts[:5] + hosts[-5:]:
                expected = [one for one in every if host in map(host_of, one.members)]
                assert list(index.clusters(policy.name, least, host)) == expected, (policy.name, least, host)


@pytest.mark.parametrize("policy", ["near", "identical"])
@pytest.mark.parametrize("shards", [1, SHARDS])
def test_a_small_host_is_asked_for_alone(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, shards: int, policy: str
) -> None:
    """However many pages others have; and a cluster of many of its own pages is walked once."""
    walked = []
    monkeypatch.setattr(Listing, "_passed", None)
    monkeypatch.setattr(Members, "of", lambda *asked, of=Members.of: walked.append(asked) or of(*asked))
    own = [page(f"http://own.example/{number}", 1, range(60)) for number in range(CHUNK + 1)]
    others = [page(f"http://h.example/{n}", 1, range(100 * n, 100 * n + 9)) for n in range(1, WALKS * len(own) + 2)]
    index = RedisIndex(redis_url, prefix, shards=shards)
    index.apply([*own, *others])
    assert [one.size for one in index.clusters(policy, host="own.example")] == [len(own)]
    assert len(walked) == 1
    index.close()
