"""What the index in memory keeps: contents, and the fetches that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterd_consumer.postings.stored import Restored, restored
from clusterd_crawler.sketch import PROFILES, Sketch

from clusterd.clusters.contract import Version


@dataclass(slots=True)
class Content:
    """A set of versions with one sketch identity."""

    number: int
    profile: int
    key: bytes
    stored: bytes
    #: Texts of this sketch: identity → URLs whose current version shows it, in order of arrival.
    texts: dict[bytes, dict[str, None]] = field(default_factory=dict)
    live: int = 0
    versions: int = 0
    departed: bool = False
    #: Neighbours: content → bits of the policies that join the two.
    edges: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Fetch:
    """A stored version and the content that it shows."""

    version: Version
    text_key: bytes
    content: Content
    shingles: int
    tokens: int

    @property
    def order(self) -> tuple[int, int]:
        """Return what decides which version of a URL is current."""
        return self.version.fetched_at, self.version.text


def version_of(sketch: Sketch) -> Version:
    """Return what is kept of a fetch."""
    return Version(
        url=sketch.url,
        fetched_at=sketch.fetched_at,
        text=sketch.main.text,
        content=sketch.content,
        bag=sketch.bag,
        current=True,
        crawl=sketch.crawl,
        sweep=sketch.sweep,
        status=sketch.status,
    )


def urls_of(content: Content) -> list[str]:
    """Return the URLs that show a content now."""
    return [url for group in content.texts.values() for url in group]


def neighbours(content: Content, slot: int) -> list[int]:
    """Return the contents that a policy joins with this one."""
    return [number for number, bits in content.edges.items() if bits >> slot & 1]


def sketch_of(fetches: Sequence[Fetch], fetched_at: int | None) -> Restored | None:
    """Return the stored sketch of a fetch, by its time or the latest."""
    for fetch in reversed(fetches):
        if fetched_at is None or fetch.version.fetched_at == fetched_at:
            profile, text = PROFILES[fetch.content.profile], fetch.version.text
            return restored(fetch.content.stored, profile, fetch.shingles, fetch.tokens, text)
    return None
