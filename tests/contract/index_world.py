"""Small made-up crawls for the index tests: short pages, recrawls, duplicates, and the answer of the oracle."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import mmh3
import numpy as np
from clusterd.clusters.contract import DEFAULT_POLICIES, Index, Policy
from clusterd_consumer.postings.scheme import DEFAULT, Scheme
from clusterd_crawler.sketch import TEXT, Profile, Sketch, StreamSketch, sketch_values

from clusterd import batch

Partition = dict[str, set[frozenset[str]]]
#: Opens the index under test, the same one each time where it is a store; takes its policies and its scheme.
Opened = Callable[..., Index]


def stream(shingles: Iterable[int], profile: Profile = TEXT, order: str = "") -> StreamSketch:
    """Sketch a page given as numbers of shingles; ``order`` tells texts of equal shingles apart."""
    numbers = sorted(set(shingles))
    hashed = np.unique(np.array([mmh3.hash64(f"s{n}", signed=False)[0] >> 24 for n in numbers], np.uint64))
    text = mmh3.hash64(f"{numbers}{order}", signed=False)[0] if numbers else 0
    return sketch_values(hashed, profile, len(hashed) + profile.w - 1, text)


def page(
    url: str, at: int, shingles: Iterable[int], *, profile: Profile = TEXT, order: str = "", sweep: str = ""
) -> Sketch:
    """One fetch of a page."""
    main = stream(shingles, profile, order)
    return Sketch(url, at, profile.code, main.text ^ 1, main, main, main.text ^ 2, sweep=sweep)


def partition(index: Index, policies: Sequence[Policy] = DEFAULT_POLICIES) -> Partition:
    """Return what an index says: policy → clusters as sets of URLs, alone standing pages too.

    It has counted them, and says the same of each when it is asked for the cluster of one of its URLs.
    """
    listed = {policy.name: list(index.clusters(policy.name, min_size=1)) for policy in policies}
    counted = index.cluster_counts()
    for name, clusters in listed.items():
        assert counted[name] == sum(one.size > 1 for one in clusters)
        assert [index.cluster_of(one.members[-1], name) for one in clusters] == clusters
        named = index.cluster_names([url for one in clusters for url in one.members], name)
        assert named == [one.cluster for one in clusters for _ in one.members]
    return {name: {frozenset(one.members) for one in clusters} for name, clusters in listed.items()}


def expected(
    sketches: Iterable[Sketch],
    policies: Sequence[Policy] = DEFAULT_POLICIES,
    common: int | None = None,
    scheme: Scheme = DEFAULT,
) -> Partition:
    """Return what the batch says."""
    found: Partition = {policy.name: set() for policy in policies}
    for one in batch.clusters(sketches, policies, common=common, scheme=scheme, latest=0):
        found[one.policy].add(frozenset(one.members))
    return found


def settled(index: Index) -> None:
    """Settle until nothing waits."""
    while index.settle():
        pass


def live_through(index: Index, actions: Sequence[Sequence[Sketch] | str | int], again: random.Random) -> list[Sketch]:
    """Let an index live through a history, and settle; return the pages that it was given.

    An action is pages, with some that were given before; "settle"; or the time before which versions expire.
    """
    seen: list[Sketch] = []
    for action in actions:
        if isinstance(action, int):
            index.expire(action)
        elif isinstance(action, str):
            index.settle(1)
        else:
            index.apply([*action, *again.sample(seen, min(2, len(seen)))])
            seen += action
    settled(index)
    return seen


def fall_apart(index: Index, dice: random.Random, count: int, ring: bool, url: Callable[[object], str]) -> list[Sketch]:
    """Let windows on one long text, each like its neighbours alone, depart at once, twice: what is left is the batch's.

    Many pieces are left each time; in a ring every piece can be reached from both sides. Returns what was fetched.
    """
    crawl = [page(url(n), 1, range(25 * n, 25 * n + 100)) for n in range(count)]
    if ring:
        crawl.append(page(url("ring"), 1, [*range(50), *range(25 * count + 25, 25 * count + 75)]))
    dice.shuffle(crawl)
    index.apply(crawl)
    for at in (2, 3):
        leaving = dice.sample(range(count), dice.randrange(2, count // 2 + 1))
        change = [page(url(n), at, range(10_000 * at + 200 * n, 10_000 * at + 200 * n + 100)) for n in leaving]
        index.apply(change)
        crawl += change
        settled(index)
        assert partition(index) == expected(crawl)
    return crawl


@dataclass
class World:
    """A random crawl: families of pages that share most of their shingles, fetched again and again."""

    seed: int
    urls: int = 20
    families: int = 4
    length: int = 40

    def crawl(self, fetches: int) -> list[Sketch]:
        """Return so many fetches, in a random order, some of them delivered twice."""
        dice = random.Random(self.seed)
        made = [self._fetch(dice, number) for number in range(fetches)]
        made += dice.sample(made, fetches // 5)
        dice.shuffle(made)
        return made

    def _fetch(self, dice: random.Random, number: int) -> Sketch:
        family = dice.randrange(self.families)
        base = range(family * 1000, family * 1000 + self.length)
        kind = dice.random()
        if kind < 0.3:
            shingles = list(base)
        elif kind < 0.6:
            shingles = [n + 500 if dice.random() < 0.1 else n for n in base]
        elif kind < 0.8:
            shingles = [n for n in base if dice.random() < 0.6]
        else:
            shingles = [dice.randrange(10**6, 10**9) for _ in range(dice.randrange(0, self.length))]
        url = f"http://h{family % 2}.example/{dice.randrange(self.urls)}"
        return page(url, dice.randrange(1, 50), shingles, order=dice.choice("ab"))
