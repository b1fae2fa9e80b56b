"""Numbers in a component that do not matter: of ``thread-12-1-3.html`` the last, whatever list led there.

Koppula et al. 2010, sections 3.1.2 and 3.2: deep tokens, of which one is irrelevant. Components of one form, in which
numbers stand between the same words and signs, that differ in one number on pages of one content and one query propose
that this number does not matter, in paths of that depth.

Cost: linear in the pages of a content, of which at most `proposing.COMPARED` are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from clusterd_crawler.rule_language.conditions import NUMBER as ANY_NUMBER
from clusterd_crawler.rule_language.conditions import deep_spans, stars
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.components import AnyComponent
from clusterd.learning.edits.proposing import PathsByQuery, by_paths, in_pairs

#: Fewest contents that propose an edit, and most edits judged at a time.
PROPOSED: Final = 20
EDITS: Final = 4
#: Fewest and most numbers of a component.
NUMBERS: Final = (2, 6)
#: A number; the other runs of a form are its words and signs.
NUMBER: Final = re.compile("[0-9]+")


class Field(NamedTuple):
    """A number of a component: its place among the numbers of a form, the component's place in paths of a depth."""

    depth: int
    at: int
    form: str
    number: int


@dataclass(frozen=True, slots=True)
class AnyField(AnyComponent):
    """A number of a component that does not matter."""


def path_fields(contents: Iterable[PathsByQuery]) -> list[AnyField]:
    """Return the edits that are worth judging, those of most contents first."""
    return [_edit(field) for field in by_paths(contents, _among, PROPOSED, EDITS)]


def _among(paths: list[list[str]]) -> Iterator[Field]:
    """Yield the numbers in which alone paths differ, each compared with the first and with the one before."""
    for other, path in in_pairs(sorted(paths)):
        differing = [at for at, (a, b) in enumerate(zip(other, path, strict=False)) if a != b]
        if len(other) != len(path) or len(differing) != 1:
            continue
        at = differing[0]
        form = NUMBER.sub(ANY_NUMBER, path[at])
        several = NUMBERS[0] <= form.count(ANY_NUMBER) <= NUMBERS[1]
        if "*" in path[at] or NUMBER.sub(ANY_NUMBER, other[at]) != form or not several:
            continue
        numbers = zip(NUMBER.findall(other[at]), NUMBER.findall(path[at]), strict=True)
        places = [number for number, (a, b) in enumerate(numbers) if a != b]
        if len(places) == 1:
            yield Field(len(path), at, form, places[0])


def _edit(field: Field) -> AnyField:
    depth, at, form, number = field

    def change(parts: list[str]) -> list[str] | None:
        found = stars(form, parts[at]) if len(parts) == depth else None
        if found is None:
            return None
        start, end = found[number]
        return [*parts[:at], f"{parts[at][:start]}*{parts[at][end:]}", *parts[at + 1 :]]

    token = component(at, deep=token_of(form, number))
    needs = (Condition(Key(), "depth", (str(depth),)), Condition(component(at), "like", (form,)))
    return AnyField((Edit(token, "set", "*"),), change, needs)


def token_of(form: str, number: int) -> int:
    """Return which deep token of a component of this form a number is.

    >>> token_of("thread-#-#.html", 1)
    5
    """
    value = form.replace(ANY_NUMBER, "0")
    star = (stars(form, value) or [])[number]
    return (deep_spans(form, value) or []).index(star) + 1
