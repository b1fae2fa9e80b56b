"""What becomes of spans that were put under others, or lost a part: whoever settles sees to it.

A span that was put under another is forgotten when all its parts are the other's. One that may have but one part left
is **closed**: nobody makes a cluster part of it, nor puts it anywhere. When a new era has begun, so that nobody does
either who saw it open, its parts are counted, in all homes; it is opened again, or its only part becomes a cluster of
its home and the span is forgotten. Two of its homes may have joined parts of it with others' meanwhile: that says the
list of what is due, or, of the one home that matters, how often that has happened there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.spans.standings import SPANNED, UNKNOWN
from clusterd.clusters.redis.spans.steps import HELD, LOST, MOVED, ONE, THREE, TWO, UNION, Spans, Stale

#: shut.lua: span, what is to become of it, homes that have a part.
CLOSE, OPEN, FORGET, FORGET_MOVED = 1, 0, 2, 3
SHUTTING: Final = struct.Struct("<IBI")
#: Entries of one home of parts that were lost, looked at in one step.
MOST: Final = 1000


class Tidier:
    """Tidies spans; one settler does."""

    def __init__(self, homes: Homes, spans: Spans) -> None:
        self._homes = homes
        self._spans = spans

    def tidy(self) -> bool:
        """Forget spans that were put under others, and those with one part or none; return whether any waited."""
        due = self._spans.due(0)
        entries = {place: [e for e in of if e[0] == MOVED] for place, of in due.items()}
        for place, of in due.items():
            entries[place] += [e for e in of if e[0] in (LOST, HELD)][:MOST]
        found = [entry for of in entries.values() for entry in of]
        if not found:
            return False
        self._hold(THREE.unpack(entry)[1:] for entry in found if entry[0] == HELD)
        moved = {TWO.unpack(entry)[1] for entry in found if entry[0] == MOVED}
        lost = {ONE.unpack_from(entry)[1] for entry in found if entry[0] in (LOST, HELD)}
        self._hand_over(moved)
        top_of = {span: root.number for span, root in self._spans.roots(lost).items()}
        tops = set(top_of.values())
        self._shut([(span, CLOSE, 0) for span in tops])
        self._spans.advance()  # from here on nobody adds to what is shut, nor to what was put under others
        joined = self._homes.ask("GET", "merged")
        now = {TWO.unpack(entry)[1] for of in self._spans.due(0).values() for entry in of if entry[0] == MOVED}
        self._hand_over(now)
        roots = self._spans.roots(now)
        led = ((span, roots[span].number) for span in now if roots[span].number != span)
        self._homes.hand("lead", ((pair[0], struct.pack("<II", *pair)) for pair in led))
        self._shut([(span, FORGET_MOVED, 0) for span in moved])
        again = self._dissolve(tops, joined)
        stays = {span for span, top in top_of.items() if top in again}
        self._spans.done(
            {
                place: [e for e in of if e[0] == MOVED or ONE.unpack_from(e)[1] not in stays]
                for place, of in entries.items()
            }
        )
        return True

    def _hold(self, parts: Iterable[tuple[int, int, int]]) -> None:
        """Let the spans of parts (span, home, policy) know of these: a span's record may have been lost."""
        held = list(parts)
        roots = self._spans.roots(span for span, _, _ in held)
        self._widen([(roots[span].number, 1 << home, policy) for span, home, policy in held])

    def _widen(self, asked: list[tuple[int, int, int]]) -> None:
        while True:
            try:
                self._spans.widen(asked, self._spans.known_eras)
                return
            except Stale:
                self._spans.look()

    def _hand_over(self, moved: Iterable[int]) -> None:
        """Let the roots of spans have all their parts."""
        records = self._spans.records(list(moved))
        there = {span: (one.homes, one.policy) for span, one in records.items() if one.policy != UNKNOWN}
        while there:
            eras = self._spans.known_eras
            try:
                self._spans.give(there, eras, closed=True)
                return
            except Stale:
                self._spans.look()

    def _dissolve(self, spans: Iterable[int], joined: list[bytes | None]) -> set[int]:
        """Of spans that are closed, open those that have several parts; let the only part of one be a cluster again.

        ``joined``: how often each home has joined parts of two spans. Returns those that are to be looked at again.
        """
        standings = self._spans.standings((span + SPANNED for span in spans), everywhere=True)
        unions = [TWO.unpack(e)[1:] for of in self._spans.due(0).values() for e in of if e[0] == UNION]
        uniting = {root.number for root in self._spans.roots(span for union in unions for span in union).values()}
        uniting |= {span for union in unions for span in union}
        single: dict[int, list[bytes]] = {}
        what: dict[int, list[tuple[int, int, int]]] = {}
        left = []
        for one in standings.values():
            homes = sum(1 << place for place in one.parts)
            if len(one.parts) > 1 or one.span in uniting:
                left.append((one.span, OPEN, homes))
                continue
            home = next(iter(one.parts), -1)
            what.setdefault(home, []).append((one.span, FORGET, homes))
            if home >= 0:
                single.setdefault(home, []).append(struct.pack("<II", one.span, one.name))
        again = uniting & {one.span for one in standings.values()}
        asked = {
            place: (self._spans.known_eras[place], joined[place] or b"0", b"".join(of)) for place, of in single.items()
        }
        replies = self._homes.each("release", asked)
        for place, of in what.items():
            if place < 0 or replies[place]:
                left += of
            else:
                again |= {span for span, _, _ in of}
                left += [(span, OPEN, homes) for span, _, homes in of]
        self._shut(left)
        return again

    def _shut(self, what: Iterable[tuple[int, int, int]]) -> None:
        self._homes.hand("shut", ((one[0], SHUTTING.pack(*one)) for one in what))
