"""Candidate rules out of pairs of a cluster: joint deletions, kept names, wildcards and families, from wide to narrow.

Algorithm 3 explains one pair exactly; what generalizes best is mostly wider than that, so each pair also proposes its
differences as a set (joint drops), its agreements as a set (keep only these), and each under several contexts, from the
whole host to one path with one value. Nothing here looks at other clusters: `selection` counts what would go wrong.

Cost: linear in the URLs, at most `PAIRS` pairs a cluster, a bounded number of proposals a pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random

from clusterd.learning.koppula.deep_tokens import DeepTokenizer
from clusterd.learning.koppula.generalize import ANY, STAR, Context, GeneralRule, generalize
from clusterd.learning.koppula.pairwise import DELETE, Change, Transformation, common_ends
from clusterd.learning.koppula.paths import Path
from clusterd.learning.koppula.publish import published
from clusterd.learning.koppula.targets import generate_all_rules, most_normal
from clusterd.learning.koppula.tokenize import Slot, UrlParts, path_slots, tokenize, whole

#: Pairs that a cluster proposes from: a third each with its target, with neighbours in the alphabet, at random.
PAIRS = 36
#: Below this many sources a cluster proposes from its target and from neighbours as they stand.
FEW = 6
#: Transformations and contexts of each that are proposed: the heaviest, of a small host fewer (its rules are few, and
#: learning over many small hosts must cost as little a URL as over one large one).
TRANSFORMATIONS, CONTEXTS, SAMPLED = (10, 80, 4), (6, 48, 6), (5, 200, 3)
#: URLs of a host that counts as small.
SMALL_HOST = 100
#: Components of a common prefix that a context may name, and differing components that are one proposal.
PREFIX, WILDCARDS = 4, 3
#: Query keys of a pair that its contexts may name: a URL with more is a trap's.
NAMES = 12
#: Most rules of algorithms 3 to 5 that are proposed.
GENERAL = 60
#: Components from the start, and the last, as contexts name them.
HEADS: tuple[Slot, ...] = tuple(("", n + 3, 0, 0, 0) for n in range(PREFIX))
LAST: Slot = ("", 0, 1, 0, 0)
KEEP: Slot = ("?", 0, 0, 0, 0)
FAMILY: tuple[Slot, Change] = (("", 0, 0, 0, 0), Change("family"))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate rule."""

    context: Context
    changes: Transformation


def target_first(cluster: Sequence[UrlParts]) -> list[UrlParts]:
    """Return a cluster with the URL that its other URLs are normalized to before them."""
    target = most_normal(cluster)
    return [cluster[target], *cluster[:target], *cluster[target + 1 :]]


def pairs_of(cluster: Sequence[UrlParts], random: Random) -> list[tuple[UrlParts, UrlParts]]:
    """Return the pairs (source, target) of a cluster, its target first, that propose: linear in its size."""
    target, others = cluster[0], cluster[1:]
    if len(others) < FEW:
        return [(parts, target) for parts in others] + list(pairwise(others))
    third = PAIRS // 3
    sample = others if len(others) <= third else random.sample(others, third)
    pairs = [(parts, target) for parts in sample]
    start = random.randrange(max(1, len(others) - third))
    near = sorted(others, key=_alphabet)[start : start + third + 1] if len(others) > 1 else []
    pairs += pairwise(near)
    shuffled = random.sample(others, min(len(others), third + 1))
    return pairs + list(pairwise(shuffled))


def _alphabet(parts: UrlParts) -> tuple[Path, tuple[tuple[str, str], ...]]:
    return parts.path, parts.query


def transformations(source: UrlParts, target: UrlParts) -> Sequence[Transformation]:
    """Return what may make the two URLs one: the query's part, the path's part, both together."""
    of_query = _query_changes(dict(source.query), dict(target.query)) if source.query != target.query else ()
    if source.path == target.path:
        return of_query
    of_path = _path_changes(source.path, target.path)
    both = [path + query for path in of_path for query in of_query] if of_query else of_path
    return (*both, (FAMILY,))


def _query_changes(mine: dict[str, str], theirs: dict[str, str]) -> Sequence[Transformation]:
    if mine == theirs:
        return ()
    if not mine or not theirs:
        return _dropped(tuple(sorted(mine or theirs)), ())
    kept = [name for name, value in mine.items() if theirs.get(name) == value]
    gone = (mine.keys() | theirs.keys()).difference(kept)
    return _dropped(tuple(sorted(gone)), tuple(sorted(kept)))


@lru_cache(maxsize=1024)
def _dropped(gone: tuple[str, ...], kept: tuple[str, ...]) -> Sequence[Transformation]:
    drop = tuple((("?" + name, 1, 0, 0, 0), DELETE) for name in gone)
    return drop, ((KEEP, Change("keep", "&".join(kept))),)


def _path_changes(mine: Path, theirs: Path) -> Sequence[Transformation]:
    if len(mine) == len(theirs):
        return _wildcards(mine, theirs)
    if len(mine) < len(theirs):
        mine, theirs = theirs, mine
    low, high = common_ends(mine, theirs)
    return _deletions(low, high, len(mine)) if low + high == len(theirs) else ()


@lru_cache(maxsize=1024)
def _deletions(low: int, high: int, depth: int) -> Sequence[Transformation]:
    gone = range(low, depth - high)
    from_start = tuple((("", n + 3, 0, 0, 0), DELETE) for n in gone)
    from_end = tuple((("", 0, depth - n, 0, 0), DELETE) for n in gone)
    return from_start, from_end


def _wildcards(mine: Path, theirs: Path) -> Sequence[Transformation]:
    depth = len(mine)
    places = tuple([n for n in range(depth) if mine[n] != theirs[n]])
    if len(places) > WILDCARDS:
        return ()
    found = _stars(places, depth)
    if len(places) > 1:
        return found
    at = places[0]
    return (*found, ((("", 0, depth - at, 0, 0), Change("set", min(mine[at], theirs[at]))),))


@lru_cache(maxsize=1024)
def _stars(places: tuple[int, ...], depth: int) -> Sequence[Transformation]:
    return (
        tuple((("", n + 3, 0, 0, 0), STAR) for n in places),
        tuple((("", 0, depth - n, 0, 0), STAR) for n in places),
    )


def _is_blind(changes: Transformation) -> bool:
    """Whether a transformation is blind to keys not met yet: such a one never holds for a whole host."""
    return any(change.op in {"keep", "family"} or change.value == ANY for _, change in changes)


def _query_contexts(source: UrlParts, target: UrlParts) -> list[Context]:
    """Return conditions on query keys: none, a key that both have, a pair that both have, values of what goes."""
    if not source.query:
        return [()]
    theirs = dict(target.query)
    names = [name for name, _ in source.query if name in theirs][:NAMES]
    same = [pair for pair in source.query if theirs.get(pair[0]) == pair[1]][:NAMES]
    extras: list[Context] = [()]
    extras += [((("?" + name, 1, 0, 0, 0), ANY),) for name in names]
    extras += [((("?" + name, 1, 0, 0, 0), value),) for name, value in same]
    return extras + _seen_values(source, theirs)


def _seen_values(source: UrlParts, theirs: dict[str, str]) -> list[Context]:
    """Return the values with which the source's own keys are dropped: each alone, and all of them."""
    own: Context = tuple(
        sorted([(("?" + name, 1, 0, 0, 0), value) for name, value in source.query if name not in theirs])
    )
    alone: list[Context] = [(condition,) for condition in own[:NAMES]]
    return [*alone, own] if len(own) > 1 else alone


def _path_contexts(mine: Path, theirs: Path, changes: Transformation) -> list[Context]:
    """Return conditions on the path: what is deleted, with nothing else, a prefix, the last component, all of it."""
    if len(mine) < len(theirs):
        mine, theirs = theirs, mine
    deleted = tuple(
        [
            (slot, mine[slot[1] - 3 if slot[1] else len(mine) - slot[2]])
            for slot, change in changes
            if not slot[0] and change.op == "delete"
        ]
    )
    found = _shared_path(mine, theirs)
    return [tuple(sorted(dict([*deleted, *base]).items())) for base in found] if deleted else found


def _shared_path(mine: Path, theirs: Path) -> list[Context]:
    found: list[Context] = [()]
    head: Context = ()
    for slot, value, other in zip(HEADS, mine, theirs, strict=False):
        if value != other:
            break
        head = (*head, (slot, value))
        found.append(head)
    if mine and theirs and mine[-1] == theirs[-1]:
        found.append(((LAST, mine[-1]),))
    if mine == theirs:
        found.append(tuple(zip(path_slots(len(mine) + 2)[2:], mine, strict=True)))
    return found


def _budget(limits: tuple[int, int, int], urls: int) -> int:
    """Return how much of something a host of so many URLs gets: (least, most, URLs that earn one more)."""
    least, most, each = limits
    return min(most, least + max(0, urls - SMALL_HOST) // each)


class _Pair:
    """A pair that proposes, with the conditions on path and query (by number) that a context may combine."""

    __slots__ = ("extras", "paths", "source", "target", "weight")

    def __init__(self, source: UrlParts, target: UrlParts, weight: float) -> None:
        self.source, self.target, self.weight = source, target, weight
        self.extras: list[int] = []
        self.paths: list[int] = []


#: Bits by which the number of one half of a context is shifted, and the mask of the other.
HALF = 32
EXTRA = (1 << HALF) - 1


class _Pairs:
    """The pairs of each transformation; contexts are counted by the numbers of their two halves: tuples hash slowly."""

    def __init__(self, clusters: Iterable[Sequence[UrlParts]], random: Random) -> None:
        self.of: dict[Transformation, list[_Pair]] = {}
        self._numbers: dict[Context, int] = {(): 0}
        self._halves: list[Context] = [()]
        for cluster in clusters:
            chosen = pairs_of(cluster, random)
            weight = len(cluster) / len(chosen)
            for source, target in chosen:
                pair = _Pair(source, target, weight)
                for changes in transformations(source, target):
                    self.of.setdefault(changes, []).append(pair)

    def heaviest(self, most: int) -> list[Transformation]:
        """Return the transformations that most URLs propose."""
        weights = {changes: _total(pairs) for changes, pairs in self.of.items()}
        return sorted(weights, key=lambda changes: -weights[changes])[:most]

    def contexts(self, changes: Transformation, step: int, most: int) -> list[Context]:
        """Return the heaviest contexts of a transformation's pairs, of which every ``step``-th is asked."""
        #: The number of the half that speaks of the path, shifted, and that of the other.
        weights: dict[int, float] = defaultdict(float)
        deletes = any(not slot[0] and change.op == "delete" for slot, change in changes)
        for pair in self.of[changes][::step]:
            paths, weight = self._paths(pair, changes if deletes else ()), pair.weight * step
            for half in paths:
                shifted = half << HALF
                for extra in pair.extras:
                    weights[shifted | extra] += weight
        if _is_blind(changes):
            weights.pop(0, None)
        least = sorted(weights.values(), reverse=True)[:most][-1] if weights else 0.0
        halves = self._halves
        found = [(halves[at >> HALF] + halves[at & EXTRA], w) for at, w in weights.items() if w >= least]
        found.sort(key=lambda item: (-item[1], len(item[0]), item[0]))
        return [context for context, _ in found[:most]]

    def _paths(self, pair: _Pair, deletes: Transformation) -> list[int]:
        source, target = pair.source, pair.target
        if not pair.extras:
            pair.extras = self._numbered(_query_contexts(source, target))
        if deletes:
            return self._numbered(_path_contexts(source.path, target.path, deletes))
        if not pair.paths:
            pair.paths = self._numbered(_path_contexts(source.path, target.path, ()))
        return pair.paths

    def _numbered(self, halves: Iterable[Context]) -> list[int]:
        known, found = self._numbers, []
        for half in halves:
            number = known.setdefault(half, len(self._halves))
            if number == len(self._halves):
                self._halves.append(half)
            found.append(number)
        return found


def _total(pairs: Iterable[_Pair]) -> float:
    total = 0.0
    for pair in pairs:
        total += pair.weight
    return total


def propose(clusters: Sequence[Sequence[UrlParts]], random: Random) -> list[list[Proposal]]:
    """Return the proposals of some clusters: for each of the heaviest transformations its contexts, heaviest first."""
    urls = sum(map(len, clusters))
    pairs = _Pairs(clusters, random)
    most, asked = _budget(CONTEXTS, urls), _budget(SAMPLED, urls)
    found = []
    for changes in pairs.heaviest(_budget(TRANSFORMATIONS, urls)):
        heaviest = pairs.contexts(changes, -(-len(pairs.of[changes]) // asked), most)
        found.append([Proposal(context, changes) for context in heaviest])
    return found


def unexplained(clusters: Iterable[Sequence[UrlParts]]) -> list[Sequence[UrlParts]]:
    """Return the clusters that dropping query keys alone does not explain."""
    return [cluster for cluster in clusters if not _is_dropping(cluster)]


def propose_paper(
    clusters: Sequence[Sequence[UrlParts]], tokenizer: DeepTokenizer, random: Random
) -> list[list[Proposal]]:
    """Return what algorithms 3 to 5 learn and joint drops cannot say: references, conversions, deep tokens."""
    general = generalize(generate_all_rules(clusters, tokenize, random))
    if tokenizer.learned:
        deep = generalize(generate_all_rules(clusters, lambda parts: tokenizer.cut(tokenize(parts)), random))
        general += [rule for rule in deep if any(slot[3] for slot, _ in rule.changes)]
    general = [rule for rule in general if any(_reads(*edit) or _is_any(*edit, rule.context) for edit in rule.changes)]
    general.sort(key=lambda rule: -rule.pairs)
    return [_widened(rule) for rule in general[:GENERAL]]


def _is_dropping(cluster: Sequence[UrlParts]) -> bool:
    """Whether a cluster is explained without reading a value: its target is what every URL of it is when keys go."""
    target = cluster[0]
    pairs = set(target.query)
    return all(parts.path == target.path and pairs.issubset(parts.query) for parts in cluster)


def _reads(slot: Slot, change: Change) -> bool:
    return slot[3] > 0 or change.op not in {"delete", "keep", "family"}


def _is_any(slot: Slot, change: Change, context: Context) -> bool:
    """Whether a component goes whatever its value (/TITLE/dp/ID): contexts of joint drops name each value of it."""
    return not slot[0] and change.op == "delete" and (slot, ANY) in context


def _widened(rule: GeneralRule) -> list[Proposal]:
    """Return a rule with only the conditions on what it touches, then as the tree made it."""
    touched = {whole(slot) for slot, _ in rule.changes}
    touched |= {whole(change.source) for _, change in rule.changes if change.source is not None}
    narrow = tuple((slot, test) for slot, test in rule.context if slot[0] or slot[1] > 2)
    wide = tuple((slot, test) for slot, test in narrow if whole(slot) in touched and test is not None)
    # Of a component with any value, what stands around it is all that it is known by.
    blind = any(_is_any(*edit, rule.context) for edit in rule.changes)
    return [
        Proposal(context, rule.changes)
        for context in ((narrow,) if blind else dict.fromkeys((wide, narrow)))
        if published("", context, rule.changes) is not None
    ]
