"""The contract of the index: what the stream writes and what every question reads. In memory and on Redis.

A **content** is a set of versions with the same sketch identity: one representative is posted, the rest hang on it.
A **version** is a URL, its content and its fetch time; the latest fetch of a URL is current, whatever order they
arrive in. A **cluster**, under a policy, is a component of the graph whose nodes are contents with a current version
and whose edges are verified pairs that the policy accepts. The partition is a function of the set of messages alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from clusterd_consumer.transport.contract import Position
from clusterd_crawler.errors import WrongInput
from clusterd_crawler.sketch import Sketch, StreamSketch

#: What a policy may be called: its name stands in names of clusters, alerts and metrics.
POLICY_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
POLICY_NAME_IS: Final = "a name has letters, digits, _ and - only, and begins with a letter"
#: Most members of the loosest clusters of its hits that one question looks at.
WALKED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Policy:
    """When two pages belong together. One of the three is set: identical text, resemblance ≥ r, or containment ≥ c.

    Containment is the larger of both directions. Without a name it is a place that a removed policy left (`VACANT`).
    """

    name: str
    resemblance: float | None = None
    containment: float | None = None

    def __post_init__(self) -> None:
        """Refuse a threshold that is none (NaN is above nothing and equal to nothing), or two."""
        given = [one for one in (self.resemblance, self.containment) if one is not None]
        if len(given) > 1 or not all(0 < one <= 1 for one in given):
            raise WrongInput(f"the policy {self.name} needs one of resemblance and containment, above 0, at most 1")

    @property
    def identical(self) -> bool:
        """Whether only equal canonical text counts."""
        return self.resemblance is None and self.containment is None and not self.vacant

    @property
    def vacant(self) -> bool:
        """Whether this is but the place of one that was removed: it joins nothing."""
        return not self.name


VACANT = Policy("")
IDENTICAL = Policy("identical")
NEAR = Policy("near", resemblance=0.9)
RELATED = Policy("related", resemblance=0.5)
CONTAINED = Policy("contained", containment=0.9)

DEFAULT_POLICIES = (IDENTICAL, NEAR, RELATED, CONTAINED)

#: Splits that wait to be told, at most: where nobody tells them, the latest.
SPLITS = 1000


@dataclass(frozen=True, slots=True)
class Version:
    """One fetch of a URL."""

    url: str
    fetched_at: int
    #: Identity of the main canonical text (`StreamSketch.text`), of the bytes, and of the words whatever their order.
    text: int
    content: int
    bag: int
    crawl: str = ""
    sweep: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Cluster:
    """The pages that belong together under a policy."""

    cluster: str
    policy: str
    size: int
    #: The URL that stands for the cluster (shortest, then first in order), and all URLs, sorted.
    representative: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A known page that resembles a queried document: estimated from the two sketches."""

    url: str
    resemblance: float
    query_in_match: float
    match_in_query: float
    cluster: str | None

    @property
    def rank(self) -> tuple[float, float, str]:
        """Where it stands among others, the best first."""
        return -self.resemblance, -self.query_in_match, self.url


#: Where a question looks for what resembles a document: in what the posting *lists* propose; in the *clusters* of that,
#: too, for what full lists left out (the cost grows with the clusters: who asks thousands of questions in a row does
#: without); or at the stored sketches of *all* pages, for what holds it, or is held by it, and has no posted value in
#: common with it (some 10 µs a page).
Look = Literal["lists", "clusters", "all"]

#: What is asked for: main texts, or whole pages, where a store keeps these.
Stream = Literal["main", "whole"]
#: What is said where whole pages are asked for that a store has not.
WITHOUT_WHOLE: Final = (
    "this store was begun without whole pages (CLUSTERD_WHOLE); read the log into a store of another prefix or folder "
    "to keep them"
)


class Change(NamedTuple):
    """What happened to a page under one policy."""

    policy: str
    event: Literal["joined", "left", "merged"]
    cluster: str
    size: int


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a cluster came off, because what had held the two together left."""

    policy: str
    #: The cluster that it came off, and the URLs left there.
    cluster: str
    size: int
    #: A page of the part, whose cluster has another name now.
    url: str


class Outcome(NamedTuple):
    """What the index says of one applied sketch.

    A tuple, as a `Change` is: each page makes one, and a frozen dataclass takes three times as long to make.
    """

    url: str
    fetched_at: int
    #: False where the same version had been applied before (a delivery repeated).
    new: bool
    #: Equal to a page known before in: text, sketch; None where in neither.
    identity: Literal["text", "sketch"] | None
    #: The known page that matches best (another URL, current), its resemblance; None where there is none.
    match: str | None
    resemblance: float
    #: Cluster of the page under each policy in which it has company: policy → (cluster, size). Of a version that was
    #: superseded nothing, unless it is delivered again and the page still shows it.
    clusters: Mapping[str, tuple[str, int]]
    changes: tuple[Change, ...] = ()


class Index(Protocol):
    """Everything that is known of the pages. Safe with many writers; every method may be repeated after a crash."""

    def apply(
        self, sketches: Sequence[Sketch], position: Position | None = None, known: Position | None = None
    ) -> list[Outcome]:
        """Apply a batch and, with it, remember how far the log was read (partition → offset of the next record).

        ``position``: empty where the log remembers that itself; None without one, where a caller that dies may leave it
        to the next that meets the same pages to finish what was begun.
        ``known``: what the state is known to say of these partitions (none: nothing yet). Where it says something else
        of one, another reader has moved it, or the state was set back: then no position is moved, and `SetBack` raised
        when the batch has been applied. The very same position may be told again.
        """
        ...

    def position(self) -> dict[str, str]:
        """Return how far the log had been read when the state was written."""
        ...

    def went_back(self) -> bool:
        """Whether, at the latest `position`, part of the state had been set back since this was last asked.

        Then that position is to be gone on from, even where it is the one that was last told.
        """
        ...

    def settle(self, steps: int | None = None) -> int:
        """Do up to ``steps`` bounded steps of what waits (splits, policies added or removed); return how many wait."""
        ...

    def only_awaits(self) -> bool:
        """Whether nothing is left to `settle` but for pages that workers had in hand: these may yet come to an end."""
        ...

    def splits(self) -> list[Split]:
        """Return the splits that `settle` found and nobody has `told` yet, oldest first; `SPLITS` at most."""
        ...

    def told(self, splits: Sequence[Split]) -> None:
        """Forget splits that were told to whoever wants to know."""
        ...

    def policies(self) -> list[Policy]:
        """Return the policies in use."""
        ...

    def add_policy(self, policy: Policy) -> None:
        """Add a policy and build its clusters from the stored sketches (with `settle`)."""
        ...

    def remove_policy(self, name: str) -> None:
        """Remove a policy, if there is one of this name; what its clusters took is freed (with `settle`)."""
        ...

    def clusters(self, policy: str, min_size: int = 2, host: str | None = None) -> Iterator[Cluster]:
        """Yield the clusters, largest first; with ``host`` those with a member there. Sizes count current URLs."""
        ...

    def cluster_of(self, url: str, policy: str) -> Cluster | None:
        """Return the cluster of a URL's current version (of size 1 where it is alone); None for an unknown URL."""
        ...

    def cluster_names(self, urls: Sequence[str], policy: str) -> list[str | None]:
        """Return the name of what `cluster_of` says of each of these URLs, in few calls: no cluster is walked."""
        ...

    def similar(
        self, query: StreamSketch, profile: int, limit: int = 10, stream: Stream = "main", look: Look = "clusters"
    ) -> list[Hit]:
        """Return the pages that resemble or contain or are contained in the query, best resemblance first.

        Whole pages are found by the lists alone, and stand in no cluster; `WrongInput` where the store keeps none.
        """
        ...

    def listed(self, queries: Sequence[StreamSketch], profile: int, limit: int = 10) -> list[list[Hit]]:
        """Return what `similar` says of each of these by the lists alone (``look="lists"``), in few calls for all."""
        ...

    def matches(self, sketches: Sequence[Sketch]) -> list[Hit | None]:
        """Return for each page the other one that resembles it best; None where there is none. In few calls for all.

        What its posted values propose is looked at, as when it was first applied; its cluster is not.
        """
        ...

    def versions_of(self, urls: Sequence[str]) -> list[list[Version]]:
        """Return all known versions of each of these URLs, oldest first, in few calls."""
        ...

    def pages(self, host: str | None = None, *, revised: bool = False) -> Iterator[Version]:
        """Yield the versions of all URLs (of a host), those of one URL together, oldest first.

        ``revised``: only of URLs that have shown several texts, which is by far faster.
        """
        ...

    def pages_of(self, hosts: Sequence[str]) -> Iterator[tuple[str, list[Version]]]:
        """Yield each of these hosts with what `pages` says of it; hosts of few pages are read many at a time."""
        ...

    def sketch(self, url: str, fetched_at: int | None = None) -> StreamSketch | None:
        """Return the stored main sketch of a version (the current one by default)."""
        ...

    def sketches(self, asked: Sequence[tuple[str, int | None]]) -> list[StreamSketch | None]:
        """Return what `sketch` says of each of these URLs and fetch times, in few calls."""
        ...

    def whole_sketch(self, url: str) -> StreamSketch | None:
        """Return the stored sketch of a whole page (the current version); None for an unknown URL.

        `WrongInput` where the store keeps main texts only.
        """
        ...

    def originals(self, policy: str, asked: Sequence[tuple[str, int | None]]) -> list[int | None]:
        """Return for each version (URL, fetch time; None: the current) the text that it is a copy of under a policy.

        That of the oldest content which is known to resemble it itself, its own where there is none; by identity
        (`StreamSketch.text`). A cluster is a chain, whose ends may have little in common: this is no chain. None for an
        unknown version.
        """
        ...

    def hosts(self) -> list[str]:
        """Return the hosts of which pages are known."""
        ...

    def counts(self) -> dict[str, int]:
        """Return ``documents`` (URLs), ``versions``, ``contents``, ``settling``, ``store_bytes``."""
        ...

    def cluster_counts(self) -> dict[str, int]:
        """Return how many clusters of two URLs and more each policy has, without looking at them."""
        ...

    def expire(self, before: int) -> int:
        """Forget superseded versions fetched before a time (Unix ms) and free what only they held; return how many."""
        ...

    def expiring(self, before: int) -> Iterator[int]:
        """Do what `expire` does, step by step; yield how many each has forgotten. Who stops in between begins anew."""
        ...

    def forgotten(self) -> int:
        """Return before which time (Unix ms) superseded versions were forgotten; 0: none was."""
        ...

    def close(self) -> None:
        """Free connections."""
        ...
