"""Phases two and three of the batch (Broder et al. 1997, section 4.1), on any shingle keys of 32 bits.

2. ⟨shingle, ID⟩, sorted by shingle. 3. ⟨ID, ID, count of common shingles⟩, sorted by the first ID. A shingle of more
than ``common`` documents is ignored (section 5.1): without that, phase three is quadratic in the longest list. With
``latest`` it still proposes to each document so many of those after it, so that a giant cluster holds together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from clusterd.batch.sorting import RUN, Sorter

#: Documents that share a shingle at most, for it to count (paper, section 5.1).
COMMON: Final = 1000
#: How many of the documents after it a common shingle proposes to each, where a giant cluster is to hold together.
LATEST: Final = 4

Keys = npt.NDArray[np.uint32]
#: First documents, second documents, counts.
Block = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]


def common_counts(
    shingles: Iterable[tuple[int, Keys]],
    common: int | None = COMMON,
    run: int = RUN,
    ignored: Counter[int] | None = None,
    latest: int = 0,
) -> Iterator[Block]:
    """Yield (first, second, count) in blocks, given each document's number and its shingles; first < second.

    ``ignored`` counts the shingles of each document that were ignored, before the first block is yielded.
    """
    with Sorter(run) as pairs:
        with Sorter(run) as postings:
            for number, words in shingles:
                postings.add((np.unique(words).astype(np.uint64) << np.uint64(32)) + np.uint64(number))
            for documents in lists(postings, 2):
                is_common = common is not None and len(documents) > common
                for step in range(1, latest + 1 if is_common else len(documents)):
                    pairs.add((documents[:-step] << np.uint64(32)) + documents[step:])
                if is_common and ignored is not None:
                    ignored.update(documents.tolist())
        for keys, counts in pairs.blocks():
            yield (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), counts


def lists(entries: Sorter, least: int) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the documents of each name that ``least`` and more have, ascending; entries are ⟨name, document⟩."""
    rest = np.zeros(0, np.uint64)
    for block, _ in entries.blocks():
        rest = np.concatenate((rest, block))
        bounds = np.flatnonzero(np.diff(rest >> np.uint64(32))) + 1
        starts = np.append(0, bounds)
        for group in np.flatnonzero(np.diff(starts) >= least).tolist():
            yield rest[starts[group] : starts[group + 1]] & np.uint64(0xFFFFFFFF)
        rest = rest[starts[-1] :]
    if len(rest) >= least:
        yield rest & np.uint64(0xFFFFFFFF)
