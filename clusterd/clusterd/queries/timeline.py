"""The sweeps of a host in the order of time, and which version of which page each of them saw.

A sweep is what its label says (``ingest --sweep``), else the crawl that fetched the page, else the day of the fetch
(UTC). Labels that differ only in their numbers (2.0, 2.2, 2.4; 2021-06-01, 2022-06-01) are ordered by these, because
old sweeps may be brought in after new ones; other labels by their first fetch. Dates whose year stands last are ordered
by it, then by the month if that is the only other number, else by the first fetch: to some 01.02.2023 is in January.

What a crawl skipped is there in its sweep as the page that was fetched in its place, or in the sweep before
(`stand_ins`).

Cost: one pass over the host's versions; the answers are held in memory (URLs and versions, no sketches).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from clusterd_crawler.errors import WrongInput
from clusterd_crawler.message import YEAR_1, YEAR_10000

from clusterd.clusters.contract import Version
from clusterd.queries.stand_ins import Seen, Skipped, known_before, stand_ins

#: Of more digits than 4,300 Python reads no number.
_NUMBER: Final = re.compile(r"\d{1,4000}")
_YEAR_LAST: Final = re.compile(r"\D*\d{1,2}\D+(?:\d{1,2}\D+)?(?:19|20)\d\d\D*")
#: An HTTP status from here on brings no page.
FAILED: Final = 400
#: The first and the last second that have a date (years 1 and 9999): a fetch time given in microseconds has none.
FIRST: Final = YEAR_1 // 1000
LAST: Final = YEAR_10000 // 1000 - 1


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the sweeps of a host saw: ``pages[sweep][url]`` is the version.

    Of a URL that a crawl skipped it is the version of the page that stands for it, under its own URL.
    """

    host: str
    #: Labels, oldest first.
    sweeps: tuple[str, ...]
    pages: dict[str, dict[str, Version]]

    def fetched(self, sweep: str) -> dict[str, Version]:
        """Return what was fetched in a sweep, without the URLs that other pages stand for."""
        return {url: version for url, version in self.pages[sweep].items() if version.url == url}

    def was_fetched(self, url: str, sweep: str) -> bool:
        """Whether a URL was fetched in a sweep."""
        version = self.pages[sweep].get(url)
        return version is not None and version.url == url

    def last_seen(self, url: str, before: str) -> str | None:
        """Return the last sweep before ``before`` that fetched a URL."""
        earlier = self.sweeps[: self.sweeps.index(before)]
        return next((sweep for sweep in reversed(earlier) if self.was_fetched(url, sweep)), None)

    def with_empty(self, sweep: str, began: int) -> Timeline:
        """Return the same with a sweep that fetched nothing of the host, and began at this time (milliseconds)."""
        first = {label: min((v.fetched_at for v in self.fetched(label).values()), default=0) for label in self.sweeps}
        return Timeline(self.host, tuple(in_order(first | {sweep: began})), {**self.pages, sweep: {}})

    def check(self, sweep: str | None) -> None:
        """Refuse a label that no sweep of the host has."""
        if sweep is not None and sweep not in self.sweeps:
            known = ", ".join(self.sweeps) or "none"
            raise WrongInput(f"{self.host} has no sweep {sweep!r}; its sweeps are: {known}")


def timeline(host: str, versions: Iterable[Version], skipped: Skipped | None) -> Timeline:
    """Order a host's versions by sweeps; of two versions of a URL in one sweep the later fetch counts.

    ``skipped`` tells which pages stand for skipped ones; without it none does.
    """
    pages: dict[str, dict[str, Version]] = defaultdict(dict)
    first: dict[str, int] = {}
    for version in versions:
        if version.status >= FAILED:
            continue
        label = sweep_of(version)
        first[label] = min(version.fetched_at, first.get(label, version.fetched_at))
        seen = pages[label].get(version.url)
        if seen is None or seen.fetched_at <= version.fetched_at:
            pages[label][version.url] = version
    sweeps = tuple(in_order(first))
    if skipped is not None:
        _add_skipped(host, sweeps, pages, skipped)
    return Timeline(host, sweeps, dict(pages))


def _add_skipped(host: str, sweeps: Sequence[str], pages: Seen, skipped: Skipped) -> None:
    """Add to each sweep the pages that stand for what its crawls skipped."""
    crawls = [label for label in sweeps if any(version.crawl for version in pages[label].values())]
    key_of = skipped.key_of(host) if crawls and len(sweeps) > 1 else None
    for label, standing in stand_ins(pages, crawls, key_of).items() if key_of is not None else ():
        pages[label].update(standing)
    for before, sweep in pairwise(sweeps):
        pages[sweep].update(known_before(pages[sweep], pages[before], skipped))


def sweep_of(version: Version) -> str:
    """Return the label of the sweep that a version belongs to."""
    return version.sweep or version.crawl or day(version.fetched_at)


def day(milliseconds: int) -> str:
    """Return the day (UTC) of a time; of one beyond the years that are written, the first or last of them."""
    return datetime.fromtimestamp(min(max(milliseconds // 1000, FIRST), LAST), UTC).date().isoformat()


def in_order(first: dict[str, int]) -> list[str]:
    """Order labels by their numbers where they differ in nothing else, else by the first fetch of each.

    So are those of the same numbers (2.0, 2.00): else two hosts of a store might have them in two orders.
    """
    by_fetch = sorted(first, key=lambda label: (first[label], label))
    if len({_NUMBER.sub("#", label) for label in first}) > 1:
        return by_fetch
    numbers = {label: [int(number) for number in _NUMBER.findall(label)] for label in first}
    if all(map(_YEAR_LAST.fullmatch, first)):
        return sorted(by_fetch, key=lambda label: _by_year(numbers[label], first[label]))
    return sorted(by_fetch, key=numbers.__getitem__)


def _by_year(numbers: list[int], fetched: int) -> tuple[int, int, list[int]]:
    """Order dates whose year stands last; of three numbers nobody knows which one is the month."""
    *others, year = numbers
    return year, fetched if len(others) > 1 else 0, others
