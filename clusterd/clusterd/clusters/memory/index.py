"""The index in memory: the reference implementation, and what a single process uses without Redis.

A content lives while a current version shows it, and is posted while it lives. When its last current version goes it is
taken out of its lists, and stays in the graph as a ghost until `settle` has looked whether its clusters hold without
it. It never lives again (the same text makes a new content): posted, ghost, kept for history, forgotten, in this order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Literal

from clusterd_consumer.postings.judging import alike_of, judge_many
from clusterd_consumer.postings.keys import keys_of, prepare, super_keys
from clusterd_consumer.postings.lists import Lists
from clusterd_consumer.postings.scheme import DEFAULT, Scheme, mantissa
from clusterd_consumer.resemblance import Estimate
from clusterd_consumer.transport.contract import Position, SetBack
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import PROFILES, Sketch, StreamSketch
from clusterd_crawler.urls import host_of

from clusterd.clusters.acceptance import loosest, slot_of
from clusterd.clusters.changes import changes, first_other, gathered
from clusterd.clusters.contract import (
    DEFAULT_POLICIES,
    SPLITS,
    WITHOUT_WHOLE,
    Cluster,
    Hit,
    Look,
    Outcome,
    Policy,
    Split,
    Stream,
    Version,
)
from clusterd.clusters.identity import sketch_key, text_key
from clusterd.clusters.memory.alike import alike, hits, original
from clusterd.clusters.memory.contents import Content, Fetch, Pages, shown, sketch_of, version_of
from clusterd.clusters.memory.graph import Graph
from clusterd.clusters.memory.wholes import Wholes

Identity = Literal["text", "sketch"]


class MemoryIndex:
    """The index, in this process's memory."""

    def __init__(
        self, policies: Sequence[Policy] = DEFAULT_POLICIES, scheme: Scheme = DEFAULT, whole: bool = False
    ) -> None:
        self._scheme = scheme
        self._lock = threading.RLock()
        self._graph = Graph(policies)
        self._contents = self._graph.contents
        self._pages = Pages()
        self._by_key: dict[tuple[int, bytes], Content] = {}
        self._lists = Lists(scheme.bound, scheme.latest)
        self._numbers = count(1)
        self._ghosts: deque[Content] = deque()
        self._unbuilt: deque[int] = deque()
        #: Names of the policies for which these are to be looked up.
        self._built: set[str] = set()
        self._splits: deque[Split] = deque(maxlen=SPLITS)
        self._position: dict[str, str] = {}
        self._forgotten = 0
        self._wholes = Wholes(scheme) if whole else None

    # -- writing ---------------------------------------------------------------------------------------------------

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> list[Outcome]:
        """Apply a batch and, with it, remember how far the log was read; `SetBack` where that is not as ``known``."""
        with self._lock:
            outcomes = [self._apply(sketch) for sketch in sketches]
            for partition, offset in (position or {}).items():
                if self._position.get(partition, "") not in ((known or {}).get(partition, ""), offset):
                    raise SetBack
            self._position.update(position or {})
            return outcomes

    def _apply(self, sketch: Sketch) -> Outcome:
        fetches, order = self._pages.of(sketch.url), (sketch.fetched_at, sketch.main.text)
        known = self._pages.found(sketch.url, order)
        before = fetches[-1] if fetches else None
        left = self._graph.standing(before) if before else {}
        fetch, identity, twin, best = (known, None, None, None) if known else self._take(sketch, before)
        current = self._pages.of(sketch.url)[-1]
        clusters = self._graph.standing(current) if fetch is current or (known and fetch.shows_as(current)) else {}
        if self._wholes and fetch is current:
            self._wholes.put(sketch)  # also of a version known already: one text may have had other chrome that day
        match = (twin, 1.0) if twin else best or (None, 0.0)
        return Outcome(
            url=sketch.url,
            fetched_at=sketch.fetched_at,
            new=known is None,
            identity=identity,
            match=match[0],
            resemblance=match[1],
            clusters=clusters,
            changes=changes(left, clusters) if known is None and fetch is current else (),
        )

    def _take(
        self, sketch: Sketch, before: Fetch | None
    ) -> tuple[Fetch, Identity | None, str | None, tuple[str, float] | None]:
        """Store a version; make it current where it is the latest. Return it, its identity, twin and best match."""
        latest = before is None or before.order < (sketch.fetched_at, sketch.main.text)
        content, fresh = self._content(sketch, latest)
        fetch = Fetch(version_of(sketch), text_key(sketch), content, sketch.main.shingles, sketch.main.tokens)
        content.versions += 1
        self._pages.add(fetch)
        if not latest:
            return fetch, None, None, None
        group = content.texts.setdefault(fetch.text_key, {})
        twins = (next((u for u in g if u != sketch.url), None) for g in chain((group,), content.texts.values()))
        text_twin = next(twins)
        twin = text_twin or next(filter(None, twins), None)
        if before is None or not fetch.shows_as(before):
            group[sketch.url] = None
            self._graph.count(content, 1)
            if before is not None:
                self._leave(before)
        best = self._post(content) if fresh else None
        return fetch, ("text" if text_twin else "sketch" if twin else None), twin, best

    def _content(self, sketch: Sketch, latest: bool) -> tuple[Content, bool]:
        """Return the content of a sketch, and whether it is new and is to be posted."""
        key = (sketch.profile, sketch_key(sketch))
        known = self._by_key.get(key)
        if known is not None and not (known.departed and latest):
            return known, False
        stored, _ = prepare(sketch.main, PROFILES[sketch.profile], self._scheme)
        content = Content(next(self._numbers), *key, stored, sketch.main.text, departed=not latest)
        self._contents[content.number] = self._by_key[key] = content
        return content, latest

    def _post(self, content: Content) -> tuple[str, float] | None:
        """Write first, then look up: post a content and join it with what it resembles. Return the best match."""
        verdicts = self._verdicts(content)
        self._graph.join(content, verdicts)
        best = max(verdicts, key=lambda number: (verdicts[number].resemblance, -number), default=None)
        if best is None or not verdicts[best].resemblance:
            return None
        return next(shown(self._contents[best])), verdicts[best].resemblance

    def _verdicts(self, content: Content) -> dict[int, Estimate]:
        """Post a content, and return the verdicts on what that proposes; of a crowded one on what is alike, too."""
        keys = keys_of(content.stored, content.profile, self._scheme).tolist()
        verdicts = self._judge(content, self._lists.propose(keys, content.number))
        common = self._lists.common(keys, content.number)
        if self._scheme.is_crowded(len(keys), common) and not alike_of(verdicts):
            further = super_keys(content.stored, content.profile, self._scheme).tolist()
            verdicts |= alike_of(self._judge(content, self._lists.propose(further, content.number)))
        return verdicts

    def _judge(self, content: Content, numbers: Sequence[int]) -> dict[int, Estimate]:
        others = [self._contents[number] for number in numbers if number != content.number]
        stored = {other.number: other.stored for other in others if other.profile == content.profile}
        bits = mantissa(PROFILES[content.profile])
        return dict(zip(stored, judge_many(content.stored, list(stored.values()), bits), strict=True))

    def _leave(self, fetch: Fetch) -> None:
        """Take a URL out of what it showed before; a content that nothing shows any more becomes a ghost."""
        content = fetch.content
        group = content.texts[fetch.text_key]
        del group[fetch.version.url]
        if not group:
            del content.texts[fetch.text_key]
        self._graph.count(content, -1)
        if not content.live:
            content.departed = True
            for keys in (keys_of, super_keys):
                self._lists.withdraw(keys(content.stored, content.profile, self._scheme).tolist(), content.number)
            self._ghosts.append(content)

    # -- settling --------------------------------------------------------------------------------------------------

    def settle(self, steps: int | None = None) -> int:
        """Let up to ``steps`` ghosts go, or contents be looked up for a new policy; return how many still wait."""
        with self._lock:
            while (self._ghosts or self._unbuilt) and steps != 0:
                if self._ghosts:
                    ghost = self._ghosts.popleft()
                    self._splits.extend(self._graph.dismiss(ghost))
                    self._forget(ghost)
                else:
                    self._rebuild(self._unbuilt.popleft())
                steps = None if steps is None else steps - 1
            return len(self._ghosts) + len(self._unbuilt)

    def only_awaits(self) -> bool:
        """Return whether nothing is left to settle: no page is in any worker's hand."""
        return not (self._ghosts or self._unbuilt)

    def splits(self) -> list[Split]:
        """Return the splits that `settle` found and nobody has `told` yet, oldest first."""
        with self._lock:
            return list(self._splits)

    def told(self, splits: Sequence[Split]) -> None:
        """Forget splits that were told to whoever wants to know."""
        with self._lock:
            self._splits = deque((one for one in self._splits if one not in splits), SPLITS)

    def _rebuild(self, number: int) -> None:
        """Look a content up again for a policy that was added after it had been posted."""
        content = self._contents.get(number)
        if content is not None and content.live:
            self._graph.join(content, self._verdicts(content))

    def _forget(self, content: Content) -> None:
        """Free a content that no version shows and that is out of the graph."""
        if content.versions or content.edges:
            return
        self._contents.pop(content.number, None)
        if self._by_key.get((content.profile, content.key)) is content:
            del self._by_key[content.profile, content.key]

    def expire(self, before: int) -> int:
        """Forget superseded versions fetched before a time and free what only they held; return how many."""
        with self._lock:
            gone = self._pages.expire(before)
            for fetch in gone:
                fetch.content.versions -= 1
                self._forget(fetch.content)
            self._forgotten = max(self._forgotten, before if gone else 0)
            return len(gone)

    def expiring(self, before: int) -> Iterator[int]:
        """Do what `expire` does, all in one step."""
        yield self.expire(before)

    def forgotten(self) -> int:
        """Return before which time (Unix ms) superseded versions were forgotten; 0: none was."""
        return self._forgotten

    # -- policies --------------------------------------------------------------------------------------------------

    def policies(self) -> list[Policy]:
        """Return the policies in use."""
        return self._graph.policies

    def add_policy(self, policy: Policy) -> None:
        """Add a policy and build its clusters from the stored sketches (with `settle`)."""
        with self._lock:
            if self._graph.add_policy(policy):
                self._built = {policy.name, *(self._built if self._unbuilt else ())}
                self._unbuilt = deque(content.number for content in self._contents.values() if content.live)

    def remove_policy(self, name: str) -> None:
        """Remove a policy, if there is one of this name."""
        with self._lock:
            self._graph.remove_policy(name)
            self._built.discard(name)
            if not self._built:
                self._unbuilt.clear()
            self._splits = deque((one for one in self._splits if one.policy != name), SPLITS)

    # -- asking ----------------------------------------------------------------------------------------------------

    def clusters(self, policy: str, min_size: int = 2, host: str | None = None) -> Iterator[Cluster]:
        """Yield the clusters, largest first; with ``host`` those with a member there."""
        with self._lock:
            found = [cluster for cluster in self._all(policy) if cluster.size >= min_size]
        found = [one for one in found if host is None or any(host_of(url) == host for url in one.members)]
        yield from sorted(found, key=lambda cluster: (-cluster.size, cluster.representative))

    def _all(self, policy: str) -> Iterator[Cluster]:
        seen: set[str] = set()
        for fetches in self._pages:
            name, urls = self._graph.place(fetches[-1], policy)
            if name not in seen:
                seen.add(name)
                yield gathered(name, policy, urls)

    def cluster_of(self, url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL's current version; None for an unknown URL."""
        with self._lock:
            fetches = self._pages.of(url)
            if not fetches:
                return None
            name, urls = self._graph.place(fetches[-1], policy)
            return gathered(name, policy, urls)

    def cluster_names(self, urls: Sequence[str], policy: str) -> list[str | None]:
        """Return the name of each URL's cluster; None for an unknown URL."""
        slot_of(self.policies(), policy)
        names: dict[str, str | None] = {}
        for url in urls:
            if url not in names:  # a cluster is walked once for all its members
                cluster = self.cluster_of(url, policy)
                names |= dict.fromkeys(cluster.members, cluster.cluster) if cluster else {url: None}
        return [names[url] for url in urls]

    def similar(
        self, query: StreamSketch, profile: int, limit: int = 10, stream: Stream = "main", look: Look = "clusters"
    ) -> list[Hit]:
        """Return the pages that resemble or contain or are contained in the query, best resemblance first."""
        if stream == "whole":
            return self._kept_whole().similar(query, profile)[:limit]
        with self._lock:
            forests = [] if look == "lists" else [self._graph.forests[slot] for slot in loosest(self._graph.graded)]
            found = alike(query, profile, self._contents, self._lists, forests, self._scheme, look == "all")
            return hits(found, self._graph.first_name)[:limit]

    def listed(self, queries: Sequence[StreamSketch], profile: int, limit: int = 10) -> list[list[Hit]]:
        """Return what `similar` says of each of these by the lists alone."""
        return [self.similar(query, profile, limit, look="lists") for query in queries]

    def matches(self, sketches: Sequence[Sketch]) -> list[Hit | None]:
        """Return for each page the other one that resembles it best; None where there is none."""
        return [first_other(self.similar(one.main, one.profile, 2, look="lists"), one.url) for one in sketches]

    def versions_of(self, urls: Sequence[str]) -> list[list[Version]]:
        """Return all known versions of each of these URLs, oldest first."""
        with self._lock:
            return [self._pages.versions(url) for url in urls]

    def pages(self, host: str | None = None, *, revised: bool = False) -> Iterator[Version]:
        """Yield the versions of all URLs (of a host; ``revised``: of several texts), those of a URL together."""
        for url in self._pages.urls(host):
            versions = self.versions_of([url])[0]
            if not revised or len({version.text for version in versions}) > 1:
                yield from versions

    def pages_of(self, hosts: Sequence[str]) -> Iterator[tuple[str, list[Version]]]:
        """Yield each of these hosts with what `pages` says of it."""
        return ((host, list(self.pages(host))) for host in hosts)

    def sketch(self, url: str, fetched_at: int | None = None) -> StreamSketch | None:
        """Return the stored main sketch of a version, its values cut: to be compared with others from here."""
        return self.sketches([(url, fetched_at)])[0]

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return what `sketch` says of each of these URLs and fetch times."""
        with self._lock:
            return [sketch_of(self._pages.at(url, at)) for url, at in asked]

    def whole_sketch(self, url: str) -> StreamSketch | None:
        """Return the stored sketch of a whole page; None for an unknown URL."""
        return self._kept_whole().sketch(url)

    def _kept_whole(self) -> Wholes:
        if self._wholes is None:
            raise WrongInput(WITHOUT_WHOLE)
        return self._wholes

    def originals(self, policy: str, asked: Sequence[tuple[str, int | None]]) -> list[int | None]:
        """Return for each version the text of the oldest content that is known to resemble it itself."""
        slot = slot_of(self.policies(), policy)
        with self._lock:
            fetches = [self._pages.at(url, at) for url, at in asked]
            if slot < 0:
                return [one.version.text if one else None for one in fetches]
            rest = self._contents, self._graph.forests[slot], slot, self._graph.graded[slot]
            return [original(one, *rest) if one else None for one in fetches]

    def hosts(self) -> list[str]:
        """Return the hosts of which pages are known."""
        return self._pages.hosts()

    def counts(self) -> dict[str, int]:
        """Return how much is known; ``store_bytes`` is what the sketches take, roughly."""
        with self._lock:
            return {
                "documents": len(self._pages),
                "versions": sum(map(len, self._pages)),
                "contents": len(self._contents),
                "settling": len(self._ghosts) + len(self._unbuilt),
                "store_bytes": sum(len(content.stored) for content in self._contents.values()),
            }

    def cluster_counts(self) -> dict[str, int]:
        """Return how many clusters of two URLs and more each policy has."""
        with self._lock:
            return {policy.name: sum(one.size > 1 for one in self._all(policy.name)) for policy in self.policies()}

    def position(self) -> dict[str, str]:
        """Return how far the log had been read when the state was written."""
        return dict(self._position)

    def went_back(self) -> bool:
        """Never: it is lost as a whole."""
        return False

    def close(self) -> None:
        """Nothing is held open."""
