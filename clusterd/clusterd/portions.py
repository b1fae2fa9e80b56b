"""Many things, a portion at a time: few calls, of which none holds others up, and little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def portions(things: Sequence[Thing], size: int) -> Iterator[Sequence[Thing]]:
    """Yield so many things at a time.

    >>> list(portions("abcde", 2)), list(portions("", 2))
    (['ab', 'cd', 'e'], [])
    """
    return (things[begin : begin + size] for begin in range(0, len(things), size))
