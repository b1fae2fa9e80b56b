"""Which pages of a later sweep could have taken a lost page's place (paper, section 6.2: lost & found).

Such a page

- is new: its URL was not in the sweep that last saw the lost page, and it goes back to no other page of that sweep,
  whatever its URL: to one that it resembles nearly whole, or by half and `GAIN` more than the lost page (it would be
  that page, which moved as well). Under the lost page's name it may, if it is near the lost page by its text, too; or
- had the lost page's content already or took it over since: it resembles the lost page nearly whole (r ≥ `TWIN`), or
  did when that was last seen (a copy, which was edited since), or does `GAIN` more than then (two pages merged into
  one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.queries.likeness import likeness, with_containment
from clusterd.queries.nearness import SAME, TWIN, Match, Page
from clusterd.queries.sweep_pages import HELD, SweepPages

#: How much more a page that was there before must resemble the lost one now, to have taken its content over.
GAIN: Final = 0.2


class Succession:
    """Of the pages of one host; remembers what up to `HELD` later pages are made from."""

    def __init__(self, pages: SweepPages, profile: Profile) -> None:
        self._pages = pages
        self._profile = profile
        #: Sweep, URL and text of a later page → the page of that sweep that it is made from, how much they resemble.
        self._origins: dict[tuple[str, str, int], tuple[Page, float] | None] = {}

    def fits(self, page: Page, match: Match, start: str) -> bool:
        """Whether the match is new since ``start``, or has or took over what the lost page says."""
        before = self._pages.sweeps.pages[start].get(match.page.url)
        if before is None and match.address:
            return match.near_by_text or self._older(page, match.page, start) is None
        then = [] if before is None else [self._pages.sketch(before) or page.sketch]
        return self.gained(page, match.page, start, then)

    def gained(self, page: Page, match: Page, start: str, before: Sequence[StreamSketch]) -> bool:
        """Whether a later page holds more of the lost one than what it was before did, or nearly all of it.

        What was a copy of it under its own URL, and was edited since, is it still.
        """
        if any(likeness(page.sketch, one, self._profile).resemblance >= TWIN for one in (match.sketch, *before)):
            return True
        origin = self._older(page, match, start)
        then = [self._held(page, one) for one in (*before, origin) if one is not None]
        return not then or self._held(page, match.sketch) - max(then) >= GAIN

    def _held(self, page: Page, by: StreamSketch) -> float:
        """Return how much of a page a text holds, also by the few values that tell it of one many times as long."""
        return with_containment(likeness(page.sketch, by, self._profile), page.sketch, by).a_in_b

    def _older(self, page: Page, match: Page, start: str) -> StreamSketch | None:
        """Return the text of the earlier page that a later one goes back to, where that is plainly not the lost one."""
        origin = self._origin(match, start)
        if origin is None or origin[0].url == page.url:
            return None
        now = likeness(page.sketch, match.sketch, self._profile).resemblance
        return origin[0].sketch if origin[1] >= min(TWIN, now + GAIN) else None

    def _origin(self, match: Page, start: str) -> tuple[Page, float] | None:
        """Return the earlier page, whatever its URL, that a later page resembles most, from `SAME` on, or None."""
        asked = start, match.url, match.sketch.text  # which is another in each sweep, perhaps
        if asked not in self._origins:
            if len(self._origins) >= HELD:
                self._origins.clear()
            pages = [one.page for one in self._pages.nearest(start).matches(match)]
            alike = [(one, likeness(match.sketch, one.sketch, self._profile).resemblance) for one in pages]
            nearest = max(alike, key=lambda one: one[1], default=None)
            self._origins[asked] = nearest if nearest and nearest[1] >= SAME else None
        return self._origins[asked]
