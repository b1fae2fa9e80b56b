"""How long work beside the crawl goes on before others get their turn: bounded by time, not by a number of items.

The same number takes a slow or busy machine several times as long, and an item itself differs: a request is queued
again in memory, or written to a disk. An item that has begun is finished, so a turn is longer than its time by one.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

#: Seconds in the loop's thread: the add-on is to keep the loop from no other work for 10 ms.
IN_LOOP: Final = 0.002
#: Seconds in another thread that holds the interpreter: the loop gives it away with each look at the network, and waits
#: so long each time until it is back.
IN_THREAD: Final = 0.0005


class Turn:
    """Begins when it is made. Costs .1 µs an item."""

    __slots__ = ("_seconds", "_until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begin()

    def begin(self) -> None:
        """Begin anew: others have had theirs."""
        self._until = monotonic() + self._seconds

    @property
    def is_over(self) -> bool:
        """Whether others are to get their turn; then `begin` follows."""
        return monotonic() >= self._until
