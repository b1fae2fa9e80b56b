"""What the crawl decides of a request whose content is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Stands for a rule where a page is not fetched as an earlier crawl fetched it within the stated time.
WITHIN: Final = "within"


@dataclass(frozen=True, slots=True)
class Skip:
    """A request whose content is known. ``explore``: fetch it all the same, to watch the rule."""

    url: str
    #: Id of the rule that decided (where several did, of the one that answers for it: `answering`).
    rule: str
    key: str
    known_url: str
    explore: bool = False
