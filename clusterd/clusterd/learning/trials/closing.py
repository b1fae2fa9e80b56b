"""Closes a context: restricts it to what its evidence has seen, unless that is so much that the next may agree, too.

Of every key only the values pass that were seen in agreeing pages (`days=1,3,14` says nothing of `days=30`), of edited
parameters only combinations that were tried (`tried_together`), no pairs of values that should have met and did not
(`unseen_pairs`), no parameters that no agreeing page has. What takes ever new values passes with any.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition, Key

from clusterd.learning.evidence.arrays import distinct, paired
from clusterd.learning.trials import tried_together, unseen_pairs
from clusterd.learning.trials.agreement import DIFFER, is_open
from clusterd.learning.trials.attributes import FEW_VALUES, Attribute, depth_attribute
from clusterd.learning.trials.narrowing import Trials

#: A value is rare when another of its key has so many times its pages.
RARE: Final = 4
#: Fewest agreements that a value of an edited key needs.
OWN_VALUE: Final = 2

#: The record of a key of which one value agreed, and of one of which none differed.
ONE: Final = np.array([0, 1], np.int64)
NONE: Final = np.array([0, 0], np.int64)


def close(trials: Trials, found: list[Attribute], conditions: list[Condition], prior: int) -> bool:
    """Restrict the context to what its evidence has seen; false where that cannot be written."""
    path_closed = False
    required = tried_together.restrict(trials, conditions)
    for attribute in found:
        if path_closed and attribute.column is None:
            continue
        own = attribute.column in trials.edit.own
        good, bad = trials.records(attribute)
        if is_open(good, bad, prior):
            continue
        seen = np.flatnonzero(good >= (OWN_VALUE if own else 1))
        if own:
            seen = seen[bad[seen] <= DIFFER * good[seen]]
            needed = attribute.column in required or _is_left_out(trials, attribute, conditions)
            seen = seen[seen > 0] if needed else np.union1d(seen, [0])
        elif attribute.column is not None and not seen.any():
            continue  # Absent from all agreeing pages: `_only_seen_names` says so for every such key at once.
        seen = attribute.written(seen)
        condition = attribute.condition(seen)
        if condition is None:
            if attribute.name != "path":
                return False
            continue
        path_closed |= attribute.name == "path"
        trials.narrow(np.isin(attribute.values, seen))
        conditions[:] = [known for known in conditions if known.key != condition.key] + [condition]
    _leave_out_unseen_pairs(trials, found, conditions)
    _leave_out_unmet_values(trials, found, conditions)
    if not is_open(ONE, NONE, prior):  # What is expected of a value never seen is expected of a key never seen.
        conditions.append(_only_seen_names(trials))
        if trials.edit.own and not path_closed:
            conditions[:] = _with_depth(trials, conditions)
    return True


def _is_left_out(trials: Trials, edited: Attribute, conditions: list[Condition]) -> bool:
    """Whether the context was narrowed to pages with a parameter, of those with and without it that are edited.

    That ``?sort=price&order=asc`` shows the list says nothing of ``?order=asc``, where that has no such record.
    """
    narrowed = any(known.key == edited.key and known.test in {"is", "in", "any"} for known in conditions)
    return narrowed and bool((edited.values[trials.edit.rows(trials.snapshot)] == 0).any())


def _leave_out_unseen_pairs(trials: Trials, found: list[Attribute], conditions: list[Condition]) -> None:
    """Of a key with few values, leave out the rare ones that were not seen with all values of the edited parameters.

    That ``page=1`` may go from two kinds of list, and ``page=`` from one of them, says nothing of the other. Of a dozen
    parameters hardly a colour is seen with all values of each; where many pairs of both were seen, the next may be
    expected to agree too.
    """
    closed = {condition.key: condition for condition in conditions if condition.test in {"in", "within"}}
    own = [known for known in found if known.column in trials.edit.own and known.key in closed]
    for attribute in [known for known in found if known not in own and known.key in closed] if own else ():
        rows = trials.agreeing
        values = attribute.values[rows]
        numbers, counts = np.unique(values, return_counts=True)
        if not 1 < len(numbers) <= FEW_VALUES:
            continue
        best = numbers[int(np.argmax(counts))]
        kept = RARE * counts >= counts.max()
        for edited in own:
            if kept.all() or _pairs_are_open(trials, attribute, edited):
                kept[:] = True
                break
            with_best = distinct(edited.values[rows[values == best]])
            kept |= [bool(np.isin(with_best, edited.values[rows[values == number]]).all()) for number in numbers]
        left = attribute.written(numbers[kept])
        condition = attribute.condition(left)
        if condition is not None and not kept.all():
            trials.narrow(np.isin(attribute.values, left))
            conditions[:] = [known for known in conditions if known.key != condition.key] + [condition]
        for edited in own:
            if not _pairs_are_open(trials, attribute, edited):
                unseen_pairs.leave_out(trials, attribute, edited, conditions)


def _leave_out_unmet_values(trials: Trials, found: list[Attribute], conditions: list[Condition]) -> None:
    """Leave out values of the edited parameters of which no agreeing page is left: they went with what they were of."""
    rows = trials.agreeing
    for edited in (known for known in found if known.column in trials.edit.own):
        at = next((at for at, known in enumerate(conditions) if known.key == edited.key), None)
        if at is None or conditions[at].test not in {"in", "within"}:
            continue
        seen = distinct(edited.values[rows])
        if conditions[at].test == "within":
            seen = np.union1d(seen, [0])
        seen = edited.written(seen)
        conditions[at] = edited.condition(seen) or conditions[at]
        trials.narrow(np.isin(edited.values, seen))


def _pairs_are_open(trials: Trials, attribute: Attribute, edited: Attribute) -> bool:
    """Whether a value of a key may be expected to agree with one of an edited parameter that it was not seen with."""
    rows, good = trials.outcome.rows, trials.outcome.good
    tried = trials.rows[rows] & (edited.values[rows] > 0) & (attribute.values[rows] > 0)
    _, which = np.unique(paired(edited.values[rows[tried]], attribute.values[rows[tried]]), return_inverse=True)
    agreed = np.bincount(which, weights=good[tried])
    differed = np.bincount(which) - agreed
    return is_open(np.append(0, agreed), np.append(0, differed))


def _only_seen_names(trials: Trials) -> Condition:
    """Restrict to URLs with no other query keys than those of agreeing pages."""
    snapshot = trials.snapshot
    shapes = snapshot.evidence.shapes
    agreeing = distinct(snapshot.shape[trials.outcome.rows[trials.outcome.good]])
    names = {name for name, _ in shapes.keys_of(agreeing)}
    trials.narrow(shapes.of_names(names)[snapshot.shape])
    return Condition(Key(), "only", tuple(sorted(names)))


def _with_depth(trials: Trials, conditions: list[Condition]) -> list[Condition]:
    """Restrict to paths of the depth of agreeing pages, where all of these are of one: return all conditions.

    That the topics below a board show the same with ``page=1`` says nothing of the board itself.
    """
    depths = depth_attribute(trials.snapshot)
    seen = distinct(depths.values[trials.outcome.rows[trials.outcome.good]])
    condition = depths.condition(seen)
    if condition is None or len(seen) > 1 or any(known.test == "depth" for known in conditions):
        return conditions
    trials.narrow(depths.values == seen[0])
    return [*conditions, condition]
