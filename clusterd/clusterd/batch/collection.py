"""Phase one: the documents of a batch. Identical ones are eliminated first (Broder et al. 1997, section 5.2).

Of all versions of a URL the latest counts, as in the stream. Stored sketches and URLs go to files; memory holds some 50
bytes a document, and the URLs (each some 40 bytes more than it is long) while they are sorted. A sketch that many
documents have is kept once, where fewer than `REMEMBERED` others lie between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from clusterd_consumer.postings.posted import keys_of, prepare
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.held_bytes import HeldBytes
from clusterd.batch.phases import Keys
from clusterd.clusters.identity import sketch_key, text_key

#: Sketches of which it is known where they are stored; some 150 bytes each.
REMEMBERED: Final = 1 << 20

Numbers = npt.NDArray[np.int64]


class Collection:
    """The current versions of a collection: URL → text → content, and each content's stored sketch."""

    def __init__(self, scheme: Scheme, folder: Path | None = None) -> None:
        self._scheme = scheme
        self._held = HeldBytes(folder)
        self._written = HeldBytes(folder)
        self._places: dict[bytes, tuple[int, int]] = {}
        # Of each version: where its URL begins, when it was fetched, its text's fingerprint, the identities of its text
        # and its sketch (under its profile), its profile, and where its stored sketch lies.
        self._urls = array("Q", [0])
        self._at = array("q")
        self._fingerprints = array("Q")
        self._texts = array("Q")
        self._sketches = array("Q")
        self._profiles = array("B")
        self._starts = array("Q")
        self._sizes = array("I")
        #: Versions that count, in the order of their URLs; the number of the text and of the content of each.
        self._current: Numbers = np.zeros(0, np.int64)
        self.texts: Numbers = self._current
        self.numbers: Numbers = self._current
        #: Of each content a version that shows it.
        self._shown: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        self._written.close()

    def add(self, sketches: Iterable[Sketch]) -> None:
        """Take versions in any order."""
        for sketch in sketches:
            key = sketch_key(sketch)
            start, size = self._places.get(key) or self._store(key, sketch)
            self._written.add(sketch.url.encode("utf-8", "surrogatepass"))
            self._urls.append(self._written.size)
            self._at.append(sketch.fetched_at)
            self._fingerprints.append(sketch.main.text)
            self._texts.append(int.from_bytes(text_key(sketch), "little"))
            self._sketches.append(int.from_bytes(key, "little"))
            self._profiles.append(sketch.profile)
            self._starts.append(start)
            self._sizes.append(size)

    def _store(self, key: bytes, sketch: Sketch) -> tuple[int, int]:
        stored, _ = prepare(sketch.main, PROFILES[sketch.profile], self._scheme)
        if len(self._places) >= REMEMBERED:
            self._places.clear()
        place = self._places[key] = self._held.add(stored), len(stored)
        return place

    def number(self) -> None:
        """Number the texts and contents that current versions show; no version is taken after this."""
        self._places.clear()
        self._current = self._latest()
        self.texts, _ = _numbered(np.asarray(self._texts)[self._current])
        self.numbers, first = _numbered(np.asarray(self._sketches)[self._current])
        self._shown = self._current[first].tolist()

    def _latest(self) -> Numbers:
        """Return the latest version of each URL, in the order of the URLs."""
        by_time = np.lexsort((np.arange(len(self._at))[::-1], np.asarray(self._fingerprints), np.asarray(self._at)))
        urls = [self._url(version) for version in range(len(self._at))]
        ordered = sorted(by_time.tolist(), key=urls.__getitem__)
        pairs = zip_longest(ordered, islice(ordered, 1, None))
        return np.array([one for one, next_ in pairs if next_ is None or urls[one] != urls[next_]], np.int64)

    def _url(self, version: int) -> bytes:
        start, end = self._urls[version : version + 2]
        return bytes(self._written.at(start, end - start))

    def __len__(self) -> int:
        return len(self._shown)

    def profile(self, number: int) -> int:
        """Return the code of a content's profile."""
        return self._profiles[self._shown[number]]

    def stored(self, number: int) -> bytes:
        """Return a content's stored sketch."""
        version = self._shown[number]
        return bytes(self._held.at(self._starts[version], self._sizes[version]))

    def keys(self) -> Iterator[Keys]:
        """Yield the posted keys of each content, in the order of their numbers."""
        for number in range(len(self)):
            yield keys_of(self.stored(number), self.profile(number), self._scheme)

    def grouped(self, names: Numbers, least: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the URLs that have one name, given a name for each URL, with the group's number.

        Groups are numbered as their first URLs come; those of fewer than ``least`` URLs are left out.
        """
        numbers, first = _numbered(names)
        order = self._current[np.argsort(numbers, kind="stable")]
        sizes = np.bincount(numbers, minlength=len(first))
        for number, (end, size) in enumerate(zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True)):
            if size >= least:
                members = order[end - size : end].tolist()
                yield number, [self._url(version).decode("utf-8", "surrogatepass") for version in members]


def _numbered(names: npt.NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Number names as they first come: return the number of each, and where each number comes first."""
    _, first, which = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[which], first[order]
