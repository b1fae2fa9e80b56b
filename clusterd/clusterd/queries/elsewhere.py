"""Where a lost page may be on another host: what resembles it there, as the sweep that is asked for saw it.

`Index.similar` knows current pages only. A page that moved in an early sweep may have been revised on its new host
since: it is judged by the version that the later sweep saw, and where that is superseded, it is found by the smallest
values of the superseded versions (`Past`) – so that what is told of two sweeps stays as later ones come in.

Cost: `Index.listed` for each lost text, for many at a time. Superseded versions are listed once for a question, by a
pass over the pages of all hosts (read are those of several texts), and their sketches read once a sweep; neither where
the store has none. A host's last sweep may have some, too: other hosts may have been seen since.
Memory: some 200 bytes for each of them that says something else than its URL does now, 256 more in the sweep in use and
in those used before, up to `HELD` of them: each host asks for the same sweeps as the one before.
Where one sweep is asked for, as of `find-lost`, only those of that are held; who asks for another has them listed anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

import numpy as np
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import Profile, StreamSketch
from clusterd_crawler.urls import host_of

from clusterd.clusters.contract import Index, Version
from clusterd.portions import portions
from clusterd.queries.likeness import likeness, made_by
from clusterd.queries.nearest import Owners, Values
from clusterd.queries.nearness import SAME, TWIN, Page
from clusterd.queries.timeline import FAILED, Timeline, sweep_of

#: Pages of other hosts that are looked at for one lost page.
LOOKED_AT: Final = 20
#: Where copies leave no room, those on its own host and those that were elsewhere before: how many are looked at, how
#: many times as many are asked for to find these, and how many at most.
OF_COPIES: Final = 200
DEEPER: Final = 8
DEEPEST: Final = 10_000
#: Lost texts and the URLs of their candidates that are remembered, together.
REMEMBERED: Final = 1_000_000
#: Smallest values by which superseded versions are found, and how many of them are in common at least: two with r = .5
#: have fewer in .2 % of the cases; of thousands of others many have one or two by chance, as stored values are cut.
SMALLEST: Final = 16
LEAST: Final = 3
#: Superseded versions that are held by their values, of several sweeps together.
HELD: Final = 500_000
#: Beyond the time of any fetch, milliseconds.
LATEST: Final = 2**63
#: Sketches that are read at a time.
PORTION: Final = 1000


@dataclass(frozen=True, slots=True)
class Past:
    """The superseded versions of a sweep, by the smallest values of their sketches."""

    urls: list[str]
    #: Values, ascending, and the place of the URL of each.
    values: Values
    owners: Owners

    def near(self, sketch: StreamSketch) -> list[str]:
        """Return the URLs with the most of a sketch's smallest values."""
        asked = _smallest(sketch)
        least = min(LEAST, (len(asked) + 3) // 4)
        spans = zip(np.searchsorted(self.values, asked), np.searchsorted(self.values, asked, "right"), strict=True)
        shared = np.bincount(np.concatenate([self.owners[:0], *(self.owners[a:b] for a, b in spans)]))
        most = np.argsort(-shared, kind="stable")[:LOOKED_AT]
        return [self.urls[place] for place in most if shared[place] >= least]


@dataclass(frozen=True, slots=True)
class Gone:
    """A lost page: as it was last seen, and in which sweep. ``fits`` is asked of pages that are no twins of it."""

    page: Page
    last: Version
    start: str
    fits: Callable[[Page], bool]


@dataclass
class Elsewhere:
    """What other hosts have of lost pages; one for all searches of a question."""

    index: Index
    profile: Profile
    #: "" and the text of a lost page → the URLs of current pages that resemble it; where copies of it are many, under
    #: the host that lost it: those of other hosts.
    _current: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    _remembered: int = 0
    #: Sweep → its superseded versions that do not say what their URLs say now: URL and time. At first of the sweep that
    #: is asked for, and of every sweep once another is.
    _superseded: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    _of_every_sweep: bool = False
    #: A sweep that is asked for of a host that is gone → when it began, and the hosts that it saw.
    _began: dict[str, tuple[int, set[str]]] = field(default_factory=dict)
    #: Sweep → what is superseded of it.
    _past: dict[str, Past] = field(default_factory=dict)

    def matches(self, several: Sequence[Gone], home: Timeline, target: str) -> list[list[tuple[Page, Estimate]]]:
        """Return for each of some lost pages of a host what it may have become by ``target``, best first.

        At most two pages, the second to tell the margin.
        """
        if not several:
            return []
        alike = self._alike(several, home.host)
        if (past := self._past_of(target)) is not None:
            alike = [[*urls, *past.near(one.page.sketch)] for urls, one in zip(alike, several, strict=True)]
        others = [[url for url in dict.fromkeys(urls) if host_of(url) != home.host] for urls in alike]
        asked = list(dict.fromkeys(url for urls in others for url in urls))
        known = dict(zip(asked, self.index.versions_of(asked), strict=True)) if asked else {}
        there = set() if home.pages[target] else self._began[target][1]
        seen = [
            [one for url in urls if (one := _as_seen(known[url], gone, home, target, there)) is not None]
            for urls, gone in zip(others, several, strict=True)
        ]
        read = list({(one.url, one.fetched_at): None for versions in seen for one in versions})
        sketch_of = dict(zip(read, self.index.sketches(read), strict=True)) if read else {}
        found = []
        for gone, versions in zip(several, seen, strict=True):
            sketches = [(one.url, sketch_of[one.url, one.fetched_at]) for one in versions]
            found.append(self._best(gone, [Page(url, sketch) for url, sketch in sketches if sketch is not None]))
        return found

    def _best(self, gone: Gone, pages: Sequence[Page]) -> list[tuple[Page, Estimate]]:
        """Return the two best of the pages that a lost one may have become."""
        judged = [(there, likeness(gone.page.sketch, there.sketch, self.profile)) for there in pages]
        found: list[tuple[Page, Estimate]] = []
        for there, how in sorted(judged, key=lambda one: (-one[1].resemblance, -one[1].a_in_b, one[0].url)):
            if len(found) < 2 and how.resemblance >= SAME and (how.resemblance >= TWIN or gone.fits(there)):
                found.append((there, how))
        return found

    def _alike(self, several: Sequence[Gone], home: str) -> list[list[str]]:
        """Return for each lost page the current pages that resemble it.

        They are asked for without its own URL: of another host's lost page it may be the match.
        """
        texts = [gone.last.text for gone in several]
        if self._remembered > REMEMBERED:
            self._current.clear()
            self._remembered = 0
        unknown = {gone.last.text: gone.page.sketch for gone in several if self._known(gone.last.text, home) is None}
        by_profile: dict[int, dict[int, StreamSketch]] = defaultdict(dict)
        for text, sketch in unknown.items():
            by_profile[made_by(sketch, self.profile).code][text] = sketch
        for profile, of in by_profile.items():
            self._ask(of, profile, home)
        return [self._known(text, home) or [] for text in texts]

    def _known(self, text: int, home: str) -> list[str] | None:
        return self._current.get(("", text), self._current.get((home, text)))

    def _remember(self, asked: tuple[str, int], urls: list[str]) -> None:
        self._current[asked] = urls
        self._remembered += 1 + len(urls)

    def _ask(self, sketches: Mapping[int, StreamSketch], profile: int, home: str) -> None:
        """Ask what resembles lost texts: the farther down, the more copies of them there are.

        A page that was there under thirty session ids has twenty-nine copies that are as near as the one elsewhere; a
        notice that thirty sites carry has been on most of them before. Those that only resemble it may be all that a
        site has: beyond them it is looked once.
        """
        limit, asked = LOOKED_AT + 1, list(sketches)
        while asked:
            deeper = []
            for text, hits in zip(asked, self.index.listed([sketches[t] for t in asked], profile, limit), strict=True):
                alike = [hit.url for hit in hits if hit.resemblance >= SAME]
                first = limit <= LOOKED_AT + 1
                crowded = len(hits) == limit and hits[-1].resemblance >= (SAME if first else TWIN)
                if first and not crowded:
                    self._remember(("", text), alike[:LOOKED_AT])
                    continue
                others = [url for url in alike if host_of(url) != home][:OF_COPIES]
                self._remember((home, text), others)
                if crowded and len(others) < OF_COPIES and limit < DEEPEST:
                    deeper.append(text)
            limit, asked = min(limit * DEEPER, DEEPEST), deeper

    def began(self, sweep: str) -> int | None:
        """Return when a sweep of any host began, in milliseconds; None where no host has been seen in it."""
        if sweep not in self._began:
            began, hosts = LATEST, set[str]()
            for version in self.index.pages():
                if version.status < FAILED and sweep_of(version) == sweep:
                    began = min(version.fetched_at, began)
                    hosts.add(host_of(version.url))
            self._began[sweep] = began, hosts
        began, hosts = self._began[sweep]
        return began if hosts else None

    def _past_of(self, sweep: str) -> Past | None:
        """Return the superseded versions of a sweep; None where it has none."""
        if sweep not in self._superseded and not self._of_every_sweep:
            self._of_every_sweep = bool(self._superseded)
            self._superseded = self._list_superseded(None if self._of_every_sweep else sweep)
        versions = self._superseded.get(sweep)
        if not versions:
            return None
        if sweep not in self._past:
            if sum(len(past.urls) for past in self._past.values()) + len(versions) > HELD:
                self._past.clear()
            self._past[sweep] = self._read(versions)
        return self._past[sweep]

    def _list_superseded(self, only: str | None) -> dict[str, list[tuple[str, int]]]:
        found: dict[str, list[tuple[str, int]]] = {} if only is None else {only: []}
        counts = self.index.counts()
        if counts["versions"] == counts["documents"]:
            return found
        for url, versions in groupby(self.index.pages(revised=True), attrgetter("url")):
            known = list(versions)
            in_sweep = {sweep_of(version): version for version in known if version.status < FAILED}
            for sweep, version in in_sweep.items():
                if version.text != known[-1].text and only in (None, sweep):
                    found.setdefault(sweep, []).append((url, version.fetched_at))
        return found

    def _read(self, versions: Sequence[tuple[str, int]]) -> Past:
        values, owners = [np.zeros(0, np.uint64)], [np.zeros(0, np.intp)]
        sketches = chain.from_iterable(map(self.index.sketches, portions(versions, PORTION)))
        for place, sketch in enumerate(sketches):
            if sketch is not None:
                values.append(_smallest(sketch))
                owners.append(np.full(len(values[-1]), place, np.intp))
        together, places = np.concatenate(values), np.concatenate(owners)
        order = np.argsort(together, kind="stable")
        return Past([url for url, _ in versions], together[order], places[order])


def _smallest(sketch: StreamSketch) -> Values:
    return np.frombuffer(sketch.values, "<u8", min(SMALLEST, len(sketch.values) // 8))


def _as_seen(known: Sequence[Version], gone: Gone, home: Timeline, target: str, there: Set[str]) -> Version | None:
    """Return of a page that was first seen after a lost one what the later sweep saw of it; None where it did not.

    Where it is in no sweep of ours: as it is now, unless the later sweep saw its host without it (``there``: the hosts
    of one that ours has nothing in). After: by sweeps of ours, which may be brought in in any order, else by time.
    """
    order = {sweep: place for place, sweep in enumerate(home.sweeps)}
    shared = [order[sweep_of(version)] for version in known if sweep_of(version) in order]
    others = [version.fetched_at for version in known if sweep_of(version) not in order]
    if min(shared, default=len(order)) <= order[gone.start] or min(others, default=LATEST) <= gone.last.fetched_at:
        return None
    if not shared:
        return known[-1] if known and host_of(known[-1].url) not in there else None
    return next((v for v in reversed(known) if sweep_of(v) == target and v.status < FAILED), None)
