"""The forms of values that a family was tried with: ``?Query=RefersTo…`` 700 times says nothing of ``?Query=Queue…``.

A family lets any value through (`one_page`, `exhausted`). But values come in forms, and the one that differs is mostly
of another form than those tried: of 740 searches 728 begin with one of five words and find nothing, 12 begin with a
sixth and find all that there is. No number of trials shows that, since the sixth is rare. So where the values begin
with few words, the family holds for the words that were tried, each `EACH` times (Koppula et al. 2010, section 3.1.2:
the first deep token of the value), a rule for each. Identifiers, dates and paths begin with no word; titles and names
with many, of which the next may be a new one: these stay as they are.

A word ends where the values that were tried go on: ``new-1`` says nothing of ``newest-1`` (`_patterns`). No family is
told where a page would be of it that was left out, since it differs.

Cost: linear in the values of a family, and in those of its form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from clusterd_crawler.rule_language.conditions import NUMBER, stars
from clusterd_crawler.rules import Condition

from clusterd.learning.evidence.arrays import Flags, Rows, distinct, numbered
from clusterd.learning.evidence.crawls import seen_beside
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
        patterns = _patterns(snapshot, column, family)
        if patterns and len(patterns) * len(parts) <= FORMS:
            parts = [_of_form(snapshot, part, condition, column, pattern) for part in parts for pattern in patterns]
    yield from (part for part in parts if not _takes_in_others(snapshot, family, part))


def of_clean_forms(snapshot: Snapshot, members: Rows, dropped: Iterable[ColumnKey]) -> Rows:
    """Return the members whose values are of forms in which all show the page that most show, each `EACH` times."""
    for column in dropped:
        values = snapshot.values(column)[members]
        numbers, which = np.unique(values, return_inverse=True)
        words = [_word(snapshot, column, number) for number in numbers.tolist()]
        if not words or "" in words or len(set(words)) > FORMS:
            continue
        form = numbered(words)[which]
        shown = snapshot.content[members]
        other = shown != np.bincount(shown).argmax()
        if snapshot.seen is not None:  # of what no crawl has seen beside that page nothing is known
            seen = snapshot.seen[members]
            other &= seen_beside(seen, seen[~other])
        differs = np.bincount(form, weights=other)
        members = members[((differs == 0) & (np.bincount(form) >= EACH))[form]]
    return members


def _patterns(snapshot: Snapshot, column: ColumnKey, family: Proposal) -> list[str]:
    """Return how the values of a parameter begin, none where they begin with many words or not always with one.

    With a word and what parts it from the rest, or a word and a number. Where few values of a word go on alike, or very
    many words in several ways, with the word alone.
    """
    values = snapshot.values(column)[family.outcome.rows[family.outcome.good]]
    numbers, counts = np.unique(values, return_counts=True)
    words: Counter[str] = Counter()
    beginnings: Counter[tuple[str, str]] = Counter()
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        word = _word(snapshot, column, number)
        words[word] += count
        beginnings[word, _beginning(word, snapshot.columns[column].column.text(number))] += count
    if len(words) > FORMS or words[""] >= EACH:
        return []
    tried = sorted(word for word in words if words[word] >= EACH)
    found: list[str] = []
    for word in tried:
        alike = sorted(pattern for (of, pattern), count in beginnings.items() if of == word and count >= EACH)
        found += [f"{word}*"] if not alike or f"{word}*" in alike else alike
    return found if len(found) <= FORMS else [f"{word}*" for word in tried]


def _word(snapshot: Snapshot, column: ColumnKey, number: int) -> str:
    match = _WORD.match(snapshot.columns[column].column.text(number))
    return match[0] if match else ""


def _beginning(word: str, text: str) -> str:
    """Return the pattern of the values that go on behind a word as this one does."""
    rest = text[len(word) :]
    if rest.isascii() and rest.isdecimal():
        return f"{word}{NUMBER}"
    return f"{word}*" if not rest or rest[0].isdecimal() or rest[0] == "*" else f"{word}{rest[0]}*"


def _of_form(snapshot: Snapshot, part: Proposal, condition: Condition, column: ColumnKey, pattern: str) -> Proposal:
    like = replace(condition, test="like", values=(pattern,))
    conditions = [like if known is condition else known for known in part.conditions]
    return replace(part, rows=part.rows & _matching(snapshot, column, pattern, part.rows), conditions=conditions)


def _matching(snapshot: Snapshot, column: ColumnKey, pattern: str, rows: Flags) -> Flags:
    """Return which of these rows have a value of a parameter that a pattern matches."""
    values, text = snapshot.values(column)[rows], snapshot.columns[column].column.text
    numbers = [number for number in distinct(values).tolist() if number and stars(pattern, text(number)) is not None]
    found = np.zeros(len(rows), np.bool_)
    found[rows] = np.isin(values, numbers)
    return found


def _takes_in_others(snapshot: Snapshot, family: Proposal, part: Proposal) -> bool:
    """Whether a part of a family that is one page lets a page through that was left out and shows another."""
    shown = distinct(family.outcome.content[family.outcome.good])
    if not family.edit.own or len(shown) != 1:
        return False
    members = np.flatnonzero(family.rows)
    left = ~family.rows & (snapshot.content != shown[0])
    if snapshot.seen is not None:
        left &= seen_beside(snapshot.seen, snapshot.seen[family.outcome.rows])
    left &= (snapshot.path == snapshot.path[members[0]]) & (snapshot.shape == snapshot.shape[members[0]])
    for condition in part.conditions:
        column = (condition.key.name, condition.key.occurrence)
        if condition.key.name and condition.test == "like":
            left = _matching(snapshot, column, condition.values[0], left)
        elif condition.key.name and condition.test in {"is", "in"}:
            left &= np.isin(snapshot.values(column), distinct(snapshot.values(column)[members]))
    return bool(left.any())
