"""What a page shows, as far as rules go, where they are judged by near-duplicates (``CLUSTERD_RULE_IDENTITY = near``).

For sites that write something else into every answer: a date, a counter, a token. There no two fetches are equal, and
nothing would be learned. A page counts as showing the text of the oldest page that resembles it *itself*
(`Index.originals`), never of one at the other end of a chain of resemblances: different products share a chain, and
rules learned from those lost nearly half of a shop's pages. What was learned by texts before goes on to hold, since the
first page of its kind shows its own text by either measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clusterd_crawler.sketch import Sketch

from clusterd.clusters.contract import NEAR, Index, Outcome

#: The policy that is gone by.
POLICY: Final = NEAR.name


class Near:
    """The texts that pages count as showing, by what the index knows of them."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __call__(self, sketches: Sequence[Sketch], outcomes: Sequence[Outcome]) -> list[int]:
        """Return the text that each page of a batch, which the index has applied, counts as showing."""
        texts = [sketch.main.text for sketch in sketches]
        copies = [place for place, outcome in enumerate(outcomes) if POLICY in outcome.clusters]
        if copies:
            asked = [(sketches[place].url, sketches[place].fetched_at) for place in copies]
            for place, text in zip(copies, self._index.originals(POLICY, asked), strict=True):
                texts[place] = text or texts[place]
        return texts
