"""Which of the proposed rules a host gets: greedily, at a precision, few of them.

A rule must reach the threshold by the paper's own measure (coverage and f of section 5, on the training clusters),
and what it adds to the rules before it must be right in a share of `ADDED` at least: merges that the measure forgives
because the rule also covers many URLs that merge with nothing are not worth a lost page.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from clusterd.learning.koppula.columns import Columns, Trial
from clusterd.learning.koppula.deep_tokens import DeepTokenizer
from clusterd.learning.koppula.generalize import Context
from clusterd.learning.koppula.pairwise import Transformation
from clusterd.learning.koppula.proposals import SMALL_HOST, Proposal, propose, propose_paper, target_first, unexplained
from clusterd.learning.koppula.tokenize import UrlParts, tokenize

#: Rules of a host; the paper's filter on coverage (section 5.1); merges that a rule must add.
MAX_RULES, MIN_COVERAGE, MIN_RIGHT = 20, 10, 2
#: Share of a rule's added merges that must be right.
ADDED = 0.6
#: Of two rules that add about the same the one with fewer conditions is taken: it says more about clusters not seen.
NARROWING = 1.03
#: A rule that names what stays also drops keys not met yet, one that names what goes does not: of two alike it wins.
KEEPING = 1.1
#: A component that any value replaces: what differs there was never asked.
BLIND = 0.9
#: URLs that rules are tried on (whole clusters, at random where a host has more).
TRIED = 10_000
#: URLs whose pairs propose, and URLs that algorithms 3 to 5 read: what is frequent enough to matter is among them.
PROPOSING, READ, LEAST = 5_000, 1_500, 16
#: Contexts of one transformation that pass, after which narrower ones are not tried: one, two from so many URLs, three.
ENOUGH = (120, 240)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A rule with its trial alone."""

    context: Context
    changes: Transformation
    alone: Trial


class Evidence:
    """One host's clusters, what they propose, and what each proposal does to them; rules at any precision."""

    def __init__(self, clusters: Sequence[Sequence[UrlParts]], random: Random) -> None:
        self.clusters = [target_first(cluster) for cluster in sampled(clusters, TRIED, random)]
        urls = sum(map(len, self.clusters))
        reading = sampled(unexplained(self.clusters), min(READ, LEAST + max(0, urls - SMALL_HOST)), random)
        self.tokenizer = DeepTokenizer.learn(tokenize(parts) for cluster in reading for parts in cluster)
        self.proposals = propose(sampled(self.clusters, PROPOSING, random), random)
        self.proposals += propose_paper(reading, self.tokenizer, random)
        urls_of_all = [parts for cluster in self.clusters for parts in cluster]
        numbers = [number for number, cluster in enumerate(self.clusters) for _ in cluster]
        self.columns = Columns(urls_of_all, numbers, self.tokenizer)
        self._trials: dict[tuple[Context, Transformation], Trial] = {}

    def select(self, precision: float) -> list[Chosen]:
        """Return the rules that reach a precision, in the order in which they apply."""
        return _greedy(self.columns.copy(), list(self._passing(precision)), precision)

    def _passing(self, precision: float) -> Iterator[tuple[Trial, Proposal]]:
        """Yield the proposals that are precise alone: of each transformation the widest few contexts."""
        enough = 1 + sum(self.columns.size >= urls for urls in ENOUGH)
        for contexts in self.proposals:
            passed = 0
            for proposal in contexts:
                trial = self._trial(proposal)
                if trial.covered >= MIN_COVERAGE and trial.precision >= precision and trial.right >= MIN_RIGHT:
                    yield trial, proposal
                    passed += 1
                    if passed == enough:
                        break

    def _trial(self, proposal: Proposal) -> Trial:
        key = (proposal.context, proposal.changes)
        if key not in self._trials:
            self._trials[key] = self.columns.trial(*key)
        return self._trials[key]


def sampled(clusters: Sequence[Sequence[UrlParts]], most: int, random: Random) -> list[Sequence[UrlParts]]:
    """Return whole clusters at random, of at most so many URLs; of a giant cluster a sample."""
    if sum(map(len, clusters)) <= most:
        return list(clusters)
    left = most
    chosen: list[Sequence[UrlParts]] = []
    for cluster in random.sample(list(clusters), len(clusters)):
        part = cluster if len(cluster) <= most // 4 else random.sample(list(cluster), most // 4)
        if 1 < len(part) <= left:
            chosen.append(part)
            left -= len(part)
        if left < 2:
            break
    return chosen


def _greedy(columns: Columns, passing: Sequence[tuple[Trial, Proposal]], precision: float) -> list[Chosen]:
    """Take the rule that adds most, again and again; a rule's worth only falls, so most are never tried again."""
    heap = [(-_worth(trial, proposal, precision), n) for n, (trial, proposal) in enumerate(passing)]
    heapq.heapify(heap)
    fresh = [(0, trial) for trial, _ in passing]  # what each adds, and to how many rules
    chosen: list[Chosen] = []
    while heap and len(chosen) < MAX_RULES and heap[0][0] < 0:
        _, n = heapq.heappop(heap)
        alone, proposal = passing[n]
        if fresh[n][0] != len(chosen):
            fresh[n] = len(chosen), columns.trial(proposal.context, proposal.changes)
            heapq.heappush(heap, (-_worth(fresh[n][1], proposal, precision), n))
            continue
        columns.take(proposal.context, proposal.changes)
        chosen.append(Chosen(proposal.context, proposal.changes, alone))
    return chosen


def _worth(trial: Trial, proposal: Proposal, precision: float) -> float:
    """Return how many URLs a rule saves net of wrong ones; 0 where it is not worth having."""
    if trial.right < MIN_RIGHT or trial.wrong > (1 - min(precision, ADDED)) * (trial.right + trial.wrong):
        return 0.0
    return (trial.right - trial.wrong) * _prior(proposal)


def _prior(proposal: Proposal) -> float:
    """Return how far a rule is trusted beyond its evidence; only ratios near 1 are decided by it."""
    prior = NARROWING ** -len(proposal.context)
    keeps, blind = False, 0
    for slot, change in proposal.changes:
        keeps = keeps or change.op == "keep"
        blind += change.op == "set" and not slot[0]
    if keeps:
        prior *= KEEPING
    return prior * BLIND**blind
