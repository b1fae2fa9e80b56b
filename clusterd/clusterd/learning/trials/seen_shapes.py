"""What a context says of the form of a URL as a whole: the names of its parameters, the depth of its path."""

from __future__ import annotations

from clusterd_crawler.rules import Condition, Key

from clusterd.learning.evidence.columns import distinct
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.attributes import depth_attribute
from clusterd.learning.trials.narrowing import Trials


def only_seen_names(snapshot: Snapshot, trials: Trials) -> Condition:
    """Restrict to URLs with no other query keys than those of agreeing pages."""
    shapes = snapshot.evidence.shapes
    agreeing = distinct(snapshot.shape[trials.outcome.rows[trials.outcome.good]])
    names = {name for name, _ in shapes.keys_of(agreeing)}
    trials.narrow(shapes.of_names(names)[snapshot.shape])
    return Condition(Key(), "only", tuple(sorted(names)))


def with_depth(snapshot: Snapshot, trials: Trials, conditions: list[Condition]) -> list[Condition]:
    """Restrict to paths of the depth of agreeing pages, where all of these are of one: return all conditions.

    That the topics below a board show the same with ``page=1`` says nothing of the board itself.
    """
    depths = depth_attribute(snapshot)
    seen = distinct(depths.values[trials.outcome.rows[trials.outcome.good]])
    condition = depths.condition(snapshot, seen)
    if condition is None or len(seen) > 1 or any(known.test == "depth" for known in conditions):
        return conditions
    trials.narrow(depths.values == seen[0])
    return [*conditions, condition]
