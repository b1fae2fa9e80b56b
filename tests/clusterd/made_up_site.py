"""A site of made-up texts, in an index in memory."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from clusterd.clusters.memory.index import MemoryIndex
from clusterd_crawler.page import sketch_plain
from clusterd_crawler.sketch import TEXT, Profile

from clusterd import queries

DAY = 86_400_000
TEMPLATE = "this manual is part of the project its pages are free to copy and may be changed under the same terms "


def words(seed: object, count: int = 300) -> str:
    source = random.Random(f"{seed}")
    return " ".join("".join(source.choices("abcdefghijklmnop", k=5)) for _ in range(count))


def edited(text: str, every: int, seed: object = "edit", first: int = 0) -> str:
    """The text with one word in ``every`` replaced."""
    return " ".join(f"{seed}{n}" if n % every == first else word for n, word in enumerate(text.split()))


class Site:
    """An index with pages of labelled sweeps."""

    def __init__(self, profile: Profile = TEXT) -> None:
        self.index = MemoryIndex()
        self.profile = profile

    def add(self, url: str, text: str, sweep: str = "", at: int = 0, status: int = 200, crawl: str = "") -> None:
        page = sketch_plain(url, text, profile=self.profile, fetched_at=at, sweep=sweep, crawl=crawl)
        self.index.apply([replace(page, status=status)])
        while self.index.settle():
            pass

    def lost(self, *urls: str, **options: Any) -> dict[str, queries.Found]:
        told = list(queries.find_lost(self.index, self.profile, list(urls) or None, **options))
        found = {one.url: one for one in told}
        assert len(found) == len(told)
        return found


def url(path: str, host: str = "docs.example") -> str:
    return f"http://{host}/{path}"
