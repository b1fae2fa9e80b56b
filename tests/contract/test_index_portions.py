"""Questions, and changes of policies, leave Redis to others after some pages: those that arrive wait meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from clusterd.clusters.contract import DEFAULT_POLICIES
from clusterd.clusters.redis.asking.members import PAGES
from clusterd.clusters.redis.homes import CHUNK
from clusterd.clusters.redis.index import RedisIndex
from clusterd.clusters.redis.settling import settler
from clusterd_consumer.redis_scripts import Calls, Request

from tests.contract.index_world import expected, page, partition, settled
from tests.contract.moments import interrupted
from tests.contract.test_index_homes import SHARDS


class Longest(Calls):
    """Calls that note of how many pages one function told at most."""

    pages: ClassVar[Counter[str]] = Counter()

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        replies = super().ask(requests)
        for request, reply in zip(requests, replies, strict=True):
            if request.name in ("versions", "standings", "urls", "shown"):
                Longest.pages[request.name] = max(Longest.pages[request.name], told(request.name, reply))
        return replies


def told(name: str, reply: Any) -> int:
    """Return how many pages a reply speaks of."""
    if name == "shown":
        return sum(len(packed) // 4 for packed in reply[1:-1:2])
    return len(reply) // {"versions": 2, "standings": 4, "urls": 1}[name]


def test_a_question_about_all_pages_takes_some_at_a_time(redis_url: str, prefix: str) -> None:
    """Versions take Redis several times as long as the rest."""
    Longest.pages.clear()
    index = RedisIndex(redis_url, prefix, calls=Longest)
    index.apply([page(f"http://h.example/{n}", 1, range(100 * (n // 2), 100 * (n // 2) + 80)) for n in range(900)])
    assert sum(1 for _ in index.pages()) == 900
    assert sum(1 for _ in index.clusters("near")) == 450
    assert sum(1 for _ in index.clusters("identical", 1)) == 450
    assert all(100 < Longest.pages[name] < 300 for name in ("standings", "urls")), Longest.pages
    assert 30 < Longest.pages["versions"] < 70
    index.close()


@pytest.mark.parametrize("shards", [1, SHARDS])
def test_pages_of_one_content_are_told_some_at_a_time(redis_url: str, prefix: str, shards: int) -> None:
    """Of contents that many pages show, in one text or in two, and between them contents that one page shows."""
    Longest.pages.clear()
    index = RedisIndex(redis_url, prefix, calls=Longest, shards=shards)
    many, alone = 2 * PAGES + 100, 40
    crawl = [page(f"http://{n % 2}.example/a/{n}", 1, range(90), order=f"order {n % 3}") for n in range(many)]
    crawl += [page(f"http://{n % 5}.example/b/{n}", 1, [*range(90), 1000 + n]) for n in range(alone)]
    crawl += [page(f"http://{n % 7}.example/c/{n}", 1, [*range(90), 5000]) for n in range(many)]
    for start in range(0, len(crawl), 500):
        index.apply(crawl[start : start + 500])
    settled(index)
    asked = crawl[0]
    hits = index.similar(asked.main, asked.profile, limit=10**6)
    assert {hit.url for hit in hits} == {one.url for one in crawl}
    assert len(hits) == len(crawl)
    assert [hit.resemblance for hit in hits] == sorted((hit.resemblance for hit in hits), reverse=True)
    assert 100 < Longest.pages["shown"] <= PAGES
    index.close()


class Sizes(Calls):
    """Calls that note how many bytes one call of a function was given at most."""

    sizes: ClassVar[Counter[str]] = Counter()

    def ask(self, requests: Sequence[Request]) -> list[Any]:
        for request in requests:
            Sizes.sizes[request.name] = max(Sizes.sizes[request.name], len(request.data))
        return super().ask(requests)


@pytest.mark.parametrize("shards", [1, SHARDS])
def test_a_policy_is_built_and_cleared_away_a_few_contents_at_a_time(
    redis_url: str, prefix: str, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of contents that all resemble each other, each has as many edges as it may have."""
    Sizes.sizes.clear()
    monkeypatch.setattr(settler, "TAKEN_UP", 100)
    index = RedisIndex(redis_url, prefix, calls=Sizes, shards=shards)
    crawl = [page(f"http://{n % 4}.example/{n}", 1, [*range(90), 1000 + n]) for n in range(640)]
    for start in range(0, len(crawl), 64):
        index.apply(crawl[start : start + 64])
    settled(index)
    later = replace(DEFAULT_POLICIES[1], name="later")
    index.add_policy(later)
    settled(index)
    assert partition(index, [*DEFAULT_POLICIES, later]) == expected(crawl, [*DEFAULT_POLICIES, later])
    assert 100 < Sizes.sizes["relink"] < 1500  # with what one content has, and the numbers of several
    index.remove_policy(later.name)
    assert index.settle(0) >= 5
    settled(index)
    assert partition(index) == expected(crawl)
    index.close()


def test_a_walk_whose_next_text_is_forgotten_meanwhile_leaves_out_none_behind_it(redis_url: str, prefix: str) -> None:
    """A content of three texts: a call ends with what shows the first, and the second is gone before the next call."""
    other = RedisIndex(redis_url, prefix)
    crawl = [page(f"http://h.example/{n}", 1, range(90), order="first") for n in range(CHUNK)]
    crawl += [page(f"http://h.example/{name}", 1, range(90), order=name) for name in ("last", "second")]
    other.apply(crawl)
    changed = page(crawl[-1].url, 2, range(5000, 5090))

    def change() -> None:
        other.apply([changed])
        settled(other)
        assert other.expire(2) == 1

    index = interrupted(redis_url, prefix, "members", 2, change)
    found = index.cluster_of(crawl[0].url, "near")
    assert found is not None
    assert set(found.members) == {one.url for one in crawl[:-1]}
    for one in (index, other):
        one.close()


def test_a_walk_whose_next_page_has_changed_meanwhile_does_not_go_on_where_that_is_now(
    redis_url: str, prefix: str
) -> None:
    other = RedisIndex(redis_url, prefix)
    crawl = [page(f"http://h.example/{n}", 1, range(90)) for n in range(CHUNK + 5)]
    elsewhere = page("http://h.example/elsewhere", 1, range(5000, 5090))
    other.apply([*crawl, elsewhere])
    changed = page(crawl[4].url, 2, range(5000, 5090))  # the latest pages are told first
    index = interrupted(redis_url, prefix, "members", 2, lambda: other.apply([changed]) and None)
    found = index.cluster_of(crawl[0].url, "near")
    assert found is not None
    assert set(found.members) == {one.url for one in crawl} - {changed.url}
    for one in (index, other):
        one.close()
