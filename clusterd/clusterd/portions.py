"""Many things, a portion at a time: few calls, of which none holds others up, and little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Thing = TypeVar("Thing")


def portions(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Yield so many things at a time.

    >>> list(portions("abcde", 2)), list(portions("", 2))
    ([['a', 'b'], ['c', 'd'], ['e']], [])
    """
    left = iter(things)
    return iter(lambda: list(islice(left, size)), [])
