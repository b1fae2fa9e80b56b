"""Phase one: the documents of a batch. Identical ones are eliminated first (Broder et al. 1997, section 5.2).

Of all versions of a URL the latest counts, as in the stream. Documents are numbered in the order of their URLs. What
there is one of for each document lies in files; memory holds what is being sorted. A sketch that many documents have is
stored once, where fewer than `REMEMBERED` others lie between.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final, Self

import numpy as np
from clusterd_consumer.postings.keys import keys_of, prepare
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.entries import Entries
from clusterd.batch.held_bytes import HeldBytes
from clusterd.batch.numbers import Column, Records, chunks
from clusterd.batch.phases import Keys, lists
from clusterd.batch.sorting import Sorter
from clusterd.clusters.identity import sketch_key, text_key

log = logging.getLogger(__name__)

#: Sketches of which it is known where they are stored; some 150 bytes each.
REMEMBERED: Final = 1 << 16
#: Bytes of a URL that a run counts as one entry more.
LONG: Final = 500
#: Stored sketches that stay in memory when they have been read: pairs come by their first document, and mostly of one
#: site, whose pages lie together.
RECENT: Final = 4096


class Collection:
    """The current versions of a collection: URL → text → content, and each content's stored sketch."""

    def __init__(self, scheme: Scheme, run: int) -> None:
        self._scheme = scheme
        self._run = run
        self._held = HeldBytes()
        self._places: dict[bytes, tuple[int, int]] = {}
        #: URL, when it was fetched, its text's fingerprint; then what is known of the version.
        self._versions = Entries(run)
        self._taken = 0
        # Of each document, by number: its URL, where that lies; its profile, and where its stored sketch lies.
        self._written = HeldBytes()
        self._urls = Records("QI")
        self._sketches = Records("BQI")
        #: A document's stored sketch, behind the code of its profile, by number.
        self.stored = lru_cache(RECENT)(self._stored)
        #: Of each document, by number, the first that has its text, and the first that has its content.
        self.texts = self.contents = Column(0).at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._held, self._versions, self._written, self._urls, self._sketches):
            file.close()

    def add(self, sketches: Iterable[Sketch]) -> None:
        """Take versions in any order."""
        for sketch in sketches:
            url, key = sketch.url.encode("utf-8", "surrogatepass"), sketch_key(sketch)
            order = (url, sketch.fetched_at, sketch.main.text)
            stored = self._places.get(key) or self._store(key, sketch)
            self._versions.add((*order, text_key(sketch), key, sketch.profile, *stored), 1 + len(url) // LONG)
            self._taken += 1

    def _store(self, key: bytes, sketch: Sketch) -> tuple[int, int]:
        stored, _ = prepare(sketch.main, PROFILES[sketch.profile], self._scheme)
        if len(self._places) >= REMEMBERED:
            self._places.clear()
        place = self._places[key] = self._held.add(stored), len(stored)
        return place

    def number(self) -> None:
        """Number the documents, and find what is the same; no version is taken after this."""
        self._places.clear()
        with Entries(self._run) as texts, Entries(self._run) as contents:
            for _, versions in groupby(self._versions.ascending(), key=itemgetter(0)):
                (latest,) = deque(versions, 1)
                url, _, _, text, key, *sketch = latest
                texts.add((text, len(self)))
                contents.add((key, len(self)))
                self._sketches.append(*sketch)
                self._urls.append(self._written.add(url), len(url))
            self._versions.close()
            if earlier := self._taken - len(self):
                log.warning(
                    "%d of %d pages have the URL (or id) of a later one, which alone counts", earlier, self._taken
                )
            self.texts, self.contents = self._firsts(texts), self._firsts(contents)

    def _firsts(self, named: Entries) -> memoryview:
        """Return of each document the first that has its name; given are ⟨name, document⟩."""
        found = Column(len(self)).at
        before, first = None, 0
        for name, number in named.ascending():
            if name != before:
                before, first = name, number
            found[number] = first
        return found

    def __len__(self) -> int:
        return len(self._urls)

    def _stored(self, number: int) -> tuple[int, bytes]:
        profile, start, size = self._sketches[number]
        return profile, self._held.at(start, size)

    def keys(self) -> Iterator[tuple[int, Keys]]:
        """Yield the first document of each content, ascending, and its posted keys."""
        for number in range(len(self)):
            if self.contents[number] == number:
                profile, stored = self._stored(number)
                yield number, keys_of(stored, profile, self._scheme)

    def grouped(self, name: Callable[[int], int], least: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the first document and all URLs of those that have one name, where these are ``least`` and more."""
        with Sorter(self._run) as named:
            for chunk in chunks(len(self)):
                named.add(np.fromiter((name(number) << 32 | number for number in chunk), np.uint64, len(chunk)))
            for numbers in lists(named, least):
                yield int(numbers[0]), [self._url(number) for number in numbers.tolist()]

    def _url(self, number: int) -> str:
        return self._written.at(*self._urls[number]).decode("utf-8", "surrogatepass")
