"""Whole pages beside their main texts: what the second stream, one for all homes of a store, is told and asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from clusterd_crawler.sketch import Sketch, StreamSketch

from clusterd.clusters.contract import Hit
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.asking.members import urls_of
from clusterd.clusters.redis.asking.questions import EQUALS
from clusterd.clusters.redis.homes import OWN, Homes
from clusterd.clusters.redis.registered import CURRENT, Registered, time_of
from clusterd.clusters.redis.stream import SecondStream, Showing


def show_whole(
    homes: Homes, stream: SecondStream, sketches: Sequence[Sketch], registered: Sequence[Registered]
) -> None:
    """Post the whole pages of current versions."""
    stream.apply(
        [
            Showing(_number(homes.place_of(known.content), known.page), time_of(one), one.whole, one.profile)
            for one, known in zip(sketches, registered, strict=True)
            if known.flags & CURRENT
        ]
    )


def similar_whole(homes: Homes, stream: SecondStream, query: StreamSketch, profile: int, limit: int) -> list[Hit]:
    """Return the pages that resemble the query as a whole, best first; of a second stream there are no clusters."""
    found = stream.similar(query, profile, max(limit, EQUALS))
    pages = np.array([page for _, pages in found for page in pages], np.int64)
    if len(homes) > 1:
        pages = pages >> OWN << 32 | pages & (1 << OWN) - 1
    urls = urls_of(homes, pages)
    verdicts = [verdict for verdict, pages in found for _ in pages]
    hits = [Hit(url, *verdict, None) for url, verdict in zip(urls, verdicts, strict=True)]
    return sorted(hits, key=lambda hit: hit.rank)[:limit]


def whole_sketch(homes: Homes, stream: SecondStream, url: str) -> StreamSketch | None:
    """Return the stored sketch of what a page shows as a whole; None for an unknown URL. Three round trips."""
    home = homes.of_url(url)
    page = home.run("page", url_key(url))
    return stream.sketch(_number(home.place, int.from_bytes(page, "little"))) if page else None


def _number(place: int, page: int) -> int:
    """Return what a page of a home is called in the second stream."""
    return place << OWN | page
