"""One folder under several names: ``/manual/x`` is ``/docs/2.4/x`` and ``/docs/current/x``.

Pages of one content and one query whose paths end alike propose that what stands before is another name of it (Koppula
et al. 2010, algorithm 3, of whole components). The longer prefix is replaced by the shorter one, of two of one length
the one met later, so that names never run in a circle. Old versions of a manual agree with the current one on half of
their pages: therefore a prefix says nothing about folders below it of which no page was compared. Files that lie
directly in the folder, and each folder below it, are judged on pages of their own (`contexts`).

A folder of translations, or of a region, shows the pages of another one until they are written anew: after 18 trials
that agreed every thirtieth page may differ. Therefore an alias bears fewer that differ than other edits (`contexts`),
its record must not be the luckiest of several folders (`siblings`), and pages are tried on while it is in use
(`clusterd_crawler.skipping.renaming`).

Cost: linear in the pages of a content, of which at most `proposing.COMPARED` are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from clusterd_crawler.rules import Condition, Edit, Key, component

from clusterd.learning.edits.components import Components
from clusterd.learning.edits.edit import PathEdit, shortened
from clusterd.learning.edits.proposing import PathsByQuery, begun_alike, in_pairs

#: Fewest contents that propose an alias before it is judged.
PROPOSED: Final = 4
#: Folders below it for each of which an alias is proposed too: what lies in them may agree where their parent differs.
FOLDERS: Final = 2
#: Most components of a prefix.
LONGEST: Final = 6
#: Most aliases judged at a time.
ALIASES: Final = 16

Prefix = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alias(PathEdit):
    """One stated part of a path is written for another, or goes, whatever stands below it."""

    #: What both names stand in: a folder, or the place alone.
    place: tuple[object, ...] = ()
    #: The two names; () where one of them is that there is none.
    names: frozenset[Prefix] = frozenset()


def without_part(start: int, text: str) -> Alias:
    """Return the edit by which a component goes, wherever it has this text."""
    key = Key(start=start)
    index = key.index
    return Alias(
        (Edit(key, "delete"),),
        lambda parts: parts[:index] + parts[index + 1 :] if len(parts) > index + 1 and parts[index] == text else None,
        (Condition(key, "is", (text,)), Condition(component(index + 1), "any")),
        place=() if not index else (start,),
        names=frozenset({(text,), ()}),
    )


def renamed(gone: str, kept: str) -> Alias:
    """Return the edit by which the first folder has another name, for all that is in it."""
    return _renamed(component(0), gone, kept)


def renamed_page(gone: str, kept: str) -> Alias:
    """Return the edit by which a script has another name, in whatever folder: ``forum/print.php?t=1``."""
    return _renamed(Key(end=1), gone, kept)


def _renamed(key: Key, gone: str, kept: str) -> Alias:
    at = -1 if key.end else 0

    def change(parts: list[str]) -> list[str] | None:
        if parts[at] != gone:
            return None
        return [kept if place == at % len(parts) else part for place, part in enumerate(parts)]

    condition = Condition(key, "is", (gone,))
    names = frozenset({(gone,), (kept,)})
    return Alias((Edit(key, "set", kept),), change, (condition,), place=(key,) if at else (), names=names)


def aliases(contents: Iterable[PathsByQuery]) -> list[PathEdit]:
    """Return the edits of components, then of prefixes, that are worth judging, those of most contents first."""
    components = Components()
    counts: Counter[tuple[Prefix, Prefix]] = Counter()
    below: dict[tuple[Prefix, Prefix], Counter[str]] = defaultdict(Counter)
    for of_content in contents:
        # The last first: when ``c`` has become ``b``, ``b`` with all that became it can still become ``a``.
        pairs = dict.fromkeys(reversed(list(_pairs(of_content, components))))
        components.next_content()
        counts.update({(gone, kept): 1 for gone, kept, _ in pairs})
        for gone, kept, folder in pairs:
            below[gone, kept][folder] += 1
    found = components.edits()
    for (gone, kept), count in counts.most_common(ALIASES):
        if count < PROPOSED:
            break
        found += [_alias(gone, kept, deep=True), _alias(gone, kept, deep=False)]
        found += [
            _alias((*gone, folder), (*kept, folder), deep=True)
            for folder, times in below[gone, kept].most_common(FOLDERS)
            if folder and times >= PROPOSED and len(gone) < LONGEST
        ]
    return found


def _pairs(of_content: PathsByQuery, components: Components) -> Iterator[tuple[Prefix, Prefix, str]]:
    """Yield (prefix that goes, prefix that stays, folder below both or "") of pages of one content and one query."""
    for found in of_content:
        for short, long in in_pairs(sorted(found, key=len)):
            components.note(short, long)
            yield from _prefixes(short, long)


def _prefixes(kept: list[str], gone: list[str]) -> Iterator[tuple[Prefix, Prefix, str]]:
    """Yield what stands before the components in which two paths end alike, and the first of these, if a folder.

    >>> list(_prefixes(["a", "x", "page"], ["b", "x", "page"])), list(_prefixes(["a", "page"], ["b", "page"]))
    ([(('b',), ('a',), 'x')], [(('b',), ('a',), '')])
    """
    end = begun_alike(kept[::-1], gone[::-1])
    before, after = gone[: len(gone) - end], kept[: len(kept) - end]
    if end and before and before != after and len(before) <= LONGEST:
        yield tuple(before), tuple(after), gone[len(before)] if end > 1 else ""


def _alias(gone: Prefix, kept: Prefix, *, deep: bool) -> Alias:
    """Return the replacement of a prefix: in folders below it (``deep``), or of files directly in it."""
    size = len(gone)
    replaced = [Edit(component(at), "set", part) for at, part in enumerate(kept) if gone[at] != part]
    prefix = [Condition(component(at), "is", (part,)) for at, part in enumerate(gone)]

    def change(parts: list[str]) -> list[str] | None:
        if tuple(parts[:size]) != gone or (len(parts) < size + 2 if deep else len(parts) != size + 1):
            return None
        return [*kept, *parts[size:]]

    place = Condition(component(size + 1), "any") if deep else Condition(Key(), "depth", (str(size + 1),))
    beyond = component(size).start if deep else 0
    shared, names = _names(gone, kept)
    return Alias(
        (*replaced, *shortened(size, len(kept))), change, (*prefix, place), beyond=beyond, place=shared, names=names
    )


def _names(gone: Prefix, kept: Prefix) -> tuple[Prefix, frozenset[Prefix]]:
    """Return what two prefixes begin with, and what each has between that and what both end with.

    >>> _names(("docs", "old", "mod"), ("docs", "new", "mod"))[0], sorted(_names(("en", "mod"), ("mod",))[1])
    (('docs',), [(), ('en',)])
    """
    start = begun_alike(gone, kept)
    end = begun_alike(gone[start:][::-1], kept[start:][::-1])
    return gone[:start], frozenset({gone[start : len(gone) - end], kept[start : len(kept) - end]})
