"""What is asked of the index on Redis. Nothing is written, but for paths that a look shortens (`lua/forest.lua`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
from clusterd_consumer.postings.keys import prepare, prepare_all
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.postings.stored import Restored
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import PROFILES, Sketch, StreamSketch

from clusterd.clusters.acceptance import loosest, slot_of
from clusterd.clusters.changes import first_other, gathered
from clusterd.clusters.contract import Cluster, Hit, Look, Policy, Version
from clusterd.clusters.identity import url_key
from clusterd.clusters.redis.asking.listing import Listing
from clusterd.clusters.redis.asking.matching import matching
from clusterd.clusters.redis.asking.members import (
    PAGE,
    VERSION,
    Members,
    current,
    pages_of_host,
    urls_of,
    versions_by_page,
)
from clusterd.clusters.redis.asking.origins import originals
from clusterd.clusters.redis.asking.ranking import of_company, ranked, rankings, unproposed
from clusterd.clusters.redis.home import Home
from clusterd.clusters.redis.homes import CHUNK, PART, Homes
from clusterd.clusters.redis.policies import Policies
from clusterd.clusters.redis.spans.counting import ClusterCounts
from clusterd.clusters.redis.spans.steps import Spans
from clusterd.portions import portions

#: URLs of one content that are put in order, at least; of more, any are answered.
EQUALS: Final = 64
#: Pages whose matches are looked for together, and of how many contents, the best, it is asked who shows them: one of
#: them is the page's own, and some may have departed.
TOGETHER: Final = 64
BEST: Final = 8
#: Documents all values of which are looked up together: some 200 values each, of which a server reads the buckets.
LISTED: Final = 16
#: Hits whose clusters are asked for more, at most.
COMPANY: Final = 1000


class Questions:
    """Answers about clusters, pages and documents never seen before, under the policies that the store has by then."""

    def __init__(self, homes: Homes, policies: Policies, spans: Spans, lists: RedisLists, scheme: Scheme) -> None:
        self._homes = homes
        self._policies = policies
        self._spans = spans
        self._lists = lists
        self._scheme = scheme
        self._members = Members(homes, spans)
        self._listing = Listing(homes, spans, self._members)
        self._counts = ClusterCounts(homes)

    def _known(self) -> Sequence[Policy]:
        return self._policies.reload().entries

    def clusters(self, policy: str, min_size: int, host: str | None) -> Iterator[Cluster]:
        """Yield the clusters of a policy, largest first."""
        return self._listing.clusters(self._known(), policy, min_size, host)

    def cluster_counts(self) -> dict[str, int]:
        """Return how many clusters of two URLs and more each policy has."""
        known = self._known()
        return self._counts.of([(policy.name, slot_of(known, policy.name)) for policy in known if not policy.vacant])

    def cluster_of(self, url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL; walks its members in bounded calls."""
        found = self._members.of(slot_of(self._known(), policy), url)
        if found is None:
            return None
        name, pages = found
        return gathered(f"{policy}-{name}", policy, urls_of(self._homes, np.array(pages)))

    def cluster_names(self, urls: Sequence[str], policy: str) -> list[str | None]:
        """Return the name of the cluster of each URL: a few round trips for `CHUNK`, none of them walked."""
        slot = slot_of(self._known(), policy)
        names = [name for part in portions(urls, CHUNK) for name in self._members.names(slot, part)]
        return [None if name is None else f"{policy}-{name}" for name in names]

    def similar(self, query: StreamSketch, profile: int, limit: int, look: Look) -> list[Hit]:
        """Return the pages that resemble the query, best first: all its values are looked up, not a few."""
        kind, policies = PROFILES[profile], self._known()
        stored, _ = prepare(query, kind, self._scheme)
        (found,) = rankings(self._lists, [query], [stored], kind, self._scheme)
        named = _names_clusters(policies)
        (hits,) = self._hits([found], named, limit)
        if look == "lists":
            return hits
        contents = sum(one.contents for one in self._homes.counters())
        more: dict[int, Estimate] = {}
        seen = set(found)
        for numbers in self._members.left_out(loosest(policies), [hit.url for hit in hits[:COMPANY]], profile, found):
            seen.update(numbers)
            more |= of_company(query, stored, kind, self._scheme, self._stored(numbers), contents)
        if look == "all":
            for numbers in current(self._homes, profile):
                unknown = [number for number in numbers if number not in seen]
                more |= unproposed(stored, kind, self._stored(unknown), contents)
        return self._hits([ranked(found | more)], named, limit)[0] if more else hits

    def listed(self, queries: Sequence[StreamSketch], profile: int, limit: int) -> list[list[Hit]]:
        """Return what `similar` says of each of these by the lists alone: some ten round trips for `LISTED`."""
        kind, named = PROFILES[profile], _names_clusters(self._known())
        found: list[list[Hit]] = []
        for part in portions(queries, LISTED):
            stored = [one for one, _ in prepare_all(part, kind, self._scheme)]
            found += self._hits(rankings(self._lists, part, stored, kind, self._scheme), named, limit)
        return found

    def matches(self, sketches: Sequence[Sketch]) -> list[Hit | None]:
        """Return the other page that resembles each best; None where there is none. Four round trips for `TOGETHER`."""
        found: list[Hit | None] = []
        for part in portions(sketches, TOGETHER):
            best = [dict(islice(one.items(), BEST)) for one in matching(self._lists, part, self._scheme)]
            shown = self._members.shown(sorted({number for one in best for number in one}), 2)
            pages = sorted({page for _, _, of in shown.values() for page in of})
            url_of = dict(zip(pages, urls_of(self._homes, np.array(pages, np.int64)), strict=True))
            for sketch, one in zip(part, best, strict=True):
                hits = (Hit(url_of[page], *verdict, None) for n, verdict in one.items() for page in shown[n][2])
                found.append(first_other(hits, sketch.url))
        return found

    def _stored(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return {number: one for number, one in self._lists.sketches(numbers).items() if one}

    def _hits(self, several: Sequence[Mapping[int, Estimate]], named: str, limit: int) -> list[list[Hit]]:
        """Return of each of several answers the pages that show its first contents, which are in order, best first."""
        picked = [Picked(list(found.items()), limit) for found in several]
        while left := [one for one in picked if not one.full]:
            chunks = [one.following(max(1, CHUNK // len(left))) for one in left]
            reply = self._members.shown(sorted({number for chunk in chunks for number, _ in chunk}), max(limit, EQUALS))
            for one, chunk in zip(left, chunks, strict=True):
                one.take(chunk, reply)
        shown = [entry for one in picked for entry in one.shown]
        spanning = self._spans.standings({name for _, _, name, _ in shown})
        urls = iter(urls_of(self._homes, np.array([page for *_, of in shown for page in of], np.int64)))
        found = []
        for one in picked:
            hits = []
            for verdict, own_size, own_name, of in one.shown:
                span = spanning.get(own_name)
                size, name = (span.size, span.name) if span else (own_size, own_name)
                cluster = f"{named}-{name}" if size > 1 else None
                hits += [Hit(url, *verdict, cluster) for url in islice(urls, len(of))]
            found.append(sorted(hits, key=lambda hit: hit.rank)[:limit])
        return found

    def versions_of(self, urls: Sequence[str]) -> list[list[Version]]:
        """Return the versions of URLs, oldest first."""
        return [
            self._versions(self._homes.of_url(url), url, packed) if packed else []
            for url, packed in zip(urls, self._packed_versions(urls), strict=True)
        ]

    def pages(self, host: str | None, revised: bool = False) -> Iterator[Version]:
        """Yield the versions of all URLs, or of those of a host (``revised``: that have shown several texts)."""
        if host is None:
            of = [np.arange(1, known.urls + 1, dtype="<u4") for known in self._homes.counters()]
        else:
            own = self._homes.of_host(host)
            numbers = (pages_of_host(self._homes, host) & 0xFFFFFFFF).astype("<u4")
            of = [numbers if home is own else numbers[:0] for home in self._homes.all]
        for place, reply in versions_by_page(self._homes, [numbers.tobytes() for numbers in of], revised):
            for url, packed in zip(reply[::2], reply[1::2], strict=True):
                yield from self._versions(self._homes.all[place], url.decode(), packed)

    def pages_of(self, hosts: Sequence[str]) -> Iterator[tuple[str, list[Version]]]:
        """Yield each host with the versions of its URLs: of hosts of few pages up to `CHUNK` pages at a time."""
        for some in portions(hosts, CHUNK):
            few: list[tuple[str, bytes]] = []
            for host, numbers in self._first_pages_of(some):
                if sum(len(of) for _, of in few) + len(numbers) >= CHUNK * PAGE:
                    yield from self._together(few)
                    few = []
                if len(numbers) < CHUNK * PAGE:
                    few.append((host, numbers))
                else:
                    yield host, list(self.pages(host))
            yield from self._together(few)

    def _first_pages_of(self, hosts: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return the numbers of up to `CHUNK` pages of each host."""
        asked = [self._homes.of_host(host).request("GETRANGE", f"h:{host}", 0, CHUNK * PAGE - 1) for host in hosts]
        return list(zip(hosts, self._homes.send(asked), strict=True))

    def _together(self, few: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, list[Version]]]:
        """Yield hosts with the versions of these pages of theirs, in few round trips."""
        of = [b""] * len(self._homes)
        for host, numbers in few:
            of[self._homes.of_host(host).place] += numbers
        replies: list[list[bytes]] = [[] for _ in of]
        for place, reply in versions_by_page(self._homes, of):
            replies[place] += reply
        in_turn = list(map(iter, replies))
        for host, numbers in few:
            home = self._homes.of_host(host)
            reply = list(islice(in_turn[home.place], len(numbers) // PAGE * 2))
            found = zip(reply[::2], reply[1::2], strict=True)
            yield host, [one for url, packed in found for one in self._versions(home, url.decode(), packed)]

    def _versions(self, home: Home, url: str, packed: bytes) -> list[Version]:
        fetches = list(map(_fetch, VERSION.iter_unpack(packed)))
        names = home.label_names(max((max(f.crawl, f.sweep) for f in fetches), default=0))
        versions = [
            Version(
                url=url,
                fetched_at=fetch.at,
                text=fetch.text,
                content=fetch.content,
                bag=fetch.bag,
                crawl=names[fetch.crawl],
                sweep=names[fetch.sweep],
                status=fetch.status,
            )
            for fetch in fetches
        ]
        return sorted(versions, key=lambda version: (version.fetched_at, version.text))

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return the stored sketches of versions: two round trips for `CHUNK`."""
        found: list[StreamSketch | None] = []
        for part in portions(asked, CHUNK):
            fetches = self._fetches(part)
            stored_of = self._lists.sketches({fetch.number for fetch in fetches if fetch is not None})
            found += [None if fetch is None else _restored(fetch, stored_of[fetch.number]) for fetch in fetches]
        return found

    def _fetches(self, asked: Sequence[tuple[str, int | None]]) -> list[Fetch | None]:
        """Return the version that each asks for."""
        packed = self._packed_versions([url for url, _ in asked])
        return [_fetched(one, at) for one, (_, at) in zip(packed, asked, strict=True)]

    def _packed_versions(self, urls: Sequence[str]) -> list[bytes]:
        """Return the versions of URLs, as their homes have them: those of one host are all in one."""
        of: list[list[int]] = [[] for _ in self._homes.all]
        for place, url in enumerate(urls):
            of[self._homes.of_url(url).place].append(place)
        found = [b""] * len(urls)
        for one in self._homes.rounds([len(places) for places in of], alone=PART):
            parts = {home: of[home][start:end] for home, (start, end) in one.items()}
            keys = {home: ("hash", b"".join([url_key(urls[place]) for place in part])) for home, part in parts.items()}
            for home, reply in self._homes.each("versions", keys).items():
                for place, packed in zip(parts[home], reply[1::2], strict=True):
                    found[place] = packed
        return found

    def originals(self, policy: str, asked: Sequence[tuple[str, int | None]]) -> list[int | None]:
        """Return for each version the text of the oldest content that is known to resemble it itself."""
        policies = self._known()
        slot, kind = slot_of(policies, policy), next(one for one in policies if one.name == policy)
        fetches = self._fetches(asked)
        texts = [fetch.text if fetch else None for fetch in fetches]
        copies = [(place, fetch.number) for place, fetch in enumerate(fetches) if fetch and fetch.shingles]
        if slot < 0 or not copies:
            return texts
        found = originals(self._homes, self._spans, self._lists, slot, kind, [number for _, number in copies])
        for (place, _), text in zip(copies, found, strict=True):
            texts[place] = text
        return texts


def _names_clusters(policies: Sequence[Policy]) -> str:
    """Return the policy under which hits name their clusters."""
    return next((policy.name for policy in policies if not (policy.identical or policy.vacant)), "")


@dataclass
class Picked:
    """Of contents in their order the first, with the size and the name of their clusters, and the pages that show them.

    As many as have ``limit`` pages, and those that resemble as much as the last of these, up to `CHUNK` contents.
    """

    in_order: Sequence[tuple[int, Estimate]]
    limit: int
    shown: list[tuple[Estimate, int, int, list[int]]] = field(default_factory=list)
    pages: int = 0
    full: bool = False

    def __post_init__(self) -> None:
        self.full = not self.in_order or self.limit < 1

    def following(self, most: int) -> Sequence[tuple[int, Estimate]]:
        """Return the next of the contents, none beyond the end of a chunk."""
        start = len(self.shown)
        return self.in_order[start : min(start + most, start - start % CHUNK + CHUNK)]

    def take(self, chunk: Sequence[tuple[int, Estimate]], reply: Mapping[int, tuple[int, int, list[int]]]) -> None:
        """Take what is needed of some contents; ``reply``: size, name and pages of each."""
        for number, verdict in chunk:
            if self.pages >= self.limit and verdict.resemblance < self.shown[-1][0].resemblance:
                self.full = True
                return
            self.shown.append((verdict, *reply[number]))
            self.pages += len(reply[number][2])
        ends = len(self.shown) % CHUNK == 0 and self.pages >= self.limit
        self.full = ends or len(self.shown) == len(self.in_order)


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
    return Restored(stored or bytes(4), PROFILES[fetch.profile], fetch.shingles, fetch.tokens, fetch.text)


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
