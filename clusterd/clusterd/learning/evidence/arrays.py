"""The arrays that evidence is held in and judged by, and what is asked of each kind of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Numbers: of rows, or of what rows have, a content, a path, a value.
Rows = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
#: Of each row, or of each number, whether something holds.
Flags = npt.NDArray[np.bool_]


def as_array(values: array[int]) -> Rows:
    """Return a copy of an array of integers for NumPy."""
    return np.array(values, dtype=np.int64)


def distinct(numbers: Rows) -> Rows:
    """Return the distinct numbers in order: what `np.unique` does, which takes thrice as long where they are few."""
    ordered = np.sort(numbers)
    found: Rows = ordered[begins(ordered)]
    return found


def begins(ordered: Rows | Hashes) -> Flags:
    """Say where a run of equal numbers begins."""
    found = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=found[1:])
    return found


def numbered(texts: Sequence[str]) -> Rows:
    """Return a number for each text, from 0, in the order of the texts.

    `np.unique` would do so in an array that takes as much for each of them as the longest does: of 6,000 paths of a
    host gigabytes, where one of them is 60,000 characters long.
    """
    numbers = {text: number for number, text in enumerate(sorted(set(texts)))}
    return np.array([numbers[text] for text in texts], np.int64)


def by_number(numbers: Rows | Hashes, rows: Rows) -> list[Rows]:
    """Return rows that have a number each, parted by these, in their order; those of one number in the order given."""
    order = np.argsort(numbers, kind="stable")
    return np.split(rows[order], np.flatnonzero(begins(numbers[order]))[1:])


def firsts(numbers: Rows | Hashes) -> Rows:
    """Return, in order, where each number stands first."""
    return np.sort(np.unique(numbers, return_index=True)[1])


def paired(first: Rows, second: Rows) -> Rows:
    """Return a number for each two, ordered by the first and then by the second."""
    return first * (int(second.max(initial=0)) + 1) + second


def combined(columns: Sequence[Rows]) -> tuple[Rows, Rows]:
    """Return the combinations of the values that rows have, one a column, and which of them each row has."""
    combinations, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    return combinations, which.ravel()  # of NumPy 2.0 it has two axes
