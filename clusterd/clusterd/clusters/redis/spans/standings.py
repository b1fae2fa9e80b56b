"""What the homes know of clusters that span several of them: records, parts, where contents stand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clusterd.clusters.redis.homes import Homes
from clusterd.portions import portions

#: From here on the name of a cluster says which span it is part of (`lua/spans.lua`).
SPANNED: Final = 1 << 31
#: A span that is looked at whether it is one still.
CLOSED: Final = 0xFFFFFFFF
#: The policy of a span whose record was lost.
UNKNOWN: Final = 255
#: Spans that are looked up at once: of more than that a home would be asked for more than a millisecond takes.
CHUNK: Final = 1000
RECORD: Final = struct.Struct("<IIIB")
#: What a home keeps of its part of a span (`lua/spans.lua`).
PART: Final = struct.Struct("<BII")
#: stands.lua: whether it has an element; size and name.
STOOD: Final = struct.Struct("<BII")


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


class Standings:
    """Asks the homes."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes

    def roots(self, spans: Iterable[int]) -> dict[int, Span]:
        """Return the root of each span; one whose record was lost is its own, with a part in any home."""
        found: dict[int, Span] = {}
        ask = list(dict.fromkeys(spans))
        while ask:
            found.update(self.records(ask))
            above = {span.parent for span in found.values() if span.parent not in (0, CLOSED)}
            ask = [span for span in above if span not in found]
        return {span: _top(span, found) for span in found}

    def records(self, spans: Sequence[int]) -> dict[int, Span]:
        """Return what the homes that made these spans know of them."""
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

    def standings(self, names: Iterable[int], everywhere: bool = False) -> dict[int, Standing]:
        """Return what clusters names that are spans' (`SPANNED`) stand for; ``everywhere``: all homes are asked."""
        if len(self._homes) == 1:  # it has no spans, and may have given as many numbers
            return {}
        spans = sorted({name - SPANNED for name in names if name >= SPANNED})
        found: dict[int, Standing] = {}
        for some in portions(spans, CHUNK):
            found |= self._standings(some, everywhere)
        return found

    def _standings(self, spans: Sequence[int], everywhere: bool) -> dict[int, Standing]:
        roots = self.roots(spans)
        tops = {root.number: root for root in roots.values()}
        groups: dict[int, list[int]] = {}
        for root in tops.values():
            for place in range(len(self._homes)) if everywhere else self._places(root.homes):
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

    def stand_here(
        self, asked: Iterable[tuple[int, int]], everyone: bool = True
    ) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the same, as the contents' homes say it; not ``everyone``: but for what never had company, or left it.

        (What was dismissed has its own number for a name, by which those that it was with may still be called.)
        """
        groups = self._homes.by_home((content, (policy, content)) for policy, content in dict.fromkeys(asked))
        packed = {place: (b"".join([struct.pack("<BI", *one) for one in group]),) for place, group in groups.items()}
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for place, reply in self._homes.each("stands", packed).items():
            for one, (has_company, size, name) in zip(groups[place], STOOD.iter_unpack(reply), strict=True):
                if has_company or everyone:
                    found[one] = name, size
        return found

    def near(self, contents: Iterable[int]) -> dict[int, bytes]:
        """Return the packed edges of contents."""
        told = self._homes.of_numbers("near", dict.fromkeys(contents))
        return {content: one for of, reply in told for content, one in zip(of, reply, strict=True)}

    def _places(self, homes: int) -> list[int]:
        return [place for place in range(len(self._homes)) if homes >> place & 1]


def _top(span: int, found: Mapping[int, Span]) -> Span:
    one = found[span]
    while one.parent not in (0, CLOSED):
        one = found[one.parent]
    return one
