"""`clusterd batch cluster`: the four phases (Broder et al. 1997, section 4.1), for several policies at once.

1. Sketch every document; eliminate identical ones (`collection`).
2. Sort ⟨shingle, ID⟩. 3. Sort ⟨ID, ID, count⟩ (`phases`). The posted values of a sketch are its shingles here, as in
   the stream, so that both propose the same pairs; ``common`` bounds a list, None bounds none. One that is bounded
   proposes each document to the next few (``latest``) in the order of their URLs, so that 1,500 pages that differ in a
   word each are one cluster still; 0: to none, as in the paper.
4. For every pair that shares a shingle, decide by its two sketches, and join under every policy that accepts it. What
   is together under all of them by then needs no verdict.

The guarantee: every cluster of this with ``common`` at the stream's bound and ``latest`` 0 lies within one of the
settled stream, which lies within one of this with None; all three are equal where no list passed its bound. (In the
stream a list may also pass it by pages that changed since and were not dismissed yet, and stays common then: the batch,
which sees the latest versions alone, may find pairs that such a list proposes to its latest pages only.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from clusterd_consumer.postings.scheme import DEFAULT, Scheme, mantissa
from clusterd_consumer.postings.verdict import judge_many
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.collection import Collection
from clusterd.batch.phases import COMMON, LATEST, Block, common_counts
from clusterd.batch.sorting import RUN
from clusterd.batch.union import Union
from clusterd.clusters.acceptance import mask
from clusterd.clusters.changes import gathered
from clusterd.clusters.contract import DEFAULT_POLICIES, Cluster, Policy


def cluster(
    sketches: Iterable[Sketch],
    policies: Sequence[Policy] = DEFAULT_POLICIES,
    *,
    common: int | None = COMMON,
    scheme: Scheme = DEFAULT,
    folder: Path | None = None,
    run: int = RUN,
    latest: int = LATEST,
    least: int = 1,
) -> dict[str, list[Cluster]]:
    """Return the clusters of the current versions under each policy, largest first.

    Those of fewer than ``least`` pages are left out; by default none is, not even pages that stand alone.
    """
    with Collection(scheme, folder) as collection:
        collection.add(sketches)
        collection.number()
        graded = [policy for policy in policies if not policy.identical]
        blocks = common_counts(collection.keys(), common, folder, run, latest=latest)
        unions = iter(_join(collection, graded, blocks))
        return {policy.name: _clusters(collection, policy, unions, least) for policy in policies}


def _join(collection: Collection, policies: Sequence[Policy], blocks: Iterable[Block]) -> list[Union]:
    """Phases two to four: return a union-find over contents for each policy."""
    unions = [Union(len(collection)) for _ in policies]
    for firsts, seconds, _ in blocks:
        pairs = zip(firsts.tolist(), seconds.tolist(), strict=True)
        for first, group in groupby(pairs, key=lambda pair: pair[0]):
            alike = [second for _, second in group if collection.profile(first) == collection.profile(second)]
            others = sorted({second for union in unions for second in union.apart(first, alike)})
            bits = mantissa(PROFILES[collection.profile(first)])
            verdicts = judge_many(collection.stored(first), [collection.stored(other) for other in others], bits)
            for other, verdict in zip(others, verdicts, strict=True):
                joined = mask(policies, verdict)
                for slot, union in enumerate(unions):
                    if joined >> slot & 1:
                        union.join(first, other)
    return unions


def _clusters(collection: Collection, policy: Policy, unions: Iterator[Union], least: int) -> list[Cluster]:
    """Return the clusters of a policy, by the next of the unions where it is not by identical text."""
    names = collection.texts
    if not policy.identical:
        names = next(unions).names()[collection.numbers]
    groups = collection.grouped(names, least)
    clusters = [gathered(f"{policy.name}-{number}", policy.name, urls) for number, urls in groups]
    return sorted(clusters, key=lambda cluster: (-cluster.size, cluster.representative))
