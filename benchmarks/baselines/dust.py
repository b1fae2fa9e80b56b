"""DUST (Bar-Yossef, Keidar, Schonfeld, WWW 2007): substring substitution rules, α → β.

Two URLs of a cluster that share an envelope (prefix and suffix) propose what differs between them, α → β, also with the
token before it, after it, and both; ``^`` and ``$`` stand for the ends of a URL. Support is the number of clusters that
propose a rule. A rule that another contains (".com/story?id=" → ".com/story" in "story?id=" → "story") is
dropped where their supports are within 5 %. Rules shorten, or else lower in the alphabet.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from random import Random

from benchmarks.baselines.contract import Clusters

#: Clusters that must propose a rule; pairs of a cluster (the paper drops overflowing buckets); rules kept; longest α.
SUPPORT, PAIRS, RULES, LONGEST = 3, 60, 2_000, 60
CLOSE = 0.05

_TOKEN_BEFORE = re.compile(r"[A-Za-z0-9]*[^A-Za-z0-9]?$")
_TOKEN_AFTER = re.compile(r"^[^A-Za-z0-9]?[A-Za-z0-9]*")

Substitution = tuple[str, str]


class Dust:
    """The learned substitutions."""

    def __init__(self, train: Clusters, seed: int = 0) -> None:
        support: dict[Substitution, set[int]] = defaultdict(set)
        random = Random(seed)
        for number, cluster in enumerate(train):
            for left, right in _pairs(cluster, random):
                for rule in _substitutions(f"^{left}$", f"^{right}$"):
                    support[rule].add(number)
        frequent = {rule: len(found) for rule, found in support.items() if len(found) >= SUPPORT}
        ranked = sorted(frequent, key=lambda rule: (-frequent[rule], len(rule[0]), rule))[:RULES]
        self.rules = _without_redundant(ranked, frequent)

    def rewrites(self, url: str) -> Iterator[tuple[Hashable, str]]:
        """Yield each substitution that applies, at its first place."""
        text = f"^{url}$"
        for rule in self.rules:
            alpha, beta = rule
            if alpha in text:
                yield rule, text.replace(alpha, beta, 1).removeprefix("^").removesuffix("$")


def _pairs(cluster: Sequence[str], random: Random) -> list[tuple[str, str]]:
    ordered = sorted(cluster)
    pairs = list(pairwise(ordered))
    while len(pairs) < PAIRS and len(ordered) > 2 and len(pairs) < len(ordered) * (len(ordered) - 1) // 2:
        left, right = random.sample(ordered, 2)
        pairs.append((left, right))
    return pairs if len(pairs) <= PAIRS else random.sample(pairs, PAIRS)


def _substitutions(left: str, right: str) -> Iterator[Substitution]:
    """Yield the rules that a pair proposes, from the bare difference to one with both neighbours."""
    low = 0
    while low < min(len(left), len(right)) and left[low] == right[low]:
        low += 1
    high = 0
    while high < min(len(left), len(right)) - low and left[-1 - high] == right[-1 - high]:
        high += 1
    before, after = left[:low], left[len(left) - high :]
    alpha, beta = left[low : len(left) - high], right[low : len(right) - high]
    head = _TOKEN_BEFORE.search(before)
    tail = _TOKEN_AFTER.search(after)
    heads = {"", head.group() if head else ""}
    tails = {"", tail.group() if tail else ""}
    if after == "$":
        tails.add("$")
    for first in heads:
        for last in tails:
            longer, shorter = first + alpha + last, first + beta + last
            if (len(longer), longer) < (len(shorter), shorter):
                longer, shorter = shorter, longer
            if longer and len(longer) <= LONGEST:
                yield longer, shorter


def _without_redundant(ranked: Sequence[Substitution], support: dict[Substitution, int]) -> list[Substitution]:
    """Drop a rule that a more general kept one contains, where their supports are close."""
    kept: dict[Substitution, None] = {}
    for rule in ranked:
        general = next((other for other in _contained(rule) if other in kept), None)
        if general is None or support[general] > support[rule] * (1 + CLOSE):
            kept[rule] = None
    return list(kept)


def _contained(rule: Substitution) -> Iterator[Substitution]:
    """Yield the rules that remain when common ends are cut off a rule."""
    alpha, beta = rule
    for first in range(len(beta) + 1):
        if alpha[:first] != beta[:first]:
            break
        for last in range(len(beta) - first + 1):
            if last and alpha[-last:] != beta[-last:]:
                break
            if first or last:
                yield alpha[first : len(alpha) - last], beta[first : len(beta) - last]
