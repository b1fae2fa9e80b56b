"""Where an edit holds: the context of a rule, found from what agrees and what differs.

An edit is first judged wherever it applies. Where pages differ, its context is narrowed to the values of one key after
the other (path, folder, a parameter) whose own record is clean and too long to be luck under the record of the whole:
with a share s of agreement overall, n clean trials in a row are luck with probability s^n, and that has to be below
`LUCK`. At last the context is closed: it is restricted to the values seen in agreeing pages, for every key, unless
nearly every content brings a new value (`OPEN`), in which case any value is accepted. `days=1,3,14` agreeing says
nothing about `days=30`, a hundred different session ids say something about the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, log
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Key

from clusterd.learning.edits import CandidateEdit
from clusterd.learning.evidence import VALUELESS, ColumnKey, Flags, Rows, Shape, Snapshot
from clusterd.learning.trials import NO_OUTCOME, Outcome, judge, lower_bound

#: A rule goes live above this lower bound: 25 clean trials (FIELD: below .9 small sites lose contents).
BOUND: Final = 0.9
#: Most units of a live rule that may differ, of those tried, when there are many.
DIFFER: Final = 0.01
#: Most agreeing contents, for a key's values to count as open: this share of them brings a new value.
OPEN: Final = 0.5
#: Most probability that the clean record of a value is luck.
LUCK: Final = 0.05
#: Most keys that a context is narrowed by.
NARROWINGS: Final = 3
#: Most values that a condition lists.
LISTED: Final = 400
#: Fewest agreements that a value of an edited key needs.
OWN_VALUE: Final = 2
#: Fewest pages of an outcome with this little are not looked at further.
FEWEST: Final = 5


@dataclass(slots=True)
class Attribute:
    """A key that a context can restrict, as a value number for every row (0: absent)."""

    name: str
    values: Rows
    column: ColumnKey | None = None
    start: int = 0
    end: int = 0
    texts: list[str] = field(default_factory=list)

    def condition(self, snapshot: Snapshot, numbers: Rows) -> Condition | None:
        """Return the condition that the value is one of these, or None where it cannot be written."""
        absent = bool(len(numbers)) and int(numbers[0]) == 0
        present = [int(number) for number in numbers if number]
        if len(present) > LISTED:
            return None
        if self.column is not None:
            column = snapshot.columns[self.column].column
            found = [column.text(number) for number in present]
            key = Key(self.column[0], self.column[1])
        else:
            found = [self.texts[number] for number in present]
            key = Key(start=self.start, end=self.end)
        texts = tuple(sorted(text for text in found if text is not None and text != VALUELESS))
        if len(texts) < len(found):
            return None
        if not texts:
            return Condition(key, "absent")
        if absent:
            return Condition(key, "within", texts)
        return Condition(key, "is" if len(texts) == 1 else "in", texts)


@dataclass(slots=True)
class Proposal:
    """An edit with the rows and the context in which it holds."""

    edit: CandidateEdit
    rows: Flags
    conditions: list[Condition]
    outcome: Outcome
    bound: float


def attributes(snapshot: Snapshot, edit: CandidateEdit, rows: Flags) -> Iterator[Attribute]:
    """Yield the keys that a context can be narrowed or closed by: places in the path, then parameters."""
    yield from path_attributes(snapshot)
    present = np.unique(snapshot.shape[rows])
    names: dict[ColumnKey, None] = {}
    for number in present.tolist():
        shape = snapshot.evidence.shapes.items[number]
        assert isinstance(shape, tuple)
        names.update(dict.fromkeys(shape))
    for key in names:
        if key in snapshot.columns and key[0]:
            yield Attribute(f"?{key[0]}#{key[1]}", snapshot.values(key), column=key)


def path_attributes(snapshot: Snapshot) -> Iterator[Attribute]:
    """Yield the whole path, its first two components and its last."""
    items = snapshot.evidence.paths.items
    split = {number: str(items[number]).split("/") for number in np.unique(snapshot.path).tolist()}
    for name, start, end in (("path", 0, 0), ("first", 3, 0), ("second", 4, 0), ("last", 0, 1)):
        numbers: dict[str, int] = {}
        table = np.zeros(len(items), np.int64)
        for number, parts in split.items():
            if name == "path":
                text = "/".join(parts)
            else:
                index = start - 3 if start else len(parts) - 1
                if index >= len(parts):
                    continue
                text = parts[index]
            table[number] = numbers.setdefault(text, len(numbers) + 1)
        yield Attribute(name, table[snapshot.path], start=start, end=end, texts=["", *numbers])


def refine(snapshot: Snapshot, edit: CandidateEdit, bound: float = BOUND, prior: int = 0) -> Proposal | None:
    """Find the context in which an edit holds above the bound; None where there is none.

    ``prior`` is how many clean trials the kind of edit brings along (`candidates.PRIORS`).
    """
    rows = edit.rows(snapshot)
    outcome = _outcome(snapshot, edit, rows)
    if outcome.agreed + prior < FEWEST or not outcome.agreed:
        return None
    found = list(attributes(snapshot, edit, rows))
    conditions: list[Condition] = []
    for _ in range(NARROWINGS):
        if _holds(outcome, bound, prior):
            break
        narrowed = _narrowest(snapshot, edit, rows, outcome, found) if outcome.agreed else None
        if narrowed is None:
            return None
        attribute, allowed = narrowed
        condition = attribute.condition(snapshot, allowed)
        if condition is None:
            return None
        conditions.append(condition)
        rows = rows & np.isin(attribute.values, allowed)
        outcome = _outcome(snapshot, edit, rows)
    if not _holds(outcome, bound, prior):
        return None
    return _closed(snapshot, edit, rows, outcome, conditions, found, bound, prior)


def _outcome(snapshot: Snapshot, edit: CandidateEdit, rows: Flags) -> Outcome:
    if not rows.any():
        return NO_OUTCOME
    return judge(snapshot.key, edit.keys(snapshot, rows), snapshot.content, rows)


def _holds(outcome: Outcome, bound: float, prior: int) -> bool:
    units = outcome.agreed + outcome.differed + prior
    return (
        outcome.agreed > 0
        and lower_bound(outcome.agreed + prior, units) >= bound
        and outcome.differed <= DIFFER * units
    )


def _narrowest(
    snapshot: Snapshot, edit: CandidateEdit, rows: Flags, outcome: Outcome, found: list[Attribute]
) -> tuple[Attribute, Rows] | None:
    """Return the key, and its values with a record that is clean beyond luck, that keep most agreeing contents."""
    share = outcome.agreed / (outcome.agreed + outcome.differed)
    need = max(2, ceil(log(LUCK) / log(min(share, 0.999)))) if share > 0 else 2
    best: tuple[Attribute, Rows] | None = None
    most = 0
    for attribute in found:
        good, bad = records(outcome, attribute, rows)
        allowed = np.flatnonzero((good >= need) & (bad <= DIFFER * good))
        kept = int(good[allowed].sum())
        if kept > most and len(allowed) < np.count_nonzero(good + bad):
            best, most = (attribute, allowed), kept
    return best


def records(outcome: Outcome, attribute: Attribute, rows: Flags) -> tuple[Rows, Rows]:
    """Return, for every value of a key, its agreeing contents and its pages that differ (of the rows edited)."""
    values = attribute.values[outcome.rows]
    size = int(attribute.values.max(initial=0)) + 1
    edited = rows[outcome.rows]
    good = outcome.good & edited
    pairs = np.unique(np.stack([values[good], outcome.content[good]]), axis=1)
    bad = ~outcome.good & edited
    return np.bincount(pairs[0], minlength=size), np.bincount(values[bad], minlength=size)


def _closed(
    snapshot: Snapshot,
    edit: CandidateEdit,
    rows: Flags,
    outcome: Outcome,
    conditions: list[Condition],
    found: list[Attribute],
    bound: float,
    prior: int,
) -> Proposal | None:
    """Restrict the context to what its evidence has seen."""
    narrowed = {(condition.key, condition.test == "only") for condition in conditions}
    conditions = list(conditions)
    path_closed = False
    for attribute in found:
        if path_closed and attribute.column is None:
            continue
        good, bad = records(outcome, attribute, rows)
        own = attribute.column in edit.own
        seen = np.flatnonzero(good >= (OWN_VALUE if own else 1))
        if own:
            seen = np.union1d(seen[bad[seen] <= DIFFER * good[seen]], [0])
        if is_open(good):
            continue
        condition = attribute.condition(snapshot, seen)
        if condition is None:
            if attribute.name != "path":
                return None
            continue
        path_closed |= attribute.name == "path"
        rows = rows & np.isin(attribute.values, seen)
        conditions = [known for known in conditions if known.key != condition.key] + [condition]
    if narrowed or conditions:
        outcome = _outcome(snapshot, edit, rows)
    rows, only = _only_seen_names(snapshot, rows, outcome)
    outcome = _outcome(snapshot, edit, rows)
    if not _holds(outcome, bound, prior):
        return None
    reached = lower_bound(outcome.agreed + prior, outcome.agreed + outcome.differed + prior)
    return Proposal(edit, rows, [*conditions, only], outcome, reached)


def is_open(good: Rows) -> bool:
    """Whether nearly every content brings a new value, by the agreeing contents of each value."""
    present = good[1:]
    total = int(present.sum())
    return total >= FEWEST and np.count_nonzero(present) >= OPEN * total and not int(good[0]) > total


def _only_seen_names(snapshot: Snapshot, rows: Flags, outcome: Outcome) -> tuple[Flags, Condition]:
    """Restrict to URLs with no other query keys than those of agreeing pages."""
    shapes = snapshot.evidence.shapes.items
    agreeing = np.unique(snapshot.shape[outcome.rows[outcome.good]])
    names: set[str] = set()
    for number in agreeing.tolist():
        shape = shapes[number]
        assert isinstance(shape, tuple)
        names |= {key[0] for key in shape}
    fits = np.zeros(len(shapes), np.bool_)
    for number in np.unique(snapshot.shape).tolist():
        fits[number] = all(key[0] in names for key in _shape(shapes[number]))
    return rows & fits[snapshot.shape], Condition(Key(), "only", tuple(sorted(names)))


def _shape(item: object) -> Shape:
    assert isinstance(item, tuple)
    return item
