"""What other homes know of the pages of a batch: how a cluster that spans several stands, who shows the same text.

What `register` and `link` say of a page is what its home knows. Cost: nothing where no page of the batch is in a
cluster of several homes; else some round trips a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clusterd_crawler.sketch import Sketch

from clusterd.clusters.identity import sketch_key, text_key
from clusterd.clusters.redis.home import EQUALS
from clusterd.clusters.redis.homes import Homes
from clusterd.clusters.redis.registered import CURRENT, NEW, PLACE, SKETCH_EQUAL, TEXT_EQUAL, Registered
from clusterd.clusters.redis.spans import SPANNED, Spans, Standing

#: equals.lua: sketch identity, profile, text, whether a URL is asked for; its answer: node, pages that show it.
EQUAL: Final = struct.Struct("<8sB8sB")
SHOWN: Final = struct.Struct("<II")

Words = list[int]


class Beyond:
    """Completes what the homes said of the pages of a batch."""

    def __init__(self, homes: Homes, spans: Spans, graded: int) -> None:
        self._homes = homes
        self._spans = spans
        self._graded = graded

    def tell(self, sketches: Sequence[Sketch], registered: Sequence[Registered], united: bool) -> None:
        """Note where pages stand beyond their homes, and what equals them there."""
        now = {place: _words(known.now) for place, known in enumerate(registered) if known.now}
        if united:
            self._stand_anew(registered, now)
        before = {place: _words(known.before) for place, known in enumerate(registered) if known.before}
        standings = self._spans.standings(
            {name for one in (now, before) for words in one.values() for name in words[1::2]}
        )
        wide: dict[int, set[int]] = {}
        for place, words in now.items():
            parts = [set(standings[name].parts) for name in words[1::2] if name in standings]
            if parts or not self._graded:
                wide[place] = min(parts, key=len) if parts else set(range(len(self._homes)))
        _resolve(now.values(), standings, 0)
        _resolve(before.values(), standings, 1)
        self._tell_equals(sketches, registered, now, wide)
        for place, words in now.items():
            registered[place].now = b"".join([PLACE.pack(*words[at : at + 2]) for at in range(0, len(words), 2)])
        for place, words in before.items():
            registered[place].before = b"".join([PLACE.pack(*words[at : at + 2]) for at in range(0, len(words), 2)])

    def _stand_anew(self, registered: Sequence[Registered], now: Mapping[int, Words]) -> None:
        """Look again where the pages stand that were linked before clusters of several homes were united."""
        asked = [(policy, registered[place].content) for place in now for policy in range(self._graded)]
        stand = self._spans.stand_here(asked)
        for place, words in now.items():
            for policy in range(min(self._graded, len(words) // 2 - 1)):
                name, size = stand[policy, registered[place].content]
                words[2 * policy + 2 : 2 * policy + 4] = size, name

    def _tell_equals(
        self,
        sketches: Sequence[Sketch],
        registered: Sequence[Registered],
        now: Mapping[int, Words],
        wide: Mapping[int, set[int]],
    ) -> None:
        """Add the pages of other homes that show the same text; one is the equal of a page that has none here."""
        asked: dict[int, list[int]] = {}
        for place, homes in wide.items():
            for home in homes - {self._homes.place_of(registered[place].content)}:
                asked.setdefault(home, []).append(place)
        if not asked:
            return
        wants = {place for place in wide if _wants(registered[place])}
        packed = {
            home: (b"".join([_packed(sketches[place], place in wants) for place in of]),) for home, of in asked.items()
        }
        for home, reply in self._homes.each(EQUALS, packed).items():
            urls = iter(reply[1:])
            for place, (node, live) in zip(asked[home], SHOWN.iter_unpack(reply[0]), strict=True):
                url = next(urls) if place in wants else b""
                if live:
                    words = now[place]
                    words[:2] = words[0] + live, min(words[1], node)
                if url:
                    _note_equal(registered[place], url, bool(live))


def _wants(known: Registered) -> bool:
    """Whether a page that is equal in text is looked for elsewhere."""
    return known.flags & (NEW | CURRENT) == NEW | CURRENT and not known.flags & TEXT_EQUAL


def _note_equal(known: Registered, url: bytes, is_text: bool) -> None:
    if is_text and not known.flags & TEXT_EQUAL:
        known.flags = known.flags & ~SKETCH_EQUAL | TEXT_EQUAL
        known.match, known.resemblance = url, 1.0
    elif not known.flags & (TEXT_EQUAL | SKETCH_EQUAL):
        known.flags |= SKETCH_EQUAL
        known.match, known.resemblance = url, 1.0


def _packed(sketch: Sketch, wanted: bool) -> bytes:
    main = sketch.main
    text = main.text.to_bytes(8, "big") if main.shingles else text_key(sketch)
    return EQUAL.pack(sketch_key(sketch), sketch.profile, text, wanted)


def _words(places: bytes) -> Words:
    return list(struct.unpack(f"<{len(places) // 4}I", places))


def _resolve(all_words: Iterable[Words], standings: Mapping[int, Standing], left: int) -> None:
    """Let names of spans be those of their clusters; ``left``: pages that each has lost since."""
    for words in all_words:
        for at in range(1, len(words), 2):
            standing = standings.get(words[at]) if words[at] >= SPANNED else None
            if standing is not None:
                words[at - 1], words[at] = standing.size + left, standing.name
