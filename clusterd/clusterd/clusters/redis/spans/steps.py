"""Clusters of several homes are united step by step, whatever others do between two steps: what is due is done so."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.standings import CLOSED, SPANNED, UNKNOWN, Span, Standings

#: crown.lua: a cluster that is part of no span; to become part of a new one.
NONE: Final = 0xFFFFFFFF
#: What is due: a pair; two spans whose parts a home has joined; a span that was put under another; one that lost a
#: part; a pair of a content that has moved; a part of a span whose record may be of before.
PAIR, UNION, MOVED, LOST, REVIEWED, HELD = 1, 2, 3, 4, 5, 6
#: For a neighbour that is due: all of a content's that are in other homes.
ALL: Final = 0xFFFFFFFF
#: Rounds in which pairs are united; what is not by then stays due.
ROUNDS: Final = 40
#: Entries of one home that are done in one step.
DUE: Final = 1000

EDGE: Final = struct.Struct("<BIIH")
TWO: Final = struct.Struct("<BII")
ONE: Final = struct.Struct("<BI")
#: HELD: span, home, policy.
THREE: Final = struct.Struct("<BIIB")
CROWNED: Final = struct.Struct("<BIII")
UNDER_ASKED: Final = struct.Struct("<IIIB")
PUT: Final = struct.Struct("<BI")
#: accept.lua: content, the other, bits, whether a URL is asked for, sketch identity and profile of the other.
ACCEPTED: Final = struct.Struct("<IIHB8sB")
WIDENED: Final = struct.Struct("<IIB")
ADOPTED: Final = struct.Struct("<II")


#: crown.lua: the span of a cluster, whether it was made now.
GIVEN: Final = struct.Struct("<IB")

#: The era of each home.
Eras = Sequence[bytes]

Asked = TypeVar("Asked", bound=tuple[int, ...])


class Pair(NamedTuple):
    """Two contents of different homes that a policy joins."""

    policy: int
    a: int
    b: int


class Stale(Exception):
    """What was looked up is of an era before."""


class Spans(Standings):
    """What joins the clusters of several homes."""

    def __init__(self, homes: Homes) -> None:
        super().__init__(homes)
        #: Which era it was when that was last looked up. (What is asked for in one names those from before it looked.)
        self.known_eras: Eras = [b"0"] * len(homes)

    # -- uniting ---------------------------------------------------------------------------------------------------

    def unite(self, pairs: Iterable[Pair], none: set[Pair] | None = None) -> list[Pair]:
        """Unite the clusters of these pairs; return those that could not be: others are at them.

        A pair that is none any more, since one of the two departed, is taken from the other's edges, and told ``none``.
        """
        left = list(dict.fromkeys(pairs))
        for round_ in range(ROUNDS):
            if not left:
                break
            if round_ > 10:
                time.sleep(0.002 * round_)
            eras = self.known_eras
            crowns = self._crowns(left, eras)
            told = self._mend(crowns)
            roots = self.roots(span for pair in crowns.values() for span in pair if span not in (0, NONE))
            stand = {
                pair: (roots[a].number if a != NONE else NONE, roots[b].number if b != NONE else NONE)
                for pair, (a, b) in crowns.items()
                if a and b
            }
            if none is not None:
                none.update(crowns.keys() - stand.keys() - set(told))
            left = [pair for pair, (a, b) in stand.items() if a != b or a == NONE]
            try:
                self._bring_together({pair: stand[pair] for pair in left}, roots, eras)
            except Stale:
                self.look()
            left += told
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
        found: dict[tuple[int, int, int], tuple[int, bool]] = {}
        for group, reply in self._in_era("crown", CROWNED, groups, eras):
            for one, (span, is_new) in zip(group, GIVEN.iter_unpack(reply), strict=True):
                found[one[:3]] = span, bool(is_new)
        return found

    def _mend(self, crowns: Mapping[Pair, tuple[int, int]]) -> list[Pair]:
        """Where one end of a pair alone has the edge, tell the other; return the pairs of which that has it now.

        If the other departed, its end is taken from this one. But what departed itself keeps its own: whoever dismisses
        it takes the others' first, and then has to know who hung on it. Where a pair is none, a span that was made for
        it may have but one part.
        """
        half = [(pair, pair.a, pair.b) for pair, (a, b) in crowns.items() if a and not b]
        half += [(pair, pair.b, pair.a) for pair, (a, b) in crowns.items() if b and not a]
        none = [pair for pair, (a, b) in crowns.items() if not (a or b)]
        lives = {end for end, said in self._accepted([(mine, other, 0) for _, mine, other in half]).items() if said}
        alive = [(pair, mine, other) for pair, mine, other in half if (mine, other) in lives]
        said = self._accepted([(other, mine, 1 << pair.policy) for pair, mine, other in alive])
        told = [pair for pair, mine, other in alive if said[other, mine]]
        self.cut((mine, other) for _, mine, other in alive if not said[other, mine])
        gone = [*none, *(pair for pair, _, _ in half if pair not in told)]
        self.lose((pair.policy, content) for pair in gone for content in (pair.a, pair.b))
        return told

    def _accepted(self, ends: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], bool]:
        """Tell contents of neighbours (and bits of policies; 0: it is only asked for); return which of them live."""
        bits: dict[tuple[int, int], int] = {}
        for content, other, more in ends:
            bits[content, other] = bits.get((content, other), 0) | more
        groups, replies = self._offer([(*end, more) for end, more in bits.items()], "")
        return {
            (content, other): bool(said)
            for place, of in groups.items()
            for (content, other, _), said in zip(of, replies[place][1], strict=True)
        }

    def _offer(
        self, ends: Iterable[tuple[int, int, int]], policies: int | str
    ) -> tuple[dict[int, list[tuple[int, int, int]]], dict[int, Any]]:
        """Offer contents neighbours and bits (accept.lua); return what each home was asked, and what it replies."""
        groups = self._homes.by_home((end[0], end) for end in ends)
        packed = {
            place: (policies, b"".join([ACCEPTED.pack(*end, 0, bytes(8), UNKNOWN) for end in of]))
            for place, of in groups.items()
        }
        return groups, self._homes.each("accept", packed)

    def lose(self, contents: Iterable[tuple[int, int]]) -> None:
        """Let the spans of contents (policy, content) be looked at whether they have several parts."""
        names = {name for name, _ in self.stand_here(contents).values()}
        spans = [name - SPANNED for name in names if name >= SPANNED]
        homes = [self._homes.all[self._homes.place_of(span)] for span in spans]
        self._homes.send(
            [home.request("RPUSH", "due", ONE.pack(LOST, span)) for home, span in zip(homes, spans, strict=True)]
        )

    def cut(self, edges: Iterable[tuple[int, int]]) -> None:
        """Take neighbours in other homes from these contents' edges."""
        self._homes.hand("cut", ((content, struct.pack("<II", content, other)) for content, other in edges))

    def _bring_together(self, stand: Mapping[Pair, tuple[int, int]], roots: Mapping[int, Span], eras: Eras) -> None:
        """Go one step on with each pair: make a span, make a cluster part of it, or put one under the other."""
        shut = {root.number for root in roots.values() if root.parent == CLOSED}
        open_ = {pair: ends for pair, ends in stand.items() if shut.isdisjoint(ends)}
        put = {(max(ends), min(ends)): pair.policy for pair, ends in open_.items() if NONE not in ends}
        joined = [(p.policy, p.a, p.b, b) for p, (a, b) in open_.items() if a == NONE != b]
        joined += [(p.policy, p.b, p.a, a) for p, (a, b) in open_.items() if b == NONE != a]
        # (What becomes part of a span by another pair needs none of its own.)
        busy = {(policy, content) for policy, content, _, _ in joined}
        made = [
            (p.policy, p.a, p.b, NONE)
            for p, (a, b) in open_.items()
            if a == b == NONE and busy.isdisjoint({(p.policy, p.a), (p.policy, p.b)})
        ]
        self.crown(made, eras)
        wide = self.widen(
            [(span, 1 << self._homes.place_of(content), policy) for policy, content, _, span in joined], eras
        )
        self.crown([one for one in joined if one[3] in wide], eras)
        self._put(put, eras)

    def _put(self, put: Mapping[tuple[int, int], int], eras: Eras) -> None:
        """Put spans under smaller ones (of a policy), each under one at a time; let these have their parts."""
        under = {span: (other, policy) for (span, other), policy in put.items()}
        anywhere = (1 << len(self._homes)) - 1
        groups = self._homes.by_home((span, (span, other, anywhere, policy)) for span, (other, policy) in under.items())
        moved: dict[int, tuple[int, int]] = {}
        for group, reply in self._in_era("under", UNDER_ASKED, groups, eras):
            for (span, _, _, policy), (was_root, homes) in zip(group, PUT.iter_unpack(reply), strict=True):
                if was_root:
                    moved[span] = homes, policy
        self.give(moved, eras)

    def give(self, moved: Mapping[int, tuple[int, int]], eras: Eras, closed: bool = False) -> None:
        """Let the roots of spans that were put under others have their parts: homes (a bit each), policy.

        One that is closed is seen to by who closed it; ``closed``: that is who asks.
        """
        left = dict(moved)
        while left:
            roots = self.roots(left)
            wide = self.widen([(roots[span].number, *of) for span, of in left.items()], eras)
            shut = {span for span in left if roots[span].parent == CLOSED}
            done = {span for span in left if roots[span].number in wide or (closed and span in shut)}
            self.adopt([(span, roots[span].number, left[span][0]) for span in done], eras)
            left = {span: of for span, of in left.items() if span not in done and span not in shut}

    def widen(self, asked: Iterable[tuple[int, int, int]], eras: Eras) -> set[int]:
        """Let homes (a bit each) have parts of spans; return those spans that are roots still."""
        merged: dict[int, tuple[int, int]] = {}
        for span, homes, policy in asked:
            merged[span] = homes | merged.get(span, (0, 0))[0], policy
        groups = self._homes.by_home((span, (span, *one)) for span, one in merged.items())
        wide: set[int] = set()
        for group, reply in self._in_era("widen", WIDENED, groups, eras):
            wide.update(one[0] for one, is_root in zip(group, reply, strict=True) if is_root)
        return wide

    def adopt(self, moved: Iterable[tuple[int, int, int]], eras: Eras) -> None:
        """Let parts of a span become parts of another, in these homes (a bit each)."""
        groups: dict[int, list[tuple[int, int]]] = {}
        for span, other, homes in moved:
            for place in self._places(homes):
                groups.setdefault(place, []).append((span, other))
        self._in_era("adopt", ADOPTED, groups, eras)

    def _in_era(
        self, name: str, layout: struct.Struct, groups: Mapping[int, Sequence[Asked]], eras: Eras
    ) -> list[tuple[Sequence[Asked], Any]]:
        """Run a function over what each home is asked; return that with the home's reply; `Stale` of an era before."""
        packed = {
            place: (eras[place], b"".join([layout.pack(*one) for one in group])) for place, group in groups.items()
        }
        replies = self._homes.each(name, packed)
        if any(reply == b"" for reply in replies.values()):
            raise Stale
        return [(group, replies[place]) for place, group in groups.items()]

    def tell(self, edges: Sequence[tuple[int, int, int]], policies: int) -> set[int] | None:
        """Let the second content of each edge (and bits of policies) know of the first; return those that are gone.

        None: a home has other policies by now than the bits are of, whose number that is.
        """
        groups, replies = self._offer([(other, content, bits) for content, other, bits in edges], policies)
        if any(reply[0] != policies for reply in replies.values()):
            return None
        return {
            one[0] for place, of in groups.items() for one, said in zip(of, replies[place][1], strict=True) if not said
        }

    # -- what is due -----------------------------------------------------------------------------------------------

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
        done = self._union([(place, *TWO.unpack(entry)[1:]) for place, entry in unions])
        for (place, entry), is_done in zip(unions, done, strict=True):
            if is_done:
                finished[place].append(entry)
        return finished

    def _union(self, unions: Sequence[tuple[int, int, int]]) -> list[bool]:
        """Put spans together whose parts a home has joined; return which are."""
        for round_ in range(ROUNDS if unions else 0):
            eras = self.known_eras
            roots = self.roots(span for _, *two in unions for span in two)
            tops = [(place, roots[a], roots[b]) for place, a, b in unions]
            apart = {
                (max(a.number, b.number), min(a.number, b.number)): self._policy_of(place, a, b)
                for place, a, b in tops
                if a.number != b.number and CLOSED not in (a.parent, b.parent)
            }
            if not apart:
                return [a.number == b.number for _, a, b in tops]
            if round_ > 10:
                time.sleep(0.002 * round_)
            try:
                self._put(apart, eras)
            except Stale:
                self.look()
        return [False for _ in unions]

    def _policy_of(self, place: int, a: Span, b: Span) -> int:
        """Return the policy of two spans; of such whose records were lost as the home that joined them knows it."""
        known = min(a.policy, b.policy)
        if known != UNKNOWN:
            return known
        parts = self._fields("parts", {place: [a.number, b.number]})[0]
        return next((part[0] for part in parts if part), UNKNOWN)


def pairs_of(a: int, b: int, bits: int) -> list[Pair]:
    """Return a pair under each policy that joins it."""
    return [Pair(policy, a, b) for policy in range(16) if bits >> policy & 1]
