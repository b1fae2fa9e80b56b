"""When a page counts as near to another, and how much of what they share chance may bring.

Of a page that was merged into one many times its length the resemblance is low: a shorter page that shares a passage
would be nearer. So a page that holds nearly the whole of the query (weighted containment of `WHOLE`) has a score of
`TAKEN_IN` at least. Of 301 pages that were merged four and four, 4 instead of 26 are told to be in another page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.sketch import StreamSketch

from clusterd.queries.addresses import SAME_NAME

#: Resemblance at which a page counts as another copy of the lost one, whatever else it resembles.
TWIN: Final = 0.9
#: Resemblance from which a page counts as the one that moved, be it on another host, or one of a site whose pages are
#: all alike (paper: r = .5).
SAME: Final = 0.5
#: A page that holds this much of the query, beyond what chance may bring, has taken it in, and is as near as one that
#: resembles it so: less than by half, since one that does is rather the page itself.
WHOLE: Final = 0.9
TAKEN_IN: Final = 0.45
#: What counts as near at all: this score by text, from `PHRASES` shingles at least, a lower one where `PASSAGES` of
#: them are shared (long pages of which little is left), any where it is all that is seen of the query (`WHOLE`), from
#: `PHRASES` shingles: each beyond what chance (`beyond_chance`) and the template of a small set may bring; of fewer
#: shingles `PLAIN`, unless chance (`is_chance`) or the template may bring them; any for a namesake that shares
#: something, and more of it than chance and template may bring.
NEAR: Final = 0.05
PLAIN: Final = 0.22
PHRASES: Final = 3.0
NEAR_WITH_PASSAGES: Final = 0.01
PASSAGES: Final = 6.0
NAMESAKE: Final = 0.5
#: Deviations that chance may bring a page of a set of so many; of a larger set the luckiest one is luckier.
DEVIATIONS: Final = 3.0
ORDINARY: Final = 1000
#: Deviations that it may bring a namesake: a page has few of them.
DEVIATIONS_OF_NAMESAKES: Final = 1.5

#: How many of the pages that have their chance may share as much with a short one by chance: of 6,000 pages of a single
#: shingle each, one looks like any other.
STRAY: Final = 0.01


@dataclass(frozen=True, slots=True)
class Page:
    """A page to be found: its URL and the sketch of its main text."""

    url: str
    sketch: StreamSketch


@dataclass(frozen=True, slots=True)
class Match:
    """A page and how near it is."""

    page: Page
    #: The weighted resemblance, the weight of what is shared, and what the address adds.
    text: float
    shared: float
    address: float
    #: How much of ``shared`` may be chance or template, and whether all of it may be chance, or all but too little
    #: (`NEAR`) be template.
    doubt: float
    stray: bool
    #: The share of the query's weight that is shared: its weighted containment.
    held: float

    @property
    def score(self) -> float:
        """Return what matches are ranked by."""
        return (max(self.text, TAKEN_IN) if self.whole else self.text) + self.address

    @property
    def whole(self) -> bool:
        """Whether the page holds nearly the whole of the query, as far as can be told."""
        return self.held >= WHOLE and self.shared - self.doubt >= PHRASES

    @property
    def near(self) -> bool:
        """Whether the pages share more than a phrase of the site."""
        if self.address:
            return self.address > SAME_NAME or self.shared > max(NAMESAKE, self.doubt)
        return self.near_by_text

    @property
    def near_by_text(self) -> bool:
        """Whether they would be near under any addresses."""
        certain = self.shared - self.doubt
        if certain >= PHRASES:
            return self.whole or self.text >= (NEAR_WITH_PASSAGES if certain >= PASSAGES else NEAR)
        return self.text >= PLAIN and not self.stray


def beyond_chance(expected: float, pages: int, deviations: float = DEVIATIONS) -> float:
    """Return how far beyond what is expected of chance one of so many pages may lie.

    The tail of Poisson's distribution falls by expected / k from k to k + 1: where more pages have their chance, it is
    followed so much farther that no more of them lie beyond.
    """
    if expected <= 0:
        return 0.0
    beyond = deviations * float(expected**0.5)
    return beyond + math.log(max(1.0, pages / ORDINARY)) / math.log((expected + beyond + PHRASES) / expected)


def is_chance(shared: float, expected: float, pages: int) -> bool:
    """Whether chance may bring one of so many pages this many values in common (Chernoff's bound, as in `judging`).

    Deviations do not tell where less than one is expected, as of short pages.
    """
    if shared <= expected or expected <= 0:
        return shared <= expected
    return shared * math.log(shared / expected) - (shared - expected) < math.log(max(1, pages) / STRAY)
