"""What no safe rule could reach, and why: every edit that the pages of a whole crawl propose, judged in hindsight.

For each crawl of `SITES` the learner sees all pages at once. What then still stands under a key of its own although its
content is known is out of reach of safe rules; listed are the edits that would bring most of it together, with their
record: pages that differ (the rule would lose contents), or too few trials for the bound that small sites need. The
rest is proposed by nothing: the URLs have nothing in common, or every pair differs in another way.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from clusterd.learning.candidates import proposals
from clusterd.learning.contract import Page
from clusterd.learning.edits.edit import CandidateEdit
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.learner import Learner
from clusterd.learning.replay import CrawlRow, read_crawl
from clusterd.learning.trials.agreement import Outcome, lower_bound
from clusterd.learning.trials.bounds import BOUND
from clusterd.learning.trials.siblings import judged
from clusterd_crawler.skipping.bearers import parse_names
from clusterd_crawler.urls import canonical, parse

from benchmarks.results import Row, result
from benchmarks.url_rules_replay import CRAWLS

SITES: Final = ("emeraldimmersion", "concordia-trac", "openehr", "openenergymonitor-forum")
#: Edits that are listed of a crawl.
LISTED: Final = 8
#: Pages of a content that is an error page or an empty list more likely than an article.
MANY: Final = 50


@dataclass(frozen=True, slots=True)
class Missed:
    """An edit that would save fetches and is not safe."""

    edit: CandidateEdit
    outcome: Outcome
    #: Pages beside the first of their group and content.
    saves: int

    @property
    def text(self) -> str:
        """The edit in a line."""
        needs = " and ".join(map(str, self.edit.needs))
        said = ", ".join(map(str, self.edit.transformation))
        return f"{said} where {needs}" if needs else said

    @property
    def why(self) -> str:
        """Why it is no rule."""
        agreed, differed = self.outcome.agreed, self.outcome.differed
        if differed:
            return f"{differed} of {agreed + differed} differ: contents would be lost"
        bound = lower_bound(agreed, agreed)
        asked = f"below {BOUND}" if bound < BOUND else "in contexts too small, or over too many values, for their bound"
        return f"{agreed} clean trials, lower bound {bound:.2f}, {asked}"


def hindsight(crawl: list[CrawlRow]) -> tuple[int, int, list[Missed]]:
    """Return redundant pages, those that no rule reaches in hindsight, and the edits that would."""
    learner = Learner("crawl")
    learner.observe(Page(row.url, row.content + 1, row.words, parse_names(row.names)) for row in crawl)
    snapshot = Snapshot(learner.evidence)
    for _ in learner._accepted(snapshot):  # Each is accepted on the snapshot as it is yielded.
        pass
    named = sum(rule.support for rule in learner.names.rules("crawl", "identical", 0))
    redundant = len(crawl) - len({row.content for row in crawl})
    pairs = np.unique(np.stack([snapshot.key.view(np.int64), snapshot.content]), axis=1).shape[1]
    left = max(0, pairs - len(np.unique(snapshot.content)) - named)
    missed = []
    for edit, _ in chain(*proposals(snapshot)):
        outcome = judged(snapshot, edit)
        if saves := agreeing_beyond_first(outcome):
            missed.append(Missed(edit, outcome, saves))
    missed.sort(key=lambda one: -one.saves)
    return redundant, left, missed[:LISTED]


def agreeing_beyond_first(outcome: Outcome) -> int:
    """Count the pages that agree with their group, beyond the first of each."""
    agreeing = outcome.group[outcome.good]
    return len(agreeing) - len(np.unique(agreeing))


def kinds(crawl: list[CrawlRow]) -> Counter[str]:
    """Count redundant pages by what they and the first page of their content differ in."""
    first: dict[int, CrawlRow] = {}
    sizes = Counter(row.content for row in crawl)
    found: Counter[str] = Counter()
    for row in crawl:
        known = first.setdefault(row.content, row)
        if known is not row:
            found[_difference(known.url, row.url)] += 1
            found["in contents of 50 pages and more"] += sizes[row.content] >= MANY
    return found


def _difference(known: str, url: str) -> str:
    a, b = parse(canonical(known)), parse(canonical(url))
    if a.path == b.path:
        return "in the query"
    differing = sum(one != other for one, other in zip(a.path, b.path, strict=False))
    if len(a.path) == len(b.path) and differing == 1 and a.query == b.query:
        return "in one component of the path"
    return "in a prefix of the path" if a.path[-1] == b.path[-1] and a.query == b.query else "in more"


def run() -> list[Row]:
    """Print the lists; return the rows of the results file."""
    found: list[Row] = []
    for site in SITES:
        path = CRAWLS / f"{site}.tsv.gz"
        if not path.is_file():
            print(f"no crawl at {path}: nothing listed", file=sys.stderr)
            continue
        crawl = read_crawl(path)
        redundant, left, missed = hindsight(crawl)
        print(f"{site}: {redundant} redundant pages, {left} out of reach of every safe rule even in hindsight")
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds(crawl).most_common() if count)
        print(f"  their URLs differ: {counted}")
        content, pages = Counter(row.content for row in crawl).most_common(1)[0]
        if pages >= MANY:
            examples = [row.url for row in crawl if row.content == content][:: -(-pages // 3)]
            print(f"  {pages} pages show one content, under URLs that nothing sets apart: {', '.join(examples)}")
        for one in missed:
            print(f"  {one.saves:5} pages  {one.text[:110]}\n               {one.why}")
        found.append(
            result(
                "rules: redundant pages that no safe rule reaches, in hindsight",
                site,
                left,
                "pages",
                "redundant",
                round(left / max(1, redundant), 3),
            )
        )
    return found


if __name__ == "__main__":
    run()
