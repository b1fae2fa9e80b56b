"""What accepted edits have made of keys: rules are applied again to what they make of a URL, until nothing changes.

``/-/issues/7?sort=created`` less ``sort`` is ``/-/issues/7``. Where a rule says that this is ``/issues/7``, of paths
without a query, no page has the key that the deletion leads to: all that had it have the other one by now. The crawl
applies the rule to what the deletion made of the URL (`clusterd_crawler.rule_language.keys`); so do the trials of the
deletion.

Layout: three sorted columns, 24 bytes for each key that an accepted edit has changed. Cost: a binary search a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows
from clusterd.learning.evidence.shapes import ColumnKey

#: Most accepted edits that are followed from one key, as in the crawl (`clusterd_crawler.rule_language.keys.PASSES`).
FOLLOWED: Final = 6


class Accepted(Protocol):
    """An edit that holds (`clusterd.learning.edits.edit.CandidateEdit`)."""

    @property
    def own(self) -> tuple[ColumnKey, ...]:
        """The query keys that are edited."""
        ...

    def commit(self, snapshot: Any, rows: Flags) -> None:
        """Make the edit of the given rows part of the snapshot."""
        ...


class Settled:
    """The keys that accepted edits have changed, what each became, and by which edit."""

    def __init__(self) -> None:
        self._before: Hashes = np.zeros(0, np.uint64)
        self._after: Hashes = np.zeros(0, np.uint64)
        self._by: Rows = np.zeros(0, np.int64)
        self._edits: tuple[Accepted, ...] = ()

    def note(self, before: Hashes, after: Hashes, edit: Accepted) -> None:
        """Take all keys before and after an edit was accepted; what an earlier one made of a key stays."""
        changed = before != after
        keys = np.append(self._before, before[changed])
        self._before, first = np.unique(keys, return_index=True)
        self._after = np.append(self._after, after[changed])[first]
        self._by = np.append(self._by, np.full(np.count_nonzero(changed), len(self._edits)))[first]
        self._edits = (*self._edits, edit)

    def follow(self, keys: Hashes) -> Hashes:
        """Return what keys become when accepted edits are applied to them, one after the other."""
        for _ in range(FOLLOWED if len(self._before) else 0):
            at, known = self._find(keys)
            if not known.any():
                break
            keys = np.where(known, self._after[at], keys)
        return keys

    def due(self, keys: Hashes) -> Iterator[tuple[Accepted, Flags]]:
        """Yield the accepted edits that change some of these keys, and say which."""
        if not len(self._before):
            return
        at, known = self._find(keys)
        for number in np.unique(self._by[at[known]]).tolist():
            yield self._edits[number], known & (self._by[at] == number)

    def _find(self, keys: Hashes) -> tuple[Rows, Flags]:
        at = np.minimum(np.searchsorted(self._before, keys), len(self._before) - 1)
        return at, self._before[at] == keys
