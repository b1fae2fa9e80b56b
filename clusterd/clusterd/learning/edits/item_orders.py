"""Lists in one value or component whose order does not matter: ``?colour=red,blue``, ``/tagged/a+b``.

Faceted search links each value of a filter with those that are chosen already, in the order in which they were: k
values make k! URLs. Two values of one content that hold the same items, separated by one sign, in another order
propose that these are put in order: of that parameter, or of that component in paths of that depth. What looks like a
list may be none (``paris-london``, ``10-50``, ``price,name``), and mostly shows the same all the same: this needs the
trials that any text needs (`spellings.is_guess`). (Values that stand in parameters of one name: `repeated`.)

Cost: linear in the pairs of values, and in the pages of a content, of which at most
`proposing.COMPARED` are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.rule_language.edits import list_name, written
from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.edit import CandidateEdit, PathEdit
from clusterd.learning.edits.proposing import PathsByQuery, ValuePair, by_paths, by_values
from clusterd.learning.edits.repeated import Repeated
from clusterd.learning.edits.spellings import Respell
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose an edit, and most edits of paths judged at a time.
PROPOSED: Final = 4
EDITS: Final = 4
#: What items are separated by, as it is written in URLs.
SEPARATORS: Final = (",", "%2C", "|", "%7C", "+", "%20", ";", "%3B", "~", "_", "-", ".", ":", "%3A")

#: How many components a path has, which of them is the list (from 0), and the separator.
Place = tuple[int, int, str]


def item_orders(snapshot: Snapshot, pairs: Iterable[ValuePair]) -> Iterator[Respell]:
    """Yield the edits of parameters, of (parameter, value, value, contents that show a page with either)."""
    for key, separator in by_values(snapshot, pairs, _separators, PROPOSED):
        yield Respell((key,), Edit(Key(*key), "items", separator))


def item_orders_in_paths(contents: Iterable[PathsByQuery]) -> list[PathEdit]:
    """Return the edits of components that are worth judging, those of most contents first."""
    return [_edit(*place) for place in by_paths(contents, _among, PROPOSED, EDITS)]


def _separators(first: str, second: str) -> Iterator[str]:
    """Yield by what two texts, which differ, are separated into the same items, in another order.

    >>> list(_separators("red,blue", "blue,red")), list(_separators("red,blue", "red"))
    ([','], [])
    """
    if len(first) != len(second) or sorted(first) != sorted(second):
        return
    for separator in SEPARATORS:
        if sorted(first.split(separator)) == sorted(second.split(separator)):
            yield separator


def _among(paths: list[list[str]]) -> set[Place]:
    """Return where paths differ in nothing but the order of a component's items."""
    found: dict[tuple[int, int, tuple[str, ...], str], list[str]] = defaultdict(list)
    for parts in paths:
        for at, text in enumerate(parts):
            if not text.isalnum():
                found[len(parts), at, (*parts[:at], *parts[at + 1 :]), "".join(sorted(text))].append(text)
    return {
        (depth, at, separator)
        for (depth, at, _, _), texts in found.items()
        for other in texts[1:]
        for separator in _separators(texts[0], other)
    }


def is_list(edit: CandidateEdit, key: Key) -> bool:
    """Whether an edit puts in order what a key says: of twenty lists the luckiest is no context, nor are its items."""
    made = edit.transformation[0]
    if isinstance(edit, Repeated):
        return list_name(key.name)[0] == edit.name
    if made.op != "items" or made.key.name or key.name:
        return made.op == "items" and made.key == key
    at, depth = made.key.index, int(edit.needs[0].values[0])
    return key == Key() or at == (key.index if key.start else depth - key.end)


@dataclass(frozen=True, slots=True)
class ItemsInPath(PathEdit):
    """The items of a component are put in order."""


def _edit(depth: int, at: int, separator: str) -> ItemsInPath:
    key = component(at)
    edit = Edit(key, "items", separator)

    def change(parts: list[str]) -> list[str] | None:
        if len(parts) != depth or separator not in parts[at]:
            return None
        return [*parts[:at], written(edit, parts[at]), *parts[at + 1 :]]

    needs = (Condition(Key(), "depth", (str(depth),)), Condition(key, "like", (f"*{separator}*",)))
    return ItemsInPath((edit,), change, needs)
