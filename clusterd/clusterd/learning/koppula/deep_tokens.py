"""Deep tokens: a host's own delimiters, learned (Koppula et al. 2010, section 3.1.2, algorithms 1 and 2, lemma 1).

The tokens of one key of a host grow a tree of patterns, from ``*`` to ``ctattractions-*-Austria-*-attractions.html``;
a leaf cuts its tokens into anchors, delimiters and what each ``*`` matched. Candidate anchors are the runs of letters
of one case or of digits; those that stand alike in nearly all tokens become anchors.

Chosen where the paper is silent:
  A1  "The" is one run, not T and he as definition 3 has it: the examples keep SiteID and Grudge whole.
  A2  candidates are clustered by both delimiters, type and *position*, counted from both ends of the stretch between
      two anchors: without position Austria and Vienna would share a cluster.
  A3  a cluster is selected when it covers `COVERAGE` of the node's tokens and has one value, or at most `FEW` values
      (or a `FEW_SHARE` of the tokens), each met twice on average, with a coefficient of variation of at most 1.
      Where no cluster covers the node, two forms of token are mixed (eBay's with QQ and without): the single-valued
      cluster with the widest coverage of at least `LOOSE_COVERAGE` parts them.
  A4  all single-valued clusters together; only where there is none, the one with the fewest values, a child for each.
  A5  tokens that lack the selected anchors stay with the parent's pattern.
  A6  a ``*``'s text is one deep token; runs of letters that are anchors without a delimiter between them are one
      ("SiteID").
  A8  at least `MIN_TOKENS` different tokens of a key, at most `MAX_DEPTH` levels.

Cost: O(tokens · runs · depth), the tree is grown from at most `SAMPLE` tokens of a key; cutting one token is linear
in its length (no regular expression with several wildcards).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import NamedTuple

from clusterd.learning.koppula.tokenize import Slot, Tokens

COVERAGE = 0.9
FEW, FEW_SHARE, MAX_VARIATION = 5, 0.1, 1.0
LOOSE_COVERAGE, LOOSE_TOKENS = 0.3, 5
MIN_TOKENS, MIN_NODE, MAX_DEPTH, SAMPLE = 20, 3, 8, 2_000
#: Runs and characters of a token that are looked at, and leaves that a key may have: bounds on hostile URLs.
MAX_RUNS, MAX_LENGTH, MAX_LEAVES = 48, 400, 64
STAR = "*"

_RUNS = re.compile(r"[A-Z]+(?![a-z\x80-\U0010ffff])|[A-Z]?[a-z\x80-\U0010ffff]+|[0-9]+")


class Run(NamedTuple):
    """A candidate anchor (definition 3) with the delimiters at its sides ("" = unit change, ^ and $ the ends)."""

    text: str
    before: str
    after: str

    @property
    def numeric(self) -> bool:
        """Candidate anchor type: numeric or alphabetic."""
        return self.text[0] in "0123456789"


def candidate_anchors(token: str) -> list[Run]:
    """FindCandidateAnchors for one token."""
    found = list(_RUNS.finditer(token[:MAX_LENGTH]))[:MAX_RUNS]
    runs = []
    for n, match in enumerate(found):
        before = token[found[n - 1].end() : match.start()] if n else "^" + token[: match.start()]
        after = token[match.end() : found[n + 1].start()] if n + 1 < len(found) else token[match.end() :] + "$"
        runs.append(Run(match.group(), before, after))
    return runs


@dataclass(frozen=True, slots=True)
class Pattern:
    """A sequence of anchors, delimiters and ``*`` (definition 4)."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The pattern as it is written: ``friends-*``."""
        return "".join(self.parts)

    def cut(self, token: str) -> tuple[str, ...] | None:
        """Return the token's deep tokens (FindDeepTokens), or None where it does not match; linear in its length."""
        stretches: list[str] = [""]
        for part in self.parts:
            if part == STAR:
                stretches.append("")
            else:
                stretches[-1] += part
        matched = match_stretches(stretches, token)
        if matched is None:
            return None
        stars = iter(matched)
        return tuple(next(stars) if part == STAR else part for part in self.parts)


def match_stretches(stretches: Sequence[str], token: str) -> list[str] | None:
    """Match literal stretches with anything between them; return what stands between, leftmost first."""
    first, last = stretches[0], stretches[-1]
    if len(stretches) == 1:
        return [] if token == first else None
    if not token.startswith(first) or not token.endswith(last) or len(token) < len(first) + len(last):
        return None
    at, end, between = len(first), len(token) - len(last), []
    for stretch in stretches[1:-1]:
        found = token.find(stretch, at, end)
        if found < 0:
            return None
        between.append(token[at:found])
        at = found + len(stretch)
    return [*between, token[at:end]]


@dataclass(slots=True)
class _Member:
    """A token of a node: its runs, and which of them are anchors already."""

    runs: list[Run]
    anchors: tuple[int, ...] = ()


@dataclass(slots=True)
class PatternTree:
    """A node: its pattern, the patterns that refine it, and how many tokens it was grown from."""

    pattern: Pattern
    size: int
    children: list[PatternTree] = field(default_factory=list)

    def leaves(self) -> Iterator[Pattern]:
        """Yield the patterns that cut tokens, the most specific first; inner ones hold their residual groups (A5)."""
        for child in self.children:
            yield from child.leaves()
        if self.pattern.parts != (STAR,):
            yield self.pattern


def grow(tokens: Iterable[str], *, min_tokens: int = MIN_TOKENS) -> PatternTree:
    """DeepTokenize (algorithm 1): grow the tree for one key's tokens."""
    unique = list(dict.fromkeys(tokens))
    sample = unique[:: max(1, len(unique) // SAMPLE)]
    root = PatternTree(Pattern((STAR,)), len(sample))
    if len(unique) >= min_tokens:
        members = [_Member(candidate_anchors(token)) for token in sample]
        _refine(root, [member for member in members if member.runs], depth=0)
    return root


def _refine(node: PatternTree, members: list[_Member], depth: int) -> None:
    """One call of algorithm 1: select anchors, refine the pattern, go on with each child."""
    if depth >= MAX_DEPTH or len(members) < MIN_NODE:
        return
    for chosen in _children(members, select_anchors(members)):
        child = PatternTree(_pattern_of(chosen[0]), len(chosen))  # of an anchor more than the node's pattern
        node.children.append(child)
        _refine(child, chosen, depth + 1)
    node.children.sort(key=lambda child: (-child.size, child.pattern.text))


_Place = tuple[int, bool, int, str, str, bool]


def _places(member: _Member) -> Iterator[tuple[_Place, int]]:
    """Yield each free run's places: the stretch it stands in, its ordinal from either end, delimiters and type."""
    bounds = [-1, *member.anchors, len(member.runs)]
    for stretch in range(len(bounds) - 1):
        low, high = bounds[stretch] + 1, bounds[stretch + 1]
        for at in range(low, high):
            run = member.runs[at]
            yield (stretch, True, at - low, run.before, run.after, run.numeric), at
            yield (stretch, False, high - 1 - at, run.before, run.after, run.numeric), at


def cluster_candidates(members: Sequence[_Member]) -> dict[_Place, Counter[str]]:
    """ClusterCandidateAnchors: the values that stand at each place, and how often."""
    clusters: dict[_Place, Counter[str]] = defaultdict(Counter)
    for member in members:
        for place, at in _places(member):
            clusters[place][member.runs[at].text] += 1
    return clusters


def select_anchors(members: Sequence[_Member]) -> set[_Place]:
    """SelectAnchors (algorithm 2): the places whose values become anchors."""
    needed = COVERAGE * len(members)
    single: set[_Place] = set()
    loose: list[tuple[int, _Place]] = []
    several: list[tuple[int, float, _Place]] = []
    for place, values in cluster_candidates(members).items():
        coverage = values.total()
        if coverage < needed:
            if len(values) == 1 and coverage >= max(LOOSE_COVERAGE * len(members), LOOSE_TOKENS):
                loose.append((-coverage, place))
            continue
        if len(values) == 1:
            single.add(place)
        elif len(values) <= max(FEW_SHARE * coverage, min(FEW, coverage / 2)):
            variation = pstdev(values.values()) / fmean(values.values())
            if variation <= MAX_VARIATION:
                several.append((len(values), variation, place))
    if single or several:
        return single or {min(several)[2]}
    most = min(loose)[0] if loose else 0
    return {place for coverage, place in loose if coverage == most}


def _children(members: Iterable[_Member], places: set[_Place]) -> list[list[_Member]]:
    """GenerateChildPatterns: group the tokens by the anchors that they have at the selected places."""
    groups: dict[tuple[object, ...], list[_Member]] = defaultdict(list)
    for member in members if places else ():
        chosen = {at for place, at in _places(member) if place in places}
        if not chosen:
            continue
        refined = _Member(member.runs, tuple(sorted({*member.anchors, *chosen})))
        groups[_pattern_of(refined).parts].append(refined)
    return [group for group in groups.values() if len(group) >= MIN_NODE]


def _pattern_of(member: _Member) -> Pattern:
    """Return the pattern that a token's anchors make; the text between two anchors is ``*``."""
    parts: list[str] = []
    last = -1
    for at in member.anchors:
        run = member.runs[at]
        before = run.before.removeprefix("^") if at == 0 else run.before
        if at > last + 1:
            parts += [STAR, before]
        elif last >= 0 and not before and _letters(member.runs[last], run):
            parts[-1] += run.text  # A6: SiteID
            last = at
            parts = _after(parts, run, at, member)
            continue
        elif at == 0:
            parts.append(before)
        parts.append(run.text)
        last = at
        parts = _after(parts, run, at, member)
    if last < len(member.runs) - 1:
        parts.append(STAR)
    return Pattern(tuple(part for part in parts if part))


def _after(parts: list[str], run: Run, at: int, member: _Member) -> list[str]:
    """Append the delimiter that follows an anchor."""
    after = run.after.removesuffix("$") if at == len(member.runs) - 1 else run.after
    return [*parts, after] if after else parts


def _letters(left: Run, right: Run) -> bool:
    return not left.numeric and not right.numeric


class DeepTokenizer:
    """The patterns of a host, a tree for each key, and the cutting of its URLs."""

    def __init__(self, trees: dict[Slot, PatternTree]) -> None:
        self._patterns = {slot: tuple(tree.leaves())[:MAX_LEAVES] for slot, tree in trees.items() if tree.children}
        self._known: dict[tuple[Slot, str], tuple[str, ...] | None] = {}

    @classmethod
    def learn(cls, urls: Iterable[Tokens], min_tokens: int = MIN_TOKENS) -> DeepTokenizer:
        """Grow the trees of a host's keys: each path position from the start, each query key (A7)."""
        values: dict[Slot, set[str]] = defaultdict(set)
        for tokens in urls:
            for slot, value in tokens.items():
                if slot[0] or slot[1] > 2:
                    values[place_of(slot)].add(value)
        return cls({slot: grow(sorted(found), min_tokens=min_tokens) for slot, found in values.items()})

    @property
    def learned(self) -> bool:
        """Whether any key of the host has deep tokens."""
        return bool(self._patterns)

    def cut(self, tokens: Tokens) -> Tokens:
        """Return the URL with deep tokens in the place of the components that a pattern cuts (A9: x, y stay)."""
        deep: Tokens = {}
        for slot, value in tokens.items():
            pieces = self._cut(place_of(slot), value)
            if pieces is None or len(pieces) < 2:
                deep[slot] = value
                continue
            for n, piece in enumerate(pieces):
                deep[(*slot[:3], n + 1, len(pieces) - n)] = piece
        return deep

    def _cut(self, place: Slot, value: str) -> tuple[str, ...] | None:
        patterns = self._patterns.get(place)
        if not patterns:
            return None
        key = (place, value)
        if key not in self._known:
            if len(self._known) > 200_000:  # entries; bounds memory on a host of unique values
                self._known.clear()
            self._known[key] = next((cut for pattern in patterns if (cut := pattern.cut(value)) is not None), None)
        return self._known[key]


def place_of(slot: Slot) -> Slot:
    """Return the key that a tree is grown for: a path component by its position from the start, a query key by name."""
    return (slot[0], 0, 0, 0, 0) if slot[0] else ("", slot[1], 0, 0, 0)
