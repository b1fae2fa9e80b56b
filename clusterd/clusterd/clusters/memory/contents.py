"""What the index in memory keeps: contents, and the fetches that show them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from clusterd_consumer.postings.stored import Restored
from clusterd_crawler.sketch import PROFILES, Sketch
from clusterd_crawler.urls import host_of

from clusterd.clusters.contract import Version


@dataclass(slots=True)
class Content:
    """A set of versions with one sketch identity."""

    number: int
    profile: int
    key: bytes
    stored: bytes
    #: Its first text (`Version.text`).
    text: int
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

    def shows_as(self, other: Fetch) -> bool:
        """Whether it shows the text that another one does, in the same content."""
        return self.text_key == other.text_key and self.content is other.content


def version_of(sketch: Sketch) -> Version:
    """Return what is kept of a fetch."""
    return Version(
        url=sketch.url,
        fetched_at=sketch.fetched_at,
        text=sketch.main.text,
        content=sketch.content,
        bag=sketch.bag,
        crawl=sketch.crawl,
        sweep=sketch.sweep,
        status=sketch.status,
    )


def shown(content: Content) -> Iterator[str]:
    """Yield the URLs that show a content now."""
    return (url for group in content.texts.values() for url in group)


def urls_of(content: Content) -> list[str]:
    """Return the URLs that show a content now."""
    return list(shown(content))


def neighbours(content: Content, slot: int) -> list[int]:
    """Return the contents that a policy joins with this one."""
    return [number for number, bits in content.edges.items() if bits >> slot & 1]


class Pages:
    """The fetches of every URL, oldest first."""

    def __init__(self) -> None:
        self._urls: dict[str, list[Fetch]] = {}
        self._hosts: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._urls)

    def __iter__(self) -> Iterator[list[Fetch]]:
        return iter(self._urls.values())

    def of(self, url: str) -> Sequence[Fetch]:
        """Return the fetches of a URL, none of one that is unknown."""
        return self._urls.get(url, ())

    def add(self, fetch: Fetch) -> None:
        """Put a fetch in its place among those of its URL."""
        url = fetch.version.url
        self._hosts.setdefault(host_of(url), {})[url] = None
        insort(self._urls.setdefault(url, []), fetch, key=lambda one: one.order)

    def found(self, url: str, order: tuple[int, int]) -> Fetch | None:
        """Return the fetch of a URL that has this order: by halves, for a URL may have been fetched very often."""
        fetches = self.of(url)
        place = bisect_left(fetches, order, key=lambda one: one.order)
        return fetches[place] if place < len(fetches) and fetches[place].order == order else None

    def at(self, url: str, fetched_at: int | None) -> Fetch | None:
        """Return a fetch by its time, or the latest."""
        return next((one for one in reversed(self.of(url)) if fetched_at in {None, one.version.fetched_at}), None)

    def versions(self, url: str) -> list[Version]:
        """Return all versions of a URL, oldest first."""
        return [fetch.version for fetch in self.of(url)]

    def urls(self, host: str | None) -> list[str]:
        """Return the URLs of a host, or all."""
        return list(self._urls if host is None else self._hosts.get(host, ()))

    def hosts(self) -> list[str]:
        """Return the hosts, sorted."""
        return sorted(self._hosts)

    def expire(self, before: int) -> list[Fetch]:
        """Take the superseded fetches of before a time out; return them."""
        gone = [one for fetches in self for one in fetches[:-1] if one.version.fetched_at < before]
        for fetches in self:
            fetches[:-1] = [one for one in fetches[:-1] if one.version.fetched_at >= before]
        return gone


def sketch_of(fetch: Fetch | None) -> Restored | None:
    """Return the stored sketch of a fetch."""
    if fetch is None:
        return None
    profile, text = PROFILES[fetch.content.profile], fetch.version.text
    return Restored(fetch.content.stored, profile, fetch.shingles, fetch.tokens, text)
