"""What the index in memory keeps: contents, and the fetches that show them."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterd_crawler.sketch import Sketch

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


def any_url(content: Content) -> str:
    """Return a URL that shows a content now."""
    return next(url for group in content.texts.values() for url in group)
