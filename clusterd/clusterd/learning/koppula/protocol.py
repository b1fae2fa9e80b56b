"""Section 5 of Koppula et al. 2010: half of the clusters to learn from, half to test on, and its metrics.

Clusters are of two URLs and more on one host (the paper leaves singletons out, and says so). Each goes to one half by
chance. For each precision the rules that reach it on the training half (with the paper's filter on coverage) normalize
the test half's URLs, by the keys that a crawl would use (`clusterd_crawler.rule_language.keys`).

What is printed: ``reduction`` = (URLs - keys) / URLs; ``average_reduction_N`` = URLs saved for each rule that covers N
training URLs or more; ``possible_reduction`` = (URLs - clusters) / URLs. Beside the paper's figures, since a reduction
says nothing without it (A22, A23): ``test_precision``, the share of test URLs that are of the largest cluster under
their key, and ``rules_a_site``, the most rules of one host; ``urls``, those of the test half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Protocol

from clusterd_crawler.rule_language.keys import Keys
from clusterd_crawler.rules import Edit, Key, Rule, RuleSet, rule_id

from clusterd.learning.koppula.publish import published
from clusterd.learning.koppula.selection import MIN_COVERAGE, MIN_RIGHT, Evidence
from clusterd.learning.koppula.tokenize import UrlParts, split_url

PRECISIONS = (1.0, 0.95, 0.9, 0.8, 0.0)
COVERAGES = (10, 100, 1000)


class Row(Protocol):
    """A page of a recorded crawl."""

    @property
    def url(self) -> str:
        """The URL as it was fetched."""
        ...

    @property
    def content(self) -> int:
        """Equal numbers show equal text."""
        ...

    @property
    def near_cluster(self) -> int:
        """Equal numbers are near-duplicates; 0 = alone."""
        ...


#: host → cluster → its URLs.
Clusters = dict[str, dict[tuple[str, int], list[str]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a rule set does to some clusters."""

    urls: int
    keys: int
    clusters: int
    #: URLs whose key's largest cluster is another.
    false: int

    @property
    def reduction(self) -> float:
        """ReductionRatio."""
        return reduction_ratio(self.urls, self.keys)


def reduction_ratio(original: float, normal: float) -> float:
    """ReductionRatio: the share of URLs that normalization saves."""
    return (original - normal) / original if original else 0.0


def average_reduction(saved: float, rules: int) -> float:
    """AvgReductionPerRule: URLs saved by each rule."""
    return saved / rules if rules else 0.0


def split_protocol(rows: Iterable[Row], split: float, seed: int, policy: str = "identical") -> list[dict[str, Any]]:
    """Return the protocol's figures, one object for each precision."""
    train, test = halves(clusters_of(rows, policy), split, seed)
    evidence = {host: learn(host, found, seed) for host, found in train.items()}
    return [_line(evidence, test, precision) for precision in PRECISIONS]


def clusters_of(rows: Iterable[Row], policy: str = "identical") -> Clusters:
    """Return the clusters of two distinct URLs and more, by host."""
    found: dict[str, dict[tuple[str, int], dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        near = policy == "near" and row.near_cluster
        cluster = ("near", row.near_cluster) if near else ("identical", row.content)
        found[split_url(row.url).host][cluster][row.url] = None
    return {
        host: kept
        for host, clusters in found.items()
        if (kept := {cluster: list(urls) for cluster, urls in clusters.items() if len(urls) > 1})
    }


def halves(clusters: Clusters, split: float, seed: int) -> tuple[Clusters, Clusters]:
    """Assign each cluster at random to the training half or to the test half."""
    random = Random(seed)
    train: Clusters = defaultdict(dict)
    test: Clusters = defaultdict(dict)
    for host, found in clusters.items():
        for cluster, urls in found.items():
            (train if random.random() < split else test)[host][cluster] = urls
    return train, test


@dataclass(frozen=True, slots=True)
class HostEvidence:
    """What one host's training half says."""

    host: str
    evidence: Evidence
    sort: Rule | None


def learn(host: str, clusters: Mapping[tuple[str, int], Sequence[str]], seed: int) -> HostEvidence:
    """Learn from one host's training half."""
    taken = [[split_url(url) for url in urls] for urls in clusters.values()]
    return HostEvidence(host, Evidence(taken, Random(seed)), sort_rule(host, taken))


def sort_rule(host: str, clusters: Iterable[Sequence[UrlParts]]) -> Rule | None:
    """Return the rule that the order of query keys does not matter, where the host shows it."""
    orders: dict[UrlParts, Counter[int]] = defaultdict(Counter)
    covered = 0
    for number, cluster in enumerate(clusters):
        for parts in cluster:
            covered += len(parts.query) > 1
            orders[parts._replace(query=tuple(sorted(parts.query)))][number] += 1
    saved = sum(found.total() - 1 for found in orders.values())
    wrong = sum(found.total() - max(found.values()) for found in orders.values())
    if saved - wrong < MIN_RIGHT or covered < MIN_COVERAGE:
        return None
    edits = (Edit(Key(), "sort"),)
    precision = (covered - wrong) / covered
    return Rule(rule_id(host, (), edits), host, (), edits, support=saved, coverage=covered, precision=precision)


def rules_at(found: HostEvidence, precision: float) -> list[Rule]:
    """Return a host's rules at a precision, with their figures, in the order in which they apply."""
    rules = [found.sort] if found.sort is not None and found.sort.precision >= precision else []
    for chosen in found.evidence.select(precision):
        rule = published(found.host, chosen.context, chosen.changes)
        if rule is not None:
            alone = chosen.alone
            rules.append(replace(rule, support=alone.right, coverage=alone.covered, precision=alone.precision))
    return rules


def _line(evidence: Mapping[str, HostEvidence], test: Clusters, precision: float) -> dict[str, Any]:
    rules = {host: rules_at(found, precision) for host, found in evidence.items()}
    whole = measure(rules, test)
    line: dict[str, Any] = {
        "precision": precision,
        "rules": sum(map(len, rules.values())),
        "reduction": round(whole.reduction, 6),
    }
    for coverage in COVERAGES:
        kept = {host: [rule for rule in own if rule.coverage >= coverage] for host, own in rules.items()}
        saved = measure(kept, test)
        count = sum(map(len, kept.values()))
        line[f"average_reduction_{coverage}"] = round(average_reduction(saved.urls - saved.keys, count), 2)
    line["possible_reduction"] = round(reduction_ratio(whole.urls, whole.clusters), 6)
    line["test_precision"] = round(1 - whole.false / whole.urls, 6) if whole.urls else 1.0
    line["rules_a_site"] = max(map(len, rules.values()), default=0)
    line["urls"] = whole.urls
    return line


def measure(rules: Mapping[str, Sequence[Rule]], test: Clusters) -> Measured:
    """Normalize the test half's URLs and count what became one."""
    keys = Keys()
    for host, own in rules.items():
        keys.load(RuleSet(host=host, version=1, rules=tuple(own)))
    groups: dict[str, Counter[tuple[str, tuple[str, int]]]] = defaultdict(Counter)
    for host, clusters in test.items():
        for cluster, urls in clusters.items():
            for url in urls:
                groups[keys.key(url)[0]][host, cluster] += 1
    total = sum(found.total() for found in groups.values())
    false = sum(found.total() - max(found.values()) for found in groups.values())
    return Measured(total, len(groups), sum(map(len, test.values())), false)
