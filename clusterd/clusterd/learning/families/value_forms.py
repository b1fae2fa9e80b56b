"""The forms of values that a family was tried with: ``?Query=RefersTo…`` 700 times says nothing of ``?Query=Queue…``.

A family lets any value through (`one_page`, `exhausted`). But values come in forms, and the one that differs is mostly
of another form than those tried: of 740 searches 728 begin with one of five words and find nothing, 12 begin with a
sixth and find all that there is. No number of trials shows that, since the sixth is rare. So where the values begin
with few words, the family holds for the words that were tried, each `EACH` times (Koppula et al. 2010, section 3.1.2:
the first deep token of the value), a rule for each. Identifiers, dates and paths begin with no word; titles and names
with many, of which the next may be a new one: these stay as they are.

Cost: linear in the values of a family.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from clusterd_crawler.rules import Condition

from clusterd.learning.evidence.columns import Flags, Rows, distinct
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot
from clusterd.learning.trials.contexts import Proposal
from clusterd.learning.trials.tried_together import TOGETHER

#: Fewest pages of a form, for the family to hold for it (as many as a combination of parameters needs).
EACH: Final = TOGETHER
#: Most forms of a parameter's values, and most rules that a family becomes.
FORMS: Final = 16
_WORD: Final = re.compile(r"[^\W\d_]*")


def by_form(snapshot: Snapshot, family: Proposal) -> Iterator[Proposal]:
    """Yield a family for each form of values that it was tried with, or as it is where its values have no few forms."""
    parts = [family]
    for condition in family.conditions:
        column = (condition.key.name, condition.key.occurrence)
        if condition.test != "any" or not condition.key.name or column not in snapshot.columns:
            continue
        words = _words(snapshot, column, family)
        if words and len(words) * len(parts) <= FORMS:
            parts = [_of_form(snapshot, part, condition, column, word) for part in parts for word in words]
    yield from parts


def of_clean_forms(snapshot: Snapshot, members: Rows, dropped: Iterable[ColumnKey]) -> Rows:
    """Return the members whose values are of forms in which all show the page that most show, each `EACH` times."""
    for column in dropped:
        values = snapshot.values(column)[members]
        numbers, which = np.unique(values, return_inverse=True)
        words = [_word(snapshot, column, number) for number in numbers.tolist()]
        if not words or "" in words or len(set(words)) > FORMS:
            continue
        form = np.unique(words, return_inverse=True)[1][which.ravel()]
        shown = snapshot.content[members]
        differs = np.bincount(form, weights=shown != np.bincount(shown).argmax())
        members = members[((differs == 0) & (np.bincount(form) >= EACH))[form]]
    return members


def _words(snapshot: Snapshot, column: ColumnKey, family: Proposal) -> list[str]:
    """Return the words with which the values of a parameter begin, none where they are many or not always there."""
    values = snapshot.values(column)[family.outcome.rows[family.outcome.good]]
    numbers, counts = np.unique(values, return_counts=True)
    found: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        found[_word(snapshot, column, number)] += count
    return [] if len(found) > FORMS or found[""] >= EACH else sorted(word for word in found if found[word] >= EACH)


def _word(snapshot: Snapshot, column: ColumnKey, number: int) -> str:
    match = _WORD.match(snapshot.columns[column].column.text(number))
    return match[0] if match else ""


def _of_form(snapshot: Snapshot, part: Proposal, condition: Condition, column: ColumnKey, word: str) -> Proposal:
    numbers = [n for n in distinct(snapshot.values(column)).tolist() if _word(snapshot, column, n) == word]
    inside: Flags = np.isin(snapshot.values(column), numbers)
    like = replace(condition, test="like", values=(f"{word}*",))
    conditions = [like if known is condition else known for known in part.conditions]
    return replace(part, rows=part.rows & inside, conditions=conditions)
