"""What is asked of the index on Redis. Nothing is written, but for paths that a look shortens (`lua/forest.lua`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

import numpy as np
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.postings.stored import restored
from clusterd_consumer.postings.verdict import Verdict
from clusterd_consumer.redis_scripts import packed_numbers
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import PROFILES, StreamSketch

from clusterd.clusters.acceptance import loosest
from clusterd.clusters.changes import gathered
from clusterd.clusters.contract import Cluster, Hit, Look, Policy, Version
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.home import SHOWN, STANDINGS, URLS, VERSIONS, Home
from clusterd.clusters.redis.members import CHUNK, VERSION, current, left_out, members
from clusterd.clusters.redis.origins import originals
from clusterd.clusters.redis.ranking import judged, ranked, ranking, unproposed
from clusterd.clusters.redis.stream import SecondStream

#: URLs of one content that are put in order, at least; of more, any are answered.
EQUALS: Final = 64


class Questions:
    """Answers about clusters, pages and documents never seen before."""

    def __init__(self, home: Home, lists: RedisLists, scheme: Scheme) -> None:
        self._home = home
        self._lists = lists
        self._scheme = scheme

    def clusters(self, policies: Sequence[Policy], policy: str, min_size: int, host: str | None) -> Iterator[Cluster]:
        """Yield the clusters of a policy, largest first."""
        slot = slot_of(policies, policy)
        last = self._home.counters().urls
        spans = [(start, min(last, start + CHUNK - 1)) for start in range(1, last + 1, CHUNK)]
        parts = [np.frombuffer(self._home.run(STANDINGS, slot, *span), "<u4") for span in spans]
        names = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
        pages = np.argsort(names, kind="stable")
        bounds = np.flatnonzero(np.diff(names[pages])) + 1
        groups = [group for group in np.split(pages, bounds) if len(group) >= min_size and names[group[0]]]
        if host is not None:
            own_pages = self._pages_of(host).astype(np.int64)
            own = set(names[own_pages[own_pages <= last] - 1].tolist())
            groups = [group for group in groups if int(names[group[0]]) in own]
        for size, alike in groupby(sorted(groups, key=len, reverse=True), key=len):
            same = list(alike)
            urls = self._urls(np.concatenate(same) + 1)
            found = (
                gathered(f"{policy}-{names[one[0]]}", policy, urls[place * size : (place + 1) * size])
                for place, one in enumerate(same)
            )
            yield from sorted(found, key=lambda cluster: cluster.representative)

    def _urls(self, pages: np.typing.NDArray[np.int64]) -> list[str]:
        found: list[str] = []
        for start in range(0, len(pages), CHUNK):
            packed = pages[start : start + CHUNK].astype("<u4").tobytes()
            found += [url.decode() for url in self._home.run(URLS, packed)]
        return found

    def cluster_of(self, policies: Sequence[Policy], url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL; walks its members in bounded calls."""
        found = members(self._home, slot_of(policies, policy), url)
        if found is None:
            return None
        name, pages = found
        return gathered(f"{policy}-{name}", policy, self._urls(np.array(pages)))

    def similar(
        self, policies: Sequence[Policy], query: StreamSketch, profile: int, limit: int, stream: str, look: Look
    ) -> list[Hit]:
        """Return the pages that resemble the query, best first: all its values are looked up, not a few."""
        if stream != "main":
            raise WrongInput(f"stream {stream!r} is not indexed; only main is")
        kind = PROFILES[profile]
        found = ranking(self._lists, query, kind, self._scheme)
        named = next((policy.name for policy in policies if not policy.identical), "")
        hits = self._hits(found, named, limit)
        if look == "lists":
            return hits
        more: dict[int, Verdict] = {}
        for numbers in left_out(self._home, loosest(policies), [hit.url for hit in hits[:CHUNK]], profile, found):
            more |= judged(self._stored(numbers), query, kind, self._scheme)
        if look == "all":
            nodes = self._home.counters().nodes
            for numbers in current(self._home, nodes, profile):
                unknown = [number for number in numbers if number not in found and number not in more]
                more |= unproposed(self._stored(unknown), query, kind, self._scheme, nodes)
        return self._hits(ranked(found | more), named, limit) if more else hits

    def _stored(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {number: one for number, one in self._lists.sketches(numbers).items() if one}

    def _hits(self, found: Mapping[int, Verdict], named: str, limit: int) -> list[Hit]:
        """Return the pages that show the first of these contents, which are in order, best first."""
        in_order = list(found.items())
        shown: list[tuple[Verdict, str | None, bytes]] = []
        pages = 0
        for start in range(0, len(in_order), CHUNK):
            chunk = in_order[start : start + CHUNK]
            reply = self._home.run(SHOWN, packed_numbers([n for n, _ in chunk]), max(limit, EQUALS))
            for (_, verdict), standing, packed in zip(chunk, reply[::2], reply[1::2], strict=True):
                if pages >= limit and verdict.resemblance < shown[-1][0].resemblance:
                    break
                size, name = struct.unpack("<II", standing) if standing else (0, 0)
                shown.append((verdict, f"{named}-{name}" if size > 1 else None, packed))
                pages += len(packed) // 4
            if pages >= limit:
                break
        urls = iter(self._urls(np.frombuffer(b"".join(packed for _, _, packed in shown), "<u4").astype(np.int64)))
        hits = [
            Hit(url, v.resemblance, v.a_in_b, v.b_in_a, cluster)
            for v, cluster, packed in shown
            for url in islice(urls, len(packed) // 4)
        ]
        return sorted(hits, key=lambda hit: (-hit.resemblance, -hit.query_in_match, hit.url))[:limit]

    def similar_whole(self, stream: SecondStream, query: StreamSketch, profile: int, limit: int) -> list[Hit]:
        """Return the pages that resemble the query as a whole, best first; of a second stream there are no clusters."""
        found = stream.similar(query, profile, max(limit, EQUALS))
        urls = self._urls(np.array([page for _, pages in found for page in pages], np.int64))
        verdicts = [verdict for verdict, pages in found for _ in pages]
        hits = [Hit(u, v.resemblance, v.a_in_b, v.b_in_a, None) for u, v in zip(urls, verdicts, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.resemblance, -hit.query_in_match, hit.url))[:limit]

    def versions(self, url: str) -> list[Version]:
        """Return the versions of a URL, oldest first."""
        reply = self._home.run(VERSIONS, "hash", url_key(url))
        return self._versions(url, reply[1]) if reply[1] else []

    def pages(self, host: str | None) -> Iterator[Version]:
        """Yield the versions of all URLs, or of those of a host."""
        if host is None:
            numbers = np.arange(1, self._home.counters().urls + 1, dtype=np.uint32)
        else:
            numbers = self._pages_of(host)
        for start in range(0, len(numbers), CHUNK):
            reply = self._home.run(VERSIONS, "id", numbers[start : start + CHUNK].astype("<u4").tobytes())
            for url, packed in zip(reply[::2], reply[1::2], strict=True):
                yield from self._versions(url.decode(), packed)

    def _pages_of(self, host: str) -> np.typing.NDArray[np.uint32]:
        return np.frombuffer(self._home.command("GET", f"h:{host}") or b"", "<u4")

    def _versions(self, url: str, packed: bytes) -> list[Version]:
        fetches = list(map(_fetch, VERSION.iter_unpack(packed)))
        names = self._home.label_names(max((max(f.crawl, f.sweep) for f in fetches), default=0))
        versions = [
            Version(
                url=url,
                fetched_at=fetch.at,
                text=fetch.text,
                content=fetch.content,
                bag=fetch.bag,
                current=place == len(fetches) - 1,
                crawl=names[fetch.crawl],
                sweep=names[fetch.sweep],
                status=fetch.status,
            )
            for place, fetch in enumerate(fetches)
        ]
        return sorted(versions, key=lambda version: (version.fetched_at, version.text))

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return the stored sketches of versions: two round trips for a thousand."""
        found: list[StreamSketch | None] = []
        for start in range(0, len(asked), CHUNK):
            part = asked[start : start + CHUNK]
            reply = self._home.run(VERSIONS, "hash", b"".join(url_key(url) for url, _ in part))
            fetches = [_fetched(packed, at) for packed, (_, at) in zip(reply[1::2], part, strict=True)]
            stored_of = self._lists.sketches({fetch.number for fetch in fetches if fetch is not None})
            found += [None if fetch is None else _restored(fetch, stored_of[fetch.number]) for fetch in fetches]
        return found

    def originals(
        self, policies: Sequence[Policy], policy: str, asked: Sequence[tuple[str, int | None]]
    ) -> list[int | None]:
        """Return for each version the text of the oldest content that is known to resemble it itself."""
        slot, kind = slot_of(policies, policy), next(one for one in policies if one.name == policy)
        reply = self._home.run(VERSIONS, "hash", b"".join(url_key(url) for url, _ in asked))
        fetches = [_fetched(packed, at) for packed, (_, at) in zip(reply[1::2], asked, strict=True)]
        texts = [fetch.text if fetch else None for fetch in fetches]
        copies = [(place, fetch.number) for place, fetch in enumerate(fetches) if fetch and fetch.shingles]
        if slot < 0 or not copies:
            return texts
        found = originals(self._home, self._lists, slot, kind, [number for _, number in copies])
        for (place, _), text in zip(copies, found, strict=True):
            texts[place] = text
        return texts


@dataclass(frozen=True, slots=True)
class Fetch:
    """A version as the home shard gives it: the number of its content, then what `Version` and its sketch need."""

    number: int
    at: int
    text: int
    content: int
    bag: int
    crawl: int
    sweep: int
    status: int
    shingles: int
    tokens: int
    profile: int


def _fetched(packed: bytes, at: int | None) -> Fetch | None:
    """Return the version fetched at a time, or the latest; None where there is none."""
    time = None if at is None else at.to_bytes(6, "big")
    fitting = [words for words in VERSION.iter_unpack(packed) if time is None or words[1] == time]
    if not fitting:
        return None
    return _fetch(max(fitting, key=lambda words: words[1:3]))  # time and text, whose bytes are in their order


def _restored(fetch: Fetch, stored: bytes) -> StreamSketch:
    return restored(stored or bytes(4), PROFILES[fetch.profile], fetch.shingles, fetch.tokens, fetch.text)


def _fetch(words: tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, int, bytes, bytes, int]) -> Fetch:
    number, at, text, content, bag, crawl, sweep, status, shingles, tokens, profile = words
    return Fetch(
        number=number,
        at=int.from_bytes(at, "big"),
        text=int.from_bytes(text, "big"),
        content=int.from_bytes(content, "little"),
        bag=int.from_bytes(bag, "little"),
        crawl=int.from_bytes(crawl, "little"),
        sweep=int.from_bytes(sweep, "little"),
        status=status,
        shingles=int.from_bytes(shingles, "little"),
        tokens=int.from_bytes(tokens, "little"),
        profile=profile,
    )


def slot_of(policies: Sequence[Policy], name: str) -> int:
    """Return a policy's slot in the store, -1 for one by identical text."""
    known = next((policy for policy in policies if policy.name == name), None)
    if known is None:
        raise WrongInput(f"there is no policy {name!r}; policies are {', '.join(p.name for p in policies)}")
    return -1 if known.identical else [p.name for p in policies if not p.identical].index(name)
