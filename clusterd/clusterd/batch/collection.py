"""Phase one: the documents of a batch. Identical ones are eliminated first (Broder et al. 1997, section 5.2).

Of all versions of a URL the latest counts, as in the stream. Stored sketches go to a file, so that memory holds a few
numbers a document and the URLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from clusterd_consumer.postings.posted import keys_of, prepare
from clusterd_consumer.postings.scheme import Scheme
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.batch.held_bytes import HeldBytes
from clusterd.batch.phases import Keys
from clusterd.clusters.identity import sketch_key, text_key


class Collection:
    """The current versions of a collection: URL → text → content, and each content's stored sketch."""

    def __init__(self, scheme: Scheme, folder: Path | None = None) -> None:
        self._scheme = scheme
        self._held = HeldBytes(folder)
        self._places: dict[tuple[int, bytes], tuple[int, int, int]] = {}
        self._current: dict[str, tuple[tuple[int, int], bytes, tuple[int, bytes]]] = {}
        self._contents: list[tuple[int, int, int]] = []
        #: For each URL: its text, its content's number.
        self.urls: list[str] = []
        self.texts: list[bytes] = []
        self.numbers: list[int] = []

    def add(self, sketches: Iterable[Sketch]) -> None:
        """Take versions in any order."""
        for sketch in sketches:
            order = (sketch.fetched_at, sketch.main.text)
            known = self._current.get(sketch.url)
            if known is None or known[0] < order:
                key = (sketch.profile, sketch_key(sketch))
                self._current[sketch.url] = (order, text_key(sketch), key)
                if key not in self._places:
                    stored, _ = prepare(sketch.main, PROFILES[sketch.profile], self._scheme)
                    self._places[key] = (self._held.add(stored), len(stored), sketch.profile)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def number(self) -> None:
        """Number the contents that current versions show; no version is taken after this."""
        numbers: dict[tuple[int, bytes], int] = {}
        for url, (_, text, key) in sorted(self._current.items()):
            if key not in numbers:
                numbers[key] = len(numbers)
                self._contents.append(self._places[key])
            self.urls.append(url)
            self.texts.append(text)
            self.numbers.append(numbers[key])
        self._current.clear()

    def __len__(self) -> int:
        return len(self._contents)

    def profile(self, number: int) -> int:
        """Return the code of a content's profile."""
        return self._contents[number][2]

    def stored(self, number: int) -> bytes:
        """Return a content's stored sketch."""
        start, size, _ = self._contents[number]
        return bytes(self._held.at(start, size))

    def keys(self) -> Iterator[Keys]:
        """Yield the posted keys of each content, in the order of their numbers."""
        for number in range(len(self)):
            yield keys_of(self.stored(number), self.profile(number), self._scheme)

    def grouped(self, names: Sequence[object]) -> Iterator[list[str]]:
        """Yield the URLs that have one name, given a name for each URL."""
        groups: dict[object, list[str]] = {}
        for url, name in zip(self.urls, names, strict=True):
            groups.setdefault(name, []).append(url)
        yield from groups.values()
