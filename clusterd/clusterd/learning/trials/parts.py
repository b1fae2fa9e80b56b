"""What the evidence says about an edit value by value: each judged as if it were all that is edited.

In a group of several values it is not plain which of them differs; by itself it is. Judged one after the other, a look
at a host whose URLs have ten parameters would cost hundreds of sorts: all values of all keys are judged at once here.

Cost: two sorts of the rows, and of what groups the rows of a value come to or leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clusterd.learning.evidence.arrays import Flags, Hashes, Rows, begins
from clusterd.learning.trials.agreement import Figures, counted, grouped

#: Odd, so that its multiples are distinct modulo 2^64 (2^64 by the golden ratio; Knuth, volume 3, section 6.4).
_SALT: Final = np.uint64(0x9E3779B97F4A7C15)
_NOTHING: Final = np.zeros(0, np.int64)


def judge_each(
    before: Hashes, after: Hashes, content: Rows, parts: Parts, *, by_group: bool = False
) -> tuple[Rows, Rows]:
    """Judge an edit part by part, each as if it were all that is edited; return what agrees and differs in each.

    The same figures as `judge` has for every part. What is edited in all parts of a key is judged once, and for a part
    again only in the groups that the part's own rows come to or leave.
    """
    base = _Found.of(before, after, content, parts, parts.rest, parts.rest_part)
    part, key = _pairs(np.tile(parts.part, 2), np.concatenate([after[parts.rows], before[parts.rows]]))
    wanted = key + parts.salt(parts.base[part])
    # 1. Rows edited in all parts whose groups the part's own rows come to or leave.
    at, which = _joined(after[parts.rest] + parts.salt(parts.rest_part), wanted)
    rows = np.concatenate([parts.rows, parts.rest[at]])
    own = _Found.of(before, after, content, parts, rows, np.concatenate([parts.part, part[which]]))
    # 2. What becomes of these groups is not what became of them before.
    at, which = _joined(base.key + parts.salt(base.part), wanted)
    left = base.chosen(at, part[which])
    differed = parts.summed(base.part, base.differed)[parts.base] + parts.summed(own.part, own.differed)
    differed -= parts.summed(left.part, left.differed)
    if by_group:
        agreed = parts.summed(base.part, base.agreeing)[parts.base] + parts.summed(own.part, own.agreeing)
        agreed -= parts.summed(left.part, left.agreeing)
    else:
        agreed = _agreed_each(base, own, left, parts)
    return agreed[: parts.count], differed[: parts.count]


class Parts:
    """Rows edited, by the values of some keys: a part has the rows with its value, and those with none (value 0)."""

    def __init__(
        self, columns: Sequence[Rows], edited: Flags, present: Sequence[Rows], seen: Rows | None = None
    ) -> None:
        """Take, for each key, every row's value, and the values whose parts are meant, in order; which rows are edited.

        ``seen``: of each row the crawls that have seen it, where that is not one for all.
        Parts are numbered key by key, `count` in all; behind them, for each key, the part of the rows with no value.
        """
        self.seen = seen
        sizes = [len(some) for some in present]
        self.count, self.keys = sum(sizes), len(columns)
        self._columns, self._edited = np.stack(columns), edited
        self._value = np.concatenate([*present, np.zeros(len(columns), np.int64)])
        self._column = np.concatenate([np.repeat(np.arange(len(columns)), sizes), np.arange(len(columns))])
        #: Of each part, that of its key's rows with no value.
        self.base: Rows = self.count + self._column
        first = np.cumsum([0, *sizes])
        own, rest = [], []
        for at, (values, some) in enumerate(zip(columns, present, strict=True)):
            rows = np.flatnonzero(edited & np.isin(values, some) & (values > 0))
            own.append((rows, first[at] + np.searchsorted(some, values[rows])))
            rows = np.flatnonzero(edited & (values == 0))
            rest.append((rows, np.full(len(rows), self.count + at)))
        #: Rows with a part's value, and their parts; rows that are edited in all parts of a key, and its last.
        self.rows, self.part = (np.concatenate(some) for some in zip(*own, strict=True))
        self.rest, self.rest_part = (np.concatenate(some) for some in zip(*rest, strict=True))

    def salt(self, part: Rows) -> Hashes:
        """Return a number for every part that keeps its keys apart from those of others."""
        return part.astype(np.uint64) * _SALT

    def edited(self, rows: Rows, part: Rows) -> Flags:
        """Return which of these rows are edited in their part."""
        values = self._columns[self._column[part], rows]
        found: Flags = self._edited[rows] & ((values == self._value[part]) | (values == 0))
        return found

    def summed(self, part: Rows, numbers: Rows | Flags) -> Rows:
        """Add up numbers by part."""
        return np.bincount(part, weights=numbers, minlength=len(self.base)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Found(Figures):
    """Groups of parts, with each one's part and key."""

    part: Rows
    key: Hashes

    def chosen(self, at: Rows, part: Rows) -> _Found:
        """Return some of these groups, as those of other parts."""
        return _Found(self.wanted[at], self.pages[at], self.differed[at], part, self.key[at])

    @classmethod
    def of(cls, before: Hashes, after: Hashes, content: Rows, parts: Parts, rows: Rows, part: Rows) -> _Found:
        """Return the groups that rows are brought into, each edited in a part."""
        keys = after[rows] + parts.salt(part)
        # 1. What is not edited in a part and has a key that the part's rows get.
        targets, first = np.unique(keys, return_index=True)
        target_part = part[first]
        joined, which = _joined(before, targets - parts.salt(target_part))
        still = ~parts.edited(joined, target_part[which])
        # 2. These with the rows that are edited, in groups.
        every = np.concatenate([rows, joined[still]])
        every_part = np.concatenate([part, target_part[which[still]]])
        every_key = np.concatenate([keys, targets[which[still]]])
        changed = np.arange(len(every)) < len(rows)
        seen = None if parts.seen is None else parts.seen[every]
        found = grouped(every, every_key, before[every], content[every], changed, seen) if len(rows) else None
        if found is None:
            return cls(_NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0, np.uint64))
        part_of = every_part[found.first]
        return cls(found.wanted, found.pages, found.differed, part_of, every_key[found.first] - parts.salt(part_of))


def _pairs(part: Rows, key: Hashes) -> tuple[Rows, Hashes]:
    """Return the distinct pairs of a part and a key."""
    order = np.lexsort((key, part))
    part, key = part[order], key[order]
    first = begins(part) | begins(key)
    return part[first], key[first]


def _joined(keys: Hashes, wanted: Hashes) -> tuple[Rows, Rows]:
    """Return where each wanted key stands among keys, and, for each of these places, which it was."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.searchsorted(ordered, wanted)
    counts = np.searchsorted(ordered, wanted, side="right") - starts
    ends = np.cumsum(counts)
    places: Rows = order[np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + counts, counts)]
    return places, np.repeat(np.arange(len(wanted)), counts)


def _agreed_each(base: _Found, own: _Found, left: _Found, parts: Parts) -> Rows:
    """Count the agreements of each part by contents: those of all parts, but for the contents whose groups changed."""
    size = int(max(found.wanted.max(initial=0) for found in (base, own))) + 1
    came, went, known = own.agreeing, left.agreeing, base.agreeing
    # 1. Of each content in the part of a key's rows with no value: groups, pages, what they count.
    pairs = (base.part[known] - parts.count) * size + base.wanted[known]
    every = parts.keys * size
    groups = np.bincount(pairs, minlength=every)
    pages = np.bincount(pairs, weights=base.pages[known], minlength=every).astype(np.int64)
    units = counted(groups, pages)
    # 2. The contents whose groups changed in a part.
    own_pairs, left_pairs = own.part[came] * size + own.wanted[came], left.part[went] * size + left.wanted[went]
    changed, which = np.unique(np.concatenate([own_pairs, left_pairs]), return_inverse=True)
    sign = np.repeat([1, -1], [len(own_pairs), len(left_pairs)])
    more = np.concatenate([own.pages[came], left.pages[went]]) * sign
    part = changed // size
    before = (parts.base[part] - parts.count) * size + changed % size
    now = counted(
        groups[before] + np.bincount(which, weights=sign, minlength=len(changed)).astype(np.int64),
        pages[before] + np.bincount(which, weights=more, minlength=len(changed)).astype(np.int64),
    )
    total: Rows = units.reshape(parts.keys, size).sum(axis=1)
    return total[parts.base - parts.count] + parts.summed(part, now - units[before])
