"""A bounded memory of URLs: of too many the oldest are forgotten."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

#: URLs that are remembered.
REMEMBERED: Final = 200_000

T = TypeVar("T")


class Remembered(OrderedDict[str, T], Generic[T]):
    """What was decided about each URL."""

    def remember(self, url: str, decided: T) -> None:
        """Note what was decided about a URL."""
        self[url] = decided
        if len(self) > REMEMBERED:
            self.popitem(last=False)
