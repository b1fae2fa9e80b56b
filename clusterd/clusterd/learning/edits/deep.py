"""Parts of a value that do not matter: the title in ``id=5:title``, the ``.html`` or ``_print`` of ``a_print.html``.

Koppula et al. 2010, sections 3.1.2 and 3.3: deep tokens, and a value that is copied from one of them. Of a parameter
what follows the identifier may go, with the delimiter before it; of the last component a stated ending. Both are said
by a ``like`` pattern and by copying its first token over the whole. What stands before an ending that stays, a word or
the number of the first page, is taken out. Of two endings (``.htm``, ``.html``) one is written for the other.

Cost: of a cut as of any edit of a parameter's values; of an ending as of any edit of paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from clusterd_crawler.rules import Condition, Edit, Key

from clusterd.learning.edits.edit import PathEdit, Rewrite
from clusterd.learning.edits.proposing import ValuePair, by_values
from clusterd.learning.evidence.columns import VALUELESS
from clusterd.learning.evidence.snapshot import Snapshot

#: Fewest contents that propose a cut, and most of them that are judged at a time.
PROPOSED: Final = 20
CUTS: Final = 4
#: An identifier and what delimits it from a title.
IDENTIFIER: Final = re.compile(r"([0-9]+)([-:_,.;~])")
#: Longest ending that is looked at.
LONGEST: Final = 16
#: A name and its ending, which is one run of letters; its place among the deep tokens of ``*.html``, behind the dot.
EXTENSION: Final = re.compile(r"(.+)\.([a-z]{1,5}|[A-Z]{1,5})")
EXTENSION_TOKEN: Final = 3
#: What may stand before an ending: a delimiter and a word or number; the ending.
INFIX: Final = re.compile(r"([-_.,~][A-Za-z0-9]{1,12})(\.[A-Za-z]{1,5})")


@dataclass(frozen=True, slots=True)
class Cut(Rewrite):
    """Of a parameter's value only what stands before the first delimiter matters."""

    delimiter: str

    @property
    def needs(self) -> tuple[Condition, ...]:
        """The delimiter."""
        return (Condition(Key(*self.own[0]), "like", (f"*{self.delimiter}*",)),)

    @property
    def transformation(self) -> tuple[Edit, ...]:
        """The first deep token in the place of the value."""
        name, occurrence = self.own[0]
        return (Edit(Key(name, occurrence), "copy", source=Key(name, occurrence, deep=1)),)

    def written(self, text: str) -> str:
        """Return what stands before the delimiter; a value that begins with it stays."""
        return text.partition(self.delimiter)[0] or text


def cuts(snapshot: Snapshot, pairs: Iterable[ValuePair]) -> Iterator[Cut]:
    """Yield the cuts that are worth judging, of (parameter, value, value, contents that show a page with either)."""
    for key, delimiter in islice(by_values(snapshot, pairs, _delimiters, PROPOSED), CUTS):
        yield Cut((key,), delimiter)


def _delimiters(first: str, second: str) -> tuple[str, ...]:
    found = _delimiter(first, second)
    return (found,) if found else ()


def _delimiter(first: str, second: str) -> str:
    """Return what delimits one identifier from what follows it in either value, "" where there is no such thing.

    >>> _delimiter("5:news", "5"), _delimiter("5-a", "5-b"), _delimiter("5-a", "6-a"), _delimiter("5", "51")
    (':', '-', '', '')
    """
    long = max(first, second, key=len)
    found = IDENTIFIER.match(long)
    if not found or VALUELESS in first + second:
        return ""
    identifier, delimiter = found.groups()
    return delimiter if all(text.partition(delimiter)[0] == identifier for text in (first, second)) else ""


def ending_of(long: str, short: str) -> str:
    """Return what a component has behind another one, where it begins with no letter or digit, else "".

    >>> ending_of("about.html", "about"), ending_of("abouts", "about"), ending_of("about", "team")
    ('.html', '', '')
    """
    ending = long[len(short) :]
    if not short or not long.startswith(short) or not 1 < len(ending) <= LONGEST:
        return ""
    return "" if ending[0].isalnum() or any(mark in ending for mark in "*%") else ending


@dataclass(frozen=True, slots=True)
class Ending(PathEdit):
    """An ending of the last component that goes."""


def without_ending(ending: str) -> Ending:
    """Return the edit by which an ending of the last component goes."""
    last = Key(end=1)

    def change(parts: list[str]) -> list[str] | None:
        text = parts[-1]
        while text.endswith(ending):
            text = text.removesuffix(ending)
        return [*parts[:-1], text] if text and text != parts[-1] else None

    return Ending((Edit(last, "copy", source=Key(end=1, deep=1)),), change, (Condition(last, "like", (f"*{ending}",)),))


def exchanged(first: str, second: str) -> tuple[str, str] | None:
    """Return in which endings alone two components differ, the one that stays first; None where in something else.

    >>> exchanged("about.html", "about.htm"), exchanged("about.html", "team.htm"), exchanged("a.1", "a.2")
    (('htm', 'html'), None, None)
    """
    one, other = EXTENSION.fullmatch(first), EXTENSION.fullmatch(second)
    if not one or not other or one[1] != other[1]:
        return None
    kept, gone = sorted((one[2], other[2]))
    return kept, gone


def other_ending(kept: str, gone: str) -> Ending:
    """Return the edit by which an ending of the last component becomes another one."""

    def change(parts: list[str]) -> list[str] | None:
        return [*parts[:-1], parts[-1].removesuffix(gone) + kept] if parts[-1].endswith(f".{gone}") else None

    last = Condition(Key(end=1), "like", (f"*.{gone}",))
    return Ending((Edit(Key(end=1, deep=EXTENSION_TOKEN), "set", kept),), change, (last,))


def infix_of(long: str, short: str) -> tuple[str, str] | None:
    """Return what a component has before the ending that both have, and that ending; None where it is another thing.

    >>> infix_of("a_print.html", "a.html"), infix_of("list-2-1.html", "list-2.html"), infix_of("ab.html", "a.html")
    (('_print', '.html'), ('-1', '.html'), None)
    """
    stem, dot, ending = short.rpartition(".")
    found = INFIX.fullmatch(long[len(stem) :]) if stem and dot and long.startswith(stem) else None
    return (found[1], found[2]) if found and found[2] == dot + ending else None


def without_infix(infix: str, ending: str) -> Ending:
    """Return the edit by which a text before an ending of the last component goes."""
    last, both = Key(end=1), infix + ending

    def change(parts: list[str]) -> list[str] | None:
        text = parts[-1]
        while text.endswith(both):
            text = text.removesuffix(both) + ending
        return [*parts[:-1], text] if text != parts[-1] else None

    return Ending((Edit(last, "without", infix),), change, (Condition(last, "like", (f"*{both}",)),))
