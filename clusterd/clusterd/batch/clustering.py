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

import marshal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby

from clusterd_consumer.postings.judging import judge_many
from clusterd_consumer.postings.scheme import DEFAULT, Scheme, mantissa
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.collection import Collection
from clusterd.batch.entries import Entries
from clusterd.batch.held_bytes import HeldBytes
from clusterd.batch.phases import COMMON, LATEST, Block, common_counts
from clusterd.batch.sorting import RUN
from clusterd.batch.union import Union
from clusterd.clusters.acceptance import accepts
from clusterd.clusters.changes import gathered
from clusterd.clusters.contract import DEFAULT_POLICIES, Cluster, Policy


def clusters(
    sketches: Iterable[Sketch],
    policies: Sequence[Policy] = DEFAULT_POLICIES,
    *,
    common: int | None = COMMON,
    scheme: Scheme = DEFAULT,
    run: int = RUN,
    latest: int = LATEST,
    least: int = 1,
) -> Iterator[Cluster]:
    """Yield the clusters of the current versions under one policy after the other, the largest of each first.

    Those of fewer than ``least`` pages are left out; by default none is, not even pages that stand alone.

    Memory: what is being sorted, ``run`` entries at most or the URLs of one cluster, whatever the number of documents.
    """
    with Collection(scheme, run) as collection:
        collection.add(sketches)
        collection.number()
        graded = [policy for policy in policies if not policy.identical]
        blocks = common_counts(collection.keys(), common, run, latest=latest)
        unions = iter(_join(collection, graded, blocks))
        for policy in policies:
            groups = collection.grouped(_naming(collection, policy, unions), least)
            with closing(HeldBytes()) as held, Entries(run) as entries:
                yield from largest_first(policy, groups, entries, held)


def _join(collection: Collection, policies: Sequence[Policy], blocks: Iterable[Block]) -> list[Union]:
    """Phases two to four: return a union-find over contents for each policy."""
    unions = [Union(len(collection)) for _ in policies]
    for firsts, seconds, _ in blocks:
        pairs = zip(firsts.tolist(), seconds.tolist(), strict=True)
        for first, group in groupby(pairs, key=lambda pair: pair[0]):
            proposed = [second for _, second in group]
            apart = sorted({second for union in unions for second in union.apart(first, proposed)})
            for other, verdict in _judged(collection, first, apart):
                for policy, union in zip(policies, unions, strict=True):
                    if accepts(policy, verdict):
                        union.join(first, other)
    return unions


def _judged(collection: Collection, first: int, others: Iterable[int]) -> Iterator[tuple[int, Estimate]]:
    """Yield what is estimated of a content and each of the others whose sketch is of its profile."""
    profile, asked = collection.stored(first)
    known = ((other, *collection.stored(other)) for other in others)
    alike = {other: stored for other, kind, stored in known if kind == profile}
    yield from zip(alike, judge_many(asked, list(alike.values()), mantissa(PROFILES[profile])), strict=True)


def _naming(collection: Collection, policy: Policy, unions: Iterator[Union]) -> Callable[[int], int]:
    """Return what names a document's cluster, its first document: by the next of the unions, or by identical text."""
    if policy.identical:
        return collection.texts.__getitem__
    union, contents = next(unions), collection.contents
    return lambda number: union.find(contents[number])


def largest_first(
    policy: Policy, groups: Iterable[tuple[int, list[str]]], entries: Entries, held: HeldBytes
) -> Iterator[Cluster]:
    """Yield the clusters that these groups of URLs are, the largest first; the URLs of all but one are ``held``."""
    for first, urls in groups:
        one = gathered(f"{policy.name}-{first}", policy.name, urls)
        members = marshal.dumps(one.members)
        entries.add((-one.size, one.representative, one.cluster, held.add(members), len(members)))
    for size, representative, name, start, length in entries.ascending():
        yield Cluster(name, policy.name, -size, representative, marshal.loads(held.at(start, length)))
