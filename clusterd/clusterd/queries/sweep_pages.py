"""The pages of a host's sweeps as sets that are searched, read as they are asked for.

Memory: the two sweeps in use, and others up to `HELD` pages together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clusterd_crawler.sketch import Profile, StreamSketch

from clusterd.clusters.contract import Index, Version
from clusterd.queries.likeness import made_by
from clusterd.queries.nearest import Nearest
from clusterd.queries.nearness import Page
from clusterd.queries.timeline import Timeline

#: Pages that sets of sweeps hold together, and sketches beside them, where two sweeps do not have more.
HELD: Final = 50_000


class SweepPages:
    """Of one host. ``sweeps`` may grow by one that found nothing."""

    def __init__(self, index: Index, profile: Profile, sweeps: Timeline) -> None:
        self.sweeps = sweeps
        self._index = index
        self._profile = profile
        #: Sweep → its pages, the one used last at the end.
        self._sets: dict[str, Nearest] = {}
        self._texts: dict[int, StreamSketch] = {}

    def nearest(self, sweep: str) -> Nearest:
        """Return the pages of a sweep as a searchable set."""
        found = self._sets.pop(sweep, None)
        if found is None:
            versions = self.sweeps.fetched(sweep).values()
            held = sum(len(known.pages) for known in self._sets.values()) + len(versions)
            while len(self._sets) > 1 and held > HELD:
                held -= len(self._sets.pop(next(iter(self._sets))).pages)
            self.read(versions)
            pages = [Page(v.url, sketch) for v in versions if (sketch := self.sketch(v)) is not None]
            found = Nearest(pages, made_by(pages[0].sketch, self._profile) if pages else self._profile)
        self._sets[sweep] = found
        return found

    def read(self, versions: Iterable[Version]) -> None:
        """Read the sketches of versions that `sketch` will be asked for, in few calls."""
        versions = list(versions)
        if len(self._texts) > HELD:
            self._texts = {v.text: self._texts[v.text] for v in versions if v.text in self._texts}
        unknown = list({v.text: v for v in versions if v.text not in self._texts}.values())
        sketches = self._index.sketches([(v.url, v.fetched_at) for v in unknown])
        self._texts.update((v.text, one) for v, one in zip(unknown, sketches, strict=True) if one is not None)

    def sketch(self, version: Version) -> StreamSketch | None:
        """Return the sketch of a version; equal texts, which most pages keep from sweep to sweep, are read once."""
        known = self._texts.get(version.text)
        if known is None:
            known = self._index.sketch(version.url, version.fetched_at)
            if known is not None:
                self._texts[version.text] = known
        return known
