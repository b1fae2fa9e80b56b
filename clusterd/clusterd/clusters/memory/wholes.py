"""Whole pages in memory, to be asked for beside their main texts: each that shares a key is looked at."""

from __future__ import annotations

from clusterd_consumer.postings.judging import judge_many
from clusterd_consumer.postings.keys import lookup_keys, prepare
from clusterd_consumer.postings.scheme import Scheme, mantissa
from clusterd_consumer.postings.stored import Restored, restored
from clusterd_crawler.sketch import PROFILES, Sketch, StreamSketch

from clusterd.clusters.contract import Hit


class Wholes:
    """The current whole page of each URL."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        #: Profile, stored sketch, keys.
        self._pages: dict[str, tuple[int, bytes, frozenset[int]]] = {}

    def put(self, sketch: Sketch) -> None:
        """Let a URL show this page."""
        stored, keys = prepare(sketch.whole, PROFILES[sketch.profile], self._scheme)
        self._pages[sketch.url] = sketch.profile, stored, frozenset(keys.tolist())

    def sketch(self, url: str) -> Restored | None:
        """Return the stored sketch of a page; None for an unknown URL."""
        if url not in self._pages:
            return None
        profile, stored, _ = self._pages[url]
        return restored(stored, PROFILES[profile])

    def similar(self, query: StreamSketch, profile: int) -> list[Hit]:
        """Return the pages that resemble the query as a whole, best first."""
        kind = PROFILES[profile]
        asked = frozenset(lookup_keys(query, kind, self._scheme).tolist())
        pages = list(self._pages.items())  # another thread may be writing
        alike = {url: stored for url, (code, stored, keys) in pages if code == profile and asked & keys}
        verdicts = judge_many(prepare(query, kind, self._scheme)[0], list(alike.values()), mantissa(kind))
        found = zip(alike, verdicts, strict=True)
        hits = [Hit(url, *verdict, None) for url, verdict in found if verdict.resemblance]
        return sorted(hits, key=lambda hit: hit.rank)
