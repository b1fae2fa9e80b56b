"""What a baseline says, and how its rules are measured: coverage and precision on the training clusters (section 5)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

#: Rewrites of one URL: to a fixed point, but no more than this.
STEPS = 10

Clusters = Sequence[Sequence[str]]


class Baseline(Protocol):
    """Rules as learned: each that applies to a URL, with what it makes of it."""

    def rewrites(self, url: str) -> Iterator[tuple[Hashable, str]]:
        """Yield (rule, r(url)) for every rule that applies."""
        ...


class Figures(NamedTuple):
    """A rule's coverage and precision on the training half."""

    coverage: int
    precision: float


def measure(baseline: Baseline, train: Clusters) -> dict[Hashable, Figures]:
    """Return every rule's coverage, and its precision: URLs that it joins with another cluster's count against it."""
    owner = {url: number for number, cluster in enumerate(train) for url in cluster}
    made: dict[Hashable, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    covered: Counter[Hashable] = Counter()
    for number, cluster in enumerate(train):
        for url in cluster:
            for rule, result in baseline.rewrites(url):
                covered[rule] += 1
                made[rule][result][number] += 1
    return {rule: Figures(covered[rule], 1 - _false(groups, owner) / covered[rule]) for rule, groups in made.items()}


def _false(groups: Mapping[str, Counter[int]], owner: Mapping[str, int]) -> int:
    """Return f: covered URLs whose result stands for another cluster."""
    false = 0
    for result, clusters in groups.items():
        own = owner.get(result)
        right = clusters[own] if own is not None else max(clusters.values())
        false += clusters.total() - right
    return false


def normalize(baseline: Baseline, chosen: Mapping[Hashable, Figures], url: str) -> str:
    """Rewrite a URL until nothing applies, the rule of the highest precision and coverage first."""
    for _ in range(STEPS):
        options = [
            (chosen[rule].precision, chosen[rule].coverage, result)
            for rule, result in baseline.rewrites(url)
            if rule in chosen and result != url
        ]
        if not options:
            break
        url = max(options)[2]
    return url
