"""The paper's protocol (Koppula et al. 2010, section 5) on the recorded crawls, beside the rules that came before it.

Same splits, same clusters, same measures for all: a rule's coverage and precision are taken on the training half, the
reduction on the test half. Tables 3 and 5 (rules and reduction by precision) and 4 and 6 (by coverage) are printed in
form. Without the recorded crawls a generated site stands in.
"""

from __future__ import annotations

import gzip
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from clusterd.learning.koppula import protocol
from clusterd.learning.koppula.protocol import (
    COVERAGES,
    PRECISIONS,
    Clusters,
    average_reduction,
    halves,
    reduction_ratio,
)
from rich.console import Console
from rich.table import Table

from benchmarks.baselines.canonical import Canonical
from benchmarks.baselines.contract import Baseline, Figures, measure, normalize
from benchmarks.baselines.dust import Dust
from benchmarks.baselines.hypotheses import Hypotheses
from benchmarks.baselines.rewrite import Rewrite
from benchmarks.results import Row, result
from benchmarks.url_rules_replay import CRAWLS, SEEDS

OURS = "clusterd"
PEERS: dict[str, Callable[[Sequence[Sequence[str]]], Baseline]] = {
    "rewrite rules (fan-out 30)": Rewrite,
    "DUST": Dust,
    "MaybeDont": Hypotheses,
    "w3lib": lambda train: Canonical(),
}


@dataclass(frozen=True, slots=True)
class Page:
    """A row of a crawl as the protocol reads it."""

    url: str
    content: int
    near_cluster: int = 0


@dataclass(slots=True)
class Tally:
    """What one subject did at one precision and coverage, over hosts and seeds."""

    rules: int = 0
    urls: int = 0
    keys: int = 0
    false: int = 0
    most: int = 0

    @property
    def reduction(self) -> float:
        return reduction_ratio(self.urls, self.keys)


Tallies = dict[tuple[str, float, int], Tally]


@dataclass(slots=True)
class Report:
    """Everything that the tables show."""

    tallies: Tallies = field(default_factory=lambda: defaultdict(Tally))
    by_site: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    possible: Tally = field(default_factory=Tally)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def crawls() -> dict[str, Clusters]:
    """Return the clusters of each recorded crawl, or of a generated one."""
    found = {path.name.partition(".")[0]: _read(path) for path in sorted(CRAWLS.glob("*.tsv.gz"))}
    return found or {"generated": protocol.clusters_of(generated())}


def _read(path: Path) -> Clusters:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        header = next(lines).rstrip("\n").split("\t")
        url, content = header.index("url"), header.index("content")
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return protocol.clusters_of(Page(row[url], int(row[content])) for row in rows)


def generated(topics: int = 400) -> list[Page]:
    """A forum and a wiki: sessions, highlights, index pages, titles in path and query, a log-in wall."""
    pages: list[Page] = []
    for n in range(topics):
        topic = f"http://forum.test/viewtopic.php?t={n}"
        pages += [
            Page(url, n) for url in (topic, f"{topic}&sid={n * 7919:032x}", f"{topic}&highlight=", f"{topic}&start=0")
        ]
        title = f"Page_{n}"
        wiki = (f"http://wiki.test/wiki/{title}", f"http://wiki.test/index.php?title={title}")
        pages += [Page(url, topics + n) for url in wiki]
        pages.append(Page(f"http://forum.test/posting.php?mode=quote&p={n}", -1))
    return pages


def report(sites: dict[str, Clusters], seeds: Sequence[int]) -> Report:
    """Run every subject on every split."""
    result = Report()
    for seed in seeds:
        for site, clusters in sites.items():
            train, test = halves(clusters, 0.5, seed)
            for found in test.values():
                result.possible.urls += sum(map(len, found.values()))
                result.possible.keys += len(found)
            _ours(result, site, train, test, seed)
            for name in PEERS:
                _peer(result, site, name, train, test)
        print(f"split {seed} done", file=sys.stderr)
    return result


def _ours(result: Report, site: str, train: Clusters, test: Clusters, seed: int) -> None:
    begun = perf_counter()
    evidence = {host: protocol.learn(host, found, seed) for host, found in train.items()}
    rules = {precision: {h: protocol.rules_at(e, precision) for h, e in evidence.items()} for precision in PRECISIONS}
    result.seconds[OURS] += perf_counter() - begun
    for precision, found in rules.items():
        for coverage in COVERAGES:
            kept = {host: [rule for rule in own if rule.coverage >= coverage] for host, own in found.items()}
            done = protocol.measure(kept, test)
            most = max(map(len, kept.values()), default=0)
            _add(
                result,
                OURS,
                site,
                precision,
                coverage,
                sum(map(len, kept.values())),
                done.urls,
                done.keys,
                done.false,
                most,
            )


def _peer(result: Report, site: str, name: str, train: Clusters, test: Clusters) -> None:
    for host, found in test.items():
        begun = perf_counter()
        learned = PEERS[name](list(train.get(host, {}).values()))
        figures = measure(learned, list(train.get(host, {}).values()))
        result.seconds[name] += perf_counter() - begun
        least, urls = COVERAGES[0], sum(map(len, found.values()))
        for precision in PRECISIONS:
            chosen = {r: f for r, f in figures.items() if f.coverage >= least and f.precision >= precision}
            keys, false = _normalized(learned, chosen, found)
            _add(result, name, site, precision, least, len(chosen), urls, keys, false, len(chosen))


def _normalized(
    learned: Baseline, chosen: dict[Hashable, Figures], clusters: dict[tuple[str, int], list[str]]
) -> tuple[int, int]:
    groups: dict[str, dict[tuple[str, int], int]] = defaultdict(lambda: defaultdict(int))
    for cluster, urls in clusters.items():
        for url in urls:
            groups[normalize(learned, chosen, url) if chosen else url][cluster] += 1
    return len(groups), sum(sum(found.values()) - max(found.values()) for found in groups.values())


def _add(
    result: Report, name: str, site: str, precision: float, coverage: int,
    rules: int, urls: int, keys: int, false: int, most: int,
) -> None:  # fmt: skip
    tallies = [result.tallies[name, precision, coverage]]
    if precision == 0.95 and coverage == COVERAGES[0]:
        tallies.append(result.by_site[name, site])
    for tally in tallies:
        tally.rules += rules
        tally.urls += urls
        tally.keys += keys
        tally.false += false
        tally.most = max(tally.most, most)


def show(result: Report, seeds: int, console: Console) -> None:
    """Print the tables."""
    subjects = (OURS, *PEERS)
    table = Table(title="Tables 3 and 5: rules a split, % reduction and (% of test URLs under another cluster's key)")
    for heading in ("precision", *subjects):
        table.add_column(heading, justify="right")
    for precision in PRECISIONS:
        table.add_row(_at(precision), *(_cell(result.tallies[name, precision, 10], seeds) for name in subjects))
    console.print(table)
    _show_coverage(result, seeds, console)
    _show_sites(result, console)


def _at(precision: float) -> str:
    return "all" if precision == 0 else f"{'=' if precision == 1 else '≥'} {precision:g}"


def _cell(tally: Tally, seeds: int) -> str:
    return f"{tally.rules / seeds:.0f}  {100 * tally.reduction:.1f}  ({100 * tally.false / max(1, tally.urls):.1f})"


def _show_coverage(result: Report, seeds: int, console: Console) -> None:
    table = Table(title="Tables 4 and 6: clusterd by minimum coverage")
    for heading in ("precision", "coverage", "rules a split", "reduction per rule", "reduction %"):
        table.add_column(heading, justify="right")
    for precision in PRECISIONS[:-1]:
        for coverage in COVERAGES:
            tally = result.tallies[OURS, precision, coverage]
            saved = average_reduction(tally.urls - tally.keys, tally.rules)
            table.add_row(
                _at(precision),
                str(coverage),
                f"{tally.rules / seeds:.0f}",
                f"{saved:.2f}",
                f"{100 * tally.reduction:.2f}",
            )
    console.print(table)


def _show_sites(result: Report, console: Console) -> None:
    subjects = (OURS, *PEERS)
    table = Table(title="% reduction by site at precision ≥ .95, and the most rules that clusterd used")
    for heading in ("site", "URLs", *subjects, "rules"):
        table.add_column(heading, justify="left" if heading == "site" else "right")
    for site in dict.fromkeys(site for _, site in result.by_site):
        tallies = [result.by_site[name, site] for name in subjects]
        shares = [f"{100 * tally.reduction:.1f}" for tally in tallies]
        table.add_row(site, str(tallies[0].urls), *shares, str(tallies[0].most))
    console.print(table)


def rows(of: Report) -> list[Row]:
    """Return the figures as benchmark rows; the peer of ours is the best of the others."""
    found: list[Row] = []
    for precision in PRECISIONS:
        work = f"URL rules, split protocol: reduction at precision {_at(precision)}"
        values = {name: 100 * of.tallies[name, precision, 10].reduction for name in (OURS, *PEERS)}
        best = max(PEERS, key=values.__getitem__)
        for name, value in values.items():
            peer = best if name == OURS else None
            ratio = round(value / values[best], 2) if peer and values[best] else None
            found.append(result(work, name, round(value, 2), "% of URLs", peer, ratio))
    possible = 100 * of.possible.reduction
    work = "URL rules, split protocol: reduction that is possible"
    return [*found, result(work, "clusters", round(possible, 2), "% of URLs")]


def run() -> list[Row]:
    """Run the benchmark over the crawls that are there."""
    found = report(crawls(), SEEDS)
    show(found, len(SEEDS), Console(width=160))
    return rows(found)


if __name__ == "__main__":
    run()
