"""Clusters that span several homes: a union-find over the homes' own clusters, by compare-and-set on one key.

A pair of contents of two homes is an edge that both keep. Each of the two clusters becomes part of a **span**
(`lua/spans.lua`), and the larger span is put under the smaller: one record is changed, if it is still a root. Then the
homes let their parts of the one be parts of the other. What is asked of a span is asked of its parts: it has no size of
its own that could go wrong.

Between two steps others may do what they like:

- What is to be united stands in `BASE:due` of a home, written with the edge; it is taken out when both ends are found
  under one root. Whoever settles does what others left.
- Whether an edge still holds is looked up with its span. When edges are cut, or a part of a cluster moves out of it,
  the **era** of every home counts up afterwards; what was looked up in an era before is refused, and looked up again.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.redis.home import (
    ACCEPT,
    ADOPT,
    CROWN,
    CUT,
    LEAD,
    NEAR,
    RELEASE,
    SHUT,
    STANDS,
    UNDER,
    WIDEN,
)
from clusterd.clusters.redis.homes import Homes

#: From here on the name of a cluster says which span it is part of (`lua/spans.lua`).
SPANNED: Final = 1 << 31
#: crown.lua: a cluster that is part of no span; to become part of a new one.
NONE: Final = 0xFFFFFFFF
#: A span that is looked at whether it is one still.
CLOSED: Final = 0xFFFFFFFF
#: What is due: a pair; two spans whose parts a home has joined; a span that was put under another; one that lost a
#: part; a pair of a content that has moved.
PAIR, UNION, MOVED, LOST, REVIEWED = 1, 2, 3, 4, 5
#: For a neighbour that is due: all of a content's that are in other homes.
ALL: Final = 0xFFFFFFFF
#: The policy of a span whose record was lost.
UNKNOWN: Final = 255
#: Rounds in which pairs are united; what is not by then stays due.
ROUNDS: Final = 100
#: Entries of one home that are done in one step.
DUE: Final = 1000

EDGE: Final = struct.Struct("<BIIH")
TWO: Final = struct.Struct("<BII")
ONE: Final = struct.Struct("<BI")
CROWNED: Final = struct.Struct("<BIII")
RECORD: Final = struct.Struct("<IIIB")
PUT: Final = struct.Struct("<BI")
#: accept.lua: content, the other, bits, whether a URL is asked for, sketch identity and profile of the other.
ACCEPTED: Final = struct.Struct("<IIHB8sB")
WIDENED: Final = struct.Struct("<IIB")
#: What a home keeps of its part of a span (`lua/spans.lua`).
PART: Final = struct.Struct("<BII")
#: stands.lua: whether it has an element; size and name.
STOOD: Final = struct.Struct("<BII")


#: crown.lua: the span of a cluster, whether it was made now.
GIVEN: Final = struct.Struct("<IB")

#: The era of each home.
Eras = Sequence[bytes]


class Pair(NamedTuple):
    """Two contents of different homes that a policy joins."""

    policy: int
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Span:
    """A root: its name, the homes that may have a part (a bit each), its policy."""

    number: int
    parent: int
    name: int
    homes: int
    policy: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster over several homes, as it is told: its name and pages; a content of each part, by home."""

    span: int
    name: int
    size: int
    parts: Mapping[int, int]


class Stale(Exception):
    """What was looked up is of an era before."""


class Spans:
    """What joins the clusters of several homes."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        #: Which era it was when that was last looked up. (What is asked for in one names those from before it looked.)
        self.known_eras: Eras = [b"0"] * len(homes)

    # -- uniting ---------------------------------------------------------------------------------------------------

    def unite(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Unite the clusters of these pairs; return those that could not be: others are at them.

        A pair that is none any more, since one of the two departed, is taken from the other's edges.
        """
        left = list(dict.fromkeys(pairs))
        for round_ in range(ROUNDS):
            if not left:
                break
            if round_ > 10:
                time.sleep(0.002 * round_)
            eras = self.known_eras
            crowns = self._crowns(left, eras)
            self._cut(crowns)
            roots = self.roots(span for pair in crowns.values() for span in pair if span not in (0, NONE))
            stand = {
                pair: (roots[a].number if a != NONE else NONE, roots[b].number if b != NONE else NONE)
                for pair, (a, b) in crowns.items()
                if a and b
            }
            left = [pair for pair, (a, b) in stand.items() if a != b or a == NONE]
            try:
                self._bring_together({pair: stand[pair] for pair in left}, roots, eras)
            except Stale:
                self.look()
        return left

    def look(self) -> None:
        """Look which era it is in every home."""
        self.known_eras = self.eras()

    def eras(self) -> Eras:
        """Return which era it is in every home, now."""
        return [era or b"0" for era in self._homes.ask("GET", "era")]

    def advance(self) -> None:
        """Begin another era everywhere: edges were cut, or parts have moved."""
        self._homes.ask("INCR", "era")
        self.look()

    def _crowns(self, pairs: Sequence[Pair], eras: Eras) -> dict[Pair, tuple[int, int]]:
        """Return the spans of both ends of each pair; 0: an edge that is none, `NONE`: no span."""
        ends = [(pair.policy, *end, 0) for pair in pairs for end in ((pair.a, pair.b), (pair.b, pair.a))]
        found = self.crown(ends, eras)
        return {pair: (found[pair.policy, pair.a, pair.b][0], found[pair.policy, pair.b, pair.a][0]) for pair in pairs}

    def crown(
        self, asked: Iterable[tuple[int, int, int, int]], eras: Eras
    ) -> dict[tuple[int, int, int], tuple[int, bool]]:
        """Return the span of each (policy, content, neighbour), which is made part of one where that is named.

        Besides, whether that was made now, which one that is asked for twice is told once.
        """
        groups = self._homes.by_home((one[1], one) for one in dict.fromkeys(asked))
        packed = {
            place: (eras[place], b"".join([CROWNED.pack(*one) for one in group])) for place, group in groups.items()
        }
        found: dict[tuple[int, int, int], tuple[int, bool]] = {}
        for place, reply in self._fresh(self._homes.each(CROWN, packed)).items():
            for one, (span, is_new) in zip(groups[place], GIVEN.iter_unpack(reply), strict=True):
                found[one[:3]] = span, bool(is_new)
        return found

    def _cut(self, crowns: Mapping[Pair, tuple[int, int]]) -> None:
        """Take from one end's edges what the other knows nothing of."""
        ends = [(pair.a, pair.b) for pair, (a, b) in crowns.items() if a and not b]
        ends += [(pair.b, pair.a) for pair, (a, b) in crowns.items() if b and not a]
        self.cut(ends)
        # (What was to become a part of a span has gone: it may have but one.)
        alone = [
            (pair.a if a else pair.b, ONE.pack(LOST, a or b))
            for pair, (a, b) in crowns.items()
            if (a or b) != NONE and not (a and b) and (a or b)
        ]
        groups = self._homes.by_home(alone)
        self._homes.send([self._homes.all[place].request("RPUSH", "due", *of) for place, of in groups.items()])

    def cut(self, edges: Iterable[tuple[int, int]]) -> None:
        """Take neighbours in other homes from these contents' edges."""
        groups = self._homes.by_home((content, struct.pack("<II", content, other)) for content, other in edges)
        if groups:
            self._homes.each(CUT, {place: (b"".join(group),) for place, group in groups.items()})

    def _bring_together(self, stand: Mapping[Pair, tuple[int, int]], roots: Mapping[int, Span], eras: Eras) -> None:
        """Go one step on with each pair: make a span, make a cluster part of it, or put one under the other."""
        shut = {root.number for root in roots.values() if root.parent == CLOSED}
        open_ = {pair: ends for pair, ends in stand.items() if shut.isdisjoint(ends)}
        put = {(max(ends), min(ends)) for ends in open_.values() if NONE not in ends}
        joined = [(p.policy, p.a, p.b, b) for p, (a, b) in open_.items() if a == NONE != b]
        joined += [(p.policy, p.b, p.a, a) for p, (a, b) in open_.items() if b == NONE != a]
        # (What becomes part of a span by another pair needs none of its own.)
        busy = {(policy, content) for policy, content, _, _ in joined}
        made = [
            (p.policy, p.a, p.b, NONE)
            for p, (a, b) in open_.items()
            if a == b == NONE and busy.isdisjoint({(p.policy, p.a), (p.policy, p.b)})
        ]
        if made:
            self.crown(made, eras)
        if joined:
            wanted: dict[tuple[int, int], int] = {}
            for policy, content, _, span in joined:
                key = span, policy
                wanted[key] = wanted.get(key, 0) | 1 << self._homes.place_of(content)
            wide = self.widen([(span, homes, policy) for (span, policy), homes in wanted.items()], eras)
            self.crown([one for one in joined if one[3] in wide], eras)
        if put:
            policies = {span.number: span.policy for span in roots.values()}
            self._put(put, policies, eras)

    def _put(self, put: Iterable[tuple[int, int]], policies: Mapping[int, int], eras: Eras) -> None:
        """Put spans under smaller ones, each under one at a time; let these have their parts."""
        under = dict(put)
        groups = self._homes.by_home((span, (span, other)) for span, other in under.items())
        packed = {
            place: (eras[place], b"".join([struct.pack("<II", *one) for one in group]))
            for place, group in groups.items()
        }
        moved: dict[int, tuple[int, int]] = {}
        for place, reply in self._fresh(self._homes.each(UNDER, packed)).items():
            for (span, _), (was_root, homes) in zip(groups[place], PUT.iter_unpack(reply), strict=True):
                if was_root:
                    moved[span] = homes, policies[span]
        self._give(moved, eras)

    def _give(self, moved: Mapping[int, tuple[int, int]], eras: Eras) -> None:
        """Let the roots of spans that were put under others have their parts: homes (a bit each), policy."""
        left = dict(moved)
        while left:
            roots = self.roots(left)
            wide = self.widen([(roots[span].number, *of) for span, of in left.items()], eras)
            done = {span: of for span, of in left.items() if roots[span].number in wide}
            self.adopt([(span, roots[span].number, homes) for span, (homes, _) in done.items()], eras)
            shut = {span for span in left if roots[span].parent == CLOSED}  # who shut it will see to it
            left = {span: of for span, of in left.items() if span not in done and span not in shut}

    def widen(self, asked: Iterable[tuple[int, int, int]], eras: Eras) -> set[int]:
        """Let homes (a bit each) have parts of spans; return those spans that are roots still."""
        merged: dict[int, tuple[int, int]] = {}
        for span, homes, policy in asked:
            merged[span] = homes | merged.get(span, (0, 0))[0], policy
        groups = self._homes.by_home((span, (span, *one)) for span, one in merged.items())
        packed = {
            place: (eras[place], b"".join([WIDENED.pack(*one) for one in group])) for place, group in groups.items()
        }
        wide: set[int] = set()
        for place, reply in self._fresh(self._homes.each(WIDEN, packed)).items():
            wide.update(one[0] for one, is_root in zip(groups[place], reply, strict=True) if is_root)
        return wide

    def adopt(self, moved: Iterable[tuple[int, int, int]], eras: Eras) -> None:
        """Let parts of a span become parts of another, in these homes (a bit each)."""
        groups: dict[int, list[bytes]] = {}
        for span, other, homes in moved:
            for place in self._places(homes):
                groups.setdefault(place, []).append(struct.pack("<II", span, other))
        if groups:
            packed = {place: (eras[place], b"".join(group)) for place, group in groups.items()}
            self._fresh(self._homes.each(ADOPT, packed))

    def _fresh(self, replies: dict[int, Any]) -> dict[int, Any]:
        if any(reply == b"" for reply in replies.values()):
            raise Stale
        return replies

    def _places(self, homes: int) -> list[int]:
        return [place for place in range(len(self._homes)) if homes >> place & 1]

    def tell_both(self, edges: Sequence[tuple[int, int, int]], graded: int) -> set[int]:
        """Let the second content of each edge (and bits of policies) know of the first; return those that are gone."""
        groups = self._homes.by_home((other, (content, other, bits)) for content, other, bits in edges)
        packed = {
            place: (
                graded,
                b"".join([ACCEPTED.pack(other, content, bits, 0, bytes(8), 255) for content, other, bits in of]),
            )
            for place, of in groups.items()
        }
        gone: set[int] = set()
        for place, (known, *reply) in self._homes.each(ACCEPT, packed).items():
            told = reply[0] if known == graded and reply else bytes(len(groups[place]))
            gone.update(edge[1] for edge, said in zip(groups[place], told, strict=True) if not said)
        return gone

    def near(self, contents: Iterable[int]) -> dict[int, bytes]:
        """Return the packed edges of contents."""
        groups = self._homes.by_home((content, content) for content in dict.fromkeys(contents))
        replies = self._homes.each(NEAR, {place: (packed_numbers(group),) for place, group in groups.items()})
        return {content: one for place, of in groups.items() for content, one in zip(of, replies[place], strict=True)}

    # -- asking ----------------------------------------------------------------------------------------------------

    def roots(self, spans: Iterable[int]) -> dict[int, Span]:
        """Return the root of each span; one whose record was lost is its own, with a part in any home."""
        found: dict[int, Span] = {}
        ask = list(dict.fromkeys(spans))
        while ask:
            found.update(self._records(ask))
            above = {span.parent for span in found.values() if span.parent not in (0, CLOSED)}
            ask = [span for span in above if span not in found]
        return {span: _top(span, found) for span in found}

    def _records(self, spans: Sequence[int]) -> dict[int, Span]:
        groups = self._homes.by_home((span, span) for span in spans)
        found: dict[int, Span] = {}
        for group, records in zip(groups.values(), self._fields("spans", groups), strict=True):
            for span, record in zip(group, records, strict=True):
                found[span] = (
                    Span(span, *RECORD.unpack(record))
                    if record
                    else Span(span, 0, span, (1 << len(self._homes)) - 1, UNKNOWN)
                )
        return found

    def _fields(self, key: str, groups: Mapping[int, Sequence[int]]) -> list[list[bytes | None]]:
        """Return what a hash of each home has for numbers."""
        return self._homes.send(
            [self._homes.all[place].request("HMGET", key, *group) for place, group in groups.items()]
        )

    def standings(self, names: Iterable[int]) -> dict[int, Standing]:
        """Return what clusters names that are spans' (`SPANNED`) stand for."""
        spans = {name - SPANNED for name in names if name >= SPANNED}
        if not spans:
            return {}
        roots = self.roots(spans)
        tops = {root.number: root for root in roots.values()}
        groups: dict[int, list[int]] = {}
        for root in tops.values():
            for place in self._places(root.homes):
                groups.setdefault(place, []).append(root.number)
        parts: dict[int, dict[int, tuple[int, int]]] = {number: {} for number in tops}
        for (place, group), found in zip(groups.items(), self._fields("parts", groups), strict=True):
            for number, part in zip(group, found, strict=True):
                if part:
                    _, content, size = PART.unpack(part)
                    parts[number][place] = size, content
        of = {
            number: Standing(
                number,
                root.name,
                sum(size for size, _ in parts[number].values()),
                {place: content for place, (_, content) in sorted(parts[number].items())},
            )
            for number, root in tops.items()
        }
        return {span + SPANNED: of[roots[span].number] for span in spans}

    def stand(self, asked: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """Return name and size of the cluster of each content under a policy: (policy, content)."""
        found = self.stand_here(asked)
        spanning = self.standings({name for name, _ in found.values()})
        return {
            one: (spanning[name].name, spanning[name].size) if name in spanning else (name, size)
            for one, (name, size) in found.items()
        }

    def stand_here(self, asked: Iterable[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the same, as the contents' homes say it."""
        groups = self._homes.by_home((content, (policy, content)) for policy, content in dict.fromkeys(asked))
        packed = {place: (b"".join([struct.pack("<BI", *one) for one in group]),) for place, group in groups.items()}
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for place, reply in self._homes.each(STANDS, packed).items():
            for one, (_, size, name) in zip(groups[place], STOOD.iter_unpack(reply), strict=True):
                found[one] = name, size
        return found

    # -- what is due -----------------------------------------------------------------------------------------------

    def waiting(self) -> int:
        """Return how much is due."""
        return sum(map(int, self._homes.ask("LLEN", "due")))

    def due(self, most: int = DUE) -> dict[int, list[bytes]]:
        """Return the first entries of what is due, by home; 0: all."""
        found = self._homes.ask("LRANGE", "due", 0, most - 1 if most else -1)
        return {place: list(entries) for place, entries in enumerate(found)}

    def done(self, entries: Mapping[int, Sequence[bytes]]) -> None:
        """Take entries out of what is due."""
        self._homes.send(
            [self._homes.all[place].request("LREM", "due", 1, entry) for place, of in entries.items() for entry in of]
        )

    def unite_due(self, entries: Mapping[int, Sequence[bytes]]) -> dict[int, list[bytes]]:
        """Unite pairs, and spans that a home has joined, that are due; return the entries that are done."""
        pairs: dict[tuple[int, bytes], list[Pair]] = {}
        ends = [EDGE.unpack(entry)[1:] for of in entries.values() for entry in of if entry[0] in (PAIR, REVIEWED)]
        near = self.near(a for a, b, _ in ends if b == ALL)
        for place, of in entries.items():
            for entry in of:
                if entry[0] in (PAIR, REVIEWED):
                    a, b, bits = EDGE.unpack(entry)[1:]
                    edges = struct.iter_unpack("<IH", near[a]) if b == ALL else [(b, bits)]
                    pairs[place, entry] = [
                        pair
                        for other, bits in edges
                        if self._homes.place_of(other) != place
                        for pair in pairs_of(a, other, bits)
                    ]
        missing = set(self.unite(pair for of in pairs.values() for pair in of))
        finished = {
            place: [e for e in of if e[0] in (PAIR, REVIEWED) and missing.isdisjoint(pairs[place, e])]
            for place, of in entries.items()
        }
        unions = [(place, entry) for place, of in entries.items() for entry in of if entry[0] == UNION]
        done = self._union([TWO.unpack(entry)[1:] for _, entry in unions])
        for (place, entry), is_done in zip(unions, done, strict=True):
            if is_done:
                finished[place].append(entry)
        return finished

    def _union(self, unions: Sequence[tuple[int, int]]) -> list[bool]:
        """Put spans together whose parts a home has joined; return which are."""
        for round_ in range(ROUNDS if unions else 0):
            eras = self.known_eras
            roots = self.roots(span for union in unions for span in union)
            tops = [(roots[a], roots[b]) for a, b in unions]
            apart = {
                (max(a.number, b.number), min(a.number, b.number))
                for a, b in tops
                if a.number != b.number and CLOSED not in (a.parent, b.parent)
            }
            if not apart:
                return [a.number == b.number for a, b in tops]
            if round_ > 10:
                time.sleep(0.002 * round_)
            try:
                self._put(apart, {one.number: one.policy for pair in tops for one in pair}, eras)
            except Stale:
                self.look()
        return [False for _ in unions]

    def tidy(self) -> bool:
        """Let what was put under others be theirs altogether, and forget spans with one part or none; one does this.

        Returns whether there was anything to do.
        """
        entries = {place: [e for e in of if e[0] in (MOVED, LOST)] for place, of in self.due(0).items()}
        moved = {TWO.unpack(entry)[1] for of in entries.values() for entry in of if entry[0] == MOVED}
        lost = {ONE.unpack(entry)[1] for of in entries.values() for entry in of if entry[0] == LOST}
        if not moved and not lost:
            return False
        self._hand_over(moved)
        tops = {root.number for root in self.roots(lost).values() if root.homes and root.parent in (0, CLOSED)}
        self._shut([(span, 1) for span in tops])
        self.advance()  # from here on nobody adds to what is shut, nor to what was put under others
        later = self._moved()
        self._hand_over(later)
        roots = self.roots(later)
        self._send_pairs(LEAD, {span: (span, roots[span].number) for span in later if span in roots})
        self._shut([(span, 3) for span in moved])
        self._dissolve(tops)
        self.done(entries)
        return True

    def _moved(self) -> set[int]:
        return {TWO.unpack(entry)[1] for of in self.due(0).values() for entry in of if entry[0] == MOVED}

    def _hand_over(self, moved: Iterable[int]) -> None:
        """Let the roots of spans have all their parts."""
        records = self._records(list(moved)) if moved else {}
        there = {span: (one.homes, one.policy) for span, one in records.items() if one.policy != UNKNOWN}
        for _ in range(ROUNDS):
            eras = self.known_eras
            try:
                self._give(there, eras)
                return
            except Stale:
                self.look()

    def _dissolve(self, spans: Iterable[int]) -> None:
        """Of spans that are closed, open those that have several parts; let the only part of one be a cluster again."""
        standings = self.standings(span + SPANNED for span in spans)
        single: dict[int, list[bytes]] = {}
        what = []
        for one in standings.values():
            several = len(one.parts) > 1
            what.append((one.span, 0 if several else 2))
            for place in () if several else one.parts:
                single.setdefault(place, []).append(struct.pack("<II", one.span, one.name))
        if single:
            self._homes.each(RELEASE, {place: (self.known_eras[place], b"".join(of)) for place, of in single.items()})
        self._shut(what)

    def _shut(self, what: Iterable[tuple[int, int]]) -> None:
        groups = self._homes.by_home((span, struct.pack("<IB", span, do)) for span, do in what)
        if groups:
            self._homes.each(SHUT, {place: (b"".join(of),) for place, of in groups.items()})

    def _send_pairs(self, script: Any, pairs: Mapping[int, tuple[int, int]]) -> None:
        groups = self._homes.by_home((number, struct.pack("<II", *pair)) for number, pair in pairs.items())
        if groups:
            self._homes.each(script, {place: (b"".join(of),) for place, of in groups.items()})


def pairs_of(a: int, b: int, bits: int) -> list[Pair]:
    """Return a pair under each policy that joins it."""
    return [Pair(policy, a, b) for policy in range(16) if bits >> policy & 1]


def _top(span: int, found: Mapping[int, Span]) -> Span:
    one = found[span]
    while one.parent not in (0, CLOSED):
        one = found[one.parent]
    return one
