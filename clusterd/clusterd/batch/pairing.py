"""`clusterd pairs`: all pairs of a collection above a threshold, by the paper's phases over every value of each sketch.

Unlike the stream it looks up all values and estimates from whole sketches (`resemblance`), so nothing is lost to
postings: what it misses, the sketches themselves miss. Identical sketches are grouped first; a pair within a group is
decided by the same estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
from clusterd_consumer.postings.posted import every_key
from clusterd_consumer.postings.scheme import DEFAULT
from clusterd_consumer.postings.stored import ordered
from clusterd_consumer.resemblance import Estimate, estimate
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.phases import COMMON, Keys, common_counts
from clusterd.clusters.identity import sketch_key


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents of a collection, by their places in it (a < b), and how alike they are."""

    a: int
    b: int
    estimate: Estimate


def pairs(
    sketches: Iterable[Sketch],
    threshold: float,
    containment: bool = False,
    *,
    common: int | None = COMMON,
    folder: Path | None = None,
) -> Iterator[Pair]:
    """Yield the pairs whose resemblance (or larger containment) is at least the threshold."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    documents = []
    for place, sketch in enumerate(sketches):
        members = groups.setdefault((sketch.profile, sketch_key(sketch)), [])
        if not members:
            documents.append(sketch)
        members.append(place)
    members_of = list(groups.values())
    for sketch, members in zip(documents, members_of, strict=True):
        if len(members) > 1 and sketch.main.shingles:
            yield from (Pair(a, b, Estimate(1.0, 1.0, 1.0)) for a, b in combinations(members, 2))
    for firsts, seconds, _ in common_counts(map(_all_keys, documents), common, folder):
        for first, second in zip(firsts.tolist(), seconds.tolist(), strict=True):
            found = _estimate(documents[first], documents[second])
            if _measure(found, containment) >= threshold:
                for a, b in product(members_of[first], members_of[second]):
                    yield Pair(a, b, found) if a < b else Pair(b, a, _turned(found))


def _all_keys(sketch: Sketch) -> Keys:
    profile = PROFILES[sketch.profile]
    keys = every_key(ordered(sketch.main, profile), profile, DEFAULT)
    return keys.astype(np.uint32)


def _estimate(a: Sketch, b: Sketch) -> Estimate:
    return estimate(a.main, b.main, PROFILES[a.profile]) if a.profile == b.profile else Estimate(0.0, 0.0, 0.0)


def _measure(found: Estimate, containment: bool) -> float:
    return max(found.a_in_b, found.b_in_a) if containment else found.resemblance


def _turned(found: Estimate) -> Estimate:
    return Estimate(found.resemblance, found.b_in_a, found.a_in_b)
