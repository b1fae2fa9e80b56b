"""A site's URLs as columns of hashes, so that a candidate rule is tried on all of them in a few vector operations.

A URL is a function from keys to values (definition 1), so its hash is the sum of a hash of its path and one of each
query pair: what a rule deletes is subtracted, whatever the order of the keys. Cost of a trial: O(n log n) for n URLs
with a small constant (about 100 ns a URL).

Layout: one row a URL; ``paths`` numbers distinct paths, ``columns[name]`` holds the number of the value (-1 absent) and
``hashes[name]`` the 64-bit hash of the pair (0 absent). Names beyond `MAX_NAMES` are one column that no rule names.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import mmh3
import numpy as np
import numpy.typing as npt

from clusterd.learning.apply_paper import changed_tokens, matches
from clusterd.learning.deep_tokens import DeepTokenizer
from clusterd.learning.generalize import ABSENT, ANY, Context
from clusterd.learning.pairwise import Transformation
from clusterd.learning.paths import ROOT, Path, edited_path, path_matches
from clusterd.learning.tokenize import UrlParts, join, tokenize

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Query names that get a column of their own; the most frequent ones.
MAX_NAMES = 256
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


def _hash(text: str) -> int:
    return mmh3.hash64(text.encode("utf-8", "surrogatepass"), signed=False)[0]


class Columns:
    """The URLs of a host as the rules chosen so far leave them, with the cluster of each."""

    def __init__(
        self, urls: Sequence[UrlParts], clusters: Sequence[int], tokenizer: DeepTokenizer | None = None
    ) -> None:
        self.size = len(urls)
        self.tokenizer = tokenizer or DeepTokenizer({})
        self.clusters: Numbers = np.asarray(clusters, dtype=np.int64)
        self.paths: list[Path] = []
        self._numbers: dict[Path, int] = {}
        self._path_hashes: list[int] = []
        self._hashed_paths: Hashes = np.zeros(0, dtype=np.uint64)
        self._fits: dict[Context, Mask] = {}
        self._moved: dict[Transformation, Numbers] = {}
        self._whole: tuple[int, int] | None = None
        self.path = np.fromiter((self._number(parts.path or ROOT) for parts in urls), dtype=np.int64, count=self.size)
        self.values: dict[str, dict[str, int]] = {}
        self.columns: dict[str, Numbers] = {}
        self.hashes: dict[str, Hashes] = {}
        self.rest: Hashes = np.zeros(self.size, dtype=np.uint64)
        self._others: dict[int, list[tuple[str, str]]] = {}
        self._fill(urls)
        #: Paths that a row may have; those beyond were only tried.
        self._live = len(self.paths)
        self.total = self._sum()

    def copy(self) -> Columns:
        """Return the same rows, to apply rules to."""
        twin = copy.copy(self)
        twin.columns = {name: column.copy() for name, column in self.columns.items()}
        twin.hashes = {name: hashed.copy() for name, hashed in self.hashes.items()}
        twin.path, twin.rest, twin._others = self.path.copy(), self.rest.copy(), dict(self._others)
        twin._fits, twin._moved = dict(self._fits), dict(self._moved)
        return twin

    def _number(self, path: Path) -> int:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
            self._path_hashes.append(_hash("/".join(path)))
        return number

    def _fill(self, urls: Sequence[UrlParts]) -> None:
        counts = Counter(name for parts in urls for name, _ in parts.query)
        names = {name for name, _ in counts.most_common(MAX_NAMES)}
        self.values = {name: {} for name in names}
        self.columns = {name: np.full(self.size, -1, dtype=np.int64) for name in names}
        self.hashes = {name: np.zeros(self.size, dtype=np.uint64) for name in names}
        for row, parts in enumerate(urls):
            self._set_query(row, parts)

    def _set_query(self, row: int, parts: UrlParts) -> None:
        for name, value in parts.query:
            hashed = _hash(f"{name}={value}")
            column = self.columns.get(name)
            if column is not None and column[row] < 0:
                known = self.values[name]
                column[row] = known.setdefault(value, len(known))
                self.hashes[name][row] = hashed
            else:
                self.rest[row] = np.uint64((int(self.rest[row]) + hashed) % 2**64)
                self._others.setdefault(row, []).append((name, value))

    def _sum(self) -> Hashes:
        total = self._hashes_of_paths()[self.path] + self.rest
        for hashed in self.hashes.values():
            total = total + hashed
        self._whole = None
        return total

    def _hashes_of_paths(self) -> Hashes:
        if len(self._hashed_paths) != len(self._path_hashes):
            self._hashed_paths = np.array(self._path_hashes, dtype=np.uint64)
        return self._hashed_paths

    # Contexts

    def mask(self, context: Context) -> Mask:
        """Return the rows that satisfy a context."""
        rows: Mask = np.ones(self.size, dtype=np.bool_)
        of_path = tuple(
            (slot, test) for slot, test in context if not slot[0] and not slot[3] and slot[1:3] not in {(1, 0), (2, 0)}
        )
        if of_path:
            rows &= self._fitting(of_path)[self.path]
        for slot, test in context:
            if slot[0] and not slot[3]:
                rows &= self._query_mask(slot[0][1:], test)
        return rows

    def _fitting(self, of_path: Context) -> Mask:
        """Return which of the distinct paths satisfy path conditions; kept until a rule is applied for good."""
        fits = self._fits.get(of_path)
        if fits is None or len(fits) != self._live:
            known = self.paths[: self._live]
            fits = self._fits[of_path] = np.fromiter((path_matches(of_path, path) for path in known), np.bool_)
        return fits

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

    def edited(self, changes: Transformation) -> tuple[Hashes, Numbers, set[str]]:
        """Return every row's hash and path under a transformation, and the names that it deletes."""
        total, path, gone = self.total, self.path, set[str]()
        of_path = tuple((slot, change) for slot, change in changes if not slot[0])
        for slot, change in changes:
            if change.op == "family":
                return np.full(self.size, _hash("family"), dtype=np.uint64), path, set(self.columns)
            if change.op == "keep":
                kept = set(change.value.split("&")) & self.columns.keys()
                gone |= self.columns.keys() - kept
                total = self._hashes_of_paths()[path] + sum((self.hashes[name] for name in kept), np.uint64(0))
            elif slot[0] and slot[0][1:] in self.hashes:
                gone.add(slot[0][1:])
                total = total - self.hashes[slot[0][1:]]
        if of_path:
            path = self._moves(of_path)[path]
            hashes = self._hashes_of_paths()
            total = total - hashes[self.path] + hashes[path]
        return total, path, gone

    def _moves(self, of_path: Transformation) -> Numbers:
        """Return what each distinct path becomes; kept until a rule is applied for good."""
        moved = self._moved.get(of_path)
        if moved is None or len(moved) != self._live:
            known = self.paths[: self._live]
            moved = np.fromiter((self._number(edited_path(of_path, path)) for path in known), np.int64)
            self._moved[of_path] = moved
        return moved

    def trial(self, context: Context, changes: Transformation) -> Trial:
        """Say what a rule would do to the rows as they are."""
        rows = self.mask(context)
        if _is_plain(context, changes):
            changed = self.edited(changes)[0] if rows.sum() > 1 else self.total
        else:
            rows, changed, _ = self._rewritten(context, changes, rows)
        covered = int(rows.sum())
        if covered < 2:
            return Trial(covered, 0, 0, 0)
        after = np.where(rows, changed, self.total)
        if self.size > SMALL and covered * 4 < self.size:
            near = rows | np.isin(self.total, changed[rows])
            before = _partition(self.total[near], self.clusters[near], None)[:2]
            return _judge(before, after[near], self.clusters[near], rows[near])
        if self._whole is None:
            self._whole = _partition(self.total, self.clusters, None)[:2]
        return _judge(self._whole, after, self.clusters, rows)

    def take(self, context: Context, changes: Transformation) -> None:
        """Apply a rule for good."""
        rows = self.mask(context)
        if not _is_plain(context, changes):
            _, _, parts = self._rewritten(context, changes, rows)
            for row, changed in parts.items():
                self._set_row(row, changed)
        elif any(change.op == "family" for _, change in changes):
            number = self._number(("*", repr((context, changes))))
            self.path = np.where(rows, number, self.path)
            self._clear(rows, set(self.columns), rest=True)
        else:
            _, path, gone = self.edited(changes)
            self.path = np.where(rows, path, self.path)
            self._clear(rows, gone, rest=any(change.op == "keep" for _, change in changes))
        if any(not slot[0] for slot, _ in changes):
            self._live = len(self.paths)
        self.total = self._sum()

    def _clear(self, rows: Mask, names: set[str], *, rest: bool) -> None:
        for name in names & set(self.columns):
            self.columns[name] = np.where(rows, -1, self.columns[name])
            self.hashes[name] = np.where(rows, np.uint64(0), self.hashes[name])
        if rest:
            self.rest = np.where(rows, np.uint64(0), self.rest)
            self._others = {row: pairs for row, pairs in self._others.items() if not rows[row]}

    # Transformations that read values (references, conversions, literals, deep tokens): URL by URL

    def _rewritten(
        self, context: Context, changes: Transformation, rows: Mask
    ) -> tuple[Mask, Hashes, dict[int, UrlParts]]:
        """Return the rows that a rule applies to, their hashes after it, and what they become."""
        texts = {name: list(known) for name, known in self.values.items()}
        after = self.total.copy()
        found: dict[int, UrlParts] = {}
        covered: Mask = np.zeros(self.size, dtype=np.bool_)
        of_rows = tuple((slot, test) for slot, test in context if slot[0] or slot[1:3] not in {(1, 0), (2, 0)})
        deep = any(slot[3] for slot, _ in (*context, *changes))
        for row in np.flatnonzero(rows):
            tokens = tokenize(self._parts(int(row), texts))
            tokens = self.tokenizer.cut(tokens) if deep else tokens
            changed = changed_tokens(changes, tokens) if matches(of_rows, tokens) else None
            if changed is None:
                continue
            covered[row] = True
            parts = found[int(row)] = join(changed)
            pairs = sum(_hash(f"{name}={value}") for name, value in parts.query)
            after[row] = np.uint64((_hash("/".join(parts.path or ROOT)) + pairs) % 2**64)
        return covered, after, found

    def _parts(self, row: int, texts: dict[str, list[str]]) -> UrlParts:
        query = [(name, texts[name][column[row]]) for name, column in self.columns.items() if column[row] >= 0]
        path = self.paths[self.path[row]]
        return UrlParts("", "", () if path == ROOT else path, (*query, *self._others.get(row, ())))

    def _set_row(self, row: int, parts: UrlParts) -> None:
        self.path[row] = self._number(parts.path or ROOT)
        for name in self.columns:
            self.columns[name][row] = -1
            self.hashes[name][row] = 0
        self.rest[row] = 0
        self._others.pop(row, None)
        self._set_query(row, parts)


def _is_plain(context: Context, changes: Transformation) -> bool:
    """Whether a rule only drops query keys and edits whole components: what columns do at once."""
    return (
        not any(slot[3] for slot, _ in context)
        and all(
            change.op in {"keep", "family", "delete"} or (change.op == "set" and not slot[0])
            for slot, change in changes
            if not slot[3]
        )
        and not any(slot[3] for slot, _ in changes)
        and not _adds_path(context, changes)
    )


def _adds_path(context: Context, changes: Transformation) -> bool:
    """Whether a transformation writes a component that the context does not say is there."""
    known = {slot for slot, test in context if test is not None}
    return any(
        change.op == "set" and change.value != ANY and slot[1] and slot[2] and slot not in known
        for slot, change in changes
        if not slot[0]
    )


def _judge(before: tuple[int, int], after: Hashes, clusters: Numbers, rows: Mask) -> Trial:
    """Count the merges that a partition makes beyond the one before, and those that join different clusters."""
    groups, false, false_covered = _partition(after, clusters, rows)
    saved = before[0] - groups
    wrong = max(0, false - before[1])
    return Trial(int(rows.sum()), false_covered, saved - wrong, wrong)


def _partition(keys: Hashes, clusters: Numbers, rows: Mask | None) -> tuple[int, int, int]:
    """Return the groups of a partition, its URLs outside their group's largest cluster, and how many are covered."""
    order = np.lexsort((clusters, keys))
    keys, clusters = keys[order], clusters[order]
    new_key = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new_key[1:])
    new_run = new_key.copy()
    new_run[1:] |= clusters[1:] != clusters[:-1]
    starts, runs = np.flatnonzero(new_key), np.flatnonzero(new_run)
    if len(starts) == len(runs):
        return len(starts), 0, 0
    sizes = np.diff(runs, append=len(keys))
    largest = np.maximum.reduceat(sizes, np.searchsorted(runs, starts))
    others = np.diff(starts, append=len(keys)) - largest
    false = int(others.sum())
    if rows is None:
        return len(starts), false, 0
    covered = np.add.reduceat(rows[order].astype(np.int64), starts)
    return len(starts), false, int(np.minimum(others, covered).sum())
