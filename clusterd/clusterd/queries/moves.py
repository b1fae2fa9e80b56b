"""Where the pages of a host moved from one of its sweeps to a later one (paper, section 6.2: lost & found).

The best match among the pages that could have taken its place in the later sweep (`succession` says which).

Best match, not a threshold: see `nearest` for the score and why short pages need no profile of their own. "No match"
is said only where nothing shares more than a phrase and no page stands in its place. The margin is by how much the best
score exceeds the runner-up's: a low resemblance with a wide margin is a rewritten page, a high one with no margin a
page that has twins.

Where the later sweep holds no match, the sweeps between are asked one after another, and a page found in one of them is
followed on (chains of moves: a page that was renamed and then rewritten resembles what it was in between).

What the host itself does not have may be on another (servers get renamed, users change providers): a page there that
resembles the lost one (r ≥ `SAME`) and was first seen after it; in the later sweep, and as that saw it, where the two
hosts share sweeps (`elsewhere`). A page that was followed and then left the host is looked for as it was at the end.
The same page there (r ≥ `TWIN`) is a better match than one of the host with another name that shares only passages, or
one of its name that shares nothing: in `/news/2025/1` another text stands than in `/news/2024/1`.

What a later crawl skipped is not lost (`stand_ins`); who asks for it gets the page that was fetched in its place.

Cost: one reading of the sketches of both sweeps, `Nearest.matches` for each lost page and its match, `elsewhere` for
what that misses. Of the sweeps between, those pages are looked through that are not as in the sweep before. Memory: see
`sweep_pages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Final

import numpy as np
from clusterd_crawler.errors import NotFound, WrongInput
from clusterd_crawler.sketch import Profile

from clusterd.clusters.contract import Index, Version
from clusterd.portions import portions
from clusterd.queries.addresses import address_bonus
from clusterd.queries.elsewhere import Elsewhere, Gone
from clusterd.queries.likeness import likeness
from clusterd.queries.nearest import Owners
from clusterd.queries.nearness import NEAR, SAME, TWIN, Page
from clusterd.queries.stand_ins import Skipped
from clusterd.queries.succession import Succession
from clusterd.queries.sweep_pages import SweepPages
from clusterd.queries.timeline import Timeline, timeline

#: Lost pages whose sketches are read at a time, and hosts of which it is asked at a time whether they have rules.
PORTION: Final = 1000
#: Lost pages of which it is asked at a time where they are on other hosts, and which are told together.
TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a lost page. ``match`` is None where nothing is near."""

    url: str
    match: str | None
    resemblance: float
    match_in_query: float
    query_in_match: float
    #: Score of the match less that of the runner-up.
    margin: float
    #: The sweep that last saw the page, and the one that the match is in.
    from_sweep: str
    to_sweep: str
    #: The moves between, where the page was not found at once but followed through several: (sweep, URL).
    via: tuple[tuple[str, str], ...] = ()


@dataclass
class Trail:
    """A lost page that is followed through the sweeps between."""

    page: Page
    start: str
    #: What it is by now, and the sweep that this was found in.
    at: Page
    sweep: str
    margin: float = 1.0
    via: tuple[tuple[str, str], ...] = ()


@dataclass
class Search:
    """The lost pages of one host; remembers the pages that it searched."""

    index: Index
    profile: Profile
    host: str
    others: Elsewhere
    skipped: Skipped | None = None
    #: What the index knows of the host, where that was read already.
    known: InitVar[Iterable[Version] | None] = None
    pages: SweepPages = field(init=False)
    _succession: Succession = field(init=False)
    #: Two sweeps → how many pages of the later one are not as in the earlier.
    _news: dict[tuple[str, str], int] = field(default_factory=dict)
    #: The sweep that pages are being followed through → which of its pages are not as in the one before.
    _freshly: dict[str, Owners] = field(default_factory=dict)

    def __post_init__(self, known: Iterable[Version] | None) -> None:
        sweeps = timeline(self.host, self.index.pages(self.host) if known is None else known, self.skipped)
        self.pages = SweepPages(self.index, self.profile, sweeps)
        self._succession = Succession(self.pages, self.profile)

    @property
    def sweeps(self) -> Timeline:
        """The sweeps of the host."""
        return self.pages.sweeps

    def reach(self, sweep: str | None) -> None:
        """Let a sweep that other hosts have be one of this host, which it found nothing of: the server is gone."""
        if sweep is not None and sweep not in self.sweeps.sweeps:
            began = self.others.began(sweep)
            if began is not None:
                self.pages.sweeps = self.sweeps.with_empty(sweep, began)

    def covers(self, from_sweep: str | None, to_sweep: str | None, strict: bool) -> bool:
        """Whether the host has these sweeps, in this order; `strict`: raise `WrongInput` where it has not."""
        if strict:
            self.sweeps.check(from_sweep)
            self.sweeps.check(to_sweep)
        known = self.sweeps.sweeps
        if not all(sweep is None or sweep in known for sweep in (from_sweep, to_sweep)):
            return False
        if from_sweep and to_sweep and known.index(from_sweep) >= known.index(to_sweep):
            if not strict:
                return False
            raise WrongInput(f"the sweep {from_sweep!r} of {self.host} is no earlier one than {to_sweep!r}")
        return True

    def all(self, from_sweep: str | None = None, to_sweep: str | None = None) -> Iterator[Found]:
        """Yield what became of every page that the later sweep no longer has."""
        if len(self.sweeps.sweeps) < 2:
            return
        target = to_sweep or self.sweeps.sweeps[-1]
        earlier = [from_sweep] if from_sweep else self.sweeps.sweeps[: self.sweeps.sweeps.index(target)]
        known = {url for sweep in earlier for url in self.sweeps.fetched(sweep)}
        lost = sorted(known - self.sweeps.pages[target].keys())
        last_seen = [(url, from_sweep or self.sweeps.last_seen(url, target) or target) for url in lost]
        if len(self.sweeps.sweeps) == 2:
            yield from self._ones(self._lost(last_seen), target)
            return
        settled: dict[str, Found] = {}
        left: list[Trail] = []
        in_order = sorted(last_seen, key=lambda one: (self.sweeps.sweeps.index(one[1]), one[0]))
        for some in portions(self._lost(in_order), TOGETHER):
            came_to = [(Trail(page, start, page, start), self._direct(page, start, target)) for page, start in some]
            left += [trail for trail, direct in came_to if direct is None]
            settled |= {one.url: one for one in self._settled([one for one in came_to if one[1]], target)}
        self._follow(left, target)
        for trails in portions(left, TOGETHER):
            came_to = [(trail, self._ended(trail, target)) for trail in trails]
            settled |= {one.url: one for one in self._settled(came_to, target)}
        yield from (settled[url] for url in lost if url in settled)

    def _lost(self, last_seen: Sequence[tuple[str, str]]) -> Iterator[tuple[Page, str]]:
        """Yield lost pages as the sweep that last saw them had them, and that sweep; none that was just forgotten."""
        for portion in portions(last_seen, PORTION):
            self.pages.read([self.sweeps.pages[sweep][url] for url, sweep in portion])
            for url, sweep in portion:
                if self.pages.sketch(self.sweeps.pages[sweep][url]) is not None:
                    yield self._page(url, sweep), sweep

    def one(self, url: str, from_sweep: str | None = None, to_sweep: str | None = None) -> Found | None:
        """Return what became of one page; None where the later sweep still has it."""
        if not any(url in pages for pages in self.sweeps.pages.values()):
            raise NotFound(f"no sweep of {self.host or 'any host'} has seen {url}; bring it in with clusterd ingest")
        if len(self.sweeps.sweeps) < 2:
            raise NotFound(
                f"{self.host} has been seen in one sweep only; bring in a later one (clusterd ingest --sweep), or "
                "where the server is gone name one of other hosts: --to SWEEP"
            )
        target = to_sweep or self.sweeps.sweeps[-1]
        if self.sweeps.was_fetched(url, target):
            return None
        start = from_sweep or self.sweeps.last_seen(url, target)
        if start is None or not self.sweeps.was_fetched(url, start):
            raise NotFound(f"{url} is not in the sweep {start or 'before ' + target}")
        page = self._page(url, start)
        if url in self.sweeps.pages[target]:  # however much it was revised: `changes` says so as well
            return self._found(page, self._page(url, target), 1.0, start, target)
        (found,) = self._ones([(page, start)], target)
        return found

    def moved(self, urls: Sequence[str], start: str, target: str) -> Iterator[Found]:
        """Yield what became of pages that one sweep fetched and a later one has not."""
        return self._ones(self._lost([(url, start) for url in urls]), target)

    def _page(self, url: str, sweep: str) -> Page:
        """Return a page as a sweep saw it, or the one that stands for it there."""
        version = self.sweeps.pages[sweep][url]
        sketch = self.pages.sketch(version)
        if sketch is None:
            raise NotFound(f"the sketch of {version.url} in {sweep} is no longer kept")
        return Page(version.url, sketch)

    def _ones(self, pages: Iterable[tuple[Page, str]], target: str) -> Iterator[Found]:
        """Yield what became of pages that these sweeps had, `TOGETHER` at a time."""
        for some in portions(pages, TOGETHER):
            came_to = []
            for page, start in some:
                trail, found = Trail(page, start, page, start), self._direct(page, start, target)
                if found is None:
                    self._follow([trail], target)
                    found = self._ended(trail, target)
                came_to.append((trail, found))
            yield from self._settled(came_to, target)

    def _settled(self, came_to: Sequence[tuple[Trail, Found | None]], target: str) -> Iterator[Found]:
        """Yield what became of pages, each given with what the host itself has of it."""
        doubtful = [(trail, found) for trail, found in came_to if not _is_plain(trail.page, found)]
        begun = [Trail(trail.page, trail.start, trail.page, trail.start) for trail, _ in doubtful]
        there = {one.url: one for one in self._elsewhere(begun, target)}
        missed = [trail for trail, found in doubtful if found is None and trail.page.url not in there]
        later = {one.url: one for one in self._elsewhere([t for t in missed if t.sweep != t.start], target)}
        for trail, found in came_to:
            url = trail.page.url
            other = there.get(url)
            if other is not None and (found is None or other.resemblance >= TWIN):
                yield other
            else:
                yield found or later.get(url) or Found(url, None, 0.0, 0.0, 0.0, 0.0, trail.start, target)

    def _elsewhere(self, trails: Sequence[Trail], target: str) -> Iterator[Found]:
        """Yield the pages of other hosts that pages became, as they were when this host had them last."""
        several = [
            Gone(
                trail.at,
                self.sweeps.pages[trail.sweep][trail.at.url],
                trail.sweep,
                partial(self._succession.gained, trail.at, start=trail.sweep, before=()),
            )
            for trail in trails
        ]
        for trail, found in zip(trails, self.others.matches(several, self.sweeps, target), strict=True):
            if found:
                (there, how), *others = found
                margin = min(trail.margin, how.resemblance - (others[0][1].resemblance if others else 0.0))
                yield self._found(trail.page, there, margin, trail.start, target, trail.via)

    def _direct(self, page: Page, start: str, target: str, among: Owners | None = None) -> Found | None:
        fits = partial(self._succession.fits, page, start=start)
        matches = self.pages.nearest(target).matches(page, 2, fits, self._fitting(start, target), among)
        if not matches:
            return None
        best, runner_up = matches[0], matches[1].score if len(matches) > 1 else 0.0
        return self._found(page, best.page, best.score - runner_up, start, target)

    def _fitting(self, start: str, target: str) -> int:
        """Return how many pages of a sweep are new or other than in an earlier one."""
        if (start, target) not in self._news:
            before, after = self.sweeps.pages[start], self.sweeps.fetched(target)
            known = sum(url in before and before[url].text == version.text for url, version in after.items())
            if len(self._news) == PORTION:
                self._news.clear()
            self._news[start, target] = len(after) - known
        return self._news[start, target]

    def _follow(self, trails: Sequence[Trail], target: str) -> None:
        """Follow pages through the sweeps between, all of them from one sweep to the next: each is read once."""
        order = {sweep: place for place, sweep in enumerate(self.sweeps.sweeps)}
        starts = {order[trail.start] for trail in trails if order[target] - order[trail.start] > 1}
        for place in range(min(starts, default=order[target]) + 1, order[target] + 1):
            step = self.sweeps.sweeps[place]
            for trail in sorted(trails, key=lambda trail: order[trail.sweep]):
                if order[trail.start] < place and order[trail.start] in starts:
                    self._advance(trail, step, asked=order[trail.sweep] < place - 1)

    def _advance(self, trail: Trail, step: str, asked: bool) -> None:
        """Take a page one sweep further; `asked`: the sweep before this one had nothing for it."""
        here = self.sweeps.pages[step].get(trail.at.url)
        if here is None:
            moved = self._direct(trail.at, trail.sweep, step, self._fresh(step) if asked else None)
            if moved is None or moved.match is None:
                return
            here, trail.margin = self.sweeps.pages[step][moved.match], min(trail.margin, moved.margin)
            trail.via += ((step, here.url),)
        trail.at, trail.sweep = Page(here.url, self.pages.sketch(here) or trail.at.sketch), step

    def _ended(self, trail: Trail, target: str) -> Found | None:
        """Return what a page that was followed came to; the figures compare its first text and its last."""
        if trail.sweep != target:
            return None
        return self._found(trail.page, trail.at, trail.margin, trail.start, target, trail.via[:-1])

    def _fresh(self, sweep: str) -> Owners:
        """Return which pages of a sweep are new or other than in the sweep before."""
        if sweep not in self._freshly:
            before = self.sweeps.pages[self.sweeps.sweeps[self.sweeps.sweeps.index(sweep) - 1]]
            pages = self.sweeps.pages[sweep]
            new = {url for url, one in pages.items() if url not in before or before[url].text != one.text}
            self._freshly = {sweep: np.flatnonzero([page.url in new for page in self.pages.nearest(sweep).pages])}
        return self._freshly[sweep]

    def _found(
        self, page: Page, match: Page, margin: float, start: str, target: str, via: tuple[tuple[str, str], ...] = ()
    ) -> Found:
        how = likeness(page.sketch, match.sketch, self.profile)
        return Found(page.url, match.url, how.resemblance, how.b_in_a, how.a_in_b, margin, start, target, via)


def searches(
    index: Index, profile: Profile, hosts: Sequence[str], others: Elsewhere, skipped: Skipped | None = None
) -> Iterator[Search]:
    """Yield the search of each host; of hosts of few pages many are read at a time."""
    for portion in portions(hosts, PORTION):
        if skipped is not None:
            skipped.expect(portion)
        for host, known in index.pages_of(portion):
            yield Search(index, profile, host, others, skipped, known)


def _is_plain(page: Page, found: Found | None) -> bool:
    """Whether what the host itself has of a page needs no look at other hosts."""
    namesake = found is not None and address_bonus(found.match or "", page.url)
    return found is not None and found.resemblance >= (NEAR if namesake else SAME)
