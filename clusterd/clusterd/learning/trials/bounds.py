"""How good a record an edit has to have: the lower bound of the share that agrees, by what the edit lets through.

The more an edit lets pass that was never tried (any value of a parameter, any page of a folder), the more trials are
asked for before it is believed; the table is in ``docs/rules.md``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clusterd.learning.edits import spellings
from clusterd.learning.edits.aliases import Alias
from clusterd.learning.edits.both import BothThere
from clusterd.learning.edits.components import VALUES, AnyComponent, PrefixedComponent
from clusterd.learning.edits.deep import Cut, Ending
from clusterd.learning.edits.edit import Blank, CandidateEdit, Drop, PathEdit, Replace
from clusterd.learning.edits.fixed_values import DropFixed
from clusterd.learning.edits.path_pairs import PathPair
from clusterd.learning.edits.path_references import PathReference
from clusterd.learning.edits.path_values import PathValue
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.trials.agreement import DIFFER, Outcome, is_open, lower_bound
from clusterd.learning.trials.attributes import Attribute
from clusterd.learning.trials.narrowing import Trials

#: A rule goes live above this lower bound: 18 clean trials (below .8 small sites lose contents).
BOUND: Final = 0.869
#: The bound for a parameter that takes any value, as an identifier does, or that goes from any page: 52 clean trials.
OPEN_BOUND: Final = 0.95
#: The bound where a context was narrowed to values whose record may be luck, since they were chosen: 31 clean trials.
NARROWED_BOUND: Final = 0.919
#: The bound for a parameter that takes this many values or more, on a host of fewer pages: 31 clean trials.
MANY_BOUND: Final = 0.919
MANY: Final = 5
SMALL: Final = 500
#: Lower bound asked of an edit (and of a title that is cut off), as of a family: 102 clean trials. Any value goes, and
#: in an order that is not random a word that means something (``/12/page-2`` among titles) may come late.
ANY_BOUND: Final = 0.974
#: One unit of few may differ if the bound is this all the same: 42 trials.
ONE_DIFFERS: Final = 0.9
#: Fewest agreements, with those that the kind of edit brings along: an edit with fewer is not looked at further.
FEWEST: Final = 5


def could_hold(outcome: Outcome, bound: float, prior: int) -> bool:
    """Whether the agreements would be enough if nothing differed: narrowing takes agreements away, it brings none."""
    return outcome.agreed > 0 and enough(outcome.agreed, bound, prior)


def enough(agreements: int, bound: float, prior: int) -> bool:
    """Whether so many agreements, and as many as the kind of edit brings along, reach a bound by themselves."""
    agreed = agreements + prior
    return agreed >= FEWEST and lower_bound(agreed, agreed) >= bound


def holds(outcome: Outcome, bound: float, prior: int) -> bool:
    """Whether an outcome reaches a bound; of few units none may differ, of some one, of many one in a hundred."""
    units = outcome.agreed + outcome.differed + prior
    if not outcome.agreed or outcome.differed > max(1, DIFFER * units):
        return False
    return lower_bound(outcome.agreed + prior, units) >= (max(bound, ONE_DIFFERS) if outcome.differed else bound)


def bound_of_values(trials: Trials, found: list[Attribute], prior: int) -> float:
    """Return the bound that the values of the edited parameters ask for.

    What takes ever new values is mostly what the content hangs on; what takes many may be, and on a small host no page
    is explored soon enough to tell. Where it is the rest of the URL that takes ever new values, as many trials are
    needed: of a catalogue's records one in ten differs by ``branch``, and 18 that do not come before the first of these
    in 15 % of orders. (A parameter that is dropped at one value is mostly at its default there.) So it is with a value
    that is written for another, and with scripts that stand for one another, whatever their parameters. Of an alias, by
    which every page of a site may be left out, no more may differ than of a rule of many trials. What most servers bear
    out (``%20`` for ``+``) hangs on no value, or a rule would go with the fifth value that agrees.
    """
    if isinstance(trials.edit, Alias) and trials.outcome.share < 1 - DIFFER:
        return 1.0
    if isinstance(trials.edit, AnyComponent | Cut | PathValue) or spellings.is_guess(trials.edit):
        return OPEN_BOUND if isinstance(trials.edit, PrefixedComponent) else ANY_BOUND
    if isinstance(trials.edit, PathPair):  # Of many values it is a component of any value.
        values = [trials.records(known)[0] for known in found if known.key == trials.edit.value]
        return ANY_BOUND if any(np.count_nonzero(good[1:]) >= VALUES for good in values) else OPEN_BOUND
    if prior:
        return 0.0
    own = [trials.records(known) for known in found if known.column in trials.edit.own]
    if isinstance(trials.edit, PathReference | Ending | BothThere) or any(is_open(good, bad) for good, bad in own):
        return OPEN_BOUND
    rest = [known for known in found if known.column not in trials.edit.own]
    if isinstance(trials.edit, PathEdit):  # That it holds for any path below is what an alias says.
        rest = [known for known in rest if known.column is not None]
    elif isinstance(trials.edit, Replace):
        rest = [known for known in rest if known.name != "path"]
    elif not _at_any_value(trials.edit) or not any(np.count_nonzero(good[1:]) > 1 for good, _ in own):
        rest = []
    if any(is_open(*trials.records(known)) for known in rest):
        return OPEN_BOUND
    small = len(trials.snapshot) < SMALL
    return MANY_BOUND if small and any(np.count_nonzero(good[1:]) >= MANY for good, _ in own) else 0.0


def bound_of_one(key: ColumnKey, trials: Trials, found: list[Attribute]) -> float:
    """Return the bound that one parameter of a joint deletion has to reach by itself: what it would have to alone."""
    values = [trials.records(known)[0] for known in found if known.column == key]
    rest = [known for known in found if known.column not in trials.edit.own]
    several = any(np.count_nonzero(good[1:]) > 1 for good in values)
    return OPEN_BOUND if several and any(is_open(*trials.records(known)) for known in rest) else BOUND


def _at_any_value(edit: CandidateEdit) -> bool:
    """Whether an edit drops parameters, or their values, whichever value they have."""
    return isinstance(edit, Drop | Blank) and not isinstance(edit, DropFixed)
