"""Which pairs of a cluster rules are made from: GenerateAllRules (Koppula et al. 2010, section 3.2.1, algorithm 4).

Targets are the cluster's most normal URLs; sources a stratified sample of the rest. Cost: O(C log C) for a cluster of C
URLs (lemma 2), and at most `SOURCES` times k pairs, whatever its size.

Chosen where the paper is silent: targets are ranked without a query first ("static type" is named first), then by
fewer query keys, shorter, fewer components, more important, then as strings (A13); k = 1. Sources: all up to
`SOURCES`, else stratified by importance where the crawl knows it (ten equal buckets, each by its share of the
importance), by the pattern of the URL (names of query keys, number of components) otherwise, with one of each pattern
first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from clusterd.learning.koppula.pairwise import Change, PairwiseRule, pairwise_rule
from clusterd.learning.koppula.tokenize import Slot, Tokens, UrlParts

SOURCES, TARGETS, BUCKETS = 50, 1, 10
#: A short or ambiguous reference is believed when this many clusters, with two values at least, allow it (A10b).
CONFIRMATIONS, CONFIRMED_VALUES = 3, 2

Importance = Mapping[UrlParts, float]


def target_rank(parts: UrlParts, importance: Importance | None = None) -> tuple[bool, int, int, int, float, str]:
    """Return the place of a URL among its cluster's targets; the smallest is the most normal."""
    text = parts.text()
    worth = -importance.get(parts, 0.0) if importance else 0.0
    return bool(parts.query), len(parts.query), len(text), len(parts.path), worth, text


def most_normal(cluster: Sequence[UrlParts]) -> int:
    """Return the place of the URL that ranks first; only those with fewest query keys are written out to be ranked."""
    fewest = min([len(parts.query) for parts in cluster])
    ranked = [n for n, parts in enumerate(cluster) if len(parts.query) == fewest]
    return ranked[0] if len(ranked) == 1 else min(ranked, key=lambda n: target_rank(cluster[n]))


def select_targets(
    cluster: Iterable[UrlParts], k: int = TARGETS, importance: Importance | None = None
) -> list[UrlParts]:
    """RankURLsForTargetSelection and getTargetURLs: the top k."""
    ranked = list(cluster)
    if k == 1 and ranked and not importance:
        return [ranked[most_normal(ranked)]]
    return sorted(ranked, key=lambda parts: target_rank(parts, importance))[:k]


def select_sources(
    urls: Sequence[UrlParts], random: Random, limit: int = SOURCES, importance: Importance | None = None
) -> list[UrlParts]:
    """getSourceURLs: a stratified sample of what is not a target."""
    if len(urls) <= limit:
        return list(urls)
    if importance:
        return _by_importance(urls, random, limit, importance)
    strata: dict[object, list[UrlParts]] = defaultdict(list)
    for parts in urls:
        strata[signature(parts)].append(parts)
    for members in strata.values():
        random.shuffle(members)
    ordered = sorted(strata.values(), key=len, reverse=True)
    chosen = [members[0] for members in ordered[:limit]]
    for members in ordered:
        share = int((limit - len(chosen)) * len(members) / len(urls)) if len(chosen) < limit else 0
        chosen += members[1 : 1 + share]
    taken = set(chosen)
    rest = [parts for members in ordered for parts in members[1:] if parts not in taken]
    return (chosen + random.sample(rest, min(len(rest), max(0, limit - len(chosen)))))[:limit]


def _by_importance(urls: Sequence[UrlParts], random: Random, limit: int, worth: Importance) -> list[UrlParts]:
    """Sample from equal-sized buckets of ranked URLs, each in proportion to its share of the importance."""
    ranked = sorted(urls, key=lambda parts: -worth.get(parts, 0.0))
    size = -(-len(ranked) // BUCKETS)
    total = sum(worth.get(parts, 0.0) for parts in ranked) or 1.0
    chosen: list[UrlParts] = []
    for at in range(0, len(ranked), size):
        bucket = ranked[at : at + size]
        share = sum(worth.get(parts, 0.0) for parts in bucket) / total
        chosen += random.sample(bucket, min(len(bucket), round(limit * share)))
    return chosen[:limit]


def signature(parts: UrlParts) -> tuple[int, tuple[str, ...]]:
    """Return the pattern of a URL for stratified sampling."""
    return len(parts.path), tuple(sorted(name for name, _ in parts.query))


def generate_all_rules(
    clusters: Iterable[Sequence[UrlParts]], tokens: Callable[[UrlParts], Tokens], random: Random, k: int = TARGETS
) -> list[PairwiseRule]:
    """GenerateAllRules: the pairwise rules of all clusters, ambiguous references settled across them."""
    rules: list[PairwiseRule] = []
    for number, cluster in enumerate(clusters):
        targets = select_targets(cluster, k)
        chosen = set(targets)
        sources = select_sources([parts for parts in cluster if parts not in chosen], random)
        goals = [tokens(target) for target in targets]
        for parts in sources:
            mine = tokens(parts)
            rules += [pairwise_rule(mine, goal, number) for goal in goals]
    return confirm_references(rules)


def confirm_references(rules: Sequence[PairwiseRule]) -> list[PairwiseRule]:
    """Turn literals into references where enough clusters agree on where the value stands in the source (A10b)."""
    seen: dict[tuple[Slot, Slot], set[tuple[int, str]]] = defaultdict(set)
    tried: Counter[Slot] = Counter()
    for rule in rules:
        for slot, sources in rule.candidates:
            tried[slot] += 1
            for source in sources:
                seen[slot, source].add((rule.cluster, rule.context[source]))
    believed = _believed(seen)
    return [_with_references(rule, believed) for rule in rules] if believed else list(rules)


def _believed(seen: Mapping[tuple[Slot, Slot], set[tuple[int, str]]]) -> dict[Slot, list[Slot]]:
    """Return each key's confirmed sources, the best first; a source explains one key (the first in order)."""
    ranked: dict[Slot, list[tuple[int, Slot]]] = defaultdict(list)
    for (slot, source), cases in seen.items():
        clusters, values = {cluster for cluster, _ in cases}, {value for _, value in cases}
        if len(clusters) >= CONFIRMATIONS and len(values) >= CONFIRMED_VALUES:
            ranked[slot].append((-len(clusters), source))
    return {slot: [source for _, source in sorted(sources)] for slot, sources in ranked.items()}


def _with_references(rule: PairwiseRule, believed: Mapping[Slot, list[Slot]]) -> PairwiseRule:
    """Replace a rule's literals by the confirmed references."""
    changes, used = dict(rule.changes), set[Slot]()
    for slot, sources in rule.candidates:
        for source in believed.get(slot, ()):
            if source in sources and source not in used:
                changes[slot] = Change("copy", source=source)
                used.add(source)
                break
    return PairwiseRule(rule.context, tuple(sorted(changes.items())), rule.cluster)
