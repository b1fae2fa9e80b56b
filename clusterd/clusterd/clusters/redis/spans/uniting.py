"""Unites the clusters of a batch's pairs over the borders of homes, by what the homes have just said of their contents.

Where a content stands is told as its edge is taken up (`lua/accept.lua`, `lua/link.lua`), so most clusters become part
of a span without another look: by one call where they meet one span, by two where both stood in none. Of pairs that
bring the same clusters together one is enough. A content that has moved since is looked at again by whoever moved it,
for its home has the edge; and what was told in an era before is refused (`spans`). What that leaves is united step by
step, and all pairs are, where one that was to be enough is none any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.standings import CLOSED, SPANNED, UNKNOWN, Span
from clusterd.clusters.redis.spans.steps import NONE, Eras, Pair, Spans, Stale

#: Policy and content → name and size of its cluster; policy and name.
Stand = Mapping[tuple[int, int], tuple[int, int]]
Key = tuple[int, int]


@dataclass(slots=True)
class Meeting:
    """Clusters of one policy that pairs bring together."""

    policy: int
    #: Their spans; of each cluster that is part of none its name, and a content with a neighbour elsewhere.
    spans: set[int] = field(default_factory=set)
    alone: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: Pairs that are enough to hold all together.
    tree: list[Pair] = field(default_factory=list)


@dataclass(slots=True)
class United:
    """What came of it: how clusters are called now; the pairs that could not be united, as others are at them."""

    names: dict[Key, int] = field(default_factory=dict)
    missing: list[Pair] = field(default_factory=list)
    #: Whether any names have changed besides.
    again: bool = False


class Uniting:
    """Unites what a batch has brought together."""

    def __init__(self, homes: Homes, spans: Spans, eras: Eras) -> None:
        self._homes = homes
        self._spans = spans
        #: Those from before anything was told.
        self._eras = eras

    def unite(self, pairs: Iterable[Pair], stand: Stand, roots: Mapping[int, Span]) -> United:
        """Unite the clusters of pairs; ``roots``: of all spans that they are part of."""
        found, pairs = United(), list(pairs)
        meetings = [one for one in meetings_of(pairs, stand, roots) if one.tree]
        left: list[Meeting] = []
        try:
            left = self._bring_together(meetings, roots, found)
        except Stale:
            self._spans.look()
            left = meetings
        if left:
            found.again = True
            found.missing = self._step_by_step(left, pairs)
        return found

    def _step_by_step(self, left: Iterable[Meeting], pairs: Iterable[Pair]) -> list[Pair]:
        """Unite what is left of what all these pairs bring together; return the pairs that could not be united.

        What departed meanwhile was enough for nobody: others may hold together what it was to.
        """
        none: set[Pair] = set()
        missing = self._spans.unite((pair for one in left for pair in one.tree), none)
        if none:
            missing += self._spans.unite(pair for pair in pairs if pair not in none)
        return missing

    def _bring_together(self, meetings: Sequence[Meeting], roots: Mapping[int, Span], found: United) -> list[Meeting]:
        """Let clusters be part of one span where that is clear; return the meetings of which more is to be seen."""
        left, new, wide = [], [], []
        for one in meetings:
            known = [roots[span] for span in one.spans]
            if len(known) > 1 or any(span.parent == CLOSED or span.policy == UNKNOWN for span in known):
                left.append(one)
            elif not known:
                new.append(one)
            else:
                wide.append((one, known[0].number, known[0].homes))
        for one, span in zip(new, self._make(new), strict=True):
            name, ends = next(iter(one.alone.items()))
            if span is None:
                left.append(one)
            else:
                found.names[one.policy, name] = SPANNED + span
                del one.alone[name]
                wide.append((one, span, self._homes_of(ends)))
        left += self._enlist(wide, found)
        return left

    def _make(self, meetings: Sequence[Meeting]) -> list[int | None]:
        """Make a span of the first cluster of each; None where it has become part of one meanwhile."""
        asked = [(one.policy, *next(iter(one.alone.values())), NONE) for one in meetings]
        made = self._spans.crown(asked, self._eras)
        return [span if is_new else None for span, is_new in (made[one[:3]] for one in asked)]

    def _enlist(self, wide: Sequence[tuple[Meeting, int, int]], found: United) -> list[Meeting]:
        """Let the clusters of each meeting be part of its span, which may have parts in these homes so far."""
        wanted = [(span, self._homes_of(one.alone), one.policy, homes) for one, span, homes in wide]
        more = [(span, homes, policy) for span, homes, policy, had in wanted if homes & ~had]
        refused = {span for span, *_ in more} - self._spans.widen(more, self._eras)
        asked = [
            (one.policy, *ends, span) for one, span, _ in wide if span not in refused for ends in one.alone.values()
        ]
        given = self._spans.crown(asked, self._eras)
        left = []
        for one, span, _ in wide:
            there = {name: given.get((one.policy, *ends), (0, False))[0] for name, ends in one.alone.items()}
            found.names.update({(one.policy, name): SPANNED + span for name, other in there.items() if other == span})
            if any(other != span for other in there.values()):
                left.append(one)
        return left

    def _homes_of(self, ends: Iterable[int] | Mapping[int, tuple[int, int]]) -> int:
        """Return the homes of contents, a bit each; of clusters those of their contents."""
        contents = [content for content, _ in ends.values()] if isinstance(ends, Mapping) else ends
        bits = 0
        for content in contents:
            bits |= 1 << self._homes.place_of(content)
        return bits


def meetings_of(pairs: Iterable[Pair], stand: Stand, roots: Mapping[int, Span]) -> list[Meeting]:
    """Return which clusters pairs bring together: those of a chain of pairs in one."""
    above: dict[Key, Key] = {}
    meetings: dict[Key, Meeting] = {}

    def top(policy: int, content: int, other: int) -> Key:
        key = named(policy, stand[policy, content][0], roots)
        if key not in above:
            above[key] = key
            one = meetings[key] = Meeting(policy)
            if key[1] >= SPANNED:
                one.spans.add(key[1] - SPANNED)
            else:
                one.alone[key[1]] = content, other
        while above[key] != key:
            key = above[key]
        return key

    for pair in pairs:
        a, b = top(pair.policy, pair.a, pair.b), top(pair.policy, pair.b, pair.a)
        if a != b:
            above[b], gone = a, meetings.pop(b)
            meetings[a].spans |= gone.spans
            meetings[a].alone |= gone.alone
            meetings[a].tree += [*gone.tree, pair]
    return list(meetings.values())


def named(policy: int, name: int, roots: Mapping[int, Span]) -> Key:
    """Return the name of a cluster, of one that is part of a span by its root."""
    return policy, SPANNED + roots[name - SPANNED].number if name >= SPANNED else name
