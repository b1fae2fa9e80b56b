"""A site's URLs as columns of hashes, so that a candidate rule is tried on all of them in a few vector operations.

A URL is a function from keys to values (definition 1), so its hash is the sum of a hash of its path and one of each
query pair: what a rule deletes is subtracted, whatever the order of the keys. Cost of a trial: O(n log n) for n URLs
with a small constant (about 100 ns a URL).

A trial says what a crawl would make of the URLs, which applies a rule until nothing changes: of a key that is there
several times a deletion takes all.

Layout: one row a URL; ``paths`` numbers distinct paths, ``columns[name]`` holds the number of the first value (-1
absent) and ``hashes[name]`` the sum of the pairs' 64-bit hashes (0 absent). Names beyond `MAX_NAMES` are one column
that no rule names.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from clusterd_crawler.urls import hash_of

from clusterd.learning.koppula.apply import changed_tokens, matches
from clusterd.learning.koppula.deep_tokens import DeepTokenizer
from clusterd.learning.koppula.generalize import ABSENT, ANY, Context, standing
from clusterd.learning.koppula.pairwise import Transformation
from clusterd.learning.koppula.paths import ROOT, Hashes, Mask, Numbers, PathTable
from clusterd.learning.koppula.tokenize import Slot, UrlParts, join, tokenize

#: Query names that get a column of their own; the most frequent ones.
MAX_NAMES = 256
#: Scheme and host, which a rule's host says.
SITE = {(1, 0), (2, 0)}
#: Changes that take query keys away, or a whole component.
DROPS = frozenset(("keep", "family", "delete"))
FAMILY_HASH = hash_of("family")
FIRST: Numbers = np.zeros(1, dtype=np.int64)
#: Rows below which a trial looks at all of them: finding those that a rule concerns costs more.
SMALL = 3_000


class Trial(NamedTuple):
    """What a rule does to the URLs as they are now: the paper's coverage and f, and merges that were right or wrong."""

    covered: int
    false: int
    right: int
    wrong: int

    @property
    def precision(self) -> float:
        """(rcov - f) / rcov, section 5."""
        return (self.covered - self.false) / self.covered if self.covered else 0.0


class Columns:
    """The URLs of a host as the rules chosen so far leave them, with the cluster of each."""

    def __init__(
        self, urls: Sequence[UrlParts], clusters: Sequence[int], tokenizer: DeepTokenizer | None = None
    ) -> None:
        self.size = len(urls)
        self.tokenizer = tokenizer or DeepTokenizer({})
        self.clusters: Numbers = np.asarray(clusters, dtype=np.int64)
        #: Whether rows stand in the order of their clusters, so that one stable sort keeps each key's in runs.
        self._in_order = bool((self.clusters[1:] >= self.clusters[:-1]).all())
        self._paths = PathTable()
        self._whole: tuple[int, int] | None = None
        numbers = [self._paths.number(parts.path or ROOT) for parts in urls]
        self.path: Numbers = np.array(numbers, dtype=np.int64)
        self.values: dict[str, dict[str, int]] = {}
        self._texts: dict[str, list[str]] = {}
        self.columns: dict[str, Numbers] = {}
        self.hashes: dict[str, Hashes] = {}
        self.rest: Hashes = np.zeros(self.size, dtype=np.uint64)
        #: Row → the pairs whose value no column tells: further ones of a key, and those that have no column.
        self._others: dict[int, list[tuple[str, str]]] = {}
        self._fill(urls)
        self._paths.keep_tried()
        self.total = self._sum()

    def copy(self) -> Columns:
        """Return the same rows, to apply rules to."""
        twin = copy.copy(self)
        twin.columns = {name: column.copy() for name, column in self.columns.items()}
        twin.hashes = {name: hashed.copy() for name, hashed in self.hashes.items()}
        twin.path, twin.rest, twin._others = self.path.copy(), self.rest.copy(), dict(self._others)
        return twin

    def _fill(self, urls: Sequence[UrlParts]) -> None:
        counts = Counter([name for parts in urls for name, _ in parts.query])
        #: Name → rows that have it, number of their value; hashes by number; the values known so far.
        cells: dict[str, tuple[list[int], list[int], list[int], dict[str, int]]] = {}
        for name, _ in counts.most_common(MAX_NAMES):
            self.values[name], self._texts[name] = {}, []
            cells[name] = ([], [], [], self.values[name])
        for row, parts in enumerate(urls):
            for name, value in parts.query:
                cell = cells.get(name)
                if cell is None or (cell[0] and cell[0][-1] == row):
                    self._others.setdefault(row, []).append((name, value))
                    continue
                rows, numbers, hashes, known = cell
                rows.append(row)
                number = known.get(value)
                if number is None:
                    number = self._value(name, value)
                    hashes.append(hash_of(f"{name}={value}"))
                numbers.append(number)
        for name, (rows, numbers, hashes, _) in cells.items():
            self.columns[name] = np.full(self.size, -1, dtype=np.int64)
            self.hashes[name] = np.zeros(self.size, dtype=np.uint64)
            self.columns[name][rows] = numbers
            self.hashes[name][rows] = np.array(hashes, dtype=np.uint64)[numbers]
        for row, pairs in self._others.items():
            for name, value in pairs:
                self._add(row, name, value)

    def _value(self, name: str, value: str) -> int:
        known = self.values[name]
        number = known.get(value)
        if number is None:
            number = known[value] = len(known)
            self._texts[name].append(value)
        return number

    def _set_query(self, row: int, parts: UrlParts) -> None:
        for name, value in parts.query:
            column = self.columns.get(name)
            if column is not None and column[row] < 0:
                column[row] = self._value(name, value)
            else:
                self._others.setdefault(row, []).append((name, value))
            self._add(row, name, value)

    def _add(self, row: int, name: str, value: str) -> None:
        hashes = self.hashes.get(name, self.rest)
        hashes[row] = (int(hashes[row]) + hash_of(f"{name}={value}")) % 2**64

    def _sum(self) -> Hashes:
        total = self._paths.hashes()[self.path] + self.rest
        for hashed in self.hashes.values():
            total += hashed
        self._whole = None
        return total

    # Contexts

    def mask(self, context: Context) -> Mask:
        """Return the rows that satisfy a context."""
        rows: Mask = np.ones(self.size, dtype=np.bool_)
        of_path = tuple(
            [(slot, test) for slot, test in context if not slot[0] and not slot[3] and slot[1:3] not in SITE]
        )
        if of_path:
            rows &= self._paths.fitting(of_path)[self.path]
        for slot, test in context:
            if slot[0] and slot[1] == 1 and not slot[3]:
                rows &= self._query_mask(slot[0][1:], test)
        return rows

    def _query_mask(self, name: str, test: str | None) -> Mask:
        column = self.columns.get(name)
        if column is None:
            return np.full(self.size, test is ABSENT, dtype=np.bool_)
        if test is ABSENT:
            return np.less(column, 0)
        if test == ANY:
            return np.greater_equal(column, 0)
        return np.equal(column, self.values[name].get(test, -2))

    # Transformations

    def edited(self, changes: Transformation, rows: Numbers) -> tuple[Hashes, Numbers, set[str]]:
        """Return some rows' hashes and paths under a transformation, and the names that it deletes."""
        total, path, gone = self.total[rows], self.path[rows], set[str]()
        before = path
        of_path = tuple([(slot, change) for slot, change in changes if not slot[0]])
        for slot, change in changes:
            if change.op == "family":
                return np.full(len(rows), FAMILY_HASH, dtype=np.uint64), path, set(self.columns)
            if change.op == "keep":
                kept = set(change.value.split("&")) & self.columns.keys()
                gone |= self.columns.keys() - kept
                total = self._paths.hashes()[path]
                for name in kept:
                    total += self.hashes[name][rows]
            elif slot[0] and slot[0][1:] in self.hashes:
                gone.add(slot[0][1:])
                total -= self.hashes[slot[0][1:]][rows]
        if of_path:
            path = self._paths.moved(of_path, path)
            hashes = self._paths.hashes()
            total += hashes[path] - hashes[before]
        return total, path, gone

    def trial(self, context: Context, changes: Transformation) -> Trial:
        """Say what a rule would do to the rows as they are."""
        context = standing(context, changes)
        covered = self.mask(context)
        rows = np.flatnonzero(covered)
        if _is_plain(context, changes):
            changed = self.edited(changes, rows)[0] if len(rows) > 1 else self.total[rows]
        else:
            rows, changed, _ = self._rewritten(context, changes, rows)
            covered = np.zeros(self.size, dtype=np.bool_)
            covered[rows] = True
        if len(rows) < 2:
            return Trial(len(rows), 0, 0, 0)
        after = self.total.copy()
        after[rows] = changed
        if self.size > SMALL and len(rows) * 4 < self.size:
            # (Two orders of a repeated key are one URL, of which a context on its first value covers one alone.)
            near = np.isin(self.total, np.concatenate([self.total[rows], changed]))
            before = self._partition(self.total[near], self.clusters[near], None)[:2]
            return self._judged(before, after[near], self.clusters[near], covered[near])
        if self._whole is None:
            self._whole = self._partition(self.total, self.clusters, None)[:2]
        return self._judged(self._whole, after, self.clusters, covered)

    def take(self, context: Context, changes: Transformation) -> None:
        """Apply a rule for good."""
        context = standing(context, changes)
        rows = np.flatnonzero(self.mask(context))
        if not _is_plain(context, changes):
            for row, changed in self._rewritten(context, changes, rows)[2].items():
                self._set_row(row, changed)
        elif any(change.op == "family" for _, change in changes):
            self.path[rows] = self._paths.number(("*", repr((context, changes))))
            self._clear(rows, set(self.columns), rest=True)
        else:
            _, path, gone = self.edited(changes, rows)
            self.path[rows] = path
            self._clear(rows, gone, rest=any(change.op == "keep" for _, change in changes))
        if any(not slot[0] for slot, _ in changes):
            self._paths.keep_tried()
        self.total = self._sum()

    def _clear(self, rows: Numbers, names: set[str], *, rest: bool) -> None:
        for name in names & set(self.columns):
            self.columns[name][rows] = -1
            self.hashes[name][rows] = 0
        if rest:
            self.rest[rows] = 0
        for row in self._others.keys() & rows.tolist() if self._others else ():
            pairs = self._others.pop(row)
            if left := [pair for pair in pairs if pair[0] not in names and (pair[0] in self.columns or not rest)]:
                self._others[row] = left

    def _judged(self, before: tuple[int, int], after: Hashes, clusters: Numbers, rows: Mask) -> Trial:
        """Count the merges that a partition makes beyond the one before, and those that join different clusters."""
        groups, false, false_covered = self._partition(after, clusters, rows)
        saved = before[0] - groups
        wrong = max(0, false - before[1])
        return Trial(int(np.count_nonzero(rows)), false_covered, saved - wrong, wrong)

    def _partition(self, keys: Hashes, clusters: Numbers, rows: Mask | None) -> tuple[int, int, int]:
        """Return a partition's groups, its URLs outside their group's largest cluster, and how many are covered."""
        order = np.argsort(keys, kind="stable") if self._in_order else np.lexsort((clusters, keys))
        keys, clusters = keys[order], clusters[order]
        new_key = keys[1:] != keys[:-1]
        new_run = new_key | (clusters[1:] != clusters[:-1])
        groups = 1 + int(np.count_nonzero(new_key))
        if groups == 1 + int(np.count_nonzero(new_run)):
            return groups, 0, 0
        starts = np.concatenate([FIRST, np.flatnonzero(new_key) + 1])
        runs = np.concatenate([FIRST, np.flatnonzero(new_run) + 1])
        largest = np.maximum.reduceat(_lengths(runs, len(keys)), np.searchsorted(runs, starts))
        others = _lengths(starts, len(keys)) - largest
        false = int(others.sum())
        if rows is None:
            return groups, false, 0
        covered = np.add.reduceat(rows[order].astype(np.int64), starts)
        return groups, false, int(np.minimum(others, covered).sum())

    # Transformations that read values (references, conversions, literals, deep tokens): URL by URL

    def _rewritten(
        self, context: Context, changes: Transformation, rows: Numbers
    ) -> tuple[Numbers, Hashes, dict[int, UrlParts]]:
        """Return those of some rows that a rule applies to, their hashes after it, and what they become."""
        hashes: list[int] = []
        found: dict[int, UrlParts] = {}
        of_rows = tuple([(slot, test) for slot, test in context if slot[0] or slot[1:3] not in SITE])
        deep = any(slot[3] for slot, _ in (*context, *changes))
        told = not deep and all(not slot[0] or (slot[1] == 1 and slot[0][1:] in self.columns) for slot, _ in of_rows)
        for row, parts in self._parts(rows):
            tokens = self.tokenizer.cut(tokenize(parts)) if deep else tokenize(parts)
            # What the mask says of whole components and first keys need not be asked again.
            changed = changed_tokens(changes, tokens) if told or matches(of_rows, tokens) else None
            if changed is None:
                continue
            became = found[row] = join(changed)
            pairs = sum([hash_of(f"{name}={value}") for name, value in became.query])
            hashes.append((hash_of("/".join(became.path or ROOT)) + pairs) % 2**64)
        return np.array(list(found), dtype=np.int64), np.array(hashes, dtype=np.uint64), found

    def _parts(self, rows: Numbers) -> Iterator[tuple[int, UrlParts]]:
        """Yield some rows with the URLs that they are now."""
        cells = [(name, self._texts[name], column[rows]) for name, column in self.columns.items()]
        present = [(name, texts, numbers.tolist()) for name, texts, numbers in cells if (numbers >= 0).any()]
        paths = self.path[rows].tolist()
        for at, row in enumerate(rows.tolist()):
            query = [(name, texts[numbers[at]]) for name, texts, numbers in present if numbers[at] >= 0]
            path = self._paths.paths[paths[at]]
            yield row, UrlParts("", "", () if path == ROOT else path, (*query, *self._others.get(row, ())))

    def _set_row(self, row: int, parts: UrlParts) -> None:
        self.path[row] = self._paths.number(parts.path or ROOT)
        for name in self.columns:
            self.columns[name][row] = -1
            self.hashes[name][row] = 0
        self.rest[row] = 0
        self._others.pop(row, None)
        self._set_query(row, parts)


def _lengths(starts: Numbers, end: int) -> Numbers:
    """Return how long runs are that begin at these places, the last one up to an end."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = end - starts[-1]
    return lengths


def _is_plain(context: Context, changes: Transformation) -> bool:
    """Whether a rule only drops query keys and edits whole components: what columns do at once."""
    if any(slot[3] or (slot[0] and slot[1] > 1) for slot, _ in (*context, *changes)):
        return False
    for slot, change in changes:
        if change.op not in DROPS and (change.op != "set" or slot[0]):
            return False
        if change.op == "set" and change.value != ANY and slot[1] and slot[2] and not _is_said(slot, context):
            return False
    return True


def _is_said(slot: Slot, context: Context) -> bool:
    """Whether a context says that a component is there; a transformation that writes it elsewhere adds it."""
    return any(known == slot and test is not None for known, test in context)
