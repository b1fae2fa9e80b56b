"""Where an edit holds: the context of a rule, found from what agrees and what differs.

An edit is first judged wherever it applies. Where pages differ, its context is narrowed to the values of one key after
the other (path, folder, depth, a parameter, or its being there) whose own record is better and too long to be luck
under the record of the whole: with a share s of agreement overall, n clean trials in a row are luck with probability
s^n, and that has to be below `LUCK`, for each value and, of k values, for any k that could be chosen. Where no key is
clean by itself, the edited parameter is taken at one of its values, and so many more trials are asked for as there are
blocks that could be chosen (`_at_one_value`). At last the context is closed (`closing`), and the record of what is left
has to reach a bound (`bounds`). What it leaves out is judged by itself: each part of a site may have its rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from math import ceil, inf, log
from typing import Final

import numpy as np
import numpy.typing as npt
from clusterd_crawler.rules import Condition

from clusterd.learning.edits import item_orders
from clusterd.learning.edits.edit import CandidateEdit, Drop, DropUnordered
from clusterd.learning.evidence.arrays import Flags, Rows, distinct, paired
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import DIFFER, Outcome, lower_bound
from clusterd.learning.trials.attributes import (
    DEPTH,
    FEW_VALUES,
    Attribute,
    attributes,
    deeper_attributes,
    depth_attribute,
)
from clusterd.learning.trials.bounds import (
    BOUND,
    NARROWED_BOUND,
    OPEN_BOUND,
    bound_of_one,
    bound_of_values,
    could_hold,
    enough,
    holds,
)
from clusterd.learning.trials.closing import close
from clusterd.learning.trials.narrowing import Trials
from clusterd.learning.trials.tried_together import by_parameter

#: Groups in which a content stands before rules are looked for that ask for it; most such contents of an edit.
SHOWN: Final = 52
SHOWN_CONTENTS: Final = 3
#: Most probability that the clean record of a value is luck.
LUCK: Final = 0.05
#: Where the clean values of a key hold this share of all trials, the few that differ beyond luck are left out.
MOST: Final = 0.8
#: What a listed value costs, in agreeing contents: of two narrowings that keep as many, the more general is taken.
VALUE_COST: Final = 0.5
#: Fewest agreements for each value of a key that a context is narrowed by: which of a thousand topics misbehave says
#: nothing about the next topic.
EACH: Final = 2
#: Narrowings that are tried out before one is chosen.
TRIED: Final = 6
#: Agreements from which on one value of a parameter is as common as another: the first that was met is tried first. Of
#: more values than may have rules it would be others with every page.
COMMON: Final = 32
#: Shares of agreement that values are picked out by: clean, nearly so, and on the way there with another key.
CUTS: Final = (1 - DIFFER, 0.9, 0.6)
#: Most keys that a context is narrowed by.
NARROWINGS: Final = 3
#: Parameters of a joint deletion, or more, of which those are taken by themselves that have a record of their own.
POOLED: Final = 3


@dataclass(slots=True)
class Proposal:
    """An edit with the rows and the context in which it holds."""

    edit: CandidateEdit
    rows: Flags
    conditions: list[Condition]
    outcome: Outcome
    bound: float


def refine(snapshot: Snapshot, edit: CandidateEdit, prior: int = 0) -> Proposal | None:
    """Find the context in which an edit holds above `BOUND`; None where there is none.

    ``prior`` is how many clean trials the kind of edit brings along (`candidates.PRIORS`).
    """
    rows = edit.rows(snapshot)
    # A page agrees with one that the edit brings it to: agreements are no more than pages edited.
    if not enough(int(np.count_nonzero(rows)), BOUND, prior):
        return None
    trials = Trials(snapshot, edit, rows)
    whole = trials.outcome
    found, unproven = _refined(trials, BOUND, prior)
    if unproven and isinstance(edit, Drop) and len(edit.own) >= POOLED:
        # The others may hold by themselves: another rule drops these by now from most pages.
        left = tuple(key for key in edit.own if key not in unproven)
        return refine(snapshot, replace(edit, own=left), prior) if left else None
    return found or _at_one_value(snapshot, edit, whole, prior)


def _at_one_value(snapshot: Snapshot, edit: CandidateEdit, whole: Outcome, prior: int) -> Proposal | None:
    """Find where a parameter may go at one of its values, where no key has a clean record by itself.

    So it is where each kind of list has an order of its own, and the others' orders matter to it.
    """
    if type(edit) is not Drop or len(edit.own) != 1 or not could_hold(whole, NARROWED_BOUND, prior):
        return None
    values = snapshot.values(edit.own[0])
    agreed = np.bincount(values[whole.rows[whole.good]])
    agreed[:1] = 0
    for value in np.argsort(-np.minimum(agreed, COMMON), kind="stable")[:TRIED].tolist():
        if not enough(int(agreed[value]), NARROWED_BOUND, prior):
            break
        trials = Trials(snapshot, edit, edit.rows(snapshot) & (values == value))
        found, _ = _refined(trials, NARROWED_BOUND, prior)
        if found is not None and _beyond_luck(snapshot, found, whole, values):
            return found
    return None


def _beyond_luck(snapshot: Snapshot, found: Proposal, whole: Outcome, values: Rows) -> bool:
    """Whether a record is too long to be luck for the best of all blocks, combinations of values, that could be chosen.

    That is, whether all that differs would hardly lie in other blocks by chance (Fisher's exact test). Under a share
    that it is part of no record would be too long for three that differ. (A page that differs begins it anew, as in
    `_offers`.)
    """
    edited = np.flatnonzero(values)
    blocks = values[edited]
    stated = {condition.key for condition in found.conditions if condition.test not in {"only", "depth"}}
    for known in (*attributes(snapshot, found.edit, found.rows), *deeper_attributes(snapshot, found.rows)):
        if known.column not in found.edit.own and known.key in stated:
            blocks = np.unique(paired(blocks, known.values[edited]), return_inverse=True)[1]
    chosen = len(distinct(blocks[found.rows[edited]]))
    luck = log(LUCK) - chosen * log(len(distinct(blocks)))
    others = (values[whole.rows] > 0) & ~found.rows[whole.rows]
    good = others & whole.good
    differed = int(np.count_nonzero(others & ~whole.good))
    tried = differed + len(distinct(paired(values[whole.rows[good]], whole.content[good])))
    return differed * log(max(1, tried) / (tried + found.outcome.agreed)) < luck * (1 + found.outcome.differed)


def refine_shown(snapshot: Snapshot, edit: CandidateEdit) -> Iterator[tuple[Proposal, int]]:
    """Yield, with the content in question, where an edit holds if the known page shows one common content.

    An empty list is empty however it is sorted and wherever it begins. The unit of agreement is then a group.
    """
    rows = edit.rows(snapshot)
    if np.count_nonzero(rows) < SHOWN:
        return
    trials = Trials(snapshot, edit, rows)
    for content in trials.common(SHOWN)[:SHOWN_CONTENTS]:
        found, _ = _refined(trials.showing(content), OPEN_BOUND, 0)
        if found is not None:
            yield found, content


#: Where an edit holds, if it does; of a joint deletion that does not, the parameters without a record of their own.
Refined = tuple[Proposal | None, frozenset[ColumnKey]]
NOWHERE: Final[Refined] = (None, frozenset())


def _refined(trials: Trials, bound: float, prior: int) -> Refined:
    """Narrow and close a context by the best key, or without that key where it leads nowhere.

    (Of two that promise as much, one may leave values that ask for a longer record than there is.)
    """
    if not could_hold(trials.outcome, bound, prior):
        return NOWHERE
    snapshot, edit = trials.snapshot, trials.edit
    # A parameter that only has to be there can still be narrowed and closed to the values seen.
    needed = {condition.key for condition in edit.needs if condition.test not in {"any", "some"}}
    found = [known for known in attributes(snapshot, edit, trials.rows) if known.key not in needed]
    found = [known for known in found if not item_orders.is_list(edit, known.key)]
    taken = needed | {known.key for known in found}
    deeper = [known for known in deeper_attributes(snapshot, trials.rows) if known.key not in taken]
    narrowing = [*found, *deeper, depth_attribute(snapshot)]
    first, refined = _narrowed(copy(trials), found, narrowing, bound, prior)
    if first is not None and refined is NOWHERE:
        others = [known for known in narrowing if known is not first]
        _, refined = _narrowed(trials, found, others, bound, prior)
    return refined


def _narrowed(
    trials: Trials, found: list[Attribute], narrowing: list[Attribute], bound: float, prior: int
) -> tuple[Attribute | None, Refined]:
    """Return the key by which a context was narrowed first, if any, and what became of it."""
    conditions: list[Condition] = []
    first = None
    for _ in range(NARROWINGS):
        if holds(trials.outcome, bound, prior):
            break
        narrowed = _narrowest(trials, narrowing, bound, prior) if could_hold(trials.outcome, bound, prior) else None
        if narrowed is None:
            return first, NOWHERE
        attribute, values, beyond_luck = narrowed
        first = first or attribute
        allowed, condition = attribute.stated(values)
        if condition is None:
            return first, NOWHERE
        conditions.append(condition)
        if not beyond_luck:
            bound = max(bound, NARROWED_BOUND)
        trials.narrow(np.isin(attribute.values, allowed))
    if not holds(trials.outcome, bound, prior):
        return first, NOWHERE
    return first, _closed(trials, found, conditions, bound, prior)


def _closed(trials: Trials, found: list[Attribute], conditions: list[Condition], bound: float, prior: int) -> Refined:
    """Close a context in which an edit holds, and judge what is left by what its values ask for."""
    if not close(trials, found, conditions, prior):
        return NOWHERE
    outcome = trials.outcome
    if not holds(outcome, max(bound, bound_of_values(trials, found, prior)), prior):
        return NOWHERE
    alone = by_parameter(trials)
    unproven = frozenset(key for key, by_it in alone if not holds(by_it, bound_of_one(key, trials, found), prior))
    if unproven:
        return None, unproven
    reached = lower_bound(outcome.agreed + prior, outcome.agreed + outcome.differed + prior)
    return Proposal(trials.edit, trials.rows, conditions, outcome, reached), unproven


def _narrowest(trials: Trials, found: list[Attribute], bound: float, prior: int) -> tuple[Attribute, Rows, bool] | None:
    """Return the key, and those of its values, that leave the best outcome, and whether they are so beyond luck.

    Where none is worth more than the whole, which does not hold, the best is one in which the edit holds: pages that
    say how old things are differ at each fetch, on one part of a site, and speak against no other part.
    """
    best: tuple[Attribute, Rows, bool] | None = None
    whole, highest = _worth(trials.outcome), (False, -inf)
    trials.judge_alone(found)
    offers = [offer for number, attribute in enumerate(found) for offer in _offers(trials, attribute, number)]
    for _, _, attribute, allowed, beyond_luck in sorted(offers, key=lambda offer: offer[:2])[:TRIED]:
        outcome = trials.preview(np.isin(attribute.values, allowed))
        worth = _worth(outcome)
        if worth <= whole and not (holds(outcome, bound, prior) and _picked_out(trials, attribute, allowed, outcome)):
            continue
        kept = worth - VALUE_COST * attribute.named(allowed)
        if (worth > whole, kept) > highest:
            best, highest = (attribute, allowed, beyond_luck), (worth > whole, kept)
    return best


def _picked_out(trials: Trials, attribute: Attribute, allowed: Rows, outcome: Outcome) -> bool:
    """Whether the record of some values is too long to be luck under that of the whole, of all that could be chosen."""
    values = np.count_nonzero(np.add(*trials.records(attribute)))
    share = min(trials.outcome.share, 0.999)
    return outcome.agreed * log(share) < log(LUCK) - attribute.named(allowed) * log(values)


def _worth(outcome: Outcome) -> float:
    """Agreements less differences, at the rate at which the bound would have them."""
    return outcome.agreed - outcome.differed / (1 - BOUND)


def _differ_beyond_luck(differed: Rows, tried: Rows, differing: float, values: int) -> bool:
    """Whether each of some values, chosen from so many, differs too often for luck where that share of all trials does.

    A page that changed between two fetches takes the clean record of the value that it happens to have. (Chernoff's
    bound of the binomial distribution, for any of all values. Nothing is narrowed where all trials differ, or none.)
    """
    agreed = tried - differed
    exponent = differed * np.log(differed / (tried * differing))
    exponent += agreed * np.log(np.maximum(agreed, 1) / (tried * (1 - differing)))  # 0 where none agreed
    above = differed > tried * differing
    return bool((above & (exponent > log(values / LUCK))).all())


def _no_luck(clean: npt.NDArray[np.float64], share: float, values: int) -> Flags:
    """Return the values whose clean records are no luck: each by itself, and of the others the most that are together.

    That is, whichever set of as many was chosen: of 250 folders in each of which three of ten pages differ, some five
    have twelve clean trials and no other. (Where one has a hundred, this says nothing of those five.)
    """
    share = min(share, 0.999)
    found: Flags = (clean > 0) & (values * share**clean <= LUCK)
    values -= int(np.count_nonzero(found))
    left = np.where(found, 0, clean)
    order = np.argsort(-left, kind="stable")[: np.count_nonzero(left)]
    number = np.arange(1, len(order) + 1)
    sets = np.cumsum(np.log((values - number + 1) / number))
    enough = np.flatnonzero(np.cumsum(left[order]) * -log(share) >= sets - log(LUCK))
    found[order[: enough.max(initial=-1) + 1]] = True
    return found


def _depths(chosen: Rows, agreed: Rows) -> Rows:
    """Return these depths where together they agree as often as is asked of what goes from any page; else the best one.

    A depth is a large part of a site: what is lucky there for a while costs more than a folder.
    """
    if enough(int(agreed[chosen].sum()), OPEN_BOUND, 0):
        return chosen
    return chosen[np.argsort(-agreed[chosen], kind="stable")[:1]]


def _better(outcome: Outcome, good: Rows, bad: Rows, cut: float, need: int) -> Rows:
    """Return the values of which at least ``cut`` of the trials agreed, where that may not be luck."""
    tried = outcome.agreed + outcome.differed
    share, values = outcome.agreed / tried, int(np.count_nonzero(good + bad))
    chosen = (good > 0) & (bad <= (1 - cut) * (good + bad))
    left = ~chosen & (bad > 0)
    few = int(good[chosen].sum()) >= MOST * tried
    if not few or not _differ_beyond_luck(bad[left], (good + bad)[left], 1 - share, values):
        chosen &= good >= need * (1 + bad)
        if chosen.any():
            chosen &= _no_luck(np.where(chosen, good / (1 + bad), 0), share, values)
    return np.flatnonzero(chosen)


#: What is promised (negative: best first), number of the key, key, values, whether their record is beyond luck.
Offer = tuple[float, int, Attribute, Rows, bool]


def _offers(trials: Trials, attribute: Attribute, number: int) -> Iterator[Offer]:
    """Yield sets of values with a better record than the whole, by what they promise to keep.

    Values are picked out only where their record is beyond luck, or where they hold nearly all trials and that of each
    value left out is too bad for luck. A page that differs begins a record anew: of five values, each of which differs
    for one page in twenty, one does once in a hundred.
    """
    outcome = trials.outcome
    share = outcome.agreed / (outcome.agreed + outcome.differed)
    need = max(2, ceil(log(LUCK) / log(min(share, 0.999))))
    good, bad = trials.records(attribute)
    values = int(np.count_nonzero(good + bad))
    for cut in CUTS:
        if cut <= share:
            break
        allowed = _better(outcome, good, bad, cut, need)
        if attribute.name == DEPTH:
            allowed = _depths(allowed, good)
        if not 0 < len(allowed) < values or int(good[allowed].sum()) < EACH * len(allowed):
            continue
        if isinstance(trials.edit, DropUnordered) and attribute.column in trials.edit.own:
            allowed = np.union1d(allowed, [0])  # What has none of the parameters is put in order all the same.
        # (A content that stands under several values agrees with each; it is kept once.)
        promised = (
            min(int(good[allowed].sum()), outcome.agreed)
            - int(bad[allowed].sum()) / (1 - BOUND)
            - VALUE_COST * len(allowed)
        )
        yield -promised, number, attribute, allowed, bool((good[allowed] >= need * (1 + bad[allowed])).all())
    if attribute.column not in {None, *trials.edit.own} and good[0] + bad[0] and values > FEW_VALUES:
        # A session without an identifier beside it may be all that names the page.
        right, wrong = min(int(good[1:].sum()), outcome.agreed), int(bad[1:].sum())
        promised = right - wrong / (1 - BOUND) - VALUE_COST
        yield -promised, number, attribute, np.arange(1, len(good)), right >= need * (1 + wrong)
