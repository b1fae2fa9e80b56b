"""Path components that may have any value: the session in ``/(S(x1))/a.aspx``, the title in ``/questions/12/title``.

Koppula et al. 2010, section 3.2: a key whose value pages of one content differ in is irrelevant. Pages of one content
and one query that differ in one component propose that its value does not matter; such a page and one that lacks the
component propose that it goes, which brings these under one key too, and so do two or three that stand together (the
date in ``/2020/03/title``, the categories in ``/toys/wood/train``). Either is judged for the paths of one depth, and
not meant for folders (``/2020/03/`` is not ``/``) unless pages of one content are folders that differ so, in as many
values: the archive of the latest month alone shows what the start does. That the component takes many values is what
tells it from a folder with two names (`aliases`) and from a word of its own (``/print``), which need not have any
value; of several each takes more than one (``/sid/x1`` is `path_pairs`). Where values that mean the same begin alike
(``(S(``, ``sid-``), the edit is meant for values that begin so (deep tokens, section 3.1.2): other paths of that depth
have folders there.

Cost: proposing is linear in the pages compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.edit import PathEdit, shortened
from clusterd.learning.edits.proposing import begun_alike

#: Fewest contents that propose an edit, and fewest values that the component takes in them.
PROPOSED: Final = 20
VALUES: Final = 8
#: Most edits judged at a time.
EDITS: Final = 4
#: The last place of which a context knows the component by itself (`attributes`).
KNOWN: Final = 4

#: Most components that go together: a date, or a category with those that it is in.
TOGETHER: Final = 3

#: How many components go (0: one that may have any value), how many the path has, which is the first of them (from 0).
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class AnyComponent(PathEdit):
    """A component of any value that does not matter."""


@dataclass(frozen=True, slots=True)
class PrefixedComponent(AnyComponent):
    """One that has to begin in a stated way, as sessions do with ``(S(``: a word that means something is none."""


class Components:
    """What pages of one content say of single components; fed content by content."""

    def __init__(self) -> None:
        self._counts: Counter[Place] = Counter()
        self._values: dict[Place, set[str]] = defaultdict(set)
        #: Of components that go together those that had one value in all pages, "" for the others.
        self._fixed: dict[Place, list[str]] = {}
        self._begun: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
        self._seen: set[Place] = set()
        #: Those of folders alone.
        self._of_folders: dict[Place, set[str]] = defaultdict(set)

    def note(self, short: list[str], long: list[str]) -> None:
        """Take two paths of one content and one query; of two lengths the shorter one first."""
        surplus = len(long) - len(short)
        if surplus > TOGETHER:
            return
        at = begun_alike(short, long)
        end = at + max(surplus, 1)
        if short[end - surplus :] != long[end:] or not all(long[at:end]) or (not surplus and not short[at]):
            return
        place = (surplus, len(long), at)
        self._seen.add(place)
        for values in (self._values[place], *([] if long[-1] else [self._of_folders[place]])):
            if len(values) < VALUES:
                values.update(("/".join(long[at:end]),) if surplus else (long[at], short[at]))
        if surplus:
            fixed = zip(self._fixed.get(place, long[at:end]), long[at:end], strict=True)
            self._fixed[place] = [text if text == here else "" for text, here in fixed]
        else:
            self._begun[len(long), at][_beginning(short[at], long[at])] += 1

    def next_content(self) -> None:
        """Count what was noted of one content."""
        self._counts.update(self._seen)
        self._seen.clear()

    def edits(self) -> list[PathEdit]:
        """Return the edits that are worth judging, those of most contents first; that a component goes before others.

        Where a component goes, its value does not matter either, and a page without it is one with the others. Where
        folders show the same, as empty ones do, and others do not, titles still may.
        """
        worth = [
            (not place[0], -count, place)
            for place, count in self._counts.items()
            if count >= PROPOSED and len(self._values[place]) >= VALUES and not any(self._fixed.get(place, ()))
        ]
        return [
            _edit(*place, begins, of_folders)
            for _, _, place in sorted(worth)[:EDITS]
            for begins in self._beginnings(place)
            for of_folders in ((True, False) if len(self._of_folders[place]) >= VALUES else (False,))
        ]

    def _beginnings(self, place: Place) -> list[str]:
        """Return what most pairs of values begin with, "" where that is nothing; the longest beginning first.

        Of ``ref=pd_7``, ``ref=pd_8`` and ``ref=sr_9`` that is ``ref=pd_``, then ``ref=``: other values may matter.
        """
        begun = self._begun[place[1:]] if place[0] < 2 else Counter[str]()
        pairs: Counter[str] = Counter()
        for text, count in begun.items():
            pairs.update({text[:end]: count for end in range(1, len(text) + 1) if not text[end - 1].isalnum()})
        common = max(begun, key=lambda text: begun[text], default="")
        widest = max(pairs, key=lambda text: (pairs[text], len(text)), default="")
        found = [text for text in (common, widest) if 2 * pairs[text] > begun.total()]
        return list(dict.fromkeys(found)) or [""]


def _beginning(first: str, second: str) -> str:
    """Return what two values begin with in common, up to a delimiter.

    >>> _beginning("(S(a1)", "(S(a2)"), _beginning("red-shoe", "red"), _beginning("a*b", "a*c")
    ('(S(', '', '')
    """
    end = begun_alike(first, second)
    while end and first[end - 1].isalnum():
        end -= 1
    return "" if "*" in first[:end] else first[:end]


def _edit(gone: int, depth: int, at: int, begins: str, of_folders: bool) -> PathEdit:
    end = at + max(gone, 1)
    of_folders |= end == depth

    def change(parts: list[str]) -> list[str] | None:
        # Of an empty one nothing tells the crawl either, where it may go.
        if len(parts) != depth or not (parts[at] or gone) or not parts[at].startswith(begins):
            return None
        if not (parts[-1] or of_folders):
            return None
        return [*parts[:at], *([] if gone else ["*"]), *parts[end:]]

    key = component(at)
    edits = shortened(end, at) if gone else (Edit(key, "set", "*"),)
    needs = [Condition(Key(), "depth", (str(depth),))]
    if not of_folders:
        needs.append(Condition(Key(end=1), "some"))
    if begins:
        needs.append(Condition(key, "like", (f"{begins}*",)))
    # The first two components and the last are known by themselves; of a longer path one more is.
    beyond = next((component(place).start for place in range(KNOWN - 2, depth - 1) if not at <= place < end), 0)
    kind = PrefixedComponent if begins else AnyComponent
    return kind(edits, change, tuple(needs), beyond=beyond)
