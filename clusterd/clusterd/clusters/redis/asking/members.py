"""The pages of a cluster on Redis, walked in bounded calls, and what a question finds by that.

A list that grew beyond its bound proposes its latest pages only: of 600 pages that carry one text, each with a word of
its own, a question would see some fifty. But the pages that the lists left out are in one cluster with those that they
name. So the clusters of the best hits, under the loosest policies by resemblance and by containment, are walked too,
up to `WALKED` pages, and their sketches read. Cost: one round trip for all hits; three for `CHUNK` pages walked.

Who asks for all is given every content there is, chunk by chunk (`current`).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from clusterd_consumer.redis_scripts import packed_numbers

from clusterd.clusters.contract import WALKED
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import CHUNK, OWN, PART, Homes
from clusterd.clusters.redis.spans.beyond import EQUAL, SHOWN, TEXT
from clusterd.clusters.redis.spans.standings import SPANNED
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.portions import portions

#: Pages of contents that one call tells, at most: some 3 µs each.
PAGES: Final = 1000
#: How often a cluster of several homes is walked that changes meanwhile.
TRIES: Final = 10
#: versions.lua: content, time, text, bytes, words, crawl, sweep, status, shingles, tokens, profile.
VERSION: Final = struct.Struct("<I6s8s8s8s3s3sH3s3sB")
#: Bytes of a page's number in a home.
PAGE: Final = 4
#: Pages of all homes (`page_of`).
Pages = np.typing.NDArray[np.int64]


class Members:
    """Walks clusters."""

    def __init__(self, homes: Homes, spans: Spans) -> None:
        self._homes = homes
        self._spans = spans

    def of(self, slot: int, url: str, most: int | None = None) -> tuple[int, list[int]] | None:
        """Return the name of a URL's cluster and its pages, ``most`` of them at least where there are as many.

        Where it parts meanwhile, or the URL leaves it, the walk begins again, with steps twice as long. None: no such
        URL. A page is told with its home (`Homes.page`).
        """
        home = self._homes.of_url(url)
        if len(self._homes) == 1:
            return self._walk(home, slot, url_key(url), most)
        for _ in range(TRIES):
            known = self._place(slot, url)
            found = self._walk_all(home, slot, url, most)
            if found is None or known == self._place(slot, url):
                break
        return found

    def _place(self, slot: int, url: str) -> object:
        """Return what changes when a cluster of several homes gains a part or loses one."""
        (reply,) = self._begun([(slot, url)])
        return reply and self._spans.standings([reply[0]]), self._spans.eras()

    def _walk_all(self, home: Home, slot: int, url: str, most: int | None) -> tuple[int, list[int]] | None:
        """Walk the parts of a cluster, one after the other."""
        found = self._walk(home, slot, url_key(url), most)
        if found is None:
            return None
        name, pages = found
        others: Mapping[int, int] = {}
        if slot < 0:
            others = {self._homes.place_of(text): text for text in self._shown_elsewhere({name}).get(name, ())}
            name = min([name, *others.values()])
        elif name >= SPANNED:
            standing = self._spans.standings([name])[name]
            name, others = standing.name, standing.parts
        for place, content in others.items():
            if place != home.place and (most is None or len(pages) < most):
                _, more = self._walk(self._homes.all[place], slot, packed_numbers([content]), most) or (0, [])
                pages += more
        return name, pages

    def _walk(self, home: Home, slot: int, begin: bytes, most: int | None) -> tuple[int, list[int]] | None:
        """Walk the part of a cluster that lies in a home, from a URL or a content on."""
        limit = CHUNK
        place: tuple[int, int, int] = (0, 0, 0)
        pages: dict[int, None] = {}
        while True:
            reply = home.run("members", slot, begin, *place, limit)
            if not reply:
                return None
            if len(reply) == 1:
                place, pages, limit = (0, 0, 0), {}, 2 * limit
                continue
            name, content, text, page, packed = reply
            pages.update(dict.fromkeys(np.frombuffer(packed, "<u4").tolist()))
            if not content or (most is not None and len(pages) >= most):
                return int(name), [page_of(home, one) for one in pages]
            place = (content, text, page)

    def shown(self, numbers: Sequence[int], limit: int) -> dict[int, tuple[int, int, list[int]]]:
        """Return size and name of the cluster of each content, and pages that show it: `PAGES` at a time."""
        left = self._homes.by_home((number, number) for number in numbers)
        found: dict[int, tuple[int, int, list[int]]] = {}
        most = PAGES if len(self._homes) == 1 else PAGES * PART // CHUNK
        while left:
            replies = self._homes.each("shown", {at: (packed_numbers(of), limit, most) for at, of in left.items()})
            for place, (*reply, more) in replies.items():
                home, of = self._homes.all[place], left.pop(place)
                for number, standing, packed in zip(of, reply[::2], reply[1::2], strict=False):
                    pages = [page_of(home, page) for (page,) in struct.iter_unpack("<I", packed)]
                    found[number] = *(struct.unpack("<II", standing) if standing else (0, 0)), pages
                done = len(reply) // 2
                if more:
                    last = of[done - 1]
                    found[last] = *found[last][:2], self._of_content(home, last, limit)
                if of[done:]:
                    left[place] = of[done:]
        return found

    def _of_content(self, home: Home, content: int, most: int) -> list[int]:
        """Return the pages that show a content, ``most`` of them at most."""
        pages: dict[int, None] = {}
        for text, *_ in TEXT.iter_unpack(home.run("texts", packed_numbers([content]), 1)):
            if len(pages) < most:
                _, found = self._walk(home, -1, packed_numbers([text]), most - len(pages)) or (0, [])
                pages.update(dict.fromkeys(found))
        return list(pages)[:most]

    def names(self, slot: int, urls: Sequence[str]) -> list[int | None]:
        """Return the name of each URL's cluster, as `of` does; None: no such URL."""
        named = [int(reply[0]) if reply else None for reply in self._begun([(slot, url) for url in urls])]
        own = {name for name in named if name is not None}
        if slot < 0:
            said = {name: min(name, *numbers) for name, numbers in self._shown_elsewhere(own).items()}
        else:
            said = {name: standing.name for name, standing in self._spans.standings(own).items()}
        return [None if name is None else said.get(name, name) for name in named]

    def _begun(self, asked: Sequence[tuple[int, str]]) -> list[Any]:
        """Return for each (slot, URL) where the walk of its cluster begins and goes on (`lua/members.lua`)."""
        return self._homes.send(
            [self._homes.of_url(url).function("members", slot, url_key(url), 0, 0, 0, 1) for slot, url in asked]
        )

    def with_others(self, asked: Sequence[tuple[int, str]], alone: bool = False) -> list[tuple[int, str]]:
        """Return of (slot, URL) one for each cluster of several pages (``alone``: of one page, too); one round trip.

        Of equal texts of several homes two: who else shows them is asked of all.
        """
        there = [
            (slot, url, int(reply[0]), int(reply[1]))
            for (slot, url), reply in zip(asked, self._begun(asked), strict=True)
            if len(reply) > 1
        ]
        spanning = self._spans.standings({name for slot, _, name, _ in there if slot >= 0})
        elsewhere = self._shown_elsewhere({name for slot, _, name, _ in there if slot < 0})
        first: dict[tuple[int, int], str] = {}
        for slot, url, name, following in there:
            if alone or following or name in spanning or name in elsewhere:
                first.setdefault((slot, spanning[name].name if name in spanning else name), url)
        return [(slot, url) for (slot, _), url in first.items()]

    def _shown_elsewhere(self, texts: Collection[int]) -> dict[int, list[int]]:
        """Return those of these texts that other homes show as well, each with its numbers there."""
        if len(self._homes) == 1 or not texts:
            return {}
        told = self._homes.of_numbers("texts", texts)
        found = [one[:4] for _, reply in told for one in TEXT.iter_unpack(reply) if one[0] in texts]
        packed = b"".join([EQUAL.pack(*identity, 0) for _, *identity in found])
        shown = self._homes.each("equals", {home.place: (packed,) for home in self._homes.all})
        elsewhere: dict[int, list[int]] = {}
        for place, reply in shown.items():
            for (text, *_), (other, live) in zip(found, SHOWN.iter_unpack(reply[0]), strict=True):
                if live and self._homes.place_of(text) != place:
                    elsewhere.setdefault(text, []).append(other)
        return elsewhere

    def left_out(
        self, slots: Sequence[int], urls: Sequence[str], profile: int, known: Collection[int]
    ) -> Iterator[list[int]]:
        """Yield the contents of this profile in the clusters of these URLs that are not known yet, some at a time."""
        seen: set[int] = set()
        for slot, url in self.with_others([(slot, url) for slot in slots for url in urls]):
            if len(seen) >= WALKED:
                return
            _, walked = self.of(slot, url, WALKED - len(seen)) or (0, [])
            fresh = [page for page in walked[: WALKED - len(seen)] if page not in seen]
            seen.update(fresh)
            for some in portions(fresh, CHUNK):
                yield self._contents(some, profile, known)

    def _contents(self, pages: Sequence[int], profile: int, known: Collection[int]) -> list[int]:
        """Return the contents that pages show now, of this profile and not known."""
        found: dict[int, None] = {}
        of = [b""] * len(self._homes)
        for home, numbers in pages_by_home(self._homes, pages):
            of[home.place] = packed_numbers(numbers)
        for _, reply in versions_by_page(self._homes, of):
            current = (VERSION.unpack(packed[-VERSION.size :]) for packed in reply[1::2] if packed)
            found |= dict.fromkeys(one[0] for one in current if one[-1] == profile and one[0] not in known)
        return list(found)


def versions_by_page(homes: Homes, of: Sequence[bytes], revised: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """Yield URL and versions (`VERSION`) of the pages of each home, given by their numbers: place, some of its pages.

    Those of a home come in order. ``revised``: only pages that have shown several texts. Some 25 µs for a page of three
    versions.
    """
    for one in homes.rounds([len(numbers) // PAGE for numbers in of], alone=PART):
        asked = {
            place: ("revised" if revised else "id", of[place][PAGE * start : PAGE * end])
            for place, (start, end) in one.items()
        }
        yield from homes.each("versions", asked).items()


def page_of(home: Home, number: int) -> int:
    """Return a page of a home as one of all homes."""
    return home.place << 32 | number


def pages_by_home(homes: Homes, pages: Sequence[int]) -> list[tuple[Home, list[int]]]:
    """Return pages of all homes by home, with the numbers that they have there, in order."""
    groups: dict[int, list[int]] = {}
    for page in pages:
        groups.setdefault(page >> 32, []).append(page & 0xFFFFFFFF)
    return [(homes.all[place], numbers) for place, numbers in groups.items()]


def current(homes: Homes, profile: int) -> Iterator[list[int]]:
    """Yield the contents of a profile that URLs show now, some at a time."""
    begins = [home.place << OWN for home in homes.all]
    counts = [max(0, known.nodes - begin) for known, begin in zip(homes.counters(), begins, strict=True)]
    for one in homes.rounds(counts, CHUNK):  # a fifth of the time that others take
        asked = {place: (begins[place] + start + 1, begins[place] + end) for place, (start, end) in one.items()}
        found = b"".join(homes.each("contents", asked).values())
        yield [number for number, code in struct.iter_unpack("<IB", found) if code == profile]


def pages_of_host(homes: Homes, host: str) -> Pages:
    """Return the pages that are known of a host."""
    home = homes.of_host(host)
    numbers = np.frombuffer(home.command("GET", f"h:{host}") or b"", "<u4")
    return numbers.astype(np.int64) | home.place << 32


def urls_of(homes: Homes, pages: Pages) -> list[str]:
    """Return the URLs of pages, in their order."""
    found: list[str] = [""] * len(pages)
    places = pages >> 32
    of = [np.flatnonzero(places == home.place) for home in homes.all]
    for one in homes.rounds([len(own) for own in of]):
        parts = {place: of[place][start:end] for place, (start, end) in one.items()}
        asked = {place: ((pages[part] & 0xFFFFFFFF).astype("<u4").tobytes(),) for place, part in parts.items()}
        for place, reply in homes.each("urls", asked).items():
            for at, url in zip(parts[place].tolist(), reply, strict=True):
                found[at] = url.decode()
    return found
