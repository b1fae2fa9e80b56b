"""Which pairs of a cluster rules are made from: GenerateAllRules (Koppula et al. 2010, section 3.2.1, algorithm 4).

The target is the cluster's most normal URL; sources are a stratified sample of the rest. Cost: O(C log C) for a cluster
of C URLs (lemma 2), and at most `SOURCES` pairs, whatever its size.

Chosen where the paper is silent: targets are ranked without a query first ("static type" is named first), then by
fewer query keys, shorter, fewer components, then as strings (A13); k = 1. Sources: all up to `SOURCES`, else stratified
by the pattern of the URL (names of query keys, number of components), with one of each pattern first. The paper's
strata are URLs of equal importance, which nothing here knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from clusterd.learning.koppula.pairwise import Change, PairwiseRule, pairwise_rule
from clusterd.learning.koppula.tokenize import Slot, Tokens, UrlParts

SOURCES = 50
#: A short or ambiguous reference is believed when this many clusters, with two values at least, allow it (A10b).
CONFIRMATIONS, CONFIRMED_VALUES = 3, 2


def most_normal(cluster: Sequence[UrlParts]) -> int:
    """RankURLsForTargetSelection and getTargetURLs: the place of the URL that ranks first.

    Only those with fewest query keys are written out to be ranked.
    """
    fewest = min([len(parts.query) for parts in cluster])
    ranked = [n for n, parts in enumerate(cluster) if len(parts.query) == fewest]
    return ranked[0] if len(ranked) == 1 else min(ranked, key=lambda n: _rank(cluster[n]))


def _rank(parts: UrlParts) -> tuple[int, int, str]:
    """Return the place of a URL among those with as many query keys; the smallest is the most normal."""
    text = parts.text()
    return len(text), len(parts.path), text


def select_sources(urls: Sequence[UrlParts], random: Random) -> list[UrlParts]:
    """getSourceURLs: a stratified sample of what is not a target."""
    if len(urls) <= SOURCES:
        return list(urls)
    strata: dict[object, list[UrlParts]] = defaultdict(list)
    for parts in urls:
        strata[signature(parts)].append(parts)
    for members in strata.values():
        random.shuffle(members)
    ordered = sorted(strata.values(), key=len, reverse=True)
    chosen = [members[0] for members in ordered[:SOURCES]]
    left = SOURCES - len(chosen)
    rest: list[UrlParts] = []
    for members in ordered:
        share = left * len(members) // len(urls)
        chosen += members[1 : 1 + share]
        rest += members[1 + share :]
    return chosen + random.sample(rest, SOURCES - len(chosen))


def signature(parts: UrlParts) -> tuple[int, tuple[str, ...]]:
    """Return the pattern of a URL for stratified sampling."""
    return len(parts.path), tuple(sorted(name for name, _ in parts.query))


def generate_all_rules(
    clusters: Iterable[Sequence[UrlParts]], tokens: Callable[[UrlParts], Tokens], random: Random
) -> list[PairwiseRule]:
    """GenerateAllRules: the pairwise rules of all clusters, ambiguous references settled across them."""
    rules: list[PairwiseRule] = []
    for number, cluster in enumerate(clusters):
        target = cluster[most_normal(cluster)]
        goal = tokens(target)
        sources = select_sources([parts for parts in cluster if parts != target], random)
        rules += [pairwise_rule(tokens(parts), goal, number) for parts in sources]
    return confirm_references(rules)


def confirm_references(rules: Sequence[PairwiseRule]) -> list[PairwiseRule]:
    """Turn literals into references where enough clusters agree on where the value stands in the source (A10b)."""
    seen: dict[tuple[Slot, Slot], set[tuple[int, str]]] = defaultdict(set)
    for rule in rules:
        for slot, sources in rule.candidates:
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
