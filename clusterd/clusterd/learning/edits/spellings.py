"""Ways to write one value: ``%2C`` for ``,``, ``A`` for ``a``, a space as ``+``, ``%20`` or ``_``, also in the path.

RFC 3986 calls none of these equivalent (so `urls.canonical` leaves them), and each is content somewhere: ``+`` is a
plus in most paths, ``snake_case`` is not ``snake case`` for every search. So each is an edit with trials of its own:

- Of a parameter that has ``+`` in some values and ``%20`` in others: spaces are written ``%20``, as HTML forms
  (application/x-www-form-urlencoded) mean both.
- Of a parameter, where pages of one content have the same value but for capitals: written small.
- Of a parameter, where pages of one content have ``_`` in the one value and a space in the other: written ``_``.
- Of a component of the path, where pages of one content differ in it so: for ``%20`` and for ``+`` apart, each in
  components that have it. ``_`` is written where it was seen to be the same, and ``%20`` where only ``+`` was.
- Of a component, where pages of one content have an escape in the one and what it stands for in the other.

No standard says ``_``, nor spaces in a path, and titles take ever new values: they need the trials that any text needs
(`is_guess`). So does the order of what a value lists (`item_orders`).

Cost: of a parameter a pass over its distinct values, at most `VALUES`; of the path as of any edit of paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.rule_language.edits import written
from clusterd_crawler.rules import FIRST_COMPONENT, Condition, Edit, Key
from clusterd_crawler.urls import in_query

from clusterd.learning.edits.edit import CandidateEdit, PathEdit, Rewrite
from clusterd.learning.edits.proposing import ValuePair, by_values
from clusterd.learning.evidence.columns import VALUELESS
from clusterd.learning.evidence.shapes import ColumnKey
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose that a space in a parameter is ``_``.
PROPOSED: Final = 4
#: Most distinct values of a parameter whose spelling is looked at.
VALUES: Final = 50_000
#: What spaces are written as: by the one edit those of forms, by the other those of wikis too.
ESCAPED: Final = "%20"
UNDERSCORE: Final = "_"
#: How else a space is written.
SPACES: Final = (ESCAPED, "+")


@dataclass(frozen=True, slots=True)
class Respell(Rewrite):
    """A parameter's value may be written in two ways: percent-encoded or not, or with a space as this or as that."""

    edit: Edit
    needs: tuple[Condition, ...] = ()

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The conversion."""
        return (self.edit,)

    def written(self, text: str) -> str:
        """Return the value in its other spelling."""
        plain = text.isascii() and text.isalnum() and self.edit.op != "lower"
        return text if plain or text == VALUELESS else written(self.edit, text)


def decoded(key: ColumnKey) -> Respell:
    """Return the edit by which a parameter's value may be percent-encoded or not."""
    return Respell((key,), Edit(Key(*key), "decode"))


def spaces(key: ColumnKey, text: str) -> Respell:
    """Return the edit by which spaces in a parameter's value are written so."""
    return Respell((key,), Edit(Key(*key), "spaces", text))


def form_spaces(snapshot: Snapshot) -> Iterator[Respell]:
    """Yield the edits of parameters that have spaces in both of the ways in which forms write them."""
    for key, column in snapshot.columns.items():
        texts = column.column.texts
        if not in_query(key[0]) or len(texts) > VALUES:
            continue
        if all(any(space in text for text in texts) for space in SPACES):
            yield spaces(key, ESCAPED)


def wiki_spaces(snapshot: Snapshot, pairs: Iterable[ValuePair]) -> Iterator[Respell]:
    """Yield the edits that write ``_``, of (parameter, value, value, contents that show a page with either)."""
    few = (pair for pair in pairs if len(snapshot.columns[pair[0]].column.texts) <= VALUES)
    for key, text in by_values(snapshot, few, _underscored, PROPOSED):
        yield spaces(key, text)


def _underscored(first: str, second: str) -> tuple[str, ...]:
    return (UNDERSCORE,) if spelled(first, second) == UNDERSCORE else ()


def cases(snapshot: Snapshot, pairs: Iterable[ValuePair]) -> Iterator[Respell]:
    """Yield the edits that write a value small, of (parameter, value, value, contents that show a page with either)."""
    for key, _ in by_values(snapshot, pairs, _cased, PROPOSED):
        yield Respell((key,), Edit(Key(*key), "lower"))


def _cased(first: str, second: str) -> tuple[str, ...]:
    return ("lower",) if first.lower() == second.lower() else ()


def spelled(first: str, second: str) -> str:
    """Return what spaces have to be written as for two texts to be one, "" where they differ in something else.

    >>> spelled("red+shoes", "red%20shoes"), spelled("red_shoes", "red%20shoes"), spelled("red", "blue")
    ('%20', '_', '')
    """
    if not any(space in text for space in SPACES for text in (first, second)):
        return ""
    for text in (ESCAPED, UNDERSCORE):
        edit = Edit(Key(), "spaces", text)
        if written(edit, first) == written(edit, second):
            return text
    return ""


@dataclass(frozen=True, slots=True)
class SpacesInPath(PathEdit):
    """Spaces in a component are written another way."""


def spaces_of_components(first: str, second: str) -> Iterator[tuple[str, str]]:
    """Yield, of two components that may differ in how spaces are written, (what is written, the space that goes)."""
    text = spelled(first, second)
    for space in SPACES if text else ():
        if space != text and space in first + second:
            yield text, space


def spaces_in_path(start: int, text: str, space: str) -> PathEdit:
    """Return the edit of a component that has such a space."""
    return _in_path(SpacesInPath, Edit(Key(start=start), "spaces", text), space)


def escaped(first: str, second: str) -> bool:
    """Whether two components, which differ, do so in nothing but escapes.

    >>> escaped("a%2Cb", "a,b"), escaped("a%2Fb", "a-b"), escaped("caf%E9", "caf%C3%A9")
    (True, False, False)
    """
    edit = Edit(Key(start=FIRST_COMPONENT), "decode")
    return "%" in first + second and written(edit, first) == written(edit, second)


def escapes_in_path(start: int) -> PathEdit:
    """Return the edit of a component that has an escape: what need not be one becomes what it stands for."""
    return _in_path(PathEdit, Edit(Key(start=start), "decode"), "%")


def _in_path(kind: type[PathEdit], edit: Edit, mark: str) -> PathEdit:
    """Return the edit of a component that has such a mark."""
    index = edit.key.index

    def change(parts: list[str]) -> list[str] | None:
        if len(parts) <= index or mark not in parts[index]:
            return None
        return [*parts[:index], written(edit, parts[index]), *parts[index + 1 :]]

    return kind((edit,), change, (Condition(edit.key, "like", (f"*{mark}*",)),))


def is_guess(edit: CandidateEdit) -> bool:
    """Whether an edit takes for one what no standard calls so: ``_`` and a space, two spaces in a path, two orders."""
    made = edit.transformation[0]
    return made.op == "items" or (made.op, made.value) == ("spaces", UNDERSCORE) or isinstance(edit, SpacesInPath)
