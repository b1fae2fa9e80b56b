"""Values of one parameter beside each other: of many pairs of values that are nearly the same, the luckiest is not one.

A code browser shows most files alike under revisions 3 and 4, and under 4 and 5: pairs that agree often. Of eight such
pairs one has a clean record soon enough, and means nothing. Where no other pair of values agrees but not always, as
where ``?C=N`` is ``?C=D`` and the other columns sort otherwise, nothing more is asked than of any edit.
"""

from __future__ import annotations

from math import log

from clusterd.learning.contexts import FEWEST, LUCK
from clusterd.learning.edit_trials import Trials
from clusterd.learning.edits import CandidateEdit
from clusterd.learning.evidence import Snapshot
from clusterd.learning.trials import Outcome


def beyond_luck(snapshot: Snapshot, offered: list[tuple[CandidateEdit, int]]) -> list[tuple[CandidateEdit, int]]:
    """Leave out what may be the luckiest of many values: revision 3 is revision 4 for most files, as 4 is 5 for most.

    Where another value of the same parameter agrees often and not always, a clean record has to be too long for luck.
    """
    outcomes = [judged(snapshot, edit) for edit, _ in offered]
    found = []
    for offer, outcome in zip(offered, outcomes, strict=True):
        siblings = [
            known.share
            for (edit, _), known in zip(offered, outcomes, strict=True)
            if edit is not offer[0]
            and edit.own == offer[0].own
            and known.differed
            and known.agreed + known.differed >= FEWEST
        ]
        most = max(siblings, default=0.0)
        if not most or outcome.agreed >= log(LUCK / len(siblings)) / log(min(most, 0.999)):
            found.append(offer)
    return found


def judged(snapshot: Snapshot, edit: CandidateEdit) -> Outcome:
    """Return the record of an edit wherever it applies."""
    return Trials(snapshot, edit, edit.rows(snapshot)).outcome
