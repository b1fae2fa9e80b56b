"""How pages change over time (paper, section 6.5): from each sweep of a host to the next.

A URL in both sweeps is **unchanged** (equal main text) or **revised**, by as much as the resemblance of both versions
says. A URL that the later sweep lacks has **moved** where `moves` finds its page there or on another host; else it has
**vanished**. A URL that is new, and that no page of the host moved to, has **appeared**. A vanished page's lifetime is
the time from its first known fetch to its last. What a crawl skipped counts as the page that it fetched in its place
(`stand_ins`).

A sweep is a label, a crawl or a day (`timeline`). One that began before what retention has forgotten is whole no more:
of its pages those are left that no later sweep has, and nothing is told of what came after it. Nor is it of the first
sweep behind that time, where it begins sooner after it than a sweep of the host takes: its beginning may be forgotten,
and that of whatever else was fetched meanwhile.

Cost: one reading of each revised, lost and new page's sketch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.sketch import Profile
from clusterd_crawler.urls import host_of

from clusterd.clusters.contract import Index, Version
from clusterd.portions import portions
from clusterd.queries.elsewhere import Elsewhere
from clusterd.queries.likeness import likeness, made_by
from clusterd.queries.moves import PORTION, Search, searches
from clusterd.queries.stand_ins import Skipped

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
DAY: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to the pages of a host between two sweeps."""

    host: str
    from_sweep: str
    to_sweep: str
    unchanged: int
    revised: int
    moved_within: int
    moved_across: int
    vanished: int
    appeared: int
    #: Of the revised pages whose versions compare (one profile): quantile → their resemblance; empty where none does.
    resemblance_quantiles: dict[str, float]
    #: Of the vanished pages: quantile → days from the first known fetch to the last.
    lifetime_quantiles: dict[str, float]

    @property
    def moved(self) -> int:
        """Return how many pages moved, within the host or to another."""
        return self.moved_within + self.moved_across


def changes(
    index: Index, profile: Profile, host: str | None = None, skipped: Skipped | None = None
) -> Iterator[Changes]:
    """Yield what happened between the consecutive sweeps of a host, or of every host, as far as all of it is known.

    ``skipped`` (`stand_ins.Skipped`) tells what crawls skipped; without it that counts as moved.
    """
    forgotten, others = index.forgotten(), Elsewhere(index, profile)
    hosts = [host] if host is not None else sorted(index.hosts())
    for search in searches(index, profile, hosts, others, skipped):
        whole = _whole(search, forgotten)
        for start, end in zip(search.sweeps.sweeps, search.sweeps.sweeps[1:], strict=False):
            if start in whole:
                yield _between(search, start, end)


def _whole(search: Search, forgotten: int) -> set[str]:
    """Return the sweeps of which nothing was forgotten, as far as can be told."""
    if not forgotten:
        return set(search.sweeps.sweeps)
    times = {sweep: [page.fetched_at for page in pages.values()] for sweep, pages in search.sweeps.pages.items()}
    begun = {sweep: min(of) for sweep, of in times.items() if min(of) >= forgotten}
    longest = max((max(of) - min(of) for of in times.values()), default=0)
    first = min(begun, key=begun.__getitem__, default="")
    if not first or begun[first] - forgotten >= longest:
        return set(begun)
    return {sweep for sweep, at in begun.items() if at > max(times[first])}


def _between(search: Search, start: str, end: str) -> Changes:
    before, after = search.sweeps.fetched(start), search.sweeps.pages[end]
    both = before.keys() & after.keys()
    revised = sorted(url for url in both if before[url].text != after[url].text)
    resemblances: list[float] = []
    for portion in portions(revised, PORTION):
        search.pages.read([at[url] for url in portion for at in (before, after)])
        compared = (_resemblance(search, before[url], after[url]) for url in portion)
        resemblances += [one for one in compared if one is not None]
    targets, vanished = set(), []
    within = across = 0
    for found in search.moved(sorted(before.keys() - after.keys()), start, end):
        if found.match is not None:
            at_home = host_of(found.match) == search.host
            within, across = within + at_home, across + (not at_home)
            targets.add(found.match)
        else:
            vanished.append(found.url)
    return Changes(
        host=search.host,
        from_sweep=start,
        to_sweep=end,
        unchanged=len(both) - len(revised),
        revised=len(revised),
        moved_within=within,
        moved_across=across,
        vanished=len(vanished),
        appeared=len(search.sweeps.fetched(end).keys() - search.sweeps.pages[start].keys() - targets),
        resemblance_quantiles=quantiles(resemblances),
        lifetime_quantiles=quantiles([_lifetime(search, url, before[url]) for url in vanished]),
    )


def _resemblance(search: Search, before: Version, after: Version) -> float | None:
    """Return how much of a page stayed; None where nobody knows: of two profiles, or of what was just forgotten."""
    a, b = search.pages.sketch(before), search.pages.sketch(after)
    if a is None or b is None or made_by(a, search.profile) != made_by(b, search.profile):
        return None
    return likeness(a, b, search.profile).resemblance


def _lifetime(search: Search, url: str, last: Version) -> float:
    seen = [pages[url].fetched_at for pages in search.sweeps.pages.values() if url in pages]
    return (last.fetched_at - min(seen)) / DAY


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return for each share the least of some values that at least such a share of them does not exceed."""
    ordered = sorted(values)
    return {str(q): ordered[-(-round(100 * q) * len(ordered) // 100) - 1] for q in QUANTILES} if ordered else {}
