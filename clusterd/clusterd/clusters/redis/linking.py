"""Pairs that were verified become edges: within a home by one call (`lua/link.lua`), between homes see `spans`.

Of a pair in two homes the content that was there first hears of it first: if it has departed, the new one is not told.
Then the new one takes up its edges, in the call that joins it with those of its own home and says that it is pending no
more; what is to be united beyond that home is due from then on, and is united at once.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from clusterd_consumer.redis_scripts import packed_numbers
from clusterd_consumer.resemblance import Estimate
from clusterd_consumer.transport.contract import SetBack
from clusterd_crawler.errors import Unreachable
from clusterd_crawler.sketch import Sketch

from clusterd.clusters.acceptance import mask
from clusterd.clusters.changes import GREW, MERGED
from clusterd.clusters.identity import sketch_key
from clusterd.clusters.redis.edges import packed_edges
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.pending import MOVE, Pending, tell
from clusterd.clusters.redis.policies import Policies
from clusterd.clusters.redis.registered import Registered, matches_of, note
from clusterd.clusters.redis.spans.standings import SPANNED, Span
from clusterd.clusters.redis.spans.steps import ACCEPTED, ALL, EDGE, PAIR, TWO, UNION, Eras, Pair, Spans, pairs_of
from clusterd.clusters.redis.spans.uniting import United, Uniting, named

#: Matches in other homes of which a page's URL is asked for, where the best has departed.
ASKED: Final = 8
#: A profile that no page has.
NO_PROFILE: Final = 255

#: Place of a page, a content elsewhere, bits of the policies that join the two, whether a URL is asked for; packed.
Offer = tuple[int, int, int, bool, bytes]


class Linker:
    """Links what was verified."""

    def __init__(self, homes: Homes, spans: Spans, pending: Sequence[Pending], policies: Policies) -> None:
        self._homes = homes
        self._spans = spans
        self._pending = pending
        self._policies = policies

    def link(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        verdicts: Mapping[int, dict[int, Estimate]],
        moves: Sequence[str] | None,
        states: Sequence[int],
    ) -> United:
        """Link what was verified, write the position; note what that says of each page.

        ``verdicts``: by the place of a page; ``moves``: of the position (`pending.moves_of`), None without a log, or
        where more of the batch follows; ``states``: those of the homes when the batch was begun. Returns which clusters
        of several homes were united. `SetBack` where the position is not what the caller knew.
        """
        contents: dict[int, list[int]] = {}
        linked: dict[int, dict[int, list[int]]] = {}
        for place, judged in verdicts.items():
            home = self._homes.place_of(registered[place].content)
            contents.setdefault(home, []).append(registered[place].content)
            if judged and (matches := matches_of(judged)):
                linked.setdefault(home, {})[place] = matches
        for home in contents.keys() - linked.keys():
            self._pending[home].done(contents[home], states[home])
        if len(self._homes) == 1 and linked:
            posted = packed_numbers([states[0], *contents[0]])
            self._link_all({0: posted}, linked, registered, verdicts, moves or ())
            return United()
        united = United()
        if linked:
            united = self._link_spread(sketches, registered, verdicts, linked, contents, states)
        if moves is not None:
            tell(self._homes, self._pending, moves, states[0])
        return united

    def _link_all(
        self,
        posted: Mapping[int, bytes],
        linked: Mapping[int, Mapping[int, list[int]]],
        registered: Sequence[Registered],
        verdicts: Mapping[int, Mapping[int, Estimate]],
        moves: Sequence[str] = (),
    ) -> dict[int, list[bytes]]:
        """Let the homes take up the edges of their contents; return which parts of spans each has joined."""
        open_ = dict(linked)
        unions: dict[int, list[bytes]] = {}
        while open_:
            policies = self._policies.state
            graded = policies.graded
            calls: dict[int, list[Any]] = {}
            for home, pages in open_.items():
                arguments = calls[home] = [policies.number, len(moves) // MOVE, *moves, posted[home]]
                for place, matches in pages.items():
                    known = registered[place]
                    page = struct.pack("<3I", known.page, known.node, known.content) + packed_numbers(matches)
                    arguments += (page, packed_edges(graded, verdicts[place]))
            for home, reply in self._homes.each("link", calls).items():
                if reply[0] == -1:
                    self._pending[home].position()
                    raise Unreachable(
                        "the store was set back while a batch was under way, which is to be applied again"
                    )
                if reply[0] == -2:
                    raise SetBack
                if reply[0] == policies.number:
                    pages = open_.pop(home)
                    for number, place in enumerate(pages):
                        note(registered[place], verdicts[place], *reply[1 + 3 * number : 4 + 3 * number])
                    for joined in reply[1 + 3 * len(pages) :]:
                        unions[home] = [TWO.pack(UNION, *two) for two in struct.iter_unpack("<II", joined)]
            if open_:
                self._policies.agree()
        return unions

    # -- several homes ---------------------------------------------------------------------------------------------

    def _link_spread(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        verdicts: Mapping[int, Mapping[int, Estimate]],
        linked: Mapping[int, Mapping[int, list[int]]],
        contents: Mapping[int, list[int]],
        states: Sequence[int],
    ) -> United:
        eras, place_of = self._spans.known_eras, self._homes.place_of
        accepted, stand, urls = self._accept(sketches, registered, verdicts, linked)
        own: dict[int, dict[int, list[int]]] = {}
        kept: dict[int, dict[int, Estimate]] = {}
        for home, pages in linked.items():
            own[home] = {place: [number for number in of if place_of(number) == home] for place, of in pages.items()}
            for place in pages:
                told, judged = accepted[place], verdicts[place]
                kept[place] = {n: one for n, one in judged.items() if n in told or place_of(n) == home}
        posted = {home: packed_numbers([states[home], *contents[home]]) for home in linked}
        unions = self._link_all(posted, own, registered, kept)
        for place, (number, url) in urls.items():
            known, resemblance = registered[place], verdicts[place][number].resemblance
            if not known.match or resemblance > known.resemblance:
                known.match, known.resemblance = url, resemblance
        united = self._unite(registered, accepted, stand, eras)
        self._unite_joined(unions)
        return united

    def _accept(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        verdicts: Mapping[int, Mapping[int, Estimate]],
        linked: Mapping[int, Mapping[int, list[int]]],
    ) -> tuple[dict[int, dict[int, int]], dict[tuple[int, int], tuple[int, int]], dict[int, tuple[int, bytes]]]:
        """Tell contents of other homes of their edges; note which contents have a twin there.

        Returns for each page which took one up, with the policies' bits; for each of these, policy and content, name
        and size of its cluster; and for each page its best match elsewhere, with a URL that shows it.
        """
        accepted: dict[int, dict[int, int]] = {place: {} for pages in linked.values() for place in pages}
        asked, replies = self._offer(sketches, registered, verdicts, linked)
        shows: dict[int, tuple[int, bytes]] = {}
        twins: dict[int, list[int]] = {}
        stand: dict[tuple[int, int], tuple[int, int]] = {}
        for home, of in asked.items():
            shown, stands = iter(replies[home][3:]), struct.iter_unpack("<II", replies[home][2])
            for (place, number, bits, is_asked, _), said in zip(of, replies[home][1], strict=True):
                content = registered[place].content
                if said and bits:
                    accepted[place][number] = bits
                    for pair in pairs_of(content, number, bits):
                        size, name = next(stands)
                        stand[pair.policy, number] = name, size
                if said == 2:
                    twins.setdefault(self._homes.place_of(content), []).append(content)
                if is_asked:
                    shows[place] = number, next(shown)
        gone = {place for place, (_, url) in shows.items() if not url}
        found = {place: one for place, one in shows.items() if one[1]}
        if gone:
            found |= self._next_best(gone, linked)
        self._homes.send([self._homes.all[home].request("SADD", "twins", *of) for home, of in twins.items()])
        return accepted, stand, found

    def _offer(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        verdicts: Mapping[int, Mapping[int, Estimate]],
        linked: Mapping[int, Mapping[int, list[int]]],
    ) -> tuple[dict[int, list[Offer]], dict[int, Any]]:
        """Offer contents of other homes their edges; return what each home was asked, and what it replies."""
        while True:
            policies = self._policies.state
            graded = policies.graded
            asked: dict[int, list[Offer]] = {}
            for home, pages in linked.items():
                for place, matches in pages.items():
                    away = [number for number in matches if self._homes.place_of(number) != home]
                    best = set(away[:1]) if not registered[place].match else set()
                    key, profile = sketch_key(sketches[place]), sketches[place].profile
                    for number in {*away, *verdicts[place]}:
                        there, verdict = self._homes.place_of(number), verdicts[place][number]
                        bits = mask(graded, verdict)
                        # (An equal one is a twin, also where no policy is by resemblance.)
                        if there != home and (bits or number in best or verdict.resemblance == 1):
                            packed = ACCEPTED.pack(
                                number, registered[place].content, bits, number in best, key, profile
                            )
                            asked.setdefault(there, []).append((place, number, bits, number in best, packed))
            calls = {home: (policies.number, b"".join([one[-1] for one in of])) for home, of in asked.items()}
            replies = self._homes.each("accept", calls)
            if all(reply[0] == policies.number for reply in replies.values()):
                return asked, replies
            self._policies.agree()

    def _next_best(self, gone: Set[int], linked: Mapping[int, Mapping[int, list[int]]]) -> dict[int, tuple[int, bytes]]:
        """Return the best matches in other homes that pages show, where the best of all departed meanwhile."""
        asked: dict[int, list[tuple[int, int]]] = {}
        order: dict[int, list[int]] = {}
        for home, pages in linked.items():
            for place in pages.keys() & gone:
                order[place] = [number for number in pages[place] if self._homes.place_of(number) != home][1:ASKED]
                for number in order[place]:
                    asked.setdefault(self._homes.place_of(number), []).append((place, number))
        packed = {
            home: b"".join([ACCEPTED.pack(number, 0, 0, 1, bytes(8), NO_PROFILE) for _, number in of])
            for home, of in asked.items()
        }
        policies = self._policies.state.number
        urls: dict[tuple[int, int], bytes] = {}
        for home, reply in self._homes.each("accept", {home: (policies, one) for home, one in packed.items()}).items():
            if reply[0] == policies:
                urls.update(zip(asked[home], reply[3:], strict=True))
        best = {place: [(n, url) for n in of if (url := urls.get((place, n)))] for place, of in order.items()}
        return {place: of[0] for place, of in best.items() if of}

    def _unite(
        self,
        registered: Sequence[Registered],
        accepted: Mapping[int, Mapping[int, int]],
        stand: dict[tuple[int, int], tuple[int, int]],
        eras: Eras,
    ) -> United:
        """Unite what has an edge to another home; note what each page brought together.

        ``stand``: where contents stood when they heard of their edges; where pages do was told as they were linked.
        """
        contents = {place: registered[place].content for place, of in accepted.items() if of}
        if not contents:
            return United()
        pairs = {
            place: [pair for number, bits in accepted[place].items() for pair in pairs_of(content, number, bits)]
            for place, content in contents.items()
        }
        for place, content in contents.items():
            words = struct.unpack(f"<{len(registered[place].now) // 4}I", registered[place].now)
            stand |= {(at // 2 - 1, content): (words[at + 1], words[at]) for at in range(2, len(words), 2)}
        ends = {(pair.policy, one) for of in pairs.values() for pair in of for one in (pair.a, pair.b)}
        if unknown := ends - stand.keys():
            stand |= self._spans.stand_here(unknown)
        roots = self._spans.roots({stand[one][0] - SPANNED for one in ends if stand[one][0] >= SPANNED})
        bringing = Bringing({one: _standing(one[0], *stand[one], roots) for one in ends})
        # (What departed before it was linked took up no edge, though others know of one: that is no cluster.)
        linked = [pair for place, of in pairs.items() if registered[place].now for pair in of]
        doubtful = [pair for place, of in pairs.items() if not registered[place].now for pair in of]
        united = Uniting(self._homes, self._spans, eras).unite(linked, stand, roots)
        united.missing += self._spans.unite(doubtful)
        united.again = united.again or bool(doubtful)
        if not united.missing:
            due = self._homes.by_home((content, EDGE.pack(PAIR, content, ALL, 0)) for content in contents.values())
            self._spans.done(due)
        for place in sorted(pairs):
            registered[place].brought = bringing.by(registered[place].brought, pairs[place])
        return united

    def _unite_joined(self, unions: Mapping[int, Sequence[bytes]]) -> None:
        """Put spans together whose parts the homes have joined."""
        if any(unions.values()):
            self._spans.done(self._spans.unite_due(unions))


def _standing(policy: int, name: int, size: int, roots: Mapping[int, Span]) -> tuple[int, int]:
    """Return name and size of a cluster as far as it matters for who joins it: a span has several pages."""
    return (named(policy, name, roots)[1], max(size, 2)) if name >= SPANNED else (name, size)


class Bringing:
    """Whom pages bring together over the borders of their homes, beside those within (lua/link.lua).

    ``stand``: policy and content → name and size of its cluster, before clusters of several homes were united.
    """

    def __init__(self, stand: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        self._stand = stand
        self._under: dict[tuple[int, int], tuple[int, int]] = {}
        self._sizes = {(policy, name): size for (policy, _), (name, size) in stand.items()}

    def by(self, brought: bytes, pairs: Sequence[Pair]) -> bytes:
        """Return what a page did, under each policy: `brought` says what it did at home."""
        joined = [said >> 2 & 3 for said in brought]
        several = [said >> 4 & 3 for said in brought]
        for policy, a, b in pairs:
            if policy >= len(brought):
                continue
            mine, other = self._top(policy, a), self._top(policy, b)
            if mine != other:
                several[policy] += not joined[policy] and self._sizes[mine] > 1
                several[policy] += self._sizes[other] > 1
                joined[policy] += 1
                self._under[other] = mine
                self._sizes[mine] += self._sizes[other]
        return bytes(MERGED if s > 1 else GREW if j > 1 else 0 for j, s in zip(joined, several, strict=True))

    def _top(self, policy: int, content: int) -> tuple[int, int]:
        top = policy, self._stand[policy, content][0]
        while top in self._under:
            top = self._under[top]
        return top
