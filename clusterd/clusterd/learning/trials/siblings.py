"""Values of one parameter beside each other: of many pairs of values that are nearly the same, the luckiest is not one.

A code browser shows most files alike under revisions 3 and 4, and under 4 and 5: pairs that agree often. Of eight such
pairs one has a clean record soon enough, and means nothing. Where no other pair of values agrees but not always, as
where ``?C=N`` is ``?C=D`` and the other columns sort otherwise, nothing more is asked than of any edit. So it is with
folders beside each other: of the regions of one site, ``/en-ca``, ``/en-au``, ``/en-gb``, each differs for some pages.

So it is with some values of parameters under the record of all: where one item in fifty looks otherwise in each colour
and size, one of the many pairs of a colour and a size has not met such an item yet, nor have red and blue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, lgamma, log

from clusterd.learning.edits.both import alias_of
from clusterd.learning.edits.edit import CandidateEdit, Replace
from clusterd.learning.edits.fixed_values import BothFixed, DropFixed
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.agreement import DIFFER, Outcome
from clusterd.learning.trials.bounds import FEWEST
from clusterd.learning.trials.contexts import LUCK
from clusterd.learning.trials.narrowing import Trials

#: What is said of parameters at some of their values.
OfValues = DropFixed | BothFixed | Replace


def beyond_luck(snapshot: Snapshot, offered: list[tuple[CandidateEdit, int]]) -> list[tuple[CandidateEdit, int]]:
    """Leave out what may be the luckiest of many values: revision 3 is revision 4 for most files, as 4 is 5 for most.

    Where another value of the same parameter, or another folder in the same place, agrees often and not always, a clean
    record has to be too long for luck.
    """
    edits = [edit for edit, _ in offered]
    outcomes = {
        at: judged(snapshot, edit) for at, edit in enumerate(edits) if any(are_beside(edit, other) for other in edits)
    }
    found = []
    for at, offer in enumerate(offered):
        beside = [known for other, known in outcomes.items() if are_beside(edits[other], offer[0])]
        shares = [known.share for known in beside if known.agreed + known.differed >= FEWEST]
        poor = [share for share in shares if share < 1 - DIFFER]
        if not poor or luck(outcomes[at], max(poor)) <= LUCK / len(poor):
            found.append(offer)
    return found


def beyond_luck_of_values(
    snapshot: Snapshot, offered: Sequence[tuple[OfValues, int]]
) -> list[tuple[CandidateEdit, int]]:
    """Leave out what is said of some values and may be luck under the record of the same parameters at any value.

    Nothing more is asked where that differs no more than a rule bears: then it is not for what differs that it fails.
    """
    wholes = Counter(edit.at_any_value for edit, _ in offered)
    outcomes = {whole: judged(snapshot, whole) for whole in wholes}
    found: list[tuple[CandidateEdit, int]] = []
    for edit, prior in offered:
        whole = outcomes[edit.at_any_value]
        few = whole.differed <= max(1, DIFFER * (whole.agreed + whole.differed))
        if few or luck(judged(snapshot, edit), whole.share) <= LUCK / wholes[edit.at_any_value]:
            found.append((edit, prior))
    return found


def are_beside(one: CandidateEdit, other: CandidateEdit) -> bool:
    """Whether two edits speak of other values of one parameter, or of other folders in one place."""
    first, second = alias_of(one), alias_of(other)
    if first is not None and second is not None:
        return first.place == second.place and first.names != second.names
    return one is not other and one.own == other.own


def luck(outcome: Outcome, share: float) -> float:
    """Return how probable so good a record is by chance where a share of all agrees (the binomial distribution).

    Where more differ than a rule bears, the context has to be narrowed anyway, and those that agree are what counts.
    """
    units = outcome.agreed + outcome.differed
    if outcome.differed > max(1, DIFFER * units):
        return float(share**outcome.agreed)
    if not share:
        return 0.0 if outcome.agreed else 1.0
    each = (lgamma(units + 1) - lgamma(bad + 1) - lgamma(units - bad + 1) for bad in range(outcome.differed + 1))
    return sum(exp(ways + bad * log(1 - share) + (units - bad) * log(share)) for bad, ways in enumerate(each))


def judged(snapshot: Snapshot, edit: CandidateEdit) -> Outcome:
    """Return the record of an edit wherever it applies."""
    return Trials(snapshot, edit, edit.rows(snapshot)).outcome
