"""Titles beside an identifier in the path: ``/p/12-any-title`` is ``/p/12``, and ``/t/any-title.12`` is ``/t/12``.

Koppula et al. 2010, sections 3.1.2 and 3.3: of a component's deep tokens one alone matters. Pages of one content and
one query whose paths differ in what stands beside a number, or in whether anything does, propose that it goes from
paths of that depth. A title before the number goes where a number is the end, of as many digits as were tried: after
``/any-title-10234`` the ``2`` of ``/red-shoes-2`` may well be a page of these. Of a place where components begin with a
number and others with a word, one behind it is proposed for those prefixes alone behind which none does.

Cost: linear in the pages of a content, of which at most `proposing.COMPARED` are compared, and in the paths of the
host where anything is proposed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from clusterd_crawler.rule_language.conditions import NUMBER as ANY_NUMBER
from clusterd_crawler.rule_language.conditions import deep_tokens
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.components import AnyComponent
from clusterd.learning.edits.deep import IDENTIFIER
from clusterd.learning.edits.proposing import PathsByQuery
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 20
EDITS: Final = 4
#: Contents that have to be seen beside numbers of so few digits (as values, so that any may be expected: `OPEN`).
DIGITS: Final = 15
#: Most digits that a rule asks for.
MOST_DIGITS: Final = 99
#: What delimits a title from the number behind it (a letter may say what the number is: ``title-t12``), and the ending.
NUMBERED: Final = re.compile(r"([-:_,.;~][a-z]?)([0-9]+)((?:\.[A-Za-z]{1,5})?)$")


class Place(NamedTuple):
    """Where titles stand: in which of how many components (from 0), behind the number or before it.

    ``ending``: what follows the number where the title stands before it.
    """

    depth: int
    at: int
    behind: bool
    delimiter: str
    ending: str = ""

    @property
    def key(self) -> Key:
        """The component."""
        return component(self.at)

    @property
    def form(self) -> Condition:
        """The form of components with such a title."""
        if self.behind:
            return Condition(self.key, "like", (f"{ANY_NUMBER}{self.delimiter}*",))
        return Condition(self.key, "numbered", (self.delimiter, self.ending))

    def meant(self, digits: int) -> Condition:
        """The form, where a title stands before the number, with numbers of so many digits or more."""
        return self.form if self.behind else replace(self.form, values=(self.delimiter, self.ending, str(digits)))

    @property
    def number(self) -> int:
        """Which deep token the number is."""
        return 1 if self.behind else 3


Prefix = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathTitle(AnyComponent):
    """A title of any words that does not matter."""


def path_titles(snapshot: Snapshot, contents: Iterable[PathsByQuery]) -> list[PathTitle]:
    """Return the edits that are worth judging, those of most contents first."""
    counts: Counter[tuple[Place, Prefix]] = Counter()
    digits: dict[Place, Counter[int]] = defaultdict(Counter)
    for of_content in contents:
        differing = set(chain.from_iterable(map(_among, of_content)))
        counts.update({(place, prefix) for place, prefix, _ in differing})
        for place, long in {(place, long) for place, _, long in differing}:
            digits[place][long] += 1
    anywhere: Counter[Place] = Counter()
    for (place, _), count in counts.items():
        anywhere[place] += count
    places = {place for place, count in anywhere.items() if count >= PROPOSED}
    spoken = _spoken(snapshot, places)
    found: list[tuple[int, Place, Prefix]]
    found = [(count, place, ()) for place, count in anywhere.items() if place in places and not spoken[place]]
    found += [
        (count, place, prefix)
        for (place, prefix), count in counts.items()
        if count >= PROPOSED and prefix and spoken[place] and prefix not in spoken[place]
    ]
    # Titles that say the number, too: it is the first.
    found.sort(key=lambda one: (-one[0], not one[1].behind, one[1:]))
    return [_edit(place, prefix, _fewest(digits[place])) for _, place, prefix in found[:EDITS]]


def _fewest(digits: Counter[int]) -> int:
    """Return of how few digits numbers were tried.

    >>> _fewest(Counter({1: 2, 3: 30, 4: 200})), _fewest(Counter({1: 9, 2: 60}))
    (3, 2)
    """
    seen = 0
    for long in sorted(digits):
        seen += digits[long]
        if seen >= DIGITS:
            break
    return min(long, MOST_DIGITS)


def _among(paths: list[list[str]]) -> set[tuple[Place, Prefix, int]]:
    """Return where paths differ in nothing but what stands beside a number of so many digits, or in whether it does."""
    titled: dict[tuple[Place, str, Prefix], set[str]] = defaultdict(set)
    bare: set[tuple[int, str, Prefix]] = set()
    for parts in paths:
        for at, text in enumerate(parts):
            for place, number in _places(len(parts), at, text):
                titled[place, number, _others(parts, at)].add(text)
            if text.isdecimal():
                bare.add((at, text, _others(parts, at)))
    return {
        (place, others[: place.at], len(number))
        for (place, number, others), texts in titled.items()
        if len(texts) + ((place.at, number, others) in bare) > 1
    }


def _places(depth: int, at: int, text: str) -> Iterator[tuple[Place, str]]:
    """Yield where a component may have a title, and the number that it stands beside."""
    if found := IDENTIFIER.match(text):
        yield Place(depth, at, True, found[2]), found[1]
    if found := NUMBERED.search(text):
        yield Place(depth, at, False, found[1], found[3]), found[2]


def _others(parts: list[str], at: int) -> Prefix:
    return (*parts[:at], *parts[at + 1 :])


def _spoken(snapshot: Snapshot, places: set[Place]) -> dict[Place, set[Prefix]]:
    """Return the prefixes behind which a component begins with anything but the number that titles stand behind."""
    found: dict[Place, set[Prefix]] = {place: set() for place in places}
    behind = {place: prefixes for place, prefixes in found.items() if place.behind}
    for number in snapshot.paths_present().tolist() if behind else ():
        parts = snapshot.evidence.paths.parts(number)
        for place, prefixes in behind.items():
            text = parts[place.at] if len(parts) == place.depth else ""
            if place.delimiter in text and not text.partition(place.delimiter)[0].isdecimal():
                prefixes.add(tuple(parts[: place.at]))
    return found


def _edit(place: Place, prefix: Prefix, digits: int) -> PathTitle:
    form = place.meant(digits)
    at, tokens = place.at, deep_tokens(form)

    def change(parts: list[str]) -> list[str] | None:
        if len(parts) != place.depth or tuple(parts[: len(prefix)]) != prefix:
            return None
        spans = tokens(parts[at])
        return [*parts[:at], parts[at][slice(*spans[place.number - 1])], *parts[at + 1 :]] if spans else None

    needs = [Condition(Key(), "depth", (str(place.depth),)), form]
    needs += [Condition(component(part), "is", (text,)) for part, text in enumerate(prefix)]
    edit = Edit(place.key, "copy", source=component(at, deep=place.number))
    return PathTitle((edit,), change, tuple(needs))
