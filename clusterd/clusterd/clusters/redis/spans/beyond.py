"""What other homes know of the pages of a batch: how a cluster that spans several stands, who shows the same text.

What `register` and `link` say of a page is what its home knows. Cost: nothing where no page of the batch is in a
cluster of several homes; else some round trips a batch.

It is looked up when the batch is linked: of equal pages of two hosts that come at once each may be told of the other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from clusterd_crawler.sketch import Sketch

from clusterd.clusters.contract import Policy
from clusterd.clusters.identity import sketch_key, text_key
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.registered import CURRENT, NEW, SAME, SKETCH_EQUAL, TEXT_EQUAL, Registered
from clusterd.clusters.redis.spans.standings import SPANNED, Standing
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.clusters.redis.spans.uniting import United

#: equals.lua: sketch identity, profile, text, whether a URL is asked for; its answer: node, pages that show it.
EQUAL: Final = struct.Struct("<8sB8sB")
SHOWN: Final = struct.Struct("<II")

#: texts.lua: node, sketch identity, profile, text, pages that show it.
TEXT: Final = struct.Struct("<I8sB8sI")

#: Size and name of a cluster under identical text, then under each graded policy.
Words = list[int]
#: Sketch identity, profile, text.
Identity = tuple[bytes, int, bytes]


class Text(NamedTuple):
    """A text that a page shows, or showed before."""

    place: int
    words: Words
    #: The other homes that may show it.
    homes: set[int]
    identity: Identity
    #: Whether a URL that shows it is asked for.
    wanted: bool
    is_now: bool = True


class Beyond:
    """Completes what the homes said of the pages of a batch."""

    def __init__(self, homes: Homes, spans: Spans, graded: Sequence[Policy]) -> None:
        self._homes = homes
        self._spans = spans
        self._graded = [place for place, policy in enumerate(graded) if not policy.vacant]

    def tell(self, sketches: Sequence[Sketch], registered: Sequence[Registered], united: United) -> None:
        """Note where pages stand beyond their homes, and what equals them there."""
        now = {place: _words(known.now) for place, known in enumerate(registered) if known.now}
        if united.again:
            self._stand_anew(registered, now)
        elif united.names:
            for words in now.values():
                for at in range(3, len(words), 2):
                    words[at] = united.names.get(((at - 3) // 2, words[at]), words[at])
        before = {place: _words(known.before) for place, known in enumerate(registered) if known.before}
        standings = self._spans.standings(
            {name for one in (now, before) for words in one.values() for name in words[1::2]}
        )
        equals = self._equals_now(sketches, registered, now, standings)
        equals += self._equals_before(registered, before, standings)
        _resolve(now.values(), standings, 0)
        _resolve(before.values(), standings, 1)
        self._tell_equals(registered, equals)
        for place, words in now.items():
            registered[place].now = struct.pack(f"<{len(words)}I", *words)
        for place, words in before.items():
            registered[place].before = struct.pack(f"<{len(words)}I", *words)

    def _stand_anew(self, registered: Sequence[Registered], now: Mapping[int, Words]) -> None:
        """Look again where the pages stand that were linked before clusters of several homes were united."""
        asked = [(policy, registered[place].content) for place in now for policy in self._graded]
        stand = self._spans.stand_here(asked)
        for place, words in now.items():
            for policy in self._of(words):
                name, size = stand[policy, registered[place].content]
                words[2 * policy + 2 : 2 * policy + 4] = size, name

    def _equals_now(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        now: Mapping[int, Words],
        standings: Mapping[int, Standing],
    ) -> list[Text]:
        """Return the texts that pages show which may be shown in other homes, too."""
        return [
            Text(place, words, homes, _identity(sketches[place]), _wants(registered[place]))
            for place, words in now.items()
            if (homes := self._beyond(registered[place], words, standings))
        ]

    def _equals_before(
        self, registered: Sequence[Registered], before: Mapping[int, Words], standings: Mapping[int, Standing]
    ) -> list[Text]:
        """Return the texts that pages showed before which may be shown in other homes, too."""
        wide = {
            place: homes
            for place, words in before.items()
            if (homes := self._beyond(registered[place], words, standings))
        }
        told = self._homes.of_numbers("texts", (before[place][1] for place in wide))
        known = {one[0]: one[1:4] for _, reply in told for one in TEXT.iter_unpack(reply)}
        return [
            Text(place, before[place], homes, known[before[place][1]], False, False)
            for place, homes in wide.items()
            if before[place][1] in known
        ]

    def _beyond(self, known: Registered, words: Words, standings: Mapping[int, Standing]) -> set[int]:
        """Return the other homes that may show the same text: who does stands with this page under every policy."""
        names = (words[2 * policy + 3] for policy in self._of(words))
        parts = [set(standings[name].parts) for name in names if name in standings]
        if self._graded and not parts:
            return set()
        return (min(parts, key=len) if parts else set(range(len(self._homes)))) - {self._homes.place_of(known.content)}

    def _of(self, words: Words) -> list[int]:
        """Return the places of policies in use of which words tell: one that was added since has none."""
        return [policy for policy in self._graded if 2 * policy + 3 < len(words)]

    def _tell_equals(self, registered: Sequence[Registered], texts: Sequence[Text]) -> None:
        """Add the pages of other homes that show the same text; one is the equal of a page that has none here."""
        asked: dict[int, list[Text]] = {}
        for text in texts:
            for home in text.homes:
                asked.setdefault(home, []).append(text)
        later = self._later(registered, texts)
        packed = {
            home: (b"".join([EQUAL.pack(*one.identity, one.wanted) for one in of]),) for home, of in asked.items()
        }
        for home, reply in self._homes.each("equals", packed).items():
            urls = iter(reply[1:])
            for text, (node, live) in zip(asked[home], SHOWN.iter_unpack(reply[0]), strict=True):
                url = next(urls) if text.wanted else b""
                if live:
                    text.words[:2] = text.words[0] + live, min(text.words[1], node)
                since = [place for place in later.get((home, *text.identity[:2]), ()) if place > text.place]
                of_text = later.get((home, *text.identity), ())
                if url and live > sum(place > text.place for place in of_text):
                    _note_equal(registered[text.place], url, is_text=True)
                elif url and not since:
                    _note_equal(registered[text.place], url, is_text=False)

    def _later(self, registered: Sequence[Registered], texts: Sequence[Text]) -> dict[tuple[object, ...], list[int]]:
        """Return the places of pages that have come with this batch, by home and sketch, and by home and text.

        Whoever came before them in the batch is no equal of theirs: they were not known yet.
        """
        found: dict[tuple[object, ...], list[int]] = {}
        for text in texts:
            if text.is_now and _entered(registered[text.place]) and not registered[text.place].flags & SAME:
                home = self._homes.place_of(registered[text.place].content)
                for key in ((home, *text.identity[:2]), (home, *text.identity)):
                    found.setdefault(key, []).append(text.place)
        return found


def _wants(known: Registered) -> bool:
    """Whether a page that is equal in text is looked for elsewhere."""
    return _entered(known) and not known.flags & TEXT_EQUAL


def _entered(known: Registered) -> bool:
    """Whether a version of a page has come that is its current one."""
    return known.flags & (NEW | CURRENT) == NEW | CURRENT


def _note_equal(known: Registered, url: bytes, is_text: bool) -> None:
    if is_text and not known.flags & TEXT_EQUAL:
        known.flags = known.flags & ~SKETCH_EQUAL | TEXT_EQUAL
        known.match, known.resemblance = url, 1.0
    elif not known.flags & (TEXT_EQUAL | SKETCH_EQUAL):
        known.flags |= SKETCH_EQUAL
        known.match, known.resemblance = url, 1.0


def _identity(sketch: Sketch) -> Identity:
    main = sketch.main
    text = main.text.to_bytes(8, "big") if main.shingles else text_key(sketch)
    return sketch_key(sketch), sketch.profile, text


def _words(places: bytes) -> Words:
    return list(struct.unpack(f"<{len(places) // 4}I", places))


def _resolve(all_words: Iterable[Words], standings: Mapping[int, Standing], left: int) -> None:
    """Let names of spans be those of their clusters; ``left``: pages that each has lost since."""
    for words in all_words:
        for at in range(1, len(words), 2):
            standing = standings.get(words[at]) if words[at] >= SPANNED else None
            if standing is not None:
                words[at - 1], words[at] = standing.size + left, standing.name
